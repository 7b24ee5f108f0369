/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs `tern perf --delivery`: every way of delivery at every interval. */
#include "lab/perf/compare/sweep.h"

#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "lab/bench/ranks.h"
#include "lab/perf/perf.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

enum { MS = 20, QUICK_MS = 5, ROUNDS = 11, QUICK_ROUNDS = 3 };

const char *const sweep_way_name[WAYS] = {
	[WAY_POLLED] = "poll, each 10 us",
	[WAY_UNPOLLED] = "poll, never",
	[WAY_THREAD] = "thread",
	[WAY_INTERRUPT] = "interrupt",
};

const uint32_t sweep_interval[INTERVALS] = { 1000000, 300000, 100000, 30000, 10000, 3000, 1000, 0 };

const char *const sweep_regime_name[REGIMES] = {
	[REGIME_INFREQUENT] = "infrequent",
	[REGIME_MODERATE] = "moderate",
	[REGIME_FREQUENT] = "frequent",
};

/*
 * Frequent: most messages come back-to-back and need no interrupt of their own. Infrequent: each
 * has one, but they are so few that it hardly matters. Moderate: each has one, and it matters.
 */
enum sweep_regime sweep_regime(const struct sweep *s, unsigned interval)
{
	const struct sweep_point *p = &s->at[interval][WAY_INTERRUPT];
	if (p->is[SWEEP_EVENTS] < 0.5)
		return REGIME_FREQUENT;
	return p->is[SWEEP_SLOWDOWN] < 0.05 ? REGIME_INFREQUENT : REGIME_MODERATE;
}

/* -- The run ---------------------------------------------------------------------------------- */

/* The undisturbed phase, and then each way with its further figures. */
enum {
	PART_ALONE,
	PART_WAYS,
	PARTS_OF_WAY = 1 + SWEEP_ALSO,
	PARTS = PART_WAYS + WAYS * PARTS_OF_WAY
};

static struct sweep_point point_make(struct series *s, double alone)
{
	struct sweep_point p;
	for (unsigned f = 0; f < SWEEP_FIGURES; f++)
		p.is[f] = series_median(&s[f]);
	p.is[SWEEP_SLOWDOWN] = alone / p.is[SWEEP_SLOWDOWN] - 1;
	return p;
}

/* All ways at one interval, in the same rounds. */
static int interval_run(struct sweep *s, unsigned interval)
{
	static struct ranks_result result; /* large */
	/*
	 * Without a third core the progress thread takes the computation's, and no round
	 * would count.
	 */
	const struct test test = { .name = "delivery",
				   .ranks = 2,
				   .cores = s->cores > 2 ? 2 : 0,
				   .warm = 1,
				   .open = sweep_open,
				   .set = { { "TERN_SIGNAL", "40" } } };
	struct part parts[PARTS] = { [PART_ALONE] = { .phase.figure = sweep_alone,
						      .count = s->ms } };
	for (int w = 0; w < WAYS; w++)
		parts[PART_WAYS + w * PARTS_OF_WAY] =
			(struct part){ { .figure = sweep_by_way, .way = w },
				       sweep_interval[interval],
				       s->ms,
				       SWEEP_ALSO };
	memset(&result, 0, sizeof result);
	int rc = ranks_play(&test, 0, parts, PARTS, s->rounds, &result);
	if (rc)
		return rc;
	double alone = series_median(&result.part[PART_ALONE]);
	for (int w = 0; w < WAYS; w++)
		s->at[interval][w] = point_make(&result.part[PART_WAYS + w * PARTS_OF_WAY], alone);
	return 0;
}

static int sweep_run(struct sweep *s)
{
	int rc = 0;
	for (unsigned i = 0; i < INTERVALS && !rc; i++) {
		progress(i + 1, INTERVALS, "every %g us", sweep_interval[i] / 1e3);
		rc = interval_run(s, i);
	}
	progress_end();
	return rc;
}

int sweep_main(const struct perf_options *o)
{
	struct sweep s = { .ms = o->count   ? o->count
				 : o->quick ? QUICK_MS
					    : MS,
			   .cores = cpu_count() };
	s.rounds = perf_rounds(o, ROUNDS, QUICK_ROUNDS);
	int rc = sweep_run(&s);
	if (!rc)
		sweep_report(&s, o->json);
	return rc ? rc : file_write(o->plot, sweep_plot, &s);
}
