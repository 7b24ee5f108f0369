/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --delivery`: a rank computes while another asks it something at an interval, from
 * rare to back-to-back, in every way of delivery. What the computation loses, how long
 * answers take, how often it was interrupted.
 */
#ifndef TERN_LAB_PERF_COMPARE_SWEEP_H
#define TERN_LAB_PERF_COMPARE_SWEEP_H

#include <stdio.h>

#include "lab/bench/test.h"

/* The ways, in the order of the columns that show them. */
enum sweep_way { WAY_POLLED, WAY_UNPOLLED, WAY_THREAD, WAY_INTERRUPT, WAYS };
enum { INTERVALS = 8 };

extern const char *const sweep_way_name[WAYS];
extern const uint32_t sweep_interval[INTERVALS]; /* ns between two messages; 0: back-to-back */

/* One way at one interval: medians over the rounds. */
enum sweep_figure {
	SWEEP_LATENCY,  /* of a round trip, ns; */
	SWEEP_P99,      /* 99 of 100 take less */
	SWEEP_SLOWDOWN, /* what the computation takes longer, as a part of what it takes
			   undisturbed */
	SWEEP_EVENTS,   /* interrupts for each message, or claims of the thread */
	SWEEP_RATE,     /* messages a second */
	SWEEP_FIGURES
};

struct sweep_point {
	double is[SWEEP_FIGURES];
};

struct sweep {
	struct sweep_point at[INTERVALS][WAYS];
	uint64_t ms; /* that each phase computed */
	unsigned rounds;
	uint32_t cores;
};

/* The three categories of active-messages.txt 4.3.7, by what interrupts do at this interval. */
enum sweep_regime { REGIME_INFREQUENT, REGIME_MODERATE, REGIME_FREQUENT, REGIMES };
extern const char *const sweep_regime_name[REGIMES];
enum sweep_regime sweep_regime(const struct sweep *s, unsigned interval);

/*
 * sweep_phase.c: the phase's figure is the latency; the others are in the rank, in that order, with
 * pieces computed in a ms of the core in place of the slowdown.
 */
enum { SWEEP_ALSO = SWEEP_FIGURES - 1 };
int sweep_open(struct bench_rank *p);
perf_phase sweep_alone;  /* those pieces while nothing is asked */
perf_phase sweep_by_way; /* its way is a sweep_way */

/* sweep_report.c, sweep_plot.c */
void sweep_report(const struct sweep *s, bool as_json);
int sweep_plot(const void *sweep, FILE *to); /* SVG; 0 or -EIO */

#endif
