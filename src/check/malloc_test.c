/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The debug preset's malloc() tells of handlers that call it in an interrupt, and of nobody else.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/local.h"

enum { ALLOCATE, SIGNAL = 41 };

static _Atomic uint64_t done;
static void *volatile kept;

static void allocate(tern *t, const tern_msg *m)
{
	(void)m;
	kept = malloc(100);
	free(kept);
	tern_signal(t, &done, 1);
}

/* A message is sent to a rank that computes, or polls, and its handler allocates. */
static void scene(enum tern_delivery d)
{
	setenv("TERN_SIGNAL", "41", 1);
	local_polled();
	local_open(2);
	local_on(ALLOCATE, allocate);
	CHECK_IS(tern_delivery_set(local[1], d), 0);
	CHECK_IS(tern_request(local[0], 1, ALLOCATE), 0);
	while (!atomic_load(&done))
		if (d == TERN_DELIVERY_POLL)
			tern_poll(local[1]);
	local_close();
}

static const char *said(enum tern_delivery d)
{
	static char text[4096];
	int ends[2], status;
	REQUIRE(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		scene(d);
		_exit(0);
	}
	close(ends[1]);
	size_t used = 0;
	ssize_t got;
	while ((got = read(ends[0], text + used, sizeof text - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(ends[0]);
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_IS(status, 0);
	return text;
}

TEST(a_handler_that_allocates_in_an_interrupt_is_named)
{
	const char *text = said(TERN_DELIVERY_INTERRUPT);
	CHECK(strstr(text, "rank 1: handler 0 called malloc() in an interrupt") != NULL);
	CHECK(strstr(text, "rank 1: handler 0 called free() in an interrupt") != NULL);
}

TEST(a_handler_that_allocates_in_a_poll_is_not)
{
	CHECK_IS(strlen(said(TERN_DELIVERY_POLL)), 0);
}
