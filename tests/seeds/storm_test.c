/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 200 RUN_SERIAL */
/*
 * Ranks that answer while they compute, under whatever may happen to a process: signals without
 * end, stops, too few cores, a rank that is killed. No request is lost, none is answered twice, and
 * what handlers and program share stays whole.
 */
#include <sched.h>

#include "lib/chance.h"
#include "lib/ranks.h"

enum { ADD, SUM, SIGNAL = 40 };

static uint64_t seed;
static unsigned rounds;
static bool stormy; /* signals come from elsewhere, too */

/* Of a rank. Handlers and program both add, in two steps; a handler in a hold would lose some. */
struct rank {
	uint64_t total, twice;
	uint64_t own; /* what the program has added */
	_Atomic uint64_t answered;
};
static struct rank ranks[RANKS_AT_MOST];

/* What each has added where, for everybody to see at the end. */
struct ledger {
	_Atomic uint64_t added[RANKS_AT_MOST];
	_Atomic unsigned begun, done;
};
static struct ledger *ledger;
static bool mortal; /* a rank is killed, and what it has asked is handled afterwards */

static void total_add(struct rank *r, uint64_t n)
{
	CHECK(r->twice == 2 * r->total);
	r->total += n;
	for (int i = 0; i < 50; i++)
		atomic_signal_fence(memory_order_seq_cst);
	r->twice += 2 * n;
}

static void on_add(tern *t, const tern_msg *m)
{
	struct rank *r = &ranks[tern_rank(t)];
	total_add(r, tern_msg_word(m, 0));
	int rc = tern_reply(t, m, SUM);
	if (!mortal || (rc != -EOWNERDEAD && rc != -ESHUTDOWN))
		CHECK_IS(rc, 0);
}

static void on_sum(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &ranks[tern_rank(t)].answered, 1);
}

static void prepare(tern *t)
{
	ranks[tern_rank(t)] = (struct rank){ .total = 0 };
	CHECK_IS(tern_on(t, ADD, on_add), 0);
	CHECK_IS(tern_on(t, SUM, on_sum), 0);
}

static void compute(struct chance *c)
{
	for (unsigned n = chance_below(c, 1 << chance_below(c, 17)); n; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* One of the things that a rank does; how many answers are due for it. */
static unsigned act(tern *t, struct chance *c)
{
	struct rank *self = &ranks[tern_rank(t)];
	uint32_t to = chance_below(c, tern_size(t));
	uint64_t n = chance_below(c, 1000);
	switch (chance_below(c, 4)) {
	case 0:
		compute(c);
		return 0;
	case 1:
		CHECK(tern_poll(t) >= 0);
		return 0;
	case 2:
		tern_hold(t);
		total_add(self, n);
		self->own += n;
		tern_release(t);
		return 0;
	default:
		CHECK_IS(tern_request(t, to, ADD, n), 0);
		atomic_fetch_add(&ledger->added[to], n);
		return 1;
	}
}

static void rank_main(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	struct chance c = { seed * 1000 + tern_rank(t) };
	atomic_fetch_add(&ledger->begun, 1);
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t due = 0;
		for (int k = 0; k < 20; k++)
			due += act(t, &c);
		CHECK_IS(tern_wait(t, &self->answered, due), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	tern_hold(t);
	CHECK_IS(self->total, atomic_load(&ledger->added[tern_rank(t)]) + self->own);
	CHECK_IS(self->twice, 2 * self->total);
	tern_release(t);
	CHECK_IS(tern_barrier(t), 0);
	atomic_fetch_add(&ledger->done, 1);
}

static void ignore(int number)
{
	(void)number;
}

static void rank_process(void)
{
	if (stormy &&
	    strcmp(getenv("TERN_DELIVERY") ? getenv("TERN_DELIVERY") : "", "interrupt") != 0)
		signal(SIGNAL, ignore); /* nobody else takes it */
	tern *t = ranks_open();
	prepare(t);
	rank_main(t);
	CHECK_IS(tern_close(t), 0);
}

static void ledger_open(unsigned n)
{
	ledger = ranks_shared(sizeof *ledger);
	seed = check_seed();
	rounds = check_scaled(n);
}

static void threads_run(uint32_t n)
{
	memset(ledger, 0, sizeof *ledger);
	ranks_run_threads(n, prepare, rank_main);
}

TEST(ranks_that_compute_and_answer_lose_nothing)
{
	ledger_open(300);
	threads_run(3);
	memset(ledger, 0, sizeof *ledger);
	ranks_run(3, rank_process);
}

TEST(sixteen_ranks_on_few_cores_make_progress)
{
	ledger_open(60);
	threads_run(16);
	memset(ledger, 0, sizeof *ledger);
	ranks_run(16, rank_process);
}

/* Does something to a rank chosen at random, until all have ended. */
static void torment(uint32_t n, void (*deed)(pid_t victim, struct chance *c))
{
	struct chance c = { seed };
	unsigned failed = 0, deeds = 0;
	ranks_start(n, 0, rank_process);
	while (atomic_load(&ledger->done) < n && !failed) {
		pid_t victim = ranks_pid[chance_below(&c, n)];
		if (victim > 0 && atomic_load(&ledger->begun) == n) {
			deed(victim, &c);
			deeds++;
		}
		failed += ranks_reap(n, WNOHANG);
		ranks_nap(chance_below(&c, 100000));
	}
	failed += ranks_reap(n, 0);
	CHECK_IS(failed, 0);
	ranks_end();
	printf("    %u times\n", deeds);
}

static void storm(pid_t victim, struct chance *c)
{
	for (unsigned i = chance_below(c, 200); i; i--)
		kill(victim, SIGNAL);
}

TEST(a_storm_of_signals_does_no_harm)
{
	stormy = true;
	ledger_open(300);
	torment(3, storm);
}

static void stop_and_continue(pid_t victim, struct chance *c)
{
	kill(victim, SIGSTOP);
	ranks_nap(chance_below(c, 2000000));
	kill(victim, SIGCONT);
}

TEST(ranks_that_are_stopped_and_go_on_lose_nothing)
{
	ledger_open(100);
	torment(3, stop_and_continue);
}

/* -- A rank that dies ---------------------------------------------------------------------- */

static void survivor_main(void)
{
	tern *t = ranks_open();
	prepare(t);
	struct rank *self = &ranks[tern_rank(t)];
	struct chance c = { seed + tern_rank(t) };
	int rc = 0;
	for (uint64_t due = 0; !rc; due = 0) {
		for (uint32_t r = 0; r < tern_size(t) && !rc; r++)
			if (!(rc = tern_request(t, r, ADD, 1)))
				due++;
		compute(&c);
		if (!rc)
			rc = tern_wait(t, &self->answered, due);
		if (tern_rank(t) == 1 && ++self->own == rounds)
			raise(SIGKILL);
	}
	if (rc == -EOWNERDEAD)
		CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	else
		CHECK_IS(rc, -ESHUTDOWN); /* another was told first, and has left */
	atomic_fetch_add(&ledger->done, rc == -EOWNERDEAD);
	CHECK_IS(tern_close(t), 0);
}

TEST(when_a_rank_is_killed_the_others_are_told)
{
	ledger_open(50);
	mortal = true;
	setenv("TERN_GRACE", "100", 1);
	for (int i = 0; i < 5; i++) {
		ranks_start(4, 0, survivor_main);
		unsigned failed = 0;
		for (int r = 0; r < 4; r++) /* one by one, so that each end is told to the others */
			failed += ranks_reap(1, 0);
		CHECK_IS(failed, 1);
		CHECK(atomic_load(&ledger->done) > (unsigned)i);
		ranks_end();
	}
	mortal = false;
}
