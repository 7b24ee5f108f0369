/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a way of delivery costs a rank to which nothing is delivered: a computation, a critical
 * section and a barrier in each, beside the same with polls.
 */
#include <pthread.h>

#include "base/clock.h"
#include "tools/bench/compute.h"
#include "tools/perf/perf.h"

/* -- A computation -------------------------------------------------------------------------- */

/* Rank 0 computes; there is another so that there is somebody to be on guard for. */
static double slow_by(struct player *p, enum tern_delivery d)
{
	if (p->rank)
		return 0;
	p->rc = tern_set_delivery(p->t, d);
	uint64_t began = clock_ns();
	compute(p->count);
	return (double)(clock_ns() - began) / 1e6;
}

static double slow_poll(struct player *p)
{
	return slow_by(p, TERN_DELIVERY_POLL);
}

static double slow_thread(struct player *p)
{
	return slow_by(p, TERN_DELIVERY_THREAD);
}

static double slow_interrupt(struct player *p)
{
	return slow_by(p, TERN_DELIVERY_INTERRUPT);
}

const struct test test_slow_thread = {
	.name = "slow-thread",
	.purpose = "a computation beside its rank's idle communication thread, of --count steps",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = 2,
	.sizes = { 1, { 2 } },
	.unit = "ms",
	.ranks = 2,
	.cores = 2,
	.count = 10000000,
	.rounds = 31,
	.warm = 1,
	.measure = slow_thread,
	.limit = { slow_poll },
	.limit_name = "the same computation without such a thread",
	.bar = { { 2, "at most 1.01" } },
	.note = "the thread may run on the core that computes, and on no other",
};

const struct test test_slow_interrupt = {
	.name = "slow-interrupt",
	.purpose = "a computation of a rank that might be interrupted but is not, of --count steps",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = 2,
	.sizes = { 1, { 2 } },
	.unit = "ms",
	.ranks = 2,
	.cores = 2,
	.count = 10000000,
	.rounds = 31,
	.warm = 1,
	.measure = slow_interrupt,
	.limit = { slow_poll },
	.limit_name = "the same computation of a rank that is only polled",
	.bar = { { 2, "at most 1.05" } },
	.set = { { "TERN_SIGNAL", "40" } },
};

/* -- A critical section ----------------------------------------------------------------------- */

static double hold_by(struct player *p, enum tern_delivery d)
{
	if (p->rank)
		return 0;
	p->rc = tern_set_delivery(p->t, d);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count; i++) {
		tern_hold(p->t);
		tern_release(p->t);
	}
	return (double)(clock_ns() - began) / (double)p->count;
}

static double hold_poll(struct player *p)
{
	return hold_by(p, TERN_DELIVERY_POLL);
}

static double hold_thread(struct player *p)
{
	return hold_by(p, TERN_DELIVERY_THREAD);
}

static double hold_interrupt(struct player *p)
{
	return hold_by(p, TERN_DELIVERY_INTERRUPT);
}

static double hold_mutex(struct player *p)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	if (p->rank)
		return 0;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return (double)(clock_ns() - began) / (double)p->count;
}

#define HOLD_TEST(way, phase)                                                                               \
	{                                                                                                   \
		.name = "hold-" way, .purpose = "tern_hold() and tern_release(), delivery by " way,         \
		.size_name = "ranks", .size_least = 2, .size_most = 2, .sizes = { 1, { 2 } }, .unit = "ns", \
		.ranks = 2, .cores = 2, .count = 1000000, .rounds = 31, .warm = 1, .measure = phase,        \
		.limit = { hold_mutex }, .limit_name = "an uncontended pthread mutex, locked and unlocked", \
		.set = { { "TERN_SIGNAL", "40" } },                                                         \
	}

const struct test test_hold_poll = HOLD_TEST("poll", hold_poll);
const struct test test_hold_thread = HOLD_TEST("thread", hold_thread);
const struct test test_hold_interrupt = HOLD_TEST("interrupt", hold_interrupt);

/* -- A barrier ---------------------------------------------------------------------------------- */

static double barriers_by(struct player *p, enum tern_delivery d)
{
	p->rc = tern_set_delivery(p->t, d);
	if (!p->rc)
		p->rc = tern_barrier(p->t); /* everybody has changed */
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_barrier(p->t);
	return (double)(clock_ns() - began) / (double)p->count / 1000;
}

static double barriers_thread(struct player *p)
{
	return barriers_by(p, TERN_DELIVERY_THREAD);
}

static double barriers_poll(struct player *p)
{
	return barriers_by(p, TERN_DELIVERY_POLL);
}

const struct test test_barrier_thread = {
	.name = "barrier-thread",
	.purpose = "a barrier of ranks that all have a communication thread",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = PERF_RANKS_MOST,
	.sizes = { 1, { 16 } },
	.unit = "us",
	.count = 100,
	.rounds = 31,
	.warm = 2,
	.measure = barriers_thread,
	.limit = { barriers_poll },
	.limit_name = "the same barrier without the threads",
	.bar = { { 16, "at most 2.00" } },
};
