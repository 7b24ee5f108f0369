/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Sends and receives between two ranks that one thread plays. */
#include <errno.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/local.h"

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

enum { ROUNDS = 40, SHORT_MOST = 80, KEPT = 24 }; /* more lines than a ring has */

/* Each has bytes of its own, and they come in the order in which they were sent. */
static unsigned char byte_of(unsigned nth, size_t i)
{
	return (unsigned char)(nth * 31 + i * 7 + 1);
}

static void shorts_send(unsigned from, unsigned n, size_t least)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned char bytes[SHORT_MOST];
		size_t len = (least + k) % (SHORT_MOST + 1);
		for (size_t i = 0; i < len; i++)
			bytes[i] = byte_of(from + k, i);
		CHECK_IS(tern_send(local[0], 1, 9, bytes, len), 0);
	}
}

static void shorts_recv(unsigned from, unsigned n, size_t least)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned char bytes[SHORT_MOST + 1] = { 0 };
		tern_envelope env = { 0 };
		size_t len = (least + k) % (SHORT_MOST + 1);
		unsigned bad = 0;
		CHECK_IS(tern_recv(local[1], 0, 9, bytes, sizeof bytes, &env), 0);
		CHECK_IS(env.len, len);
		for (size_t i = 0; i < len; i++)
			bad += bytes[i] != byte_of(from + k, i);
		CHECK_IS(bad, 0);
		CHECK_IS(bytes[len], 0);
	}
}

TEST(messages_of_one_line_and_of_two_keep_their_order_and_bytes)
{
	unsigned sent = 0;
	local_open(2);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t least = 0; least <= SHORT_MOST; least += KEPT / 2, sent += KEPT) {
			shorts_send(sent, KEPT, least);
			shorts_recv(sent, KEPT, least);
		}
	local_close();
}
