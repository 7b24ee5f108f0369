/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_ranks EVENT [MICROSECONDS]: something happens to rank 1, and the others say what their
 * calls say of it. What tests/death/faults_test.sh starts, over each network and under each
 * launcher.
 *
 *     die     it is killed while all run
 *     fail    it ends with status 3 without closing
 *     end     it ends with status 0 without closing
 *     close   it closes its endpoint and computes on
 *     early   it is killed before it opens
 *     join    it is killed in its tern_open(), so long after the beginning
 *     leave   it is killed in its tern_close(), so long after the beginning, and the others open
 *             again
 *     stop    it is stopped for longer than the grace time, and then goes on
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tern/send.h>
#include <tern/tern.h>

enum { ASK, TELL, DONE, VICTIM = 1, ID = 7 };

static const char *event;
static long delay; /* microseconds */
static _Atomic uint64_t answers, done, never;
extern char **environ;

static bool is(const char *name)
{
	return strcmp(event, name) == 0;
}

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

static tern *rank_open(void)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (rc) {
		fprintf(stderr, "tern_open: %s\n", tern_strerror(rc));
		exit(1);
	}
	tern_on(t, ASK, answer);
	tern_on(t, TELL, take);
	tern_on(t, DONE, count);
	return t;
}

static void say_as(uint32_t rank, const char *call, int rc)
{
	printf("%u %s: %s: %s\n", rank, call,
	       rc == -EOWNERDEAD  ? "dead"
	       : rc == -ESHUTDOWN ? "left"
	       : rc               ? "another code"
				  : "fine",
	       tern_strerror(rc));
	fflush(stdout);
}

static void say(const tern *t, const char *call, int rc)
{
	say_as(tern_rank(t), call, rc);
}

/* Kills this process after `delay` microseconds, wherever it is then. */
static void kill_later(void)
{
	timer_t timer;
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { .tv_sec = delay / 1000000,
						 .tv_nsec = delay % 1000000 * 1000 + 1 } };
	if (timer_create(CLOCK_MONOTONIC, &kill, &timer) || timer_settime(timer, 0, &when, NULL))
		raise(SIGKILL);
}

/* Stopped, until a child that knows nothing of Tern lets it go on. */
static void stop_for_long(void)
{
	char line[64], shell[] = "sh", takes[] = "-c";
	pid_t child;
	snprintf(line, sizeof line, "sleep 3; kill -CONT %d", (int)getpid());
	char *argv[] = { shell, takes, line, NULL };
	if (posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ) == 0)
		raise(SIGSTOP);
}

static void victim(tern *t)
{
	if (is("die") || is("early"))
		raise(SIGKILL);
	if (is("fail") || is("end"))
		exit(is("fail") ? 3 : 0);
	if (is("leave"))
		kill_later();
	tern_close(t);
	if (is("leave"))
		raise(SIGKILL);
	sleep(2); /* the others are told before its process ends */
	exit(0);
}

/* Among those who are left. */
static void meet_others(tern *t)
{
	uint32_t others = tern_size(t) - (is("stop") ? 0 : 1);
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (r != VICTIM || is("stop"))
			tern_request_data(t, r, ASK, "x", 1);
	say(t, "others", tern_wait(t, &answers, others));
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (r != VICTIM || is("stop"))
			tern_request(t, r, DONE);
	tern_wait(t, &done, others); /* whoever closes earlier cannot answer the others */
}

static void learn(tern *t)
{
	tern_op op = TERN_OP;
	uint64_t word;
	say(t, "barrier", tern_barrier(t));
	say(t, "request", tern_request(t, VICTIM, ASK));
	if (!is("close")) { /* of one that left well a wait is not told */
		say(t, "wait", tern_wait(t, &never, 1));
		tern_recv_start(t, &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, &word,
				sizeof word, NULL, &op);
		say(t, "any", tern_op_wait(t, &op));
		tern_op_cancel(t, &op);
	}
	tern_forgive(t, VICTIM);
	meet_others(t);
}

/* Nobody is told anything: whatever needs the rank waits until it goes on. */
static void stop(tern *t)
{
	tern_barrier(t);
	if (tern_rank(t) == VICTIM)
		stop_for_long();
	meet_others(t);
	say(t, "barrier", tern_barrier(t));
}

int main(int argc, char **argv)
{
	const char *rank = getenv("TERN_RANK");
	event = argc > 1 ? argv[1] : "die";
	delay = argc > 2 ? atol(argv[2]) : 0;
	rank = rank ? rank : getenv("PMIX_RANK");
	bool is_victim = rank && atoi(rank) == VICTIM;
	if (is_victim && is("early"))
		raise(SIGKILL);
	if (is_victim && is("join"))
		kill_later();
	tern *t = rank_open();
	if (is("stop")) {
		stop(t);
		return tern_close(t) ? 1 : 0;
	}
	if (is_victim && is("join"))
		pause(); /* it opens faster than that */
	if (!is("join") && !is("early"))
		tern_barrier(t);
	if (is_victim)
		victim(t);
	if (is("leave")) {
		uint32_t me = tern_rank(t);
		say_as(me, "close", tern_close(t));
		t = rank_open();
	}
	learn(t);
	return tern_close(t) ? 1 : 0;
}
