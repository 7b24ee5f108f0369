/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that waits sees what comes from one rank, though requests of another wait for room for
 * their replies.
 */
#include "lib/ranks.h"

enum { WAITS, HOLDS, TELLS, RANKS }; /* what each rank does */
enum { ASK, ANSWER, TELL };
enum { REQUESTS = 400 }; /* more than a ring of replies takes, and fewer than a ring of requests */

static _Atomic uint64_t got, told, answered;
static struct stage {
	_Atomic unsigned heard, asked, waits, over;
} * stage; /* shared by the ranks */

static void reach(_Atomic unsigned *what)
{
	while (!atomic_load(what))
		ranks_nap(1000000);
}

static void answer(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, ANSWER, 1, 2, 3), 0);
	tern_signal(t, &got, 1);
}

static void take_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answered, 1);
}

static void tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static void waits(tern *t)
{
	CHECK_IS(tern_wait(t, &told, 1), 0); /* the one that tells is polled from now on; */
	atomic_store(&stage->heard, 1);
	reach(&stage->asked);
	while (atomic_load(&got) == 0) /* the one that holds is polled before it, */
		CHECK(tern_poll(t) >= 0);
	while (tern_poll(t) > 0) /* and its requests wait for room */
		;
	CHECK(atomic_load(&got) < REQUESTS);
	atomic_store(&stage->waits, 1);
	CHECK_IS(tern_wait(t, &told, 1), 0);
	atomic_store(&stage->over, 1);
}

static void holds(tern *t)
{
	reach(&stage->heard);
	tern_hold(t);
	for (unsigned i = 0; i < REQUESTS; i++)
		CHECK_IS(tern_request(t, WAITS, ASK, i, 1, 2), 0);
	atomic_store(&stage->asked, 1);
	reach(&stage->over);
	tern_release(t);
	CHECK_IS(tern_wait(t, &answered, REQUESTS), 0);
}

static void tells(tern *t)
{
	CHECK_IS(tern_request(t, WAITS, TELL, 1, 2), 0);
	reach(&stage->waits);
	ranks_nap(50000000); /* by then it would sleep, if nothing lay there */
	CHECK_IS(tern_request(t, WAITS, TELL, 1, 2), 0);
}

static void rank_main(void)
{
	static void (*const parts[RANKS])(tern *) = { waits, holds, tells };
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, ANSWER, take_answer), 0);
	CHECK_IS(tern_on(t, TELL, tell), 0);
	CHECK_IS(tern_barrier(t), 0);
	parts[tern_rank(t)](t);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(what_one_rank_sends_is_seen_though_requests_of_another_wait_for_room)
{
	stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	REQUIRE(stage != MAP_FAILED);
	ranks_run(RANKS, rank_main);
}
