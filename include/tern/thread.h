/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that messages start. A thread is created on any rank, with a function and up to
 * eight words and some data; when the function returns, a callback at the creator gets its result.
 * Threads are light: a rank's run in turn on the kernel thread that has its endpoint, and whenever
 * one waits, in whatever call of Tern's, another runs. tern_spawn(7) has the model.
 *
 * Conventions are those of <tern/tern.h>. -EAGAIN: TERN_THREADS_MAX threads that this rank has
 * created have not ended; returned only where waiting is not allowed.
 */
#ifndef TERN_THREAD_H
#define TERN_THREAD_H

#include <tern/tern.h>

TERN_BEGIN_

enum {
	TERN_THREAD_IDS_MAX = 256, /* functions are numbered 0 .. TERN_THREAD_IDS_MAX - 1 */
	TERN_THREADS_MAX = 4096,   /* threads that a rank has created and that have not ended */
	TERN_SPAWN_CREDITS = 64, /* of those, the ones that one target knows of; the others wait at
			      their creator */
	TERN_SPAWN_DATA_MAX = TERN_PAYLOAD_MAX - 64, /* bytes that a creation carries besides */
};

/*
 * What a thread runs. `word` has all eight; those that were not given are 0. `arg` is what
 * tern_thread_on() was given. What it returns is the result.
 */
typedef uint64_t tern_thread_fn(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg);

/*
 * A thread created at `rank` has ended: rc is 0, and `result` what its function has returned; or rc
 * is -EOWNERDEAD or -ESHUTDOWN because the rank is gone, -ENXIO because nothing is registered there
 * under the number, -ENOMEM because it has no memory for a stack. It runs as a handler does: it
 * must not wait or send, and may spawn.
 */
typedef void tern_thread_done(tern *t, uint32_t rank, int rc, uint64_t result, void *arg);

/*
 * Registers `fn` under `id`; every rank uses the same numbers. -ERANGE, -EINVAL without a function,
 * -ENOMEM.
 */
int tern_thread_on(tern *t, unsigned id, tern_thread_fn *fn, void *arg);

/* -- Creating ----------------------------------------------------------------------- */

/*
 * tern_spawn(t, rank, id, done, arg, ...) creates a thread that runs function `id` at `rank` with
 * up to 8 words, given as those of tern_request(): an integer is converted to uint64_t, and a float
 * or a double travels as its bits. `done` may be NULL. Threads that one rank creates on
 * another start in the order of their creation. Never waits for the thread, or for room at its
 * rank.
 */
#define tern_spawn(t, rank, id, done, ...)                              \
	tern_spawn_words_(t, rank, id, done, TERN_COUNT1_(__VA_ARGS__), \
			  TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))

/* The same with `n` words of an array, which are copied. -E2BIG for more than TERN_WORDS_MAX. */
int tern_spawn_array(tern *t, uint32_t rank, unsigned id, tern_thread_done *done, void *arg,
		     unsigned n, const uint64_t *words);

/* What is not set is 0: one thread, without a callback, words or data. */
typedef struct tern_spawn_args {
	uint32_t rank, count; /* so many from `rank` on, 0 means 1; or TERN_RANK_ALL */
	unsigned id;
	unsigned n; /* words */
	const uint64_t *words;
	tern_thread_done *done; /* called for each thread */
	void *arg;
	const void *data; /* besides the words: tern_thread_self() */
	size_t len;       /* up to TERN_SPAWN_DATA_MAX */
} tern_spawn_args;

/*
 * Creates a thread on each of several ranks, or with data: on all of the ranks or, with an error,
 * on none. Words and data are copied by the call and travel in the creating message. -EMSGSIZE,
 * -ENOMEM for the data; and `done` gets -ENOMEM if a rank has no memory for them.
 */
int tern_spawn_with(tern *t, const tern_spawn_args *a);

/* A thread to be joined: the caller's memory, until it is. */
typedef struct tern_thread {
	uint32_t pending; /* 1 until it has ended */
	uint32_t rank;
	int rc;
	uint64_t result;
} tern_thread;

/*
 * tern_thread_start(t, rank, id, thread, ...) creates a thread whose end goes to *thread;
 * tern_thread_join() waits for it: 0 and the result in *result, unless that is NULL, or the code
 * that a callback would get.
 */
#define tern_thread_start(t, rank, id, ...)                              \
	tern_thread_start_words_(t, rank, id, TERN_COUNT1_(__VA_ARGS__), \
				 TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_thread_start_array(tern *t, uint32_t rank, unsigned id, tern_thread *thread, unsigned n,
			    const uint64_t *words);
int tern_thread_join(tern *t, tern_thread *thread, uint64_t *result);

/* -- In a thread -------------------------------------------------------------------- */

/* Serves messages and gives each of the rank's other threads a turn. */
int tern_thread_yield(tern *t);

/* The thread that calls, and those of its rank. */
typedef struct tern_thread_info {
	uint64_t number;  /* 0 is the program, others are counted as they start at this rank */
	uint32_t creator; /* the rank that has created it; the rank itself in the program */
	unsigned threads; /* started at this rank and not ended; TERN_CONTEXTS is the most */
	/* What tern_spawn_with() has given to it, until it ends; NULL and 0 without. */
	const void *data;
	size_t len;
} tern_thread_info;
tern_thread_info tern_thread_self(const tern *t);

/* -- Locks between the threads of a rank ----------------------------------------------- */

/*
 * Zero it before its first use. Who comes first gets it first. While `holder` is 0 a lock does not
 * wait; threads take turns where they wait, so nobody comes between unless TERN_SLICE is set.
 */
typedef struct tern_mutex {
	uint64_t holder; /* the thread's number plus 1; 0: nobody */
	struct tern_mutex_waiter *first, *last;
} tern_mutex;

/* Waits until the lock is free. -EDEADLK if the caller has it already, or under a hold. */
int tern_mutex_take(tern *t, tern_mutex *m);
/* -EPERM if the caller does not have it. */
int tern_mutex_release(tern *t, tern_mutex *m);

/* -- The inline path: what the macros call --------------------------------------------- */

static inline int tern_spawn_words_(tern *t, uint32_t rank, unsigned id, tern_thread_done *done,
				    unsigned n, void *arg, TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_spawn_array(t, rank, id, done, arg, n, words);
}

static inline int tern_thread_start_words_(tern *t, uint32_t rank, unsigned id, unsigned n,
					   tern_thread *thread, TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_thread_start_array(t, rank, id, thread, n, words);
}

TERN_END_

#endif
