/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends of rank 0 and receives of rank 1 that stand in the tables of their ranks, without a handle.
 */
#ifndef TERN_TESTS_MSG_ENTRIES_H
#define TERN_TESTS_MSG_ENTRIES_H

#include <errno.h>
#include <tern/send.h>

#include "chance.h"
#include "local.h"
#include "msg/msg.h"

enum { ID = 7, LEN = 100000, SMALL = 8 };

static unsigned char out[LEN], in[LEN], in2[LEN];

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
	local_open(ranks);
}

static inline int send_listed(tern_id id, size_t len, unsigned flags)
{
	return tern_send_start(local[0], 1, id, out, len, flags | TERN_SEND_TABLE, NULL);
}

static inline int recv_listed(tern_id id, void *to, size_t cap, unsigned flags)
{
	return tern_recv_start(
		local[1], &(tern_match){ .rank = 0, .flags = flags | TERN_SEND_TABLE, .id = id },
		to, cap, NULL, NULL);
}

static inline int recv_slowly(tern_id id, tern_op *op)
{
	const tern_match match = { .rank = 0, .flags = op ? 0 : TERN_SEND_TABLE, .id = id };
	return tern_recv_parts_start(local[1], &match, halves, 2, NULL, op);
}

#define SEND_IS(id, state) CHECK_IS(tern_send_poll(local[0], 1, id), state)
#define RECV_IS(id, state) CHECK_IS(tern_recv_poll(local[1], 0, id), state)

#endif
