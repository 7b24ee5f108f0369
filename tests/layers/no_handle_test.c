/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that begin an operation, without a handle: each of them waits until the operation is
 * complete.
 */
#include <errno.h>
#include <string.h>
#include <tern/async.h>
#include <tern/coll.h>
#include <tern/send.h>

#include "lib/handed.h"
#include "lib/local.h"

enum { LONG = 1 << 20, TYPE = 3, MESSAGE = 7, BLOCK = 2 };

static char *heap; /* of the one rank: LONG bytes, and a flag behind them */
static tern_addr there;
static char data[LONG];

static void alone(void)
{
	local_open(1);
	heap = handed_alloc(local[0], LONG + 64);
	REQUIRE(heap);
	there = handed_addr(local[0], heap);
	for (size_t i = 0; i < LONG; i++)
		data[i] = (char)(i % 100 + 1);
	memset(heap, 0, LONG);
}

/* Whether all is in place, for the next to do again. */
static bool landed(size_t len)
{
	bool all = memcmp(heap, data, len) == 0;
	memset(heap, 0, LONG);
	return all;
}

TEST(transfers_are_complete_on_return)
{
	tern *t;
	alone();
	t = local[0];
	const tern_part to = { .addr = there, .run = LONG }, from = { .base = data, .run = LONG };
	CHECK_IS(tern_put_start(t, there, data, LONG, NULL), 0);
	CHECK(landed(LONG));
	CHECK_IS(tern_put_start(t, there, data, 8, NULL), 0);
	CHECK(landed(8));
	CHECK_IS(tern_put_local_start(t, there, data, 8, NULL, NULL), 0);
	CHECK(landed(8));
	CHECK_IS(tern_put_parts_start(t, &to, 1, &from, 1, NULL), 0);
	CHECK(landed(LONG));
	CHECK_IS(tern_async_put_start(t, there, data, LONG, TERN_ADDR_NONE, NULL), 0);
	CHECK(landed(LONG));
	memset(heap, 5, LONG);
	CHECK_IS(tern_copy_start(t, there, there + LONG / 2, LONG / 2, NULL), 0);
	CHECK_IS(tern_get_start(t, data, there, LONG, NULL), 0);
	CHECK(landed(LONG));
	heap[7] = 1;
	CHECK_IS(tern_get_parts_start(t, &from, 1, &to, 1, NULL), 0);
	CHECK(landed(LONG));
	heap[9] = 1;
	CHECK_IS(tern_async_get_start(t, data, there, LONG, NULL), 0);
	CHECK(landed(LONG));
	heap[LONG] = heap[3] = 1;
	CHECK_IS(tern_get_when_start(t, data, there, 4096,
				     &(tern_when){ .flag = there + LONG, .least = 1 }, NULL),
		 0);
	CHECK(landed(4096));
	local_close();
}

TEST(atomics_blocks_and_segments_are_complete_on_return)
{
	static char into[LONG], got[64];
	static void *where = into;
	uint64_t old = 0, four[4] = { 1, 2, 3, 4 };
	uint32_t old32 = 9;
	double was = 1;
	float was_float = 1;
	tern_segment s;
	alone();
	tern *t = local[0];
	CHECK_IS(tern_amo_start(t, there, TERN_AMO_ADD, 2, &old, NULL), 0);
	CHECK_IS(tern_cas_start(t, there, 2, 0, &old, NULL), 0);
	CHECK_IS(old, 2);
	CHECK_IS(tern_amo_start(t, there, TERN_AMO_ADD, 3, &old32, NULL), 0);
	CHECK_IS(old32, 0);
	CHECK_IS(tern_cas_start(t, there, 3, 0, &old32, NULL), 0);
	CHECK_IS(old32, 3);
	CHECK_IS(tern_amo_start(t, there, TERN_AMO_ADD, 1, &was, NULL), 0);
	CHECK(was == 0);
	CHECK_IS(tern_amo_start(t, there + 16, TERN_AMO_ADD, 1, &was_float, NULL), 0);
	CHECK(was_float == 0);
	into[5] = 6;
	CHECK_IS(tern_block_name(t, BLOCK, &where, sizeof into), 0);
	const tern_block b = { .name = BLOCK, .offset = 5, .run = 1, .count = 1 };
	CHECK_IS(tern_block_get_start(t, got, 1, 0, &b, NULL), 0);
	CHECK_IS(got[0], 6);
	CHECK_IS(tern_segment_open(t, into, LONG, NULL, NULL, &s), 0);
	CHECK_IS(tern_segment_put_start(t, s, four, 32, NULL), 0);
	CHECK(memcmp(into, four, sizeof four) == 0);
	CHECK_IS(tern_segment_put_start(t, s + 32, data, LONG - 32, NULL), 0);
	CHECK(memcmp(into + 32, data, LONG - 32) == 0);
	local_close();
}

static int turns;

static int three_turns(tern *t, void *arg)
{
	(void)t, (void)arg;
	return ++turns < 3 ? -EAGAIN : 0;
}

TEST(barriers_typed_messages_and_queued_work_are_complete_on_return)
{
	tern_buf b = { 0 };
	alone();
	tern *t = local[0];
	CHECK_IS(tern_barrier_start(t, NULL), 0);
	CHECK_IS(tern_buf_alloc(t, TYPE, LONG, 2, 0), 0);
	CHECK_IS(tern_buf_send_start(t, 0, TYPE, data, LONG, 0, NULL), 0);
	CHECK_IS(tern_buf_recv(t, TYPE, TERN_BUF_NOWAIT, &b), 0);
	CHECK_IS(b.len, LONG);
	CHECK_IS(tern_buf_free(t, b.data), 0);
	turns = 0;
	CHECK_IS(tern_async_start(t, three_turns, NULL, NULL), 0);
	CHECK_IS(turns, 3);
	local_close();
}

TEST(collectives_are_complete_on_return)
{
	int64_t one = 1, sum[5] = { 0 };
	tern_team *team;
	alone();
	REQUIRE(tern_team_all(local[0], &team) == 0);
	const tern_part from = { .base = &one, .run = sizeof one };
	const tern_part to = { .base = &sum[4], .run = sizeof one };
	CHECK_IS(tern_team_barrier_start(team, NULL), 0);
	CHECK_IS(tern_team_broadcast_start(team, 0, &one, sizeof one, NULL), 0);
	CHECK_IS(tern_team_reduce_start(team, 0, &one, &sum[0], 1, TERN_TYPE_INT64, TERN_REDUCE_SUM,
					NULL),
		 0);
	CHECK_IS(tern_team_allreduce_start(team, &one, &sum[1], 1, TERN_TYPE_INT64, TERN_REDUCE_SUM,
					   NULL),
		 0);
	CHECK_IS(tern_team_scan_start(team, &one, &sum[2], 1, TERN_TYPE_INT64, TERN_REDUCE_SUM,
				      NULL),
		 0);
	CHECK_IS(tern_team_allgather_start(team, &one, &sum[3], sizeof one, NULL), 0);
	CHECK_IS(tern_team_alltoallv_start(team, &from, &to, NULL), 0);
	for (int i = 0; i < 5; i++)
		CHECK_IS(sum[i], 1);
	tern_hold(local[0]);
	CHECK_IS(tern_team_barrier_start(team, NULL), -EDEADLK);
	tern_release(local[0]);
	CHECK_IS(tern_team_free(team), 0);
	local_close();
}

TEST(a_send_and_a_receive_are_complete_on_return)
{
	static char got[LONG];
	const tern_id ids[2] = { MESSAGE, MESSAGE + 1 };
	const tern_part halves[2] = { { .base = data, .run = LONG / 2 },
				      { .base = data + LONG / 2, .run = LONG / 2 } };
	const tern_part into = { .base = got, .run = LONG };
	tern_envelope env = { 0 };
	tern_op op = TERN_OP;
	alone();
	tern *t = local[0];
	const tern_match match = { .rank = 0, .id = MESSAGE };
	CHECK_IS(tern_send_start(t, 0, MESSAGE, data, 8, 0, NULL), 0);
	CHECK_IS(tern_recv_start(t, &match, got, sizeof got, &env, NULL), 0);
	CHECK(env.len == 8 && memcmp(got, data, 8) == 0);
	CHECK_IS(tern_recv_start(t, &match, got, LONG, NULL, &op), 0);
	CHECK_IS(tern_send_parts_start(t, 0, MESSAGE, halves, 2, TERN_SEND_SYNC, NULL), 0);
	CHECK(memcmp(got, data, LONG) == 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	memset(got, 0, LONG);
	CHECK_IS(tern_send_start(t, 0, MESSAGE, data, LONG, 0, &op), 0);
	CHECK_IS(tern_recv_parts_start(t, &match, &into, 1, NULL, NULL), 0);
	CHECK(memcmp(got, data, LONG) == 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_recv_start(t, &match, got, LONG, NULL, &op), 0);
	const tern_match second = { .rank = 0, .id = MESSAGE + 1 };
	CHECK_IS(tern_recv_start(t, &second, got + LONG / 2, LONG, NULL, &op), 0);
	memset(got, 0, LONG);
	CHECK_IS(tern_send_each_start(t, 0, ids, halves, 2, TERN_SEND_SYNC, NULL), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK(memcmp(got, data, LONG) == 0);
	local_close();
}

TEST(where_waiting_is_not_allowed_it_is_refused)
{
	alone();
	tern_hold(local[0]);
	CHECK_IS(tern_barrier_start(local[0], NULL), -EDEADLK);
	CHECK_IS(tern_async_start(local[0], three_turns, NULL, NULL), -EDEADLK);
	CHECK_IS(tern_send_start(local[0], 0, MESSAGE, data, LONG, 0, NULL), -EDEADLK);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 0, .id = MESSAGE }, heap, 8, NULL,
				 NULL),
		 -EDEADLK);
	tern_release(local[0]);
	local_close();
}
