/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that computes and calls nothing is asked all the same: how long the answer takes when
 * a communication thread gives it, and when an interrupt does. The size is what the asker waits
 * between two questions, because a thread that has had nothing to do for a while sleeps.
 */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/kernel.h"
#include "tools/bench/compute.h"
#include "tools/bench/times.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

enum { HANDLER_PID = WORDS_FREE, BARE_SIGNAL = 41 };

static struct times times;

static void pause_for(uint32_t us)
{
	for (uint64_t end = clock_ns() + us * UINT64_C(1000); us && clock_ns() < end;)
		cpu_relax();
}

/* -- By messages ------------------------------------------------------------------------- */

/* Rank 0's part of every phase here: the median round trip. */
static double ask(struct player *p)
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

/* Rank 1 computes until somebody else has handled the last message for it. */
static double served_by(struct player *p, enum tern_delivery d)
{
	if (!p->rank)
		return ask(p);
	p->rc = tern_set_delivery(p->t, d);
	while (!p->rc && !words_over())
		compute(COMPUTE_PIECE);
	if (!p->rc)
		p->rc = words_serve(p->t, 1);
	return 0;
}

static double served_thread(struct player *p)
{
	return served_by(p, TERN_DELIVERY_THREAD);
}

static double served_interrupt(struct player *p)
{
	return served_by(p, TERN_DELIVERY_INTERRUPT);
}

/* Rank 1 does nothing else. */
static double served_poll(struct player *p)
{
	if (!p->rank)
		return ask(p);
	p->rc = tern_set_delivery(p->t, TERN_DELIVERY_POLL);
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
	bare_other = (int32_t)tern_msg_arg(m, 0);
	tern_signal(t, &bare_known, 1);
}

static double bare_ask(struct player *p, uint64_t first)
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

static double served_bare(struct player *p)
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

static int served_open(struct player *p)
{
	int rc = tern_set_delivery(p->t, TERN_DELIVERY_POLL);
	if (!rc)
		rc = compute_spare_core(p);
	return rc ? rc : words_register(p->t);
}

static int served_interrupt_open(struct player *p)
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

const struct test test_served_thread = {
	.name = "served-thread",
	.purpose = "a round trip with a rank that computes and has a communication thread",
	.size_name = "us",
	.size_most = 1000000,
	.sizes = { 4, { 0, 10, 100, 1000 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 3,
	.count = 2000,
	.bytes = 20000,
	.rounds = 31,
	.warm = 1,
	.open = served_open,
	.measure = served_thread,
	.limit = { served_poll },
	.limit_name = "the same round trip with a rank that does nothing but wait for messages",
	.bar = { { 0, "at most 1.50" },
		 { 10, "at most 1.50" },
		 { 100, "at most 1.50" },
		 { 1000, "at most 1.50" } },
	.note = "the size is the pause before each round trip; medians of single round trips",
};

const struct test test_served_interrupt = {
	.name = "served-interrupt",
	.purpose = "a round trip with a rank that computes and is interrupted",
	.size_name = "us",
	.size_most = 1000000,
	.sizes = { 4, { 0, 10, 100, 1000 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.bytes = 20000,
	.rounds = 31,
	.warm = 1,
	.open = served_interrupt_open,
	.measure = served_interrupt,
	.limit = { served_bare },
	.limit_name = "a bare signal to the other process, whose handler sends one back",
	.bar = { { 0, "at most 1.50" },
		 { 10, "at most 1.50" },
		 { 100, "at most 1.50" },
		 { 1000, "at most 1.50" } },
	.note = "the size is the pause before each round trip; medians of single round trips",
	.set = { { "TERN_SIGNAL", "40" } },
};
