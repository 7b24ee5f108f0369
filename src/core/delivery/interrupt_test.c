/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: ONE_MODE LABELS by-interrupt */
/* Delivery by interrupt: the program's own thread runs the handlers, and notices nothing. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>

#include "base/kernel.h"
#include "endpoint/endpoint.h"
#include "lib/visitor.h"

static void interrupted_open(tern_handler *fn)
{
	local_delivered("interrupt");
	local_open(2);
	local_on(VISIT, fn);
	CHECK_IS(tern_poll(local[0]), 0);
}

static uint64_t interrupts(void)
{
	return atomic_load(&local[0]->own->pulse->count[PULSE_INTERRUPTS]);
}

/* Until senders will call: the timer has found that the program does not. */
static void compute_until_armed(void)
{
	const volatile bool *armed = &local[0]->own->owner.armed;
	while (!*armed)
		sched_yield();
}

static _Atomic int32_t handled_by;

static void note_thread(tern *t, const tern_msg *m)
{
	atomic_store(&handled_by, thread_id());
	on_visit(t, m);
}

TEST(a_program_that_computes_is_interrupted_and_runs_the_handlers_itself)
{
	interrupted_open(note_thread);
	for (unsigned round = 1; round <= 100; round++) {
		visitor_pays(10);
		host_computes_until(10 * round);
		CHECK_IS(atomic_load(&handled_by), thread_id());
	}
	CHECK(interrupts() > 0);
	local_close();
}

/* -- Whichever call was its last ------------------------------------------------------------- */

/* Rank 0 is asked and calls nothing any more. */
static void check_interrupted(void)
{
	visitor_pays(1);
	host_computes_until(1);
	local_close();
}

TEST(a_program_that_chooses_interrupts_and_then_computes_is_interrupted)
{
	local_polled();
	visitor_open();
	CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_INTERRUPT), 0);
	check_interrupted();
}

TEST(a_program_that_attaches_and_then_computes_is_interrupted)
{
	local_delivered("interrupt");
	local_open(2);
	local_on(VISIT, on_visit);
	tern_attach(local[0]);
	check_interrupted();
}

TEST(a_program_that_holds_and_releases_and_then_computes_is_interrupted)
{
	local_delivered("interrupt");
	local_open(2);
	local_on(VISIT, on_visit);
	tern_hold(local[0]);
	tern_release(local[0]);
	check_interrupted();
}

/* -- What the program was doing ------------------------------------------------------------- */

static void disturb(tern *t, const tern_msg *m)
{
	errno = 77;
	fesetround(FE_UPWARD);
	feraiseexcept(FE_OVERFLOW | FE_INVALID);
	CHECK_IS(tern_request(t, 1, VISIT), -EPERM); /* and so has a sentence of its own */
	on_visit(t, m);
}

TEST(errno_and_the_last_sentence_and_the_floating_point_state_are_as_before)
{
	char sentence[300];
	interrupted_open(disturb);
	CHECK_IS(tern_request(local[0], 9, VISIT), -ERANGE);
	snprintf(sentence, sizeof sentence, "%s", tern_strerror(-ERANGE));
	CHECK(strstr(sentence, "rank 9") != NULL);
	fesetround(FE_DOWNWARD);
	feclearexcept(FE_ALL_EXCEPT);
	feraiseexcept(FE_INEXACT);
	for (unsigned round = 1; round <= 20; round++) {
		visitor_pays(1);
		uint64_t before = interrupts();
		errno = 5;
		host_computes_until(round);
		CHECK_IS(errno, 5);
		CHECK(interrupts() > before || atomic_load(&visits) == round);
	}
	CHECK(strcmp(tern_strerror(-ERANGE), sentence) == 0);
	CHECK_IS(fegetround(), FE_DOWNWARD);
	CHECK_IS(fetestexcept(FE_ALL_EXCEPT), FE_INEXACT);
	CHECK(interrupts() > 0);
	local_close();
}

TEST(a_program_asleep_in_nanosleep_is_served)
{
	struct visitor v;
	interrupted_open(on_visit);
	for (unsigned round = 1; round <= 5; round++) {
		compute_until_armed();
		visitor_start(&v, 1);
		while (atomic_load(&visits) < round) /* returns early: no such call is restarted */
			CHECK(nanosleep(&(struct timespec){ .tv_sec = 30 }, NULL) == 0 ||
			      errno == EINTR);
		visitor_end(&v);
	}
	local_close();
}

static int pipes[2];

/* Visits a program that reads, and lets it read when the visit is over. */
static void *visit_then_write(void *arg)
{
	CHECK_IS(tern_request(local[1], 0, VISIT, 0), 0);
	while (atomic_load(&visits) == 0)
		sched_yield();
	CHECK_IS(write(pipes[1], "x", 1), 1);
	return arg;
}

TEST(a_read_of_the_program_is_interrupted_and_goes_on)
{
	pthread_t thread;
	char byte = 0;
	REQUIRE(pipe(pipes) == 0);
	interrupted_open(on_visit);
	compute_until_armed();
	REQUIRE(pthread_create(&thread, NULL, visit_then_write, NULL) == 0);
	CHECK_IS(read(pipes[0], &byte, 1), 1); /* not EINTR */
	CHECK_IS(byte, 'x');
	pthread_join(thread, NULL);
	CHECK_IS(atomic_load(&visits), 1);
	local_close();
}

/* -- What it costs ------------------------------------------------------------------------- */

enum { BURST = 200 };

static void signal_block(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, 40);
	pthread_sigmask(how, &set, NULL);
}

/*
 * Over a network some of it may be sent only when the first has been acknowledged; nobody but the
 * host is left to do that.
 */
static void host_sends_the_rest(unsigned came)
{
	tern_attach(local[1]);
	while (atomic_load(&visits) < came)
		CHECK(tern_poll(local[1]) >= 0);
}

TEST(a_burst_costs_one_interrupt)
{
	interrupted_open(on_visit);
	for (unsigned round = 1; round <= 20; round++) {
		compute_until_armed();
		uint64_t before = interrupts();
		signal_block(SIG_BLOCK); /* all of it is there before the first instruction of the
					    handler */
		visitor_pays(BURST);
		signal_block(SIG_UNBLOCK);
		bool packets = local[0]->own->site.asks;
		if (packets)
			host_sends_the_rest(BURST * round);
		CHECK_IS(atomic_load(&visits), BURST * round); /* by then, without a call */
		CHECK(packets ? interrupts() - before < BURST / 2 : interrupts() - before == 1);
	}
	local_close();
}

TEST(a_program_that_polls_anyway_is_hardly_ever_interrupted)
{
	struct visitor v;
	unsigned n = check_scaled(50000);
	interrupted_open(on_visit);
	uint64_t before = interrupts();
	visitor_start(&v, n);
	while (atomic_load(&visits) < n)
		CHECK(tern_poll(local[0]) >= 0);
	visitor_end(&v);
	/*
	 * None, if it had a core to itself: only a poll that takes a millisecond looks like
	 * computing.
	 */
	CHECK(interrupts() - before < n / 16);
	local_close();
}

TEST(a_stream_without_an_end_leaves_the_program_time)
{
	struct visitor v;
	interrupted_open(on_visit);
	visitor_start(&v, 0);
	unsigned first = atomic_load(&visits);
	for (volatile uint64_t i = 0; i < check_scaled(300000000); i++)
		;
	CHECK(atomic_load(&visits) > first); /* and it was served meanwhile */
	visitor_end(&v);
	local_close();
}

/* -- Signals that nobody asked for ------------------------------------------------------------- */

TEST(a_signal_without_a_message_does_nothing)
{
	interrupted_open(on_visit);
	for (unsigned i = 1; i <= 1000; i++) {
		raise(40);
		tern_hold(local[0]);
		raise(40);
		if (i % 100 == 0)
			visitor_pays(1);
		tern_release(local[0]);
	}
	host_computes_until(10);
	local_close();
}

TEST(a_signal_after_the_endpoint_has_closed_does_nothing)
{
	interrupted_open(on_visit);
	local_close();
	raise(40);
	interrupted_open(on_visit); /* and the place is used again */
	visitor_pays(3);
	host_computes_until(3);
	local_close();
	raise(40);
}

/* -- Without a timer ------------------------------------------------------------------------- */

static bool timers_fail;

/* In place of the C library's. */
int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
	static int (*real)(clockid_t, struct sigevent *restrict, timer_t *restrict);
	*(void **)&real = dlsym(RTLD_NEXT, "timer_create");
	errno = EAGAIN;
	return timers_fail ? -1 : real(clock, event, timer);
}

/* Whether rank 0 warns when interrupts begin. */
static bool warned(void)
{
	char said[300] = "";
	int ends[2], before = dup(STDERR_FILENO);
	REQUIRE(pipe2(ends, O_NONBLOCK) == 0 && before >= 0);
	dup2(ends[1], STDERR_FILENO);
	interrupted_open(on_visit);
	dup2(before, STDERR_FILENO);
	(void)!read(ends[0], said, sizeof said - 1);
	close(ends[0]);
	close(ends[1]);
	close(before);
	return strstr(said, "rank 0 has no timer") != NULL;
}

TEST(a_program_that_can_have_no_timer_is_warned_and_delivers_when_it_calls)
{
	CHECK(!warned());
	local_close();
	timers_fail = true;
	CHECK(warned());
	visitor_pays(3);
	while (atomic_load(&visits) < 3)
		CHECK(tern_poll(local[0]) >= 0);
	local_close();
	timers_fail = false;
}

/* -- Several endpoints of one thread ------------------------------------------------------- */

enum { MANY = 3000 };

static void send_many(tern *t, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < MANY; i++) /* more than a ring holds: it waits, and serves */
		CHECK_IS(tern_request(t, 1, VISIT + 1, i, i), 0);
}

static void defer_many(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_defer(t, send_many, NULL), 0);
}

static _Atomic unsigned came;
static uint64_t due;

static void in_order(tern *t, const tern_msg *m)
{
	(void)t;
	CHECK_IS(tern_msg_word(m, 0), due % MANY);
	due++;
	atomic_fetch_add(&came, 1);
}

static void *ask_for_many(void *arg)
{
	for (unsigned round = 1; round <= 20; round++) {
		CHECK_IS(tern_request(local[2], 0, VISIT), 0);
		while (atomic_load(&came) < round * MANY)
			sched_yield();
	}
	atomic_store(&enough, true);
	return arg;
}

static void *keep_busy(void *arg)
{
	while (!atomic_load(&enough))
		CHECK_IS(tern_request(local[3], 1, VISIT + 2), 0);
	return arg;
}

/*
 * The interrupts for rank 0 come while its thread is inside calls of rank 1, most of all in its
 * handlers. What rank 0 has deferred sends to rank 1 more than its ring holds, and cannot be done
 * before that call is over.
 */
TEST(an_interrupt_leaves_an_endpoint_alone_that_its_thread_is_inside_of)
{
	pthread_t asker, busy;
	local_delivered("interrupt");
	local_open(4);
	local_on(VISIT, defer_many);
	local_on(VISIT + 1, in_order);
	local_on(VISIT + 2, on_visit);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(tern_poll(local[1]), 0);
	REQUIRE(pthread_create(&asker, NULL, ask_for_many, NULL) == 0);
	REQUIRE(pthread_create(&busy, NULL, keep_busy, NULL) == 0);
	while (!atomic_load(&enough))
		CHECK(tern_poll(local[1]) >= 0);
	for (int i = 0; i < 1000; i++) /* room for the last of the busy one */
		CHECK(tern_poll(local[1]) >= 0);
	pthread_join(asker, NULL);
	pthread_join(busy, NULL);
	CHECK_IS(atomic_load(&came), 20 * MANY);
	local_close();
}
