/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler that runs while a call waits leaves a hold. The call ends what it has begun, and the
 * hold begins when it returns: nothing may write to the frame of the call, or to the memory that it
 * was given, after it has returned.
 */
#include <errno.h>
#include <tern/async.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/local.h"

enum { HOLD = 1, BLOCK = 3, MESSAGE = 7, LONG = 100000, FRAMES = 16 << 10 };

static unsigned char bytes[LONG], got[LONG];
static tern_addr there; /* LONG bytes at rank 1 */
static tern_segment segment;
static bool held_now;
static tern_flag never;

static void leave_a_hold(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
	held_now = true;
}

static int end_when_held(tern *t, void *arg)
{
	(void)t, (void)arg;
	return held_now ? 0 : -EAGAIN;
}

static int fill(tern *t, tern_out *out, void *arg)
{
	(void)t, (void)out, (void)arg;
	return held_now ? 0 : -EAGAIN;
}

static int drain(tern *t, tern_incoming *m, void *arg)
{
	(void)t, (void)m, (void)arg;
	return 0;
}

static int call_segment_put(void)
{
	return tern_segment_put(local[0], segment, bytes, 64);
}

static int call_segment_put4(void)
{
	return tern_segment_put(local[0], segment, (const uint64_t[4]){ 1, 2, 3, 4 }, 32);
}

static int call_block_get(void)
{
	const tern_block block = { .name = BLOCK, .run = 8, .count = 4, .stride = 8 };
	return tern_block_get(local[0], got, 8, 1, &block);
}

static int call_queue(void)
{
	return tern_async_start(local[0], end_when_held, NULL, NULL);
}

static int call_async_send(void)
{
	return tern_async_send_start(local[0], 1, 0, fill, NULL, NULL);
}

static int call_async_get(void)
{
	return tern_async_get_start(local[0], got, there, LONG, NULL);
}

static int call_send(void)
{
	return tern_send(local[0], 1, MESSAGE, bytes, LONG);
}

static int call_get_when(void)
{
	return tern_get_when(local[0], got, there, 8, &(tern_when){ .flag = there, .least = 1 });
}

/* What the call had on the stack is here now; lets everything end, and looks at it. */
static __attribute__((noinline)) unsigned frames_changed(void)
{
	volatile unsigned char frame[FRAMES];
	unsigned changed = 0;
	for (unsigned i = 0; i < FRAMES; i++)
		frame[i] = 0xa5;
	tern_release(local[0]);
	local_settle_transfers();
	for (unsigned i = 0; i < FRAMES; i++)
		changed += frame[i] != 0xa5;
	return changed;
}

/* A call of rank 0 that waits for rank 1, while a message of rank 2 makes rank 0 hold. */
static void ends_without_a_trace(int (*call)(void), int expected)
{
	static void *block = bytes;
	static unsigned char received[LONG];
	void *memory;
	tern_op op = TERN_OP;
	tern_match match = { .rank = 0, .id = MESSAGE };
	local_polled();
	local_open(3);
	local_on(HOLD, leave_a_hold);
	held_now = false;
	REQUIRE(tern_alloc(local[1], LONG, &memory) == 0);
	REQUIRE(tern_addr_of(local[1], memory, &there) == 0);
	for (int r = 0; r < 3; r++)
		CHECK_IS(tern_async_on(local[r], 0, drain, NULL), 0);
	CHECK_IS(tern_block_name(local[1], BLOCK, &block, sizeof bytes), 0);
	REQUIRE(tern_segment_open(local[1], bytes, LONG, NULL, NULL, &segment) == 0);
	CHECK_IS(tern_recv_start(local[1], &match, received, LONG, NULL, &op), 0);
	CHECK_IS(tern_request(local[2], 0, HOLD), 0);
	CHECK_IS(call(), expected);
	CHECK(held_now);
	CHECK_IS(tern_wait(local[0], &never, 1), -EDEADLK); /* the hold is in force */
	CHECK_IS(frames_changed(), 0);
	CHECK_IS(tern_wait_for(local[0], &never, 1, 0), -ETIMEDOUT); /* and is over */
	if (op.pending)
		CHECK_IS(tern_op_cancel(local[1], &op), 0);
	local_close();
}

TEST(tern_segment_put_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_segment_put, 0);
}

TEST(tern_segment_put_of_words_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_segment_put4, 0);
}

TEST(tern_block_get_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_block_get, 0);
}

TEST(tern_queue_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_queue, 0);
}

TEST(tern_async_send_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_async_send, 0);
}

TEST(tern_async_get_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_async_get, 0);
}

TEST(tern_send_ends_what_it_has_begun_though_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_send, 0);
}

/* What may never end can be taken back, so this one ends early. */
TEST(tern_get_when_gives_up_when_a_handler_leaves_a_hold)
{
	ends_without_a_trace(call_get_when, -EDEADLK);
}
