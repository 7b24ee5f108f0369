/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES RUN_SERIAL */
/*
 * Values, and puts that complete locally apart from remotely: on mapped memory, on memory that
 * another process registered, and over UDP.
 */
#include <errno.h>

#include <tern/stats.h>

#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum { AREA = 1 << 20, MANY = 200, SHORT = TERN_PAYLOAD_MAX };

/* Rank 0 has the memory, in its heap and registered; rank 1 does everything. */
static struct board {
	tern_addr at[2];
	_Atomic bool polls; /* rank 0 may serve what has come */
} * board;
static unsigned char *area[2], private[AREA], source[AREA];

static tern *areas_open(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 0) {
		area[0] = handed_alloc(t, AREA);
		area[1] = private;
		REQUIRE(area[0]);
		board->at[0] = handed_addr(t, area[0]);
		REQUIRE(tern_register(t, private, AREA, &board->at[1]) == 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

static void areas_close(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void job(void (*rank_main)(void))
{
	board = ranks_shared(sizeof *board);
	ranks_run(2, rank_main);
	munmap(board, sizeof *board);
}

/* -- Values --------------------------------------------------------------------------------- */

static void value_travels(tern *t, tern_addr a, size_t len, bool start)
{
	static const uint64_t other = 0xeeeeeeeeeeeeeeee, value = 0x8182838485868788;
	uint64_t all[4] = { other, other, other, other }, got;
	tern_op op = TERN_OP;
	size_t at = 8 + len; /* aligned, and the next byte is not */
	for (size_t off = 0; off < 2; off++) {
		CHECK_IS(tern_put(t, a, all, sizeof all), 0);
		if (start) {
			CHECK_IS(tern_put_start(t, a + at + off, &value, len, &op), 0);
			CHECK_IS(tern_op_wait(t, &op), 0);
		} else {
			CHECK_IS(tern_put(t, a + at + off, &value, len), 0);
		}
		got = 0;
		CHECK_IS(tern_get(t, &got, a + at + off, len), 0);
		CHECK_IS(got, len == 8 ? value : value & ((UINT64_C(1) << 8 * len) - 1));
		unsigned char now[sizeof all], expected[sizeof all];
		memset(expected, 0xee, sizeof expected);
		memcpy(expected + at + off, &value, len);
		CHECK_IS(tern_get(t, now, a, sizeof now), 0);
		CHECK(memcmp(now, expected, sizeof now) == 0);
	}
}

static void addresses_refused(tern *t, tern_addr a)
{
	uint64_t got = 77;
	tern_op op = TERN_OP;
	CHECK_IS(tern_put(t, TERN_ADDR_NONE, &got, 8), -EFAULT);
	CHECK_IS(tern_put_start(t, handed_at(a, 2), &got, 8, &op), -ERANGE);
	CHECK_IS(tern_get(t, &got, TERN_ADDR_NONE, 8), -EFAULT);
	CHECK_IS(tern_put(t, a + (64 << 20), &got, 8), -EFAULT);
	CHECK(got == 77 && op.pending == 0 && op.error == 0);
}

/* Each is copied by the call, and the handle counts them. */
static void many_values(tern *t, tern_addr a)
{
	static _Atomic uint64_t flag;
	tern_op copied = TERN_OP, op = { .flag = &flag };
	uint64_t got = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		uint64_t value = i * i;
		CHECK_IS(tern_put_local_start(t, a + 8 * i, &value, 8, &copied, &op), 0);
		CHECK_IS(copied.pending, 0);
		value = 0;
	}
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(atomic_load(&flag), MANY);
	atomic_store(&flag, 0);
	for (uint64_t i = 0; i < MANY; i++) {
		CHECK_IS(tern_get(t, &got, a + 8 * i, 8), 0);
		CHECK_IS(got, i * i);
	}
}

static void values(void)
{
	tern *t = areas_open();
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++) {
		for (size_t len = 1; len <= 8; len *= 2)
			for (int start = 0; start < 2; start++)
				value_travels(t, board->at[k], len, start);
		addresses_refused(t, board->at[k]);
		many_values(t, board->at[k]);
	}
	areas_close(t);
}

TEST(values_of_every_width_travel_there_and_back)
{
	job(values);
}

TEST(values_travel_over_udp_too)
{
	far_use(NULL);
	job(values);
}

static uint64_t handled(tern *t)
{
	tern_stats_data d = { 0 };
	CHECK_IS(tern_stats(t, &d), 0);
	return d.handled;
}

/* One request, whose answer is the only message that comes back. */
static void round_trips(void)
{
	tern *t = areas_open();
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++) {
		tern_addr a = board->at[k];
		uint64_t got, before = handled(t);
		float sum;
		CHECK_IS(tern_put(t, a, &(uint32_t){ 5 }, 4), 0);
		CHECK_IS(handled(t) - before, 1);
		CHECK_IS(tern_get(t, &got, a, 4), 0);
		CHECK_IS(handled(t) - before, 2);
		CHECK_IS(tern_amo(t, a, TERN_AMO_MUL, 3, &got), 0);
		CHECK_IS(handled(t) - before, 3);
		CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, &sum), 0);
		CHECK_IS(handled(t) - before, 4);
	}
	areas_close(t);
}

TEST(a_value_and_an_atomic_take_one_round_trip_on_a_network)
{
	setenv("TERN_DELIVERY", "poll", 1);
	far_use(NULL);
	job(round_trips);
}

/* A strided put or get is as many messages as its bytes and its description need, not one a run. */
static void strided_trips(void)
{
	enum { RUNS = 4096, RUN = 8, MESSAGES = RUNS * RUN / TERN_PAYLOAD_MAX + 1 };
	tern *t = areas_open();
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++) {
		const size_t runs = RUNS;
		const ptrdiff_t apart = 2 * RUN;
		tern_part near = { .base = source, .run = RUN, .dims = 1 };
		tern_part far = { .addr = board->at[k], .run = RUN, .dims = 1 };
		near.count = far.count = &runs;
		near.stride = far.stride = &apart;
		uint64_t before = handled(t);
		CHECK_IS(tern_put_parts(t, &far, 1, &near, 1), 0);
		CHECK(handled(t) - before <= MESSAGES);
		before = handled(t);
		CHECK_IS(tern_get_parts(t, &near, 1, &far, 1), 0);
		CHECK(handled(t) - before <= MESSAGES);
	}
	areas_close(t);
}

TEST(a_strided_transfer_over_a_network_takes_a_message_for_each_block_and_not_for_each_run)
{
	setenv("TERN_DELIVERY", "poll", 1);
	far_use(NULL);
	job(strided_trips);
}

/* -- Local completion -------------------------------------------------------------------------- */

static void source_make(unsigned char first)
{
	for (size_t i = 0; i < AREA; i++)
		source[i] = (unsigned char)(first + i * 7 + i / 256);
}

static bool landed(const unsigned char *there, size_t len, unsigned char first)
{
	source_make(first);
	return memcmp(there, source, len) == 0;
}

/* Rank 0 serves nothing meanwhile, and yet the source may be changed. */
static void short_local(void)
{
	tern *t = areas_open();
	static _Atomic uint64_t freed, there;
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	if (tern_rank(t) == 0) {
		while (!atomic_load(&board->polls))
			sched_yield();
	} else {
		source_make(1);
		CHECK_IS(tern_put_local_start(t, board->at[0], source, SHORT, &local, &op), 0);
		CHECK_IS(tern_put_local_start(t, board->at[1], source, 8, &local, &op), 0);
		memset(source, 0, sizeof source);
		CHECK(local.pending == 0 && op.pending == 2);
		CHECK(atomic_load(&freed) == 2 && atomic_load(&there) == 0);
		atomic_store(&board->polls, true);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(atomic_load(&there), 2);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0)
		CHECK(landed(area[0], SHORT, 1) && landed(area[1], 8, 1));
	areas_close(t);
}

TEST(a_short_put_over_a_network_is_locally_complete_on_return)
{
	setenv("TERN_DELIVERY", "poll", 1);
	setenv("TERN_SERVE", "0", 1);
	far_use(NULL);
	job(short_local);
}

/* Longer than is staged, of any memory; and the forms with one handle, or none. */
static void long_local(void)
{
	tern *t = areas_open();
	static _Atomic uint64_t freed, there;
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	for (int k = 0; k < 2; k++) {
		source_make((unsigned char)(k + 2));
		if (tern_rank(t) == 1) {
			CHECK_IS(tern_put_local_start(t, board->at[k], source, AREA / 2, &local,
						      &op),
				 0);
			CHECK_IS(tern_put_local_start(t, board->at[k] + AREA / 2, source + AREA / 2,
						      SHORT + 1, &local, &op),
				 0);
			CHECK_IS(tern_op_wait(t, &local), 0);
			memset(source, 0, sizeof source);
			CHECK_IS(tern_op_wait(t, &op), 0);
			CHECK(local.pending == 0 && op.pending == 0);
			CHECK(atomic_exchange(&freed, 0) == 2 && atomic_exchange(&there, 0) == 2);
		}
		CHECK_IS(tern_barrier(t), 0);
		if (tern_rank(t) == 0)
			CHECK(landed(area[k], AREA / 2 + SHORT + 1, (unsigned char)(k + 2)));
	}
	areas_close(t);
}

/* Without `op` it blocks, without `local` it is tern_put_start(); 0 bytes touch nothing. */
static void one_handle(void)
{
	tern *t = areas_open();
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++) {
		static _Atomic uint64_t flag;
		tern_op op = { .flag = &flag };
		uint64_t word = 5, got = 0;
		CHECK_IS(tern_put_local_start(t, board->at[k], &word, 8, &op, NULL), 0);
		CHECK_IS(atomic_load(&flag), 1);
		CHECK_IS(tern_get(t, &got, board->at[k], 8), 0);
		CHECK_IS(got, 5);
		word = 6;
		CHECK_IS(tern_put_local_start(t, board->at[k], &word, 8, NULL, &op), 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(atomic_load(&flag), 2);
		word = 7;
		CHECK_IS(tern_put_local_start(t, board->at[k], &word, 8, NULL, NULL), 0);
		CHECK_IS(tern_put_local_start(t, TERN_ADDR_NONE, NULL, 0, &op, &op), 0);
		CHECK_IS(atomic_exchange(&flag, 0), 4);
		CHECK_IS(tern_get(t, &got, board->at[k], 8), 0);
		CHECK_IS(got, 7);
	}
	areas_close(t);
}

/* What is refused at once tells nobody; what the owner refuses, `op` alone. */
static void local_errors(void)
{
	tern *t = areas_open();
	static _Atomic uint64_t freed;
	tern_op local = { .flag = &freed }, op = TERN_OP;
	if (tern_rank(t) == 1) {
		CHECK_IS(tern_put_local_start(t, TERN_ADDR_NONE, source, 8, &local, &op), -EFAULT);
		CHECK_IS(
			tern_put_local_start(t, handed_at(board->at[0], 2), source, 8, &local, &op),
			-ERANGE);
		CHECK(atomic_load(&freed) == 0 && op.pending == 0 && local.pending == 0);
		/* The last bytes are beyond the region: one message, and several. */
		for (size_t len = 8; len <= 8 * SHORT; len *= SHORT) {
			int rc = tern_put_local_start(t, board->at[1] + AREA - len / 2, source, len,
						      &local, &op);
			rc = rc ? rc : tern_op_wait(t, &op);
			CHECK_IS(rc, -EFAULT);
			CHECK_IS(tern_op_wait(t, &local), 0);
		}
	}
	areas_close(t);
}

/* Under a hold nothing waits. */
static void held_calls(void)
{
	tern *t = areas_open();
	tern_op op = TERN_OP, local = TERN_OP;
	uint64_t got = 77;
	if (tern_rank(t) == 1) {
		tern_hold(t);
		CHECK_IS(tern_put(t, board->at[1], source, 8), -EPERM);
		CHECK_IS(tern_get(t, &got, board->at[1], 8), -EPERM);
		CHECK_IS(tern_put_local_start(t, board->at[1], source, 8, &local, &op), -EPERM);
		CHECK_IS(tern_put_start(t, board->at[1], source, 8, &op), -EPERM);
		CHECK(got == 77 && local.pending == 0 && op.pending == 0);
		tern_release(t);
		CHECK_IS(tern_put(t, board->at[1], source, 8), 0);
		CHECK_IS(tern_get(t, &got, board->at[1], 8), 0);
		CHECK(memcmp(&got, source, 8) == 0);
	}
	areas_close(t);
}

TEST(under_a_hold_no_put_goes_to_another_process)
{
	job(held_calls);
}

static void all_local(void)
{
	job(long_local);
	job(one_handle);
	job(local_errors);
}

TEST(a_put_of_any_length_tells_both_handles)
{
	all_local();
}

TEST(a_put_of_any_length_tells_both_handles_by_messages_too)
{
	setenv("TERN_SINGLE_COPY", "0", 1);
	all_local();
}

TEST(a_put_of_any_length_tells_both_handles_over_udp_too)
{
	far_use(NULL);
	all_local();
}

/* -- Mapped: both at once, in handlers and under a hold too ------------------------------------ */

TEST(on_mapped_memory_values_and_both_completions_are_there_on_return)
{
	tern *t[2];
	static _Atomic uint64_t flag;
	uint64_t got = 0;
	REQUIRE(tern_open_local(2, t) == 0);
	uint64_t *word = handed_alloc(t[1], 64);
	REQUIRE(word);
	tern_addr a = handed_addr(t[1], word);
	tern_op op = { .flag = &flag }, silent = TERN_OP;
	tern_hold(t[0]);
	CHECK_IS(tern_put_local_start(t[0], a, &(uint64_t){ 5 }, 8, &op, &op), 0);
	CHECK_IS(*word, 5);
	CHECK_IS(tern_put_local_start(t[0], a, &(uint64_t){ 6 }, 8, &silent, &silent), 0);
	CHECK_IS(*word, 6);
	CHECK_IS(tern_put(t[0], a, &(uint64_t){ 7 }, 8), 0);
	CHECK_IS(*word, 7);
	CHECK_IS(tern_put_start(t[0], a, &(uint64_t){ 8 }, 8, &op), 0);
	CHECK_IS(*word, 8);
	CHECK_IS(tern_put_start(t[0], a, &(uint64_t){ 9 }, 8, NULL), 0);
	CHECK_IS(tern_get(t[0], &got, a, 8), 0);
	tern_release(t[0]);
	CHECK(got == 9 && op.pending == 0 && silent.pending == 0 && atomic_load(&flag) == 3);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}
