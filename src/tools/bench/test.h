/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a test of `tern perf` is.
 *
 * A test is a few phases that its ranks run in turn, round after round: what is
 * measured, then the hardware's limit, then again. So both see the same machine,
 * whatever that does meanwhile, and their medians can be compared. A phase is
 * called on every rank at the same time; what rank 0 returns is the figure.
 */
#ifndef TERN_TOOLS_BENCH_TEST_H
#define TERN_TOOLS_BENCH_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tern/tern.h>

#include "tools/bench/raw.h"

struct sizes {
	unsigned n;
	uint32_t at[32];
};

enum { PERF_LIMITS = 2, PERF_RANKS_MOST = 256, PERF_PARTS_MOST = 128, PERF_ALSO_MOST = 4 };

/* One rank's view of the test it takes part in. */
struct player {
	tern *t; /* NULL in a test of one process */
	uint32_t rank, ranks, size;
	uint64_t count;
	struct raw raw;
	double also[PERF_ALSO_MOST]; /* further figures of the phase; see struct part */
	int spare_core;              /* a core that no rank has; -1: there is none */
	int rc;                      /* a phase that fails leaves its code here */
};

typedef double perf_phase(struct player *p);

struct test {
	const char *name, *purpose;
	const char *size_name; /* what a size counts: words, bytes, ranks */
	uint32_t size_least, size_most;
	struct sizes sizes, quick; /* usually, and for --quick */
	const char *unit;
	bool rate;      /* more is better */
	uint32_t ranks; /* processes; 0: as many as the size says */
	uint32_t cores; /* that it wants for itself: a round is played again when it had fewer */
	uint64_t count; /* messages a round, */
	uint64_t bytes; /* unless that is more bytes, or whatever a size counts, than this */
	unsigned rounds, warm;
	int (*open)(struct player *p); /* registers handlers; may be NULL */
	perf_phase *measure;
	perf_phase *limit[PERF_LIMITS]; /* the better one counts */
	const char *limit_name;
	struct {
		uint32_t size;
		const char *text;
	} bar[8]; /* what the project wants of some sizes */
	const char *note;
	struct {
		const char *name, *value;
	} set[2]; /* in the environment of its ranks */
	/* Whether it can run here, and if not, why; NULL if it always can. */
	bool (*usable)(char *why, size_t len);
};

#endif
