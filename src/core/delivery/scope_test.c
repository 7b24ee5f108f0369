/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds: what a program and its handlers both use is used by one at a time, however messages are
 * delivered.
 */
#include <errno.h>

#include "core/scope.h"
#include "lib/chance.h"
#include "lib/visitor.h"

static _Atomic uint64_t flag; /* that nobody raises */

/* Holds so many times, does its work, and releases as often. */
static void update_held(unsigned depth)
{
	tern_hold(local[0]);
	atomic_store_explicit(&held_now, true, memory_order_relaxed);
	if (depth > 1) {
		tern_hold(local[0]);
		kept_update();
		tern_release(local[0]);
	}
	kept_update();
	atomic_store_explicit(&held_now, false, memory_order_relaxed);
	tern_release(local[0]);
}

/* What the handlers and the program have counted, together. */
static void check_kept(uint64_t updates)
{
	tern_hold(local[0]);
	CHECK_IS(kept.first, atomic_load(&visits) + updates);
	CHECK_IS(kept.second, atomic_load(&visits) + updates);
	tern_release(local[0]);
}

static void compute(unsigned rounds)
{
	for (; rounds; rounds--)
		atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Holds and releases for as long as the visitor comes. Pauses of up to about a millisecond let
 * whoever delivers take over, so that holds find it at work.
 */
static void check_holds(unsigned depth, unsigned n)
{
	struct chance c = { check_seed() };
	struct visitor v;
	uint64_t updates = 0;
	visitor_start(&v, n);
	for (; atomic_load(&visits) < n; updates += depth) {
		update_held(depth);
		if (chance_one_in(&c, 16))
			compute(chance_below(&c, 1 << chance_below(&c, 20)));
		if (host_polls())
			tern_poll(local[0]);
	}
	visitor_end(&v);
	check_kept(updates);
	local_close();
}

TEST(a_handler_never_runs_between_a_hold_and_its_release)
{
	visitor_open();
	check_holds(1, check_scaled(20000));
}

TEST(holds_nest_and_only_the_last_release_lets_handlers_in)
{
	visitor_open();
	check_holds(2, check_scaled(20000));
}

TEST(calls_under_a_hold_handle_nothing)
{
	struct visitor v;
	tern_stats_data d;
	visitor_open();
	visitor_start(&v, 0);
	for (unsigned i = 0; i < check_scaled(50000); i++) {
		tern_hold(local[0]);
		atomic_store(&held_now, true);
		CHECK_IS(tern_poll(local[0]), 0);
		CHECK_IS(tern_stats(local[0], &d), 0);
		CHECK_IS(tern_wait(local[0], &flag, 1), -EDEADLK);
		atomic_store(&held_now, false);
		tern_release(local[0]);
	}
	visitor_end(&v);
	host_computes_until(atomic_load(&paid));
	check_kept(0);
	local_close();
}

/*
 * Random calls, holds and pauses; with a broken scope the two counts drift apart, or a check of the
 * handler's fails.
 */
TEST(whatever_a_program_calls_its_holds_keep_handlers_out)
{
	struct chance c = { check_seed() };
	struct visitor v;
	tern_stats_data d;
	uint64_t updates = 0;
	visitor_open();
	visitor_start(&v, 0);
	for (unsigned i = 0; i < check_scaled(30000); i++)
		switch (chance_below(&c, 6)) {
		case 0:
			CHECK(tern_poll(local[0]) >= 0);
			break;
		case 1:
			CHECK_IS(tern_request(local[0], 0, VISIT, i), 0);
			atomic_fetch_add(&paid, 1);
			break;
		case 2:
			CHECK_IS(tern_stats(local[0], &d), 0);
			break;
		case 3:
			compute(chance_below(&c, 1 << chance_below(&c, 20)));
			break;
		default: {
			unsigned depth = 1 + chance_below(&c, 2);
			updates += depth;
			update_held(depth);
		}
		}
	visitor_end(&v);
	host_computes_until(atomic_load(&paid));
	check_kept(updates);
	local_close();
}

TEST(what_arrives_during_a_hold_is_handled_after_the_release_without_a_call)
{
	visitor_open();
	for (unsigned round = 1; round <= check_scaled(200); round++) {
		tern_hold(local[0]);
		atomic_store(&held_now, true);
		visitor_pays(3);
		if (round % 8 == 0) /* time for whoever delivers to find the hold */
			nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
		CHECK_IS(atomic_load(&visits), 3 * (round - 1));
		atomic_store(&held_now, false);
		tern_release(local[0]);
		host_computes_until(3 * round);
	}
	check_kept(0);
	local_close();
}

/* -- Holds in handlers ---------------------------------------------------------------------- */

static void hold_and_release(tern *t, const tern_msg *m)
{
	tern_hold(t);
	tern_hold(t);
	tern_release(t);
	on_visit(t, m);
	tern_release(t);
}

TEST(a_handler_may_hold_and_release)
{
	local_open(2);
	local_on(VISIT, hold_and_release);
	tern_poll(local[0]);
	check_holds(1, check_scaled(10000));
}

static void leave_a_hold(tern *t, const tern_msg *m)
{
	on_visit(t, m);
	if (atomic_load(&visits) == 1)
		tern_hold(t);
}

TEST(a_hold_that_a_handler_leaves_is_the_programs_or_is_told)
{
	local_open(2);
	local_on(VISIT, leave_a_hold);
	tern_poll(local[0]);
	visitor_pays(1);
	host_computes_until(1);
	int rc = tern_poll(
		local[0]); /* handled in the program's thread, it holds until that releases */
	CHECK(rc == 0 || (rc == -EPERM && sentence_has(rc, "left a hold")));
	CHECK_IS(tern_wait(local[0], &flag, 0), rc ? 0 : -EDEADLK);
	if (!rc)
		tern_release(local[0]);
	visitor_pays(1);
	host_computes_until(2);
	local_close();
}

TEST(a_release_too_many_is_told_and_messages_flow_again)
{
	visitor_open();
	for (unsigned round = 1; round <= 20; round++) {
		tern_hold(local[0]);
		tern_release(local[0]);
		tern_release(local[0]);
		int rc = tern_poll(local[0]);
		CHECK_IS(rc, -EPERM);
		CHECK(sentence_has(rc, "rank 0") &&
		      sentence_has(rc, "more often than tern_hold()"));
		visitor_pays(1);
		host_computes_until(round);
	}
	local_close();
}
