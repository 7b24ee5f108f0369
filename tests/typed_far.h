/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders of typed messages that cannot map their receiver's memory. Here they only believe so:
 * shared memory is made to say that it is none, for some of the ranks, so that everything but the
 * network is as it would be far away.
 */
#ifndef TERN_TESTS_TYPED_FAR_H
#define TERN_TESTS_TYPED_FAR_H

#include <errno.h>

#include "base/clock.h"
#include "chance.h"
#include "handed.h"
#include "local.h"
#include "typed/send.h"

enum { TYPE = 4, OTHER = 5, BYTES = 20000, COUNT = 8, OWNER = 1, NEAR = 2, SECOND = 3, RANKS = 4 };

static unsigned char data[300000];
static struct net_ops blind;

/* From now on `rank` sees the memory of no other. */
static inline void far_away(uint32_t rank)
{
	struct endpoint *e = local[rank]->own;
	for (unsigned i = 0; i < e->nets; i++)
		if (strcmp(e->net[i]->ops->name, "shm") == 0) {
			blind = *e->net[i]->ops;
			e->net[i]->ops = &blind;
			e->net[i]->provides &= ~(unsigned)PROVIDES_SHARED;
		}
}

/* Ranks 0 and 3 are far from rank 1, and rank 2 is near. */
static inline void open_far(void)
{
	setenv("TERN_NET", "shm", 1);
	local_polled();
	local_open(RANKS);
	far_away(0);
	far_away(OWNER);
	far_away(SECOND);
	for (uint32_t r = 0; r < RANKS; r++)
		typed_of(local[r])->idle_ns = UINT64_MAX; /* not by the clock */
}

/* From now on `rank` returns at once what it does not use. */
static inline void far_hasty(uint32_t rank)
{
	typed_of(local[rank])->idle_ns = 0;
}

static inline struct type_queue *type_queue_at(unsigned type)
{
	return typed_of(local[OWNER])->queue[type];
}

static inline unsigned free_buffers(unsigned type)
{
	return bufpool_count_free(&type_queue_at(type)->pool);
}

static inline int send_now(uint32_t from, unsigned type, size_t len)
{
	return tern_buf_send_start(local[from], OWNER, type, data, len, TERN_BUF_NOWAIT, NULL);
}

/* What a program does that does not want to wait, for a while. */
static inline int send_tried(uint32_t from, unsigned type, size_t len)
{
	int rc = -EAGAIN;
	for (int i = 0; i < 200 && rc == -EAGAIN; i++) {
		rc = send_now(from, type, len);
		local_settle();
	}
	return rc;
}

/* The same, long enough for others to give back what they do not use. */
static inline int send_urged(uint32_t from, unsigned type, size_t len)
{
	uint64_t until = clock_ns() + UINT64_C(100000000000);
	int rc = -EAGAIN;
	while (rc == -EAGAIN && clock_ns() < until)
		rc = send_tried(from, type, len);
	return rc;
}

/* The length of the next message, or -1. */
static inline long long next(unsigned type)
{
	size_t len;
	void *p = handed_buf(local[OWNER], type, TERN_BUF_NOWAIT, NULL, &len);
	if (!p)
		return -1;
	CHECK_IS(tern_buf_free(local[OWNER], p), 0);
	return (long long)len;
}

/* What `from` has of the type of the owner; NULL if it has not asked. */
static inline struct far_target *far_at(uint32_t from, unsigned type)
{
	const struct route *r = typed_of(local[from])->route[OWNER];
	return r && r->target[type] ? &r->target[type]->far : NULL;
}

/* Sends a while, and stops; it has its share then. */
static inline void stream(uint32_t from, unsigned type)
{
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_buf_send(local[from], OWNER, type, data, 1), 0);
		local_settle();
		CHECK_IS(next(type), 1);
	}
	local_settle();
	CHECK(far_at(from, type)->credits > 0);
	CHECK_IS(type_queue_at(type)->far[from].credits, far_at(from, type)->credits);
}

/* Lets `from` have what it asked for, and not use it. */
static inline void ask_only(uint32_t from, unsigned type, size_t len)
{
	if (!far_at(from, type))
		CHECK_IS(send_now(from, type, len), -EAGAIN); /* for the type, for a buffer */
	local_settle();
	CHECK_IS(send_now(from, type, len), -EAGAIN);
	local_settle();
}

#endif
