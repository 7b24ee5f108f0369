/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a sweep: across are the values of the first key, one beside the other; upward the
 * time, from 0, or where the key is the number of nodes the speed-up, on a logarithmic scale,
 * beside the ideal one. Each value of the second key has a line.
 */
#include <string.h>

#include "tools/common/chart.h"
#include "tools/sim/sweep.h"

enum { LINES_MOST = SWEEP_VALUES + 1 };

struct lines {
	struct chart_series series[LINES_MOST];
	struct chart_point at[LINES_MOST][SWEEP_VALUES];
	char name[LINES_MOST][2 * PROFILE_NAME];
	unsigned n;
};

static struct chart_point *line_add(struct lines *l, unsigned across, enum chart_style style)
{
	unsigned i = l->n++;
	l->series[i] = (struct chart_series){
		.name = l->name[i], .colour = i, .style = style, .at = l->at[i], .n = across
	};
	return l->at[i];
}

static void lines_make(struct lines *l, const struct sweeps *s)
{
	for (unsigned line = 0; line < s->lines; line++) {
		sweep_line_name(s, line, l->name[l->n], sizeof l->name[0]);
		struct chart_point *at = line_add(l, s->across, CHART_WHOLE);
		for (unsigned i = 0; i < s->across; i++)
			at[i] = (struct chart_point){ .x = i,
						      .y = s->nodes ? sweep_speedup(s, line, i)
								    : s->run[line][i].time };
	}
	if (!s->nodes)
		return;
	strcpy(l->name[l->n], "ideal"); /* N times as quick with N times the nodes */
	struct chart_point *at = line_add(l, s->across, CHART_IDEAL);
	for (unsigned i = 0; i < s->across; i++)
		at[i] = (struct chart_point){
			.x = i, .y = (double)s->run[0][i].nodes / s->run[0][0].nodes
		};
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
	static struct lines l;
	const char *place[SWEEP_VALUES];
	char title[4 * PROFILE_NAME];
	l.n = 0;
	lines_make(&l, s);
	for (unsigned i = 0; i < s->across; i++)
		place[i] = o->sweep[0].value[i];
	snprintf(title, sizeof title, "%s: %s of %s", o->profile,
		 s->nodes ? "speed-up" : "virtual time",
		 o->pattern ? o->pattern->name : o->program[0]);
	const struct chart chart = {
		.title = title,
		.x = { .name = s->nodes ? "nodes" : o->sweep[0].key,
		       .unit = s->nodes ? NULL : key_meaning(o->sweep[0].key) },
		.y = { .unit = s->nodes ? "speed-up" : "us", .log = s->nodes },
		.place = place,
		.places = s->across,
		.series = l.series,
		.n = l.n,
	};
	return chart_write(&(struct chart_sheet){ .label = "A simulated machine with other values",
						  .chart = &chart,
						  .charts = 1,
						  .columns = 1,
						  .wide = 700,
						  .high = 360 },
			   to);
}
