/* SPDX-License-Identifier: BSD-3-Clause */
/* Collecting the parts of a simulated run, and their sums. */
#include "tools/sim/figures.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/sim/machine/network.h"

const char *const limit_name[LIMITS] = { "processor", "controller", "injection",
					 "link",      "ejection",   "latency" };

static double us(uint64_t ps)
{
	return (double)ps / 1e6;
}

/* -- Sums ------------------------------------------------------------------------------------- */

static void load_add(struct load *l, const struct use_row *row, double busy)
{
	const struct use *u = &row->use;
	l->parts++;
	l->busy += busy;
	l->waited += us(u->waited);
	if (us(u->longest) > l->longest)
		l->longest = us(u->longest);
	if (u->deepest > l->deepest)
		l->deepest = u->deepest;
	if (busy < l->most)
		return;
	l->most = busy;
	l->from = row->from;
	l->to = row->to;
}

/* What the processor of one node does stands in up to three rows, one behind the other. */
static size_t processor_add(struct figures *f, size_t i)
{
	const struct use_row *first = &f->row[i];
	double busy = 0;
	for (; i < f->rows && f->row[i].part <= USE_WORK && f->row[i].from == first->from; i++)
		busy += us(f->row[i].use.busy);
	load_add(&f->load[LIMIT_PROCESSOR], first, busy);
	return i;
}

static void figures_sum(struct figures *f)
{
	static const enum limit limit[USE_PARTS] = { [USE_CONTROLLER] = LIMIT_CONTROLLER,
						     [USE_IN] = LIMIT_IN,
						     [USE_OUT] = LIMIT_OUT,
						     [USE_LINK] = LIMIT_LINK };
	for (size_t i = 0; i < f->rows; i++)
		f->part[f->row[i].part] += us(f->row[i].use.busy);
	for (size_t i = 0; i < f->rows;) {
		const struct use_row *row = &f->row[i];
		if (row->part <= USE_WORK) {
			i = processor_add(f, i);
			continue;
		}
		load_add(row->part == USE_INBOX ? &f->inbox : &f->load[limit[row->part]], row,
			 us(row->use.busy));
		i++;
	}
}

enum limit figures_limit(const struct figures *f, double *utilisation)
{
	enum limit best = LIMIT_PROCESSOR;
	for (int i = 1; i < LIMIT_PARTS; i++)
		if (f->load[i].most > f->load[best].most)
			best = i;
	*utilisation = f->time > 0 ? f->load[best].most / f->time : 0;
	return *utilisation >= 0.5 ? best : LIMIT_LATENCY;
}

/* -- Collecting ------------------------------------------------------------------------------- */

static void figures_add(void *to, const struct use_row *row)
{
	struct figures *f = to;
	if (f->rows == f->room) {
		size_t room = f->room ? 2 * f->room : 1024;
		struct use_row *more = realloc(f->row, room * sizeof *more);
		if (!more)
			return; /* figures_take() and figures_read() notice */
		f->row = more;
		f->room = room;
	}
	f->row[f->rows++] = *row;
}

static int figures_done(struct figures *f)
{
	if (!f->rows && f->room)
		return error_set(-ENOMEM, "no memory for the figures of the simulated machine");
	figures_sum(f);
	return 0;
}

int figures_take(struct figures *f, struct machine *m)
{
	const struct shared *s = m->shared;
	*f = (struct figures){ .nodes = s->nodes,
			       .width = m->width,
			       .time = us(s->ended),
			       .flight = us(s->flight),
			       .events = s->happened,
			       .packets = s->delivered };
	snprintf(f->profile, sizeof f->profile, "%s", m->profile.name);
	snprintf(f->network, sizeof f->network, "%s", m->profile.network);
	snprintf(f->controller, sizeof f->controller, "%s", m->profile.controller);
	use_each(m, figures_add, f);
	return figures_done(f);
}

void figures_free(struct figures *f)
{
	free(f->row);
	f->row = NULL;
}

/* -- Reading the table ------------------------------------------------------------------------ */

static bool vertex_read(const char *text, uint32_t *vertex)
{
	unsigned level, number;
	if (sscanf(text, "s%u.%u", &level, &number) == 2)
		*vertex = level << VERTEX_LEVEL | number;
	else
		return sscanf(text, "%u", vertex) == 1;
	return true;
}

static bool row_read(const char *line, struct use_row *row)
{
	char part[16], from[24], to[24];
	double busy, waited, longest;
	if (sscanf(line, "%15[^,],%23[^,],%23[^,],%lf,%lf,%lf,%" SCNu64 ",%u", part, from, to,
		   &busy, &waited, &longest, &row->use.packets, &row->use.deepest) != 8 ||
	    !vertex_read(from, &row->from) || !vertex_read(to, &row->to))
		return false;
	row->use.busy = (uint64_t)(busy * 1e6 + 0.5);
	row->use.waited = (uint64_t)(waited * 1e6 + 0.5);
	row->use.longest = (uint64_t)(longest * 1e6 + 0.5);
	for (row->part = 0; row->part < USE_PARTS; row->part++)
		if (strcmp(part, use_name[row->part]) == 0)
			return true;
	return false;
}

static bool head_read(struct figures *f, const char *line)
{
	return sscanf(line,
		      "# profile=%31s network=%31s controller=%31s nodes=%u width=%u time_us=%lf "
		      "events=%" SCNu64 " packets=%" SCNu64 " flight_us=%lf switches=%" SCNu64
		      " cpu_us=%lf",
		      f->profile, f->network, f->controller, &f->nodes, &f->width, &f->time,
		      &f->events, &f->packets, &f->flight, &f->switches, &f->cpu) == 11;
}

int figures_read(struct figures *f, const char *name)
{
	char line[512];
	FILE *from = fopen(name, "re");
	*f = (struct figures){ 0 };
	if (!from)
		return error_set(-errno, "reading %s: %s", name, strerror(errno));
	bool good = fgets(line, sizeof line, from) && head_read(f, line) &&
		    fgets(line, sizeof line, from);
	while (good && fgets(line, sizeof line, from)) {
		struct use_row row = { 0 };
		good = row_read(line, &row);
		figures_add(f, &row);
	}
	fclose(from);
	if (good)
		return figures_done(f);
	figures_free(f);
	return error_set(-EINVAL, "%s has no figures of a simulated run: not all ranks have closed",
			 name);
}
