/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: ONE_MODE */
/* Delivery by thread: a thread of the library's runs the handlers of a program that computes. */
#include <errno.h>
#include <sched.h>

#include "base/kernel.h"
#include "endpoint/endpoint.h"
#include "lib/visitor.h"

static void progress_opened(tern_handler *fn)
{
	local_delivered("thread");
	local_open(2);
	local_on(VISIT, fn);
	CHECK_IS(tern_poll(local[0]), 0);
}

static uint64_t claims(void)
{
	return atomic_load(&local[0]->own->pulse->count[PULSE_CLAIMS]);
}

static _Atomic int32_t handled_by, handled_on;
static _Atomic bool signals_blocked;

static void note_thread(tern *t, const tern_msg *m)
{
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	atomic_store(&signals_blocked, sigismember(&mask, SIGINT) && sigismember(&mask, SIGALRM));
	atomic_store(&handled_on, sched_getcpu());
	atomic_store(&handled_by, thread_id());
	on_visit(t, m);
}

TEST(a_program_that_computes_is_served_by_another_thread_which_takes_no_signals)
{
	progress_opened(note_thread);
	for (unsigned round = 1; round <= 50; round++) {
		visitor_pays(10);
		host_computes_until(10 * round);
		CHECK(atomic_load(&handled_by) != thread_id());
		CHECK(atomic_load(&signals_blocked));
	}
	CHECK(claims() > 0);
	local_close();
}

TEST(a_program_that_sleeps_in_the_kernel_is_served)
{
	progress_opened(on_visit);
	for (unsigned round = 1; round <= 5; round++) {
		visitor_pays(2);
		while (atomic_load(&visits) < 2 * round)
			CHECK_IS(nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL), 0);
	}
	local_close();
}

/* The thread of rank 1 sleeps, and whoever sends to it must see that. */
static bool sleeper_left_asleep(void)
{
	static tern_flag never;
	struct endpoint *e = local[1]->own;
	const _Atomic uint64_t *bell = job_bell(&e->group->job, e->site.member);
	const _Atomic uint64_t *slept = &local[0]->own->pulse->count[PULSE_SLEEPS];
	while (!(atomic_load(bell) & BELL_ASLEEP))
		sched_yield();
	uint64_t before = atomic_load(slept);
	do
		CHECK_IS(tern_wait_for(local[0], &never, 1, 5000000), -ETIMEDOUT);
	while (atomic_load(slept) == before);
	return atomic_load(bell) & BELL_ASLEEP;
}

TEST(a_program_that_sleeps_in_one_endpoint_lets_the_thread_of_another_sleep)
{
	progress_opened(on_visit);
	CHECK_IS(tern_poll(local[1]), 0);
	bool left = false;
	for (int i = 0; i < 5 && !left; i++) /* it may have woken by itself just now */
		left = sleeper_left_asleep();
	CHECK(left);
	local_close();
}

/* How many messages the other thread took while the program polled for them. */
static uint64_t claims_beside_polls(unsigned n)
{
	struct visitor v;
	progress_opened(on_visit);
	uint64_t before = claims();
	visitor_start(&v, n);
	while (atomic_load(&visits) < n)
		CHECK(tern_poll(local[0]) >= 0);
	visitor_end(&v);
	uint64_t taken = claims() - before;
	local_close();
	return taken;
}

/*
 * None, if the polls always had a core. They may not, so it is tried until they had one most of the
 * time.
 */
TEST(a_program_that_polls_serves_itself)
{
	unsigned n = check_scaled(50000), tries = 100;
	while (claims_beside_polls(n) >= n / 2)
		REQUIRE(--tries);
}

TEST(a_stream_without_an_end_leaves_the_program_its_calls)
{
	struct visitor v;
	progress_opened(on_visit);
	visitor_start(&v, 0);
	for (unsigned i = 0; i < check_scaled(2000); i++) {
		tern_hold(local[0]);
		atomic_store(&held_now, true);
		kept_update();
		atomic_store(&held_now, false);
		tern_release(local[0]);
		CHECK_IS(tern_request(local[0], 0, VISIT), 0);
	}
	visitor_end(&v);
	local_close();
}

static void visit_later(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_request(t, 0, VISIT + 1), 0); /* which a handler may not */
}

static void defer_visit(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_defer(t, visit_later, NULL), 0);
}

TEST(what_a_handler_defers_is_run_while_the_program_computes)
{
	local_delivered("thread");
	local_open(2);
	local_on(VISIT, defer_visit);
	local_on(VISIT + 1, on_visit);
	CHECK_IS(tern_poll(local[0]), 0);
	for (unsigned round = 1; round <= 20; round++) {
		visitor_pays(1);
		host_computes_until(round);
	}
	local_close();
}

TEST(opening_and_closing_with_messages_under_way_ends)
{
	for (int i = 0; i < 50; i++) {
		struct visitor v;
		progress_opened(on_visit);
		visitor_start(&v, 200);
		if (i % 2)
			host_computes_until(atomic_load(&visits) + 1);
		while (!atomic_load(&gone))
			sched_yield();
		visitor_end(&v);
		local_close();
	}
}

/* -- Where it runs ------------------------------------------------------------------------- */

TEST(the_thread_is_bound_to_the_core_that_was_asked_for)
{
	char text[16];
	int core = sched_getcpu();
	snprintf(text, sizeof text, "%d", core);
	setenv("TERN_AGENT_CORE", text, 1);
	progress_opened(note_thread);
	for (unsigned round = 1; round <= 20; round++) {
		visitor_pays(1);
		host_computes_until(round);
		CHECK_IS(atomic_load(&handled_on), core);
	}
	local_close();
}

static void check_refused(const char *core, const char *word)
{
	tern *t[2] = { NULL };
	local_delivered("thread");
	setenv("TERN_AGENT_CORE", core, 1);
	int rc = tern_open_local(2, t);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, word) && t[0] == NULL);
}

TEST(a_core_that_is_not_there_is_refused_with_a_sentence)
{
	check_refused("first", "TERN_AGENT_CORE");
	check_refused("5000", "TERN_AGENT_CORE");
	check_refused("1023", "core 1023");
}
