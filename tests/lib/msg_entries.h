/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends of rank 0 to rank 1 with the handle `so`, and receives there with `ro`. */
#ifndef TERN_TESTS_MSG_ENTRIES_H
#define TERN_TESTS_MSG_ENTRIES_H

#include <errno.h>
#include <tern/send.h>

#include "chance.h"
#include "local.h"
#include "msg/msg.h"

enum { ID = 7, LEN = 100000, SMALL = 8 };

static unsigned char out[LEN], in[LEN], in2[LEN];
static tern_op so, ro;

/*
 * A receive in two parts is filled by messages, one for each poll of the sender: there is time to
 * look.
 */
static const tern_part halves[2] = { { .base = in, .run = LEN / 2 },
				     { .base = in + LEN / 2, .run = LEN / 2 } };

static inline void begin(uint32_t ranks)
{
	chance_fill(out, LEN, 1);
	memset(in, 0xee, LEN);
	memset(in2, 0xee, LEN);
	so = ro = (tern_op)TERN_OP;
	local_open(ranks);
}

static inline int send_one(tern_id id, size_t len, unsigned flags)
{
	return tern_send_start(local[0], 1, id, out, len, flags, &so);
}

static inline int recv_one(tern_id id, void *to, size_t cap)
{
	return tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = id }, to, cap, NULL, &ro);
}

static inline int recv_slowly(tern_id id)
{
	return tern_recv_parts_start(local[1], &(tern_match){ .rank = 0, .id = id }, halves, 2,
				     NULL, &ro);
}

/* Whether a message of `src` waits for a receive at rank 1: the state that SCMP calls RTS. */
static inline int arrived(uint32_t src, tern_id id)
{
	return tern_probe(local[1], &(tern_match){ .rank = src, .id = id }, NULL);
}

/* The state of a handle's operation after a poll. */
static inline enum tern_state state_of(tern *t, const tern_op *op)
{
	CHECK(tern_poll(t) >= 0);
	return tern_op_state(t, op);
}

#define SEND_IS(state) CHECK_IS(state_of(local[0], &so), state)
#define RECV_IS(state) CHECK_IS(state_of(local[1], &ro), state)

#endif
