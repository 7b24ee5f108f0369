/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with threads, played by one kernel thread. */
#ifndef TERN_TESTS_THREADS_H
#define TERN_TESTS_THREADS_H

#include <errno.h>

#include <tern/thread.h>

#include "local.h"

/* All endpoints belong to the caller, so that its waits run the threads of all of them. */
static inline void threads_open(uint32_t n)
{
	local_open(n);
	for (uint32_t r = 0; r < n; r++)
		tern_attach(local[r]);
}

static inline void threads_on(unsigned id, tern_thread_fn *fn)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_thread_on(local[r], id, fn, NULL), 0);
}

/* How a thread ended, for a callback to note. */
struct ending {
	_Atomic unsigned count; /* written last: a progress thread may run the callback */
	uint32_t rank;
	int rc;
	uint64_t result;
};

static inline void note_ending(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	struct ending *e = arg;
	(void)t;
	e->rank = rank;
	e->rc = rc;
	e->result = result;
	e->count++;
}

/* A turn for the threads of every rank, and a look at what has arrived there. */
static inline void everybody(void)
{
	unsigned rounds = 0;
	do
		for (uint32_t r = 0; r < local_size; r++)
			if (local[r])
				REQUIRE(tern_thread_yield(local[r]) == 0);
	while (local_patient(&rounds));
}

/* Until the callback has been called n times. */
static inline void await(const struct ending *e, unsigned n)
{
	while (e->count < n)
		everybody();
}

#endif
