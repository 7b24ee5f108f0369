/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: ONE_MODE */
/* How delivery is chosen, when it begins, how it is changed, and by whom. */
#include <errno.h>

#include "base/clock.h"
#include "endpoint/endpoint.h"
#include "lib/visitor.h"

static const char *const ways[] = { "poll", "thread", "interrupt" };
static const enum tern_delivery delivery[] = { TERN_DELIVERY_POLL, TERN_DELIVERY_THREAD,
					       TERN_DELIVERY_INTERRUPT };
enum { WAYS = 3 };

/* -- Choosing ------------------------------------------------------------------------------ */

TEST(the_options_choose_or_else_the_environment)
{
	tern *t;
	for (int env = 0; env < WAYS; env++)
		for (int o = -1; o < WAYS; o++) {
			tern_options options = { .delivery = o < 0 ? TERN_DELIVERY_DEFAULT
								   : delivery[o] };
			local_delivered(ways[env]);
			REQUIRE(tern_open(&t, &options) == 0);
			CHECK_IS(tern_delivery_get(t), delivery[o < 0 ? env : o]);
			CHECK_IS(tern_close(t), 0);
		}
	unsetenv("TERN_DELIVERY");
	REQUIRE(tern_open(&t, NULL) == 0);
	CHECK_IS(tern_delivery_get(t), TERN_DELIVERY_POLL);
	CHECK_IS(tern_close(t), 0);
}

static void check_refused(const tern_options *o, int code, const char *one, const char *two)
{
	tern *t = NULL;
	int rc = tern_open(&t, o);
	CHECK_IS(rc, code);
	CHECK(sentence_has(rc, one) && sentence_has(rc, two) && !t);
}

static void programs_own(int number)
{
	(void)number;
}

TEST(what_cannot_be_done_is_refused_at_open_with_a_sentence)
{
	setenv("TERN_DELIVERY", "interupt", 1);
	check_refused(NULL, -EINVAL, "'interupt'", "did you mean interrupt");
	unsetenv("TERN_DELIVERY");
	setenv("TERN_SERVE", "many", 1);
	check_refused(NULL, -EINVAL, "TERN_SERVE", "many");
	unsetenv("TERN_SERVE");
	unsetenv("TERN_SIGNAL");
	check_refused(&(tern_options){ .delivery = (enum tern_delivery)7 }, -EINVAL, "7",
		      "no way of delivery");
	tern_options o = { .delivery = TERN_DELIVERY_INTERRUPT };
	check_refused(&o, -EINVAL, "signal 0", "TERN_SIGNAL");
	for (int i = 0; i < 4; i++) {
		o.signal = (const int[]){ SIGKILL, SIGSTOP, -3, 1000 }[i];
		check_refused(&o, -EINVAL, "cannot be used", "TERN_SIGNAL");
	}
	o.signal = 0;
	setenv("TERN_SIGNAL", "many", 1);
	check_refused(&o, -EINVAL, "TERN_SIGNAL", "many");
	setenv("TERN_SIGNAL", "41", 1);
	signal(41, programs_own);
	check_refused(&o, -EBUSY, "signal 41", "handler of the program's");
	o.signal = 40; /* the options go before the environment */
	tern *t;
	CHECK_IS(tern_open(&t, &o), 0);
	CHECK_IS(tern_close(t), 0);
}

/* -- Beginning -------------------------------------------------------------------------------- */

static void *visit_once(void *arg)
{
	CHECK_IS(tern_request(local[1], 0, VISIT), 0);
	return arg;
}

TEST(nothing_is_delivered_before_the_first_use_so_that_handlers_can_be_registered)
{
	tern_stats_data d;
	for (unsigned way = 0; way < WAYS; way++) {
		pthread_t thread;
		local_delivered(ways[way]);
		local_open(2);
		CHECK_IS(tern_on(local[1], VISIT, on_visit), 0);
		REQUIRE(pthread_create(&thread, NULL, visit_once, NULL) == 0);
		pthread_join(thread, NULL);
		CHECK_IS(tern_stats(local[0], &d), 0); /* no use: it neither sends nor serves */
		nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
		CHECK_IS(tern_on(local[0], VISIT, on_visit), 0);
		CHECK_IS(atomic_load(&visits), way);
		tern_attach(local[0]);
		host_computes_until(way + 1);
		local_close();
	}
}

/* -- Changing ---------------------------------------------------------------------------------- */

TEST(every_way_can_be_changed_to_every_other_while_messages_flow)
{
	for (int from = 0; from < WAYS; from++)
		for (int to = 0; to < WAYS; to++) {
			struct visitor v;
			atomic_store(&visits, 0);
			atomic_store(&enough, false);
			kept.first = kept.second = 0;
			local_delivered(ways[from]);
			visitor_open();
			visitor_start(&v, check_scaled(2000));
			for (int i = 0; i < 5; i++) {
				host_computes_until(check_scaled(100 * (2 * i + 1)));
				CHECK_IS(tern_delivery_set(local[0], delivery[to]), 0);
				CHECK_IS(tern_delivery_get(local[0]), delivery[to]);
				host_computes_until(check_scaled(100 * (2 * i + 2)));
				CHECK_IS(tern_delivery_set(local[0], delivery[from]), 0);
			}
			host_computes_until(check_scaled(2000));
			visitor_end(&v);
			CHECK_IS(kept.first, kept.second);
			local_close();
		}
}

static _Atomic int code;

static void change_in_handler(tern *t, const tern_msg *m)
{
	on_visit(t, m);
	code = tern_delivery_set(t, TERN_DELIVERY_POLL);
}

static void change_deferred(tern *t, void *arg)
{
	(void)arg;
	code = tern_delivery_set(t, TERN_DELIVERY_POLL);
}

static void defer_change(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_defer(t, change_deferred, NULL), 0);
}

TEST(a_change_is_refused_in_handlers_and_deferred_functions_and_under_holds)
{
	for (unsigned way = 0; way < WAYS; way++) {
		local_delivered(ways[way]);
		local_open(2);
		local_on(VISIT, change_in_handler);
		local_on(VISIT + 1, defer_change);
		CHECK_IS(tern_poll(local[0]), 0);
		code = 1;
		CHECK_IS(tern_request(local[0], 0, VISIT), 0);
		local_settle();
		CHECK_IS(code, -EPERM);
		code = 1;
		CHECK_IS(tern_request(local[0], 0, VISIT + 1), 0);
		local_settle();
		CHECK_IS(code, -EDEADLK);
		tern_hold(local[0]);
		CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_POLL), -EDEADLK);
		CHECK(sentence_has(-EDEADLK, "hold"));
		tern_release(local[0]);
		CHECK_IS(tern_delivery_get(local[0]), delivery[way]);
		CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_DEFAULT), -EINVAL);
		CHECK_IS(tern_delivery_set(local[0], (enum tern_delivery)9), -EINVAL);
		local_close();
	}
}

TEST(a_change_that_fails_leaves_delivery_as_it_was)
{
	unsetenv("TERN_SIGNAL");
	for (unsigned way = 0; way < 2; way++) {
		setenv("TERN_DELIVERY", ways[way], 1);
		visitor_open();
		CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_INTERRUPT), -EINVAL);
		CHECK(sentence_has(-EINVAL, "TERN_SIGNAL"));
		CHECK_IS(tern_delivery_get(local[0]), delivery[way]);
		visitor_pays(10);
		host_computes_until(10 * (way + 1));
		local_close();
	}
}

TEST(where_neither_the_new_way_nor_the_old_one_can_begin_the_program_polls)
{
	unsetenv("TERN_SIGNAL");
	setenv("TERN_DELIVERY", "thread", 1);
	visitor_open();
	setenv("TERN_AGENT_CORE", "1000000", 1); /* for which there is no thread */
	CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_INTERRUPT), -EINVAL);
	unsetenv("TERN_AGENT_CORE");
	CHECK_IS(tern_delivery_get(local[0]), TERN_DELIVERY_POLL);
	visitor_pays(10);
	while (atomic_load(&visits) < 10)
		CHECK(tern_poll(local[0]) >= 0);
	local_close();
}

/* -- Machines and threads ------------------------------------------------------------------ */

TEST(without_membarrier_a_program_that_computes_is_served_and_holds_hold)
{
	setenv("TERN_MEMBARRIER", "0", 1);
	for (unsigned way = 0; way < WAYS; way++) {
		struct visitor v;
		unsigned n = check_scaled(2000);
		atomic_store(&visits, 0);
		local_delivered(ways[way]);
		visitor_open();
		visitor_start(&v, n);
		while (atomic_load(&visits) < n) {
			for (int i = 0; i < 200; i++) {
				tern_hold(local[0]);
				atomic_store(&held_now, true);
				kept_update();
				atomic_store(&held_now, false);
				tern_release(local[0]);
			}
			host_computes_until(atomic_load(&visits) + (atomic_load(&visits) < n));
		}
		visitor_end(&v);
		local_close();
	}
}

static void *compute_for_a_while(void *arg)
{
	tern_attach(local[0]);
	host_computes_until(*(unsigned *)arg);
	tern_hold(local[0]);
	kept_update();
	tern_release(local[0]);
	return arg;
}

TEST(an_endpoint_opened_here_can_be_used_there_and_closed_here)
{
	unsigned due = 0;
	for (unsigned way = 0; way < WAYS; way++) {
		pthread_t thread;
		struct visitor v;
		local_delivered(ways[way]);
		local_open(2);
		local_on(VISIT, on_visit);
		for (int i = 0; i < 5; i++) {
			visitor_start(&v, 50);
			due += 50;
			REQUIRE(pthread_create(&thread, NULL, compute_for_a_while, &due) == 0);
			pthread_join(thread, NULL);
			pthread_join(v.thread, NULL);
		}
		local_close();
	}
}

/* -- While a handler runs ------------------------------------------------------------------- */

enum { ASK = VISIT + 1, LONG_NS = 20000000, PATIENCE_S = 100 };

static _Atomic uint64_t begun, ended;

static void on_ask_slowly(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_store(&begun, 1);
	for (uint64_t end = clock_ns() + LONG_NS; clock_ns() < end;)
		;
	atomic_store(&ended, 1);
}

TEST(delivery_can_be_changed_while_the_thread_runs_a_handler)
{
	local_open(2);
	local_on(ASK, on_ask_slowly);
	CHECK_IS(tern_delivery_set(local[1], TERN_DELIVERY_THREAD), 0);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
	     !atomic_load(&begun) && clock_ns() < end;)
		;
	CHECK_IS(tern_delivery_set(local[1], TERN_DELIVERY_POLL), 0);
	CHECK_IS(atomic_load(&ended), 1); /* it has waited for the handler */
	CHECK_IS(tern_delivery_get(local[1]), TERN_DELIVERY_POLL);
	local_close();
}
