/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests/lab/serve_count_test.sh starts: rank 0 calls rank 1, which is on its machine, and
 * prints how many instructions each call takes, one line a call. A process of its own steps through
 * it, and keeps the serving thread still meanwhile, where there is one: what is counted is what the
 * program pays although nobody serves. Further ranks only answer.
 *
 * A call that looks at the network does now and then what is due at a time. So each is counted some
 * times, and the least counts.
 */
#include <stdio.h>

#if !defined(__x86_64__)
int main(void)
{
	puts("skipped: single-stepping is written for x86-64");
	return 0;
}
#else

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "stepping.h"

enum {
	TAKE = 1,
	MORE,
	GREET,
	TIMES = 20,
	CALLS = 32,
	WORDS = 8,
	THREADS_MOST = 8,
	NAP_NS = 1000000
};

static const char *const name[] = { "put",      "get",       "amo",      "request", "payload",
				    "request8", "poll_none", "poll_one", "wait" };
enum { COUNTED = sizeof name / sizeof *name };

/* Elsewhere the counts are only printed: compilers differ by two or three. */
#if __GNUC__ == 12 && !defined(__clang__) && defined(__OPTIMIZE__) &&      \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!defined(TERN_NO_INLINE)
enum { EXACT = 1 };
#else
enum { EXACT = 0 };
#endif

/* What the two processes have in common. */
struct board {
	_Atomic int go; /* 1: rank 0 is ready, 2: it is traced, -1: it cannot be */
	_Atomic uint32_t *alert;
	long steps[COUNTED];
};

static struct board *board;
static tern *t;
static _Atomic uint64_t signalled;
static uint64_t *own; /* words in this rank's heap: [0] is 1 when a message lies here */
static tern_addr there;
static bool greeted;

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static void on_take(tern *e, const tern_msg *m)
{
	(void)e, (void)m;
}

static void on_greet(tern *e, const tern_msg *m)
{
	tern_reply(e, m, TAKE);
	if (tern_rank(e) != 0)
		greeted = true;
}

/*
 * Until polls look for requests and replies of all ranks: a peer that is silent for long is not
 * looked for.
 */
static void greet_all(void)
{
	while (t->own->site.pollset < 2 * tern_size(t)) {
		for (uint32_t r = 0; r < tern_size(t); r++)
			tern_request(t, r, GREET);
		for (int i = 0; i < 20; i++) {
			t->own->vain = 0;
			tern_poll(t);
			nap();
		}
	}
}

/* At rank 1: sends one message, and says so. */
static void on_more(tern *e, const tern_msg *m)
{
	(void)e;
	own[1] = tern_msg_word(m, 0);
}

/* -- The calls --------------------------------------------------------------------------------- */

static void call_put(void)
{
	uint64_t word = 1;
	tern_put(t, there + 64, &word, sizeof word);
}

static void call_get(void)
{
	uint64_t word;
	tern_get(t, &word, there + 64, sizeof word);
}

static void call_amo(void)
{
	uint64_t old;
	tern_amo(t, there + 64, TERN_AMO_ADD, 1, &old);
}

static void call_request(void)
{
	for (int i = 0; i < CALLS; i++) /* of which each 16th looks */
		tern_request(t, 1, TAKE, 1, 2, 3, 4);
}

static void call_payload(void)
{
	static const char bytes[64];
	tern_request_data(t, 1, TAKE, bytes, sizeof bytes, 1);
}

static void call_request8(void)
{
	tern_request(t, 1, TAKE, 1, 2, 3, 4, 5, 6, 7, 8);
}

static void call_poll(void)
{
	tern_poll(t);
}

static void call_wait(void)
{
	tern_wait(t, &signalled, 1);
}

static void (*const call[COUNTED])(void) = { call_put,     call_get,     call_amo,
					     call_request, call_payload, call_request8,
					     call_poll,    call_poll,    call_wait };

/* Rank 1 sends one, and puts a word behind it: both are stores to memory that the ranks share. */
static void message_lies_here(void)
{
	own[0] = 0;
	tern_request(t, 1, MORE, 1);
	while (!*(volatile uint64_t *)own)
		;
}

static void settle(int which)
{
	for (int i = 0; i < 3; i++) {
		tern_poll(t);
		nap();
	}
	t->looks = CALLS; /* no call but the requests looks in passing */
	if (call[which] == call_request)
		t->looks = 1;
	if (which && call[which] == call_poll && call[which - 1] == call_poll)
		message_lies_here();
}

static void rank_calls(void)
{
	for (int which = 0; which < COUNTED; which++)
		for (int i = 0; i < TIMES; i++) {
			tern_signal(t, &signalled, 2);
			call[which](); /* finds what is looked up once */
			settle(which);
			mark();
			call[which]();
			mark();
		}
}

/* -- The tracer -------------------------------------------------------------------------------- */

/* Stops the other threads of `rank`; how many. */
static int threads_stop(pid_t rank, pid_t *thread)
{
	char path[64];
	int n = 0;
	snprintf(path, sizeof path, "/proc/%d/task", rank);
	DIR *tasks = opendir(path);
	for (struct dirent *d; tasks && n < THREADS_MOST && (d = readdir(tasks));) {
		pid_t id = atoi(d->d_name);
		if (id <= 0 || id == rank || ptrace(PTRACE_ATTACH, id, NULL, NULL))
			continue;
		waitpid(id, NULL, __WALL);
		thread[n++] = id;
	}
	if (tasks)
		closedir(tasks);
	return n;
}

/* Stopped as the owner, it would keep the program out for ever: then it goes on for a while. */
static int threads_hold(pid_t rank, pid_t *thread)
{
	for (;;) {
		int n = threads_stop(rank, thread);
		long alert = ptrace(PTRACE_PEEKDATA, rank, board->alert, NULL);
		if (!((uint32_t)alert & ALERT_CLAIM))
			return n;
		while (n)
			ptrace(PTRACE_DETACH, thread[--n], NULL, NULL);
		nap();
	}
}

static void trace(pid_t rank)
{
	pid_t thread[THREADS_MOST];
	while (board->go == 0)
		nap();
	if (ptrace(PTRACE_ATTACH, rank, NULL, NULL)) {
		board->go = -1;
		return;
	}
	waitpid(rank, NULL, __WALL);
	int threads = threads_hold(rank, thread);
	board->go = 2;
	for (int which = 0; which < COUNTED; which++)
		for (int i = 0; i < TIMES; i++) {
			run_to_mark(rank);
			long n = steps_to_mark(rank);
			if (i == 0 || n < board->steps[which])
				board->steps[which] = n;
		}
	while (threads)
		ptrace(PTRACE_DETACH, thread[--threads], NULL, NULL);
	ptrace(PTRACE_DETACH, rank, NULL, NULL);
}

static void tracer_start(void)
{
	pid_t rank = getpid();
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	trace(rank);
	_exit(0);
}

static void rank_counted(void)
{
	board->alert = &t->alert;
	board->go = 1;
	while (board->go == 1)
		nap();
	if (board->go < 0) {
		puts("skipped: this machine does not let a process trace its parent");
		return;
	}
	rank_calls();
	printf("serves %d\nexact %d\n", t->own->owner.serves, EXACT);
	for (int which = 0; which < COUNTED; which++)
		printf("%s %ld\n", name[which], board->steps[which]);
}

/* Until rank 0 is done. */
static void rank_answers(void)
{
	uint64_t one = 1;
	while (!*(volatile uint64_t *)&own[2]) {
		tern_poll(t);
		if (greeted)
			tern_request(t, 0, TAKE);
		greeted = false;
		if (tern_rank(t) != 1)
			nap();
		if (!own[1])
			continue;
		own[1] = 0;
		tern_request(t, 0, TAKE, 1);
		tern_put(t, there, &one, sizeof one);
	}
}

int main(void)
{
	const uint64_t over = 1;
	void *all;
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return 1;
	if (!getenv("TERN_RANK") || atoi(getenv("TERN_RANK")) == 0)
		tracer_start();
	if (tern_open(&t, NULL) || tern_on(t, TAKE, on_take) || tern_on(t, MORE, on_more) ||
	    tern_on(t, GREET, on_greet) || tern_alloc_all(t, 4096, &all))
		return 1;
	own = all;
	there = tern_addr_at(t, tern_rank(t) == 0 ? 1 : 0, all);
	tern_barrier(t);
	if (tern_rank(t) == 0) {
		greet_all();
		rank_counted();
		for (uint32_t r = 1; r < tern_size(t); r++)
			tern_put(t, handed_at(there, r) + 16, &over, sizeof over);
	} else {
		rank_answers();
	}
	tern_barrier(t);
	tern_close(t);
	return 0;
}
#endif
