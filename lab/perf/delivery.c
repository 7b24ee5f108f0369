/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways of delivery. A rank that computes and calls nothing is asked all the same: how long the
 * answer takes when a progress thread gives it, and when an interrupt does. The size is what
 * the asker waits between two questions, because a thread that has had nothing to do for a while
 * sleeps.
 */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/kernel.h"
#include "lab/bench/ranks.h"
#include "lab/bench/series.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { HANDLER_PID = WORDS_FREE, BARE_SIGNAL = 41 };

static struct times times;

static void pause_for(uint32_t us)
{
	for (uint64_t end = clock_ns() + us * UINT64_C(1000); us && clock_ns() < end;)
		cpu_relax();
}

/* -- By messages ------------------------------------------------------------------------- */

/* Rank 0's part of every phase here: the median round trip. */
static double ask(struct bench_rank *p)
{
	times.n = 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		pause_for(p->size);
		times_trip(&times, p);
	}
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return times_median(&times);
}

/*
 * Rank 1 computes until somebody else has handled the last message for it. Where it polls, it does
 * nothing else.
 */
static double served(struct bench_rank *p)
{
	if (!p->rank)
		return ask(p);
	p->rc = tern_delivery_set(p->t, (enum tern_delivery)p->way);
	while (!p->rc && p->way != TERN_DELIVERY_POLL && !words_over())
		compute(COMPUTE_PIECE);
	if (!p->rc)
		p->rc = words_serve(p->t, 1);
	return 0;
}

/* -- By bare signals ------------------------------------------------------------------------ */

static _Atomic int32_t bare_other; /* the other process, whose first thread is named as it is */
static _Atomic uint64_t bare_known, bare_came;
static bool bare_answers;
static uint64_t bare_rounds; /* signals of the phases before */

static void bare_send(void)
{
	thread_signal(bare_other, bare_other, BARE_SIGNAL);
}

static void bare_handler(int number)
{
	(void)number;
	atomic_fetch_add(&bare_came, 1);
	if (bare_answers)
		bare_send();
}

static void on_pid(tern *t, const tern_msg *m)
{
	bare_other = (int32_t)tern_msg_word(m, 0);
	tern_signal(t, &bare_known, 1);
}

static double bare_ask(struct bench_rank *p, uint64_t first)
{
	times.n = 0;
	for (uint64_t i = first + 1; i <= first + p->count; i++) {
		pause_for(p->size);
		uint64_t began = clock_ns();
		bare_send();
		while (atomic_load(&bare_came) < i)
			;
		times_add(&times, clock_ns() - began);
	}
	return times_median(&times);
}

static double served_bare(struct bench_rank *p)
{
	uint64_t first = bare_rounds;
	bare_rounds += p->count;
	if (!p->rank)
		return bare_ask(p, first);
	while (atomic_load(&bare_came) < bare_rounds)
		compute(COMPUTE_PIECE);
	return 0;
}

/* -- The tests ------------------------------------------------------------------------------ */

static int served_open(struct bench_rank *p)
{
	int rc = tern_delivery_set(p->t, TERN_DELIVERY_POLL);
	if (!rc)
		rc = compute_spare_core(p);
	return rc ? rc : words_register(p->t);
}

static int served_interrupt_open(struct bench_rank *p)
{
	struct sigaction action = { .sa_handler = bare_handler, .sa_flags = SA_RESTART };
	bare_answers = p->rank == 1;
	sigaction(BARE_SIGNAL, &action, NULL);
	int rc = served_open(p);
	if (!rc)
		rc = tern_on(p->t, HANDLER_PID, on_pid);
	if (!rc)
		rc = tern_request(p->t, 1 - p->rank, HANDLER_PID, (uint64_t)getpid());
	return rc ? rc : tern_wait(p->t, &bare_known, 1);
}

static const struct test test_served_thread = {
	{ "served-thread", "a round trip with a rank that computes and has a progress thread",
	  "ns" },
	{ "us", 0, 1000000, { 4, { 0, 10, 100, 1000 } }, { 0 } },
	.amount = { .cores = 3, .count = 2000, .bytes = 20000, .rounds = 31, .warm = 1 },
	.play = { .open = served_open,
		  .measure = { .figure = served, .way = TERN_DELIVERY_THREAD },
		  .limit = { { .figure = served, .way = TERN_DELIVERY_POLL } } },
	.limit_name = "the same round trip with a rank that does nothing but wait for messages",
	.bar = { { 0, "at most 1.50" },
		 { 10, "at most 1.50" },
		 { 100, "at most 1.50" },
		 { 1000, "at most 1.50" } },
	.note = "the size is the pause before each round trip; medians of single round trips",
};

static const struct test test_served_interrupt = {
	{ "served-interrupt", "a round trip with a rank that computes and is interrupted", "ns" },
	.like = &test_served_thread,
	.amount = { .cores = 2 },
	.play = { .open = served_interrupt_open,
		  .measure.way = TERN_DELIVERY_INTERRUPT,
		  .limit[0].figure = served_bare },
	.limit_name = "a bare signal to the other process, whose handler sends one back",
	.set = { { "TERN_SIGNAL", "40" } },
};

const struct test *const delivery_tests[] = { &test_served_thread, &test_served_interrupt, NULL };
