/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders of typed messages that cannot map their receiver's memory. Here they only believe so:
 * shared memory is made to say that it is none, for some of the ranks, so that everything but the
 * network is as it would be far away.
 */
#ifndef TERN_TESTS_TYPED_FAR_H
#define TERN_TESTS_TYPED_FAR_H

#include <errno.h>

#include "chance.h"
#include "handed.h"
#include "local.h"
#include "typed/typed.h"
#include "typed_pool.h"

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

/* Starts a send with a handle, which is not over yet. */
static inline void send_waits(uint32_t from, unsigned type, size_t len, tern_op *op)
{
	CHECK_IS(tern_buf_send_start(local[from], OWNER, type, data, len, 0, op), 0);
	local_settle();
	CHECK_IS(op->pending, 1);
}

/* The code that it ends with, or 1. */
static inline int send_ends(uint32_t from, tern_op *op)
{
	int rc;
	while ((rc = tern_op_test(local[from], op)) == 0)
		local_settle();
	return rc;
}

#endif
