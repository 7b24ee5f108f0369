/* SPDX-License-Identifier: BSD-3-Clause */
/* Three ranks that send each other payloads, and no block that is lost. */
#ifndef TESTS_PAYLOAD_RANKS_H
#define TESTS_PAYLOAD_RANKS_H

#include "chance.h"
#include "handed.h"
#include "local.h"

enum { ASK, TELL, ECHO };

static unsigned char bytes[TERN_PAYLOAD_MAX];
static inline void echo(tern *t, const tern_msg *m)
{
	size_t len;
	arrival_note(&requests, t, m);
	const void *data = tern_msg_data(m, &len);
	CHECK_IS(tern_reply_data(t, m, TELL, data, len, tern_msg_count(m)), 0);
}

static inline void ranks_open(tern_handler *ask)
{
	local_open(3);
	local_on(ASK, ask);
	local_on(TELL, note_reply);
	local_on(ECHO, echo);
	chance_fill(bytes, sizeof bytes, 1);
}

/* Every block of both pools can still be had. */
static inline void check_no_block_lost(void)
{
	void *claimed[TERN_POOL_BLOCKS];
	local_settle();
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t dst = 0; dst < 3; dst += 1) {
			for (int i = 0; i < TERN_POOL_BLOCKS; i++) {
				claimed[i] = handed_claim(local[r], dst, 8);
				CHECK(claimed[i] != NULL);
			}
			for (int i = 0; i < TERN_POOL_BLOCKS; i++)
				CHECK_IS(tern_abandon(local[r], claimed[i]), 0);
		}
	local_close();
}

static inline void check_arrival(const struct noted *a, size_t len, uint64_t number)
{
	CHECK(a->has_payload);
	CHECK_IS(a->len, len);
	CHECK(chance_filled(a->data, len, number));
}

#endif
