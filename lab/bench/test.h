/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a test of `tern perf` is.
 *
 * A test is a few phases that its ranks run in turn, round after round: what is
 * measured, then the hardware's limit, then again. So both see the same machine,
 * whatever that does meanwhile, and their medians can be compared. A phase is
 * called on every rank at the same time; what rank 0 returns is the figure, unless the phase
 * wants the slowest rank's.
 */
#ifndef TERN_LAB_BENCH_TEST_H
#define TERN_LAB_BENCH_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tern/tern.h>

#include "lab/bench/raw.h"

struct sizes {
	unsigned n;
	uint32_t at[32];
};

enum { PERF_LIMITS = 2, PERF_RANKS_MOST = 256, PERF_PARTS_MOST = 128, PERF_ALSO_MOST = 4 };

struct bench_rank;
typedef double perf_phase(struct bench_rank *p); /* its figure */
typedef int phase_act(struct bench_rank *p);     /* 0, or a negative code */

/* One rank's view of the test it takes part in. */
struct bench_rank {
	tern *t; /* NULL in a test of one process */
	uint32_t rank, ranks, size;
	uint64_t count;
	struct raw raw;
	int way;                     /* of the phase, see struct phase, */
	phase_act *act;              /* and what a figure times */
	double also[PERF_ALSO_MOST]; /* further figures of the phase; see struct part */
	int spare_core;              /* a core that no rank has; -1: there is none */
	int rc;                      /* a phase that fails leaves its code here */
};

/*
 * An act that makes one call `count` times, up to the first that fails; `i` counts them. What
 * stands at its end wants a semicolon.
 */
#define REPEATS(name, call)                                       \
	int name(struct bench_rank *p)                            \
	{                                                         \
		for (uint64_t i = 0; i < p->count && !p->rc; i++) \
			p->rc = (call);                           \
		return p->rc;                                     \
	}                                                         \
	struct bench_rank

/* Who acts, and until when the time of rank 0 counts. */
enum phase_time {
	PHASE_ALL = 1, /* all ranks, until it has returned */
	PHASE_SLOWEST, /* all ranks, and the time of the slowest counts */
	PHASE_FIRST,   /* rank 0 alone, likewise */
	PHASE_ACTED,   /* rank 0, while rank 1 handles what comes, likewise */
	PHASE_HANDLED, /* the same, until all that was sent has been handled */
};

/* What the ranks do: an act whose time becomes a figure, or what finds a figure in another way. */
struct phase {
	phase_act *act;
	enum phase_time time;
	int way; /* the phase's own: which variant it plays */
	perf_phase *figure;
};

static inline bool phase_plays(const struct phase *f)
{
	return f->act || f->figure;
}

/*
 * From nanoseconds for `count` of them: ns for one, millions a second, bytes a nanosecond (GB/s).
 */
static inline double each_ns(const struct bench_rank *p, uint64_t ns)
{
	return (double)ns / (double)p->count;
}

static inline double each_microsecond(const struct bench_rank *p, uint64_t ns)
{
	return (double)p->count * 1000 / (double)ns;
}

static inline double each_byte(const struct bench_rank *p, uint64_t ns)
{
	return (double)p->count * (double)p->size / (double)ns;
}

enum { RANKS_BY_SIZE = INT32_MAX }; /* as the number of ranks */

/*
 * The limits that ranks play together, each waiting in the manner of the phase. All count how often
 * they do it.
 */
phase_act raw_trips;  /* a line there and back, between ranks 0 and 1 */
phase_act raw_stream; /* a line for each message from rank 0 to rank 1, until all were read */
phase_act raw_laps;   /* a token through all ranks */
/*
 * Payloads of the size from rank 0, read in place by rank 1: short ones lie in a ring behind the
 * line of their message, others in slots.
 */
int raw_copies(struct bench_rank *p, const void *data);

/*
 * A row of `tern perf`: what it leaves out is as test_complete() says. One without a purpose is not
 * a test: others are like it.
 */
struct test {
	const char *name, *purpose, *unit; /* of a rate (M/s, GB/s) more is better */
	const char *size_name;             /* what a size counts: words, bytes, ranks */
	uint32_t size_least, size_most;
	struct sizes sizes, quick; /* usually, and for --quick */
	const char *like; /* a row that has the rest, but for --quick; NULL: the defaults */
	uint32_t ranks;   /* processes; RANKS_BY_SIZE: as many as the size says */
	uint32_t cores;   /* that it wants for itself: a round is played again when it had fewer */
	uint64_t count;   /* messages a round, */
	uint64_t bytes;   /* unless that is more bytes, or whatever a size counts, than this */
	unsigned rounds, warm;
	phase_act *open; /* registers handlers; may be NULL */
	struct phase measure;
	struct phase limit[PERF_LIMITS]; /* the better one counts */
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

/* The row with all that it inherits: from the complete row that it is like, or from the defaults.
 */
struct test test_complete(const struct test *row, const struct test *like);

#endif
