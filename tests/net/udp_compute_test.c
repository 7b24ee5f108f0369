/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/* Ranks that talk over UDP and compute: interrupts, progress threads, handlers that take long. */
#include "udp_ranks.h"

/* -- Interrupts ----------------------------------------------------------------------------- */

static void compute(uint64_t ns)
{
	for (uint64_t end = clock_ns() + ns; clock_ns() < end;)
		;
}

static uint64_t answered;

static void answer_late(tern *t, const tern_msg *m)
{
	compute(2000000);
	answered = clock_ns();
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

/* Else it would be taken for lost as soon as it has left. */
TEST(the_reply_of_a_slow_handler_leaves_when_it_leaves)
{
	far_use(NULL);
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
		CHECK_IS(tern_on(t[i], KNOW, answer_late), 0);
	}
	CHECK_IS(tern_request(t[0], 1, KNOW), 0);
	while (!answered)
		poll_both(t);
	const struct transit *r = &net_of(t[1])->path[0]->transit;
	CHECK(flight_at(r, r->next - 1)->sent >= answered);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}

/*
 * Rank 1 hears nothing, as if all were lost; rank 0 computes, and says something in passing. Rank 1
 * has no timer: thread sanitizer makes one signal of two that meet, and the other rank's would be
 * lost.
 */
TEST(what_is_sent_under_a_hold_is_sent_again_while_its_sender_computes)
{
	far_use(NULL);
	setenv("TERN_SIGNAL", "40", 1);
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	CHECK_IS(tern_delivery_set(t[0], TERN_DELIVERY_INTERRUPT), 0);
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_request(t[i], 1 - (uint32_t)i, TELL), 0);
	for (int i = 0; i < 200; i++)
		poll_both(t);
	while (!t[0]->own->owner.armed)
		compute(1000000);
	tern_hold(t[0]);
	CHECK_IS(tern_request(t[0], 1, TELL), 0);
	tern_release(t[0]);
	while (!stats_of(t[0]).again)
		compute(1000000);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
	unsetenv("TERN_SIGNAL");
}

/* -- Ranks that compute ------------------------------------------------------------------------ */

enum { LOSSES = 300 };
static const char *const ways[] = { "thread", "interrupt" };
static _Atomic unsigned *heard; /* in memory that both map */

static void hear(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_fetch_add(heard, 1);
}

/* Rank 0 sends and calls nothing any more: what is lost is sent again all the same. */
static void send_and_compute(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, hear), 0);
	for (unsigned i = 0; tern_rank(t) == 0 && i < LOSSES; i++)
		CHECK_IS(tern_request(t, 1, TELL, i), 0);
	while (atomic_load(heard) < LOSSES)
		if (tern_rank(t) == 1)
			CHECK(tern_poll(t) >= 0);
		else
			sched_yield();
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(what_is_lost_is_sent_again_while_its_sender_computes)
{
	far_use(NULL);
	heard = ranks_shared(4096);
	setenv("TERN_FAULT", "drop=0.3", 1);
	setenv("TERN_SIGNAL", "40", 1);
	for (int way = 0; way < 2; way++) {
		atomic_store(heard, 0);
		setenv("TERN_DELIVERY", ways[way], 1);
		ranks_run(2, send_and_compute);
	}
}

static void answer(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, KNOW), 0);
}

/* Rank 0 answers while it computes, and its answers get lost. */
static void compute_and_answer(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, answer), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (unsigned i = 0; tern_rank(t) == 1 && i < LOSSES; i++) {
		CHECK_IS(tern_request(t, 0, TELL), 0);
		CHECK_IS(tern_wait(t, &known, 1), 0);
	}
	atomic_fetch_add(heard, tern_rank(t));
	while (!atomic_load(heard))
		sched_yield();
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_computes_answers_though_answers_get_lost)
{
	far_use(NULL);
	heard = ranks_shared(4096);
	setenv("TERN_FAULT", "drop=0.2", 1);
	setenv("TERN_SIGNAL", "40", 1);
	for (int way = 0; way < 2; way++) {
		atomic_store(heard, 0);
		setenv("TERN_DELIVERY", ways[way], 1);
		ranks_run(2, compute_and_answer);
	}
}

TEST(interrupts_are_refused_where_nothing_would_raise_the_signal)
{
	far_use(NULL);
	tern *t[2];
	setenv("TERN_SIGNAL", "40", 1);
	REQUIRE(tern_open_local(2, t) == 0);
	t[0]->own->site.mute = true;
	CHECK_IS(tern_delivery_set(t[0], TERN_DELIVERY_INTERRUPT), -ENOTSUP);
	CHECK(strstr(tern_strerror(-ENOTSUP), "network udp raises no signal") != NULL);
	CHECK_IS(tern_delivery_get(t[0]), TERN_DELIVERY_POLL);
	CHECK_IS(tern_delivery_set(t[0], TERN_DELIVERY_THREAD), 0);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}
