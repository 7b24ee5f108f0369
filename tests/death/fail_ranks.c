/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail_ranks survive [V]: rank V, or 1, kills itself; the others say what their calls say of it.
 * fail_ranks lose: ranks wait for what does not come, and say what is said of those they have lost.
 * fail_ranks raze M V: every rank R with R % M = V kills itself; the others forgive each of those
 * and say when all are gone. fail_ranks stop S... V: each rank S is stopped and then rank V kills
 * itself; the others say that they know, before any S goes on. fail_ranks talk: ranks talk with
 * everybody until somebody ends them. What tests/death/kill_test.sh and the tests of launchers
 * start.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tern/mem.h>
#include <tern/tern.h>

enum { ASK, TELL, DONE, PID };

static _Atomic uint64_t answers, done, never;
static uint32_t victim = 1;
static pid_t stopped[8];
static unsigned stops;

static void answer(tern *t, const tern_msg *m)
{
	(void)!tern_reply(t, m, TELL);
}

static void take(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

static void count(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &done, 1);
}

static void note(tern *t, const tern_msg *m)
{
	(void)t;
	stopped[stops++] = (pid_t)tern_msg_word(m, 0);
}

static void say(const tern *t, const char *call, int rc)
{
	printf("%u %s: %s: %s\n", tern_rank(t), call,
	       rc == -EOWNERDEAD ? "dead"
	       : rc              ? "another code"
				 : "fine",
	       tern_strerror(rc));
	fflush(stdout);
}

/* Puts to the victim's heap until that fails, and makes no other call. */
static int heap_use(tern *t, const uint64_t *word)
{
	tern_addr a = tern_addr_at(t, victim, word);
	int rc = 0;
	while (!rc)
		rc = tern_put(t, a, &(uint64_t){ 1 }, sizeof(uint64_t));
	return rc;
}

static void survive(tern *t)
{
	void *word;
	if (tern_alloc_all(t, sizeof(uint64_t), &word))
		return;
	tern_barrier(t);
	if (tern_rank(t) == victim)
		raise(SIGKILL);
	say(t, "heap", heap_use(t, word));
	say(t, "wait", tern_wait(t, &never, 1));
	say(t, "request", tern_request(t, victim, ASK));
	say(t, "barrier", tern_barrier(t));
	say(t, "barrier", tern_barrier(t));
	tern_forgive(t, victim);
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (r != victim)
			tern_request_data(t, r, ASK, "x", 1);
	say(t, "others", tern_wait(t, &answers, tern_size(t) - 1));
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (r != victim)
			tern_request(t, r, DONE);
	tern_wait(t, &done, tern_size(t) - 1); /* whoever closes earlier cannot answer the others */
}

static void lose(tern *t)
{
	tern_barrier(t);
	printf("%u ready\n", tern_rank(t));
	fflush(stdout);
	say(t, "wait", tern_wait(t, &never, 1));
}

static void forgive(tern *t, uint32_t rank, int why, void *arg)
{
	(void)why, (void)arg;
	tern_forgive(t, rank);
	tern_signal(t, &done, 1);
}

static void raze(tern *t, uint32_t machines)
{
	uint32_t size = tern_size(t), razed = size / machines + (size % machines > victim);
	tern_lost_on(t, forgive, NULL);
	tern_barrier(t);
	if (tern_rank(t) % machines == victim)
		raise(SIGKILL);
	int rc = tern_wait(t, &done, razed);
	printf("%u lost %u: %s\n", tern_rank(t), razed, rc ? tern_strerror(rc) : "all");
	fflush(stdout);
	for (uint32_t r = 0; r < size; r++)
		if (r % machines != victim)
			tern_request(t, r, ASK);
	say(t, "others", tern_wait(t, &answers, size - razed));
	for (uint32_t r = 0; r < size; r++)
		if (r % machines != victim)
			tern_request(t, r, DONE);
	tern_wait(t, &done, size - razed);
}

/* A busy machine may not have let it come to where it stops. */
static bool is_stopped(pid_t pid)
{
	char path[40], text[400] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "r");
	bool stopped_now = f && fgets(text, sizeof text, f) && strstr(text, ") T ");
	if (f)
		fclose(f);
	return stopped_now;
}

/* Rank 0 lets the stopped ones go on, and all leave, when everybody else has said that it knows. */
static void stop_lead(tern *t)
{
	tern_wait(t, &done, tern_size(t) - 2 - stops);
	for (unsigned i = 0; i < stops; i++) {
		while (!is_stopped(stopped[i]))
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		kill(stopped[i], SIGCONT);
	}
	for (uint32_t r = 1; r < tern_size(t); r++)
		if (r != victim)
			tern_request(t, r, DONE);
}

/* Whom: as many words as ranks are to be stopped. */
static void stop(tern *t, char **whom, int n)
{
	int mine = 0;
	for (int i = 0; i < n; i++)
		mine |= tern_rank(t) == (uint32_t)atoi(whom[i]);
	tern_lost_on(t, forgive, NULL);
	if (mine)
		tern_request(t, 0, PID, (uint64_t)getpid());
	tern_barrier(t);
	if (mine)
		raise(SIGSTOP);
	if (tern_rank(t) == victim) {
		nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
		raise(SIGKILL);
	}
	say(t, "told", tern_wait(t, &done, 1));
	if (tern_rank(t) == 0) {
		stop_lead(t);
		return;
	}
	if (!mine)
		tern_request(t, 0, DONE);
	tern_wait(t, &done, 1);
}

__attribute__((noreturn)) static void talk(tern *t)
{
	static const char bytes[3000];
	for (uint32_t i = 0;; i++) {
		tern_request(t, i % tern_size(t), ASK, i);
		tern_request_data(t, i % tern_size(t), ASK, bytes, i % sizeof bytes);
		if (i % 100 == 0)
			tern_barrier(t);
	}
}

int main(int argc, char **argv)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (rc) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		return 1;
	}
	tern_on(t, ASK, answer);
	tern_on(t, TELL, take);
	tern_on(t, DONE, count);
	tern_on(t, PID, note);
	if (argc > 1 && strcmp(argv[1], "talk") == 0)
		talk(t);
	if (argc > 2)
		victim = (uint32_t)atoi(argv[argc - 1]);
	if (argc > 1 && strcmp(argv[1], "lose") == 0)
		lose(t);
	else if (argc > 3 && strcmp(argv[1], "raze") == 0)
		raze(t, (uint32_t)atoi(argv[2]));
	else if (argc > 3 && strcmp(argv[1], "stop") == 0)
		stop(t, argv + 2, argc - 3);
	else
		survive(t);
	return tern_close(t) ? 1 : 0;
}
