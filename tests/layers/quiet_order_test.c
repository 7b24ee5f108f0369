/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * What tern_team_quiet() rests on: the order of marks, barrier and state in a round; and where it
 * may be called.
 */
#include <string.h>
#include <tern/coll.h>
#include <tern/thread.h>

#include "lib/chance.h"
#include "lib/far.h"
#include "lib/ranks.h"

enum { RANKS = 4, ROUNDS = 160, HOPS = 60 };
enum { ON_GO, ON_HOP, ON_CALL };
enum { SENDER, STARTER, PARTNER, RECEIVER }; /* ranks */

struct board {
	_Atomic uint64_t entering, sent, hops;
};
static struct board *board;
static uint64_t fault_seed;

/* -- A late request that others cannot see ----------------------------------------------------- */

/*
 * The sender gets its order while it waits for the answer to its marks, so that no mark of this
 * round is behind what it sends to the receiver. That is late. The receiver has an answer to every
 * mark, and its state is that of a rank at which nothing happens, unless it waits at the barrier
 * until the sender's next mark is answered. Then the request comes, and makes work for a long time.
 */
static void hop(tern *t, void *arg)
{
	uint64_t left = (uintptr_t)arg;
	atomic_fetch_add(&board->hops, 1);
	if (left)
		CHECK_IS(tern_request(t, tern_rank(t) == RECEIVER ? PARTNER : RECEIVER, ON_HOP,
				      left - 1),
			 0);
}

static void on_hop(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_defer(t, hop, (void *)(uintptr_t)tern_msg_word(m, 0)), 0);
}

static void go(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_request(t, RECEIVER, ON_HOP, HOPS - 1), 0);
	atomic_fetch_add(&board->sent, 1);
}

static void on_go(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_defer(t, go, NULL), 0);
}

/* Without polling: the sender's mark stays unanswered. */
static void await(const _Atomic uint64_t *count, uint64_t n)
{
	while (atomic_load(count) < n)
		ranks_nap(50000);
}

static void order_round(tern *t, tern_team *all, uint64_t n)
{
	uint64_t sum;
	if (tern_rank(t) == SENDER) {
		atomic_store(&board->entering, n);
	} else if (tern_rank(t) == STARTER) {
		await(&board->entering, n);
		ranks_nap(1000000); /* if its marks are not sent by then, the round shows nothing */
		CHECK_IS(tern_request(t, SENDER, ON_GO), 0);
	} else if (tern_rank(t) == PARTNER) {
		await(&board->sent, n);
	}
	CHECK_IS(tern_team_quiet(all), 0);
	CHECK_IS(atomic_load(&board->hops), n * HOPS);
	/* Nobody goes on before all have looked. A barrier would send the other way round. */
	CHECK_IS(tern_team_allreduce(all, &n, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
}

static void order_rank(void)
{
	tern_team *all;
	char fault[64];
	atomic_store(&check_failures, 0);
	snprintf(fault, sizeof fault, "delay=0.3,late=8000,seed=%llu",
		 (unsigned long long)fault_seed);
	if (strcmp(getenv("TERN_RANK"), "0") == 0)
		setenv("TERN_FAULT", fault, 1);
	tern *t = ranks_open();
	REQUIRE(tern_on(t, ON_GO, on_go) == 0 && tern_on(t, ON_HOP, on_hop) == 0);
	REQUIRE(tern_team_all(t, &all) == 0);
	for (uint64_t n = 1; n <= ROUNDS && !atomic_load(&check_failures); n++)
		order_round(t, all, n);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_state_is_taken_when_the_marks_of_all_members_are_answered)
{
	far_use(NULL);
	fault_seed = check_seed() % 100000 + 1;
	board = ranks_shared(sizeof *board);
	ranks_run(RANKS, order_rank);
}

/* -- Where it may be called -------------------------------------------------------------------- */

static _Thread_local tern_team *alone;
static _Thread_local int code;
static _Thread_local char sentence[300];

static void call_it(tern *t, void *arg)
{
	(void)t, (void)arg;
	code = tern_team_quiet(alone);
	snprintf(sentence, sizeof sentence, "%s", code ? tern_strerror(code) : "");
}

static void on_call(tern *t, const tern_msg *m)
{
	(void)m;
	call_it(t, NULL);
}

static void places_open(tern *t[1])
{
	REQUIRE(tern_open_local(1, t) == 0 && tern_team_all(*t, &alone) == 0);
	REQUIRE(tern_on(*t, ON_CALL, on_call) == 0);
	code = 1;
}

static void places_close(tern *t)
{
	CHECK_IS(tern_team_quiet(alone), 0);
	CHECK_IS(tern_team_free(alone), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(it_is_refused_in_a_deferred_function_which_it_would_wait_for)
{
	tern *t;
	places_open(&t);
	CHECK_IS(tern_defer(t, call_it, NULL), 0);
	while (code == 1)
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(code, -EDEADLK);
	CHECK(strstr(sentence, "tern_team_quiet() was called in a deferred function"));
	places_close(t);
}

TEST(it_is_refused_in_a_handler_and_under_a_hold)
{
	tern *t;
	places_open(&t);
	CHECK_IS(tern_request(t, 0, ON_CALL), 0);
	while (code == 1)
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(code, -EPERM);
	tern_hold(t);
	call_it(t, NULL);
	tern_release(t);
	CHECK_IS(code, -EDEADLK);
	places_close(t);
}

/* -- A deferred function that waits in one thread, and the call in another --------------------- */

enum { THREAD, YIELDS = 50 };
static _Thread_local _Atomic uint64_t flag;
static _Thread_local bool waiting, waited;

static void wait_long(tern *t, void *arg)
{
	(void)arg;
	waiting = true;
	CHECK_IS(tern_wait(t, &flag, 1), 0);
	for (int i = 0; i < YIELDS; i++)
		CHECK_IS(tern_thread_yield(t), 0);
	waited = true;
}

static uint64_t thread_main(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	while (!waiting)
		CHECK_IS(tern_thread_yield(t), 0);
	tern_signal(t, &flag, 1);
	CHECK_IS(tern_team_quiet(alone), 0);
	CHECK(waited);
	return 0;
}

TEST(it_waits_for_a_deferred_function_that_waits_while_a_thread_calls_it)
{
	tern *t;
	tern_thread thread = { 0 };
	places_open(&t);
	REQUIRE(tern_thread_on(t, THREAD, thread_main, NULL) == 0);
	CHECK_IS(tern_defer(t, wait_long, NULL), 0);
	CHECK_IS(tern_thread_start(t, 0, THREAD, &thread), 0);
	CHECK_IS(tern_thread_join(t, &thread, NULL), 0);
	places_close(t);
}
