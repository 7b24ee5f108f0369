/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a sweep: across are the values of the first key, one beside the other; upward the
 * time, from 0, or where the key is the number of nodes the speed-up, on a logarithmic scale,
 * beside the ideal one. Each value of the second key has a line.
 */
#include <string.h>

#include "tools/common/chart.h"
#include "tools/sim/sweep.h"

static void lines_make(struct chart *c, const struct sweeps *s)
{
	char name[2 * PROFILE_NAME];
	for (unsigned line = 0; line < s->lines; line++) {
		sweep_line_name(s, line, name, sizeof name);
		for (unsigned i = 0; i < s->across; i++)
			chart_point(chart_series(c, name, CHART_WHOLE),
				    (struct chart_point){ .x = i,
							  .y = s->nodes ? sweep_speedup(s, line, i)
									: s->run[line][i].time });
	}
	for (unsigned i = 0; s->nodes && i < s->across;
	     i++) /* N times as quick with N times the nodes */
		chart_point(chart_series(c, "ideal", CHART_IDEAL),
			    (struct chart_point){
				    .x = i, .y = (double)s->run[0][i].nodes / s->run[0][0].nodes });
}

/* What a key's numbers count; NULL for other keys than the machine's. */
static const char *key_meaning(const char *key)
{
	const struct profile_key *k = profile_key;
	while (k->name && strcmp(k->name, key) != 0)
		k++;
	return k->meaning;
}

int sim_sweep_plot(const void *sweeps, FILE *to)
{
	const struct sweeps *s = sweeps;
	const struct sim_options *o = s->o;
	static struct chart chart; /* large */
	char title[4 * PROFILE_NAME];
	snprintf(title, sizeof title, "%s: %s of %s", o->profile,
		 s->nodes ? "speed-up" : "virtual time",
		 o->pattern ? o->pattern->name : o->program[0]);
	chart.title = title;
	chart.x = (struct chart_axis){ .name = s->nodes ? "nodes" : o->sweep[0].key,
				       .unit = s->nodes ? NULL : key_meaning(o->sweep[0].key) };
	chart.y = (struct chart_axis){ .unit = s->nodes ? "speed-up" : "us", .log = s->nodes };
	for (unsigned i = 0; i < s->across; i++)
		chart_place(&chart, o->sweep[0].value[i]);
	lines_make(&chart, s);
	return chart_write(&(struct chart_sheet){ .label = "A simulated machine with other values",
						  .chart = &chart,
						  .charts = 1,
						  .columns = 1,
						  .wide = 700,
						  .high = 360 },
			   to);
}
