/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that computes and one that visits it: the test's thread has rank 0, a thread of the
 * visitor's has rank 1 and sends to rank 0. Its handler touches what a hold is to protect.
 */
#ifndef TERN_TESTS_VISITOR_H
#define TERN_TESTS_VISITOR_H

#include <sched.h>

#include "endpoint/endpoint.h"
#include "local.h"

enum { VISIT = 1 };

/* Not atomic, and written in two steps: a handler in the middle of a hold is seen. */
static struct {
	uint64_t first, second;
} kept;
static _Atomic unsigned visits; /* handled */
static _Atomic bool held_now;   /* the program has a hold */
static _Atomic bool enough;     /* the visitor shall go home */
static _Atomic bool gone;       /* it has */
static _Atomic unsigned paid;   /* visits sent */

static inline void kept_update(void)
{
	CHECK(kept.first == kept.second);
	kept.first++;
	for (int i = 0; i < 400; i++) /* long enough to be met in the middle */
		atomic_signal_fence(memory_order_seq_cst);
	kept.second++;
}

static inline void on_visit(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	CHECK(!atomic_load_explicit(&held_now, memory_order_relaxed));
	kept_update();
	atomic_fetch_add(&visits, 1);
}

struct visitor {
	pthread_t thread;
	unsigned visits; /* to pay; 0: until it is enough */
};

/*
 * Some networks send what was written last when they are asked to, and nobody may do so when the
 * visitor has gone.
 */
static inline void visitor_sends(tern *t)
{
	for (int i = 0; t->own->site.asks && i < 10; i++) {
		CHECK(tern_poll(t) >= 0);
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
}

static inline void *visitor_main(void *arg)
{
	struct visitor *v = arg;
	tern_attach(local[1]); /* from the visitor before */
	for (unsigned i = 0; v->visits ? i < v->visits : !atomic_load(&enough); i++) {
		CHECK_IS(tern_request(local[1], 0, VISIT, i), 0);
		atomic_fetch_add(&paid, 1);
		if (i % 16 == 0) /* in bursts, so that whoever delivers comes again and again */
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	visitor_sends(local[1]);
	atomic_store(&gone, true);
	return NULL;
}

/* The host begins to use its endpoint; the visitor's is its thread's. */
static inline void visitor_open(void)
{
	local_open(2);
	local_on(VISIT, on_visit);
	CHECK_IS(tern_poll(local[0]), 0);
}

static inline void visitor_start(struct visitor *v, unsigned n)
{
	v->visits = n;
	atomic_store(&gone, false);
	REQUIRE(pthread_create(&v->thread, NULL, visitor_main, v) == 0);
}

/* The visitor comes and goes: when this returns, the messages are in the ring. */
static inline void visitor_pays(unsigned n)
{
	struct visitor v;
	visitor_start(&v, n);
	pthread_join(v.thread, NULL);
}

static inline bool host_polls(void)
{
	return tern_delivery_get(local[0]) == TERN_DELIVERY_POLL;
}

/*
 * Computes, without a call, until so many visits have been handled; or polls, where somebody must.
 */
static inline void host_computes_until(unsigned n)
{
	while (atomic_load(&visits) < n)
		if (host_polls())
			CHECK(tern_poll(local[0]) >= 0);
		else
			sched_yield();
}

/* Its last messages may need room. */
static inline void visitor_end(struct visitor *v)
{
	atomic_store(&enough, true);
	while (host_polls() && !atomic_load(&gone))
		CHECK(tern_poll(local[0]) >= 0);
	pthread_join(v->thread, NULL);
}

#endif
