/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that only compute: they are preempted, where that is safe, and nobody starves. */
#include <errno.h>
#include <fenv.h>

#include <tern/thread.h>

#include "lib/ranks.h"
#include "spawn/preempt.h"

enum { COMPUTE, RAISE, HELD, NESTED, WAIT };

static volatile uint64_t flag, work; /* plain memory: nothing that the library could see */
static tern_thread threads[8];

/* The program's own instructions and nothing else, until somebody raises the flag. */
static uint64_t compute(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	uint64_t turns = 0;
	double x = (double)word[0] + 1;
	while (flag < word[0]) {
		turns++;
		x = x * 1.0000001 + 0.5;
		work = turns;
	}
	return x > 1 ? turns | 1 : 0;
}

static uint64_t raise_flag(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	flag = word[0];
	return 0;
}

static tern *open_one(void)
{
	setenv("TERN_SLICE", "10", 1);
	tern *t = ranks_open();
	if (!preempt_possible())
		check_skip("this build does not preempt");
	CHECK_IS(tern_thread_on(t, COMPUTE, compute, NULL), 0);
	CHECK_IS(tern_thread_on(t, RAISE, raise_flag, NULL), 0);
	return t;
}

TEST(a_thread_that_computes_is_preempted_by_the_next)
{
	tern *t = open_one();
	uint64_t turns = 0;
	CHECK_IS(tern_thread_start(t, 0, COMPUTE, &threads[0], 1), 0);
	CHECK_IS(tern_thread_start(t, 0, RAISE, &threads[1], 1), 0);
	CHECK_IS(tern_thread_join(t, &threads[0], &turns), 0);
	CHECK(turns > 0);
	CHECK_IS(tern_thread_join(t, &threads[1], NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(the_program_that_computes_is_preempted_too)
{
	tern *t = open_one();
	const uint64_t word[TERN_WORDS_MAX] = { 1 };
	CHECK_IS(tern_thread_start(t, 0, RAISE, &threads[1], 1), 0);
	CHECK(compute(t, word, NULL) > 0);
	CHECK_IS(tern_thread_join(t, &threads[1], NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

/* Of this process, where its kernel tells of them. */
static unsigned timers(void)
{
	char line[200];
	unsigned n = 0;
	FILE *list = fopen("/proc/self/timers", "re");
	while (list && fgets(line, sizeof line, list))
		n += strncmp(line, "ID:", 3) == 0;
	if (list)
		fclose(list);
	return n;
}

TEST(the_next_endpoint_has_slices_too_and_a_closed_one_leaves_no_timer)
{
	for (uint64_t i = 1; i <= 2; i++) {
		tern *t = open_one();
		CHECK_IS(tern_thread_start(t, 0, COMPUTE, &threads[0], i), 0);
		CHECK_IS(tern_thread_start(t, 0, RAISE, &threads[1], i), 0);
		CHECK_IS(tern_thread_join(t, &threads[0], NULL), 0);
		CHECK_IS(tern_thread_join(t, &threads[1], NULL), 0);
		CHECK_IS(tern_close(t), 0);
		CHECK_IS(timers(), 0);
	}
}

TEST(many_threads_that_compute_have_turns)
{
	tern *t = open_one();
	for (unsigned i = 0; i < 7; i++) /* each waits until the one after it has run */
		CHECK_IS(tern_thread_start(t, 0, COMPUTE, &threads[i], 1), 0);
	CHECK_IS(tern_thread_start(t, 0, RAISE, &threads[7], 1), 0);
	for (unsigned i = 0; i < 8; i++)
		CHECK_IS(tern_thread_join(t, &threads[i], NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

/* -- Where it must not happen --------------------------------------------------------------- */

/* Ten slices; the flag, which another thread would raise. */
static uint64_t compute_long(void)
{
	struct timespec now;
	uint64_t end = 0;
	do {
		for (unsigned i = 0; i < 1000000; i++)
			work = i;
		clock_gettime(CLOCK_MONOTONIC, &now);
		end = end ? end
			  : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + 100000000;
	} while ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec < end);
	return flag;
}

static uint64_t compute_plain(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)t, (void)word, (void)arg;
	return compute_long();
}

static uint64_t compute_held(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)word, (void)arg;
	tern_hold(t);
	uint64_t seen = compute_long();
	tern_release(t);
	return seen;
}

/* As a signal's handler would. */
static uint64_t compute_blocked(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)t, (void)arg;
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, (int)word[0]);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	uint64_t seen = compute_long();
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	return seen;
}

static void not_preempted(tern *t, tern_thread_fn *fn, uint64_t word)
{
	uint64_t seen = 1;
	CHECK_IS(tern_thread_on(t, HELD, fn, NULL), 0);
	CHECK_IS(tern_thread_start(t, 0, HELD, &threads[0], word), 0);
	CHECK_IS(tern_thread_start(t, 0, RAISE, &threads[1], 1), 0);
	CHECK_IS(tern_thread_join(t, &threads[0], &seen), 0);
	CHECK_IS(seen, 0);
	CHECK_IS(tern_thread_join(t, &threads[1], NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_thread_under_a_hold_is_not_preempted)
{
	not_preempted(open_one(), compute_held, 0);
}

static struct sigaction action_of(int number)
{
	struct sigaction now = { 0 };
	CHECK_IS(sigaction(number, NULL, &now), 0);
	return now;
}

TEST(a_thread_that_blocks_a_signal_is_not_preempted_by_the_one_that_is_allotted)
{
	setenv("TERN_SIGNAL", "40", 1);
	tern *t = open_one();
	const uint64_t last = (uint64_t)SIGRTMAX;
	not_preempted(t, compute_blocked, last);
	CHECK(action_of(40).sa_flags & SA_SIGINFO);
	CHECK(action_of(SIGRTMAX).sa_handler == SIG_DFL);
}

static void the_programs(int number)
{
	(void)number;
}

/* They have turns when one of them waits. */
TEST(where_the_program_has_a_handler_for_every_signal_its_threads_are_not_preempted)
{
	for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
		REQUIRE(signal(n, the_programs) != SIG_ERR);
	setenv("TERN_SIGNAL", "40", 1); /* though it is allotted */
	tern *t = open_one();
	not_preempted(t, compute_plain, 0);
	for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
		CHECK(action_of(n).sa_handler == the_programs);
}

static unsigned handler_breaks;
static volatile bool in_a_handler;

static void slow_handler(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	in_a_handler = true;
	for (unsigned i = 0; i < 100000000; i++)
		work = i;
	in_a_handler = false;
}

static uint64_t look_at_handler(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < word[0]; i++) {
		handler_breaks += in_a_handler;
		CHECK_IS(tern_thread_yield(t), 0);
	}
	return 0;
}

TEST(a_handler_is_not_preempted)
{
	tern *t = open_one();
	CHECK_IS(tern_thread_on(t, WAIT, look_at_handler, NULL), 0);
	CHECK_IS(tern_on(t, 1, slow_handler), 0);
	CHECK_IS(tern_thread_start(t, 0, WAIT, &threads[0], 1000), 0);
	CHECK_IS(tern_request(t, 0, 1), 0);
	CHECK_IS(tern_thread_join(t, &threads[0], NULL), 0);
	CHECK_IS(handler_breaks, 0);
	CHECK_IS(tern_close(t), 0);
}

/* -- What must survive it -------------------------------------------------------------------- */

static uint64_t keep_state(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	uint64_t bad = 0, turns = 0;
	(void)t;
	errno = (int)word[0];
	while (flag < 1) {
		bad += errno != (int)word[0];
		work = ++turns;
	}
	return bad;
}

static uint64_t spoil_state(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 20; i++) {
		errno = 4711;
		CHECK_IS(tern_request(t, 99, 1), -ERANGE);
		CHECK_IS(tern_thread_yield(t), 0);
	}
	flag = word[0];
	return 0;
}

TEST(errno_and_the_sentence_of_an_error_survive_a_preemption)
{
	tern *t = open_one();
	uint64_t bad = 1;
	CHECK_IS(tern_thread_on(t, NESTED, keep_state, NULL), 0);
	CHECK_IS(tern_thread_on(t, WAIT, spoil_state, NULL), 0);
	CHECK_IS(tern_thread_start(t, 0, NESTED, &threads[0], 77), 0);
	CHECK_IS(tern_thread_start(t, 0, WAIT, &threads[1], 1), 0);
	CHECK_IS(tern_thread_join(t, &threads[0], &bad), 0);
	CHECK_IS(bad, 0);
	CHECK_IS(tern_thread_join(t, &threads[1], NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

/* -- Messages, between ranks ------------------------------------------------------------------ */

static void answer(tern *t, const tern_msg *m)
{
	tern_reply(t, m, 2, tern_msg_word(m, 0));
}

static _Atomic uint64_t answers;

static void on_answer(tern *t, const tern_msg *m)
{
	tern_signal(t, &answers, tern_msg_word(m, 0));
}

static void lower(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	flag = 1;
}

static void served_while_computing(void)
{
	tern *t = open_one();
	CHECK_IS(tern_on(t, 1, answer), 0);
	CHECK_IS(tern_on(t, 2, on_answer), 0);
	CHECK_IS(tern_on(t, 3, lower), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_spawn(t, 1, COMPUTE, NULL, NULL, 1), 0);
		for (unsigned i = 0; i < 3; i++) {
			CHECK_IS(tern_request(t, 1, 1, 1), 0);
			CHECK_IS(tern_wait(t, &answers, 1), 0);
		}
		CHECK_IS(tern_request(t, 1, 3), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_whose_thread_computes_still_answers)
{
	if (!preempt_possible())
		check_skip("this build does not preempt");
	ranks_run(2, served_while_computing);
}
