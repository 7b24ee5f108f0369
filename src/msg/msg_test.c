/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives between two ranks that one thread plays. */
#include <errno.h>
#include <tern/mem.h>
#include <tern/msg.h>

#include "../../tests/local.h"

static unsigned char out[1 << 20], in[1 << 20];

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(i * 7 + i / 251 + 1);
	memset(in, 0xee, sizeof in);
}

static void sized(size_t len, unsigned flags, bool recv_first)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	tern_envelope env = { 0 };
	fill(len);
	if (recv_first)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 5 }, in,
					 len + 10, &env, &ro),
			 0);
	CHECK_IS(tern_send_start(local[0], 1, 5, out, len, flags, &so), 0);
	if (!recv_first) {
		local_settle();
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 5 }, in,
					 len + 10, &env, &ro),
			 0);
	}
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK(memcmp(in, out, len) == 0);
	CHECK_IS(in[len], 0xee);
	CHECK_IS(env.len, len);
	CHECK_IS(env.src, 0);
	CHECK_IS(env.id, 5);
}

TEST(every_size_arrives_in_every_mode)
{
	static const size_t sizes[] = { 0,   1,   7,    8,    31,   32,    33,     247,
					248, 249, 4096, 8192, 8193, 70000, 1000000 };
	local_open(2);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		sized(sizes[i], TERN_SEND_AUTO, true);
		sized(sizes[i], TERN_SEND_AUTO, false);
		sized(sizes[i], TERN_SEND_RENDEZVOUS, true);
		sized(sizes[i], TERN_SEND_RENDEZVOUS, false);
		sized(sizes[i], TERN_SEND_READY, true);
		sized(sizes[i], TERN_SEND_SYNC, true);
		sized(sizes[i], TERN_SEND_SYNC, false);
		sized(sizes[i], TERN_SEND_READY | TERN_SEND_SYNC, true);
	}
	local_close();
}
