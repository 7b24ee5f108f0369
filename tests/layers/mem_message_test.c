/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Transfers beside messages, between processes: handlers find what was put before, and are run
 * while a long transfer is under way.
 */
#include "mem_region.h"

/* -- Messages and handlers ----------------------------------------------------------------- */

static _Atomic uint64_t told;
static unsigned char secret[AREA];

/* In a handler nothing waits, so another process's private memory cannot be used. */
static void use_private(tern *t, const tern_msg *m)
{
	tern_addr heap = board->at[0][0], private = board->at[0][1];
	char byte = 'x';
	uint64_t old = 0;
	tern_op op = TERN_OP;
	const tern_part list[] = { { .addr = heap + 10, .run = 100 },
				   { .addr = private + 10, .run = 100 } };
	const tern_part from = { .base = secret, .run = 200 };
	CHECK_IS(tern_put(t, private, &byte, 1), -EPERM);
	CHECK_IS(tern_get(t, &byte, private, 1), -EPERM);
	CHECK_IS(tern_put_start(t, private, &byte, 1, &op), -EPERM);
	CHECK_IS(tern_put(t, private, &old, 8), -EPERM);
	CHECK_IS(tern_get(t, &old, private, 8), -EPERM);
	CHECK_IS(tern_put_local_start(t, private, &byte, 1, &op, &op), -EPERM);
	CHECK_IS(tern_put_parts_start(t, list, 2, &from, 1, &op),
		 -EPERM); /* not even the first part */
	CHECK_IS(tern_amo(t, private, TERN_AMO_ADD, 1, &old), -EPERM);
	CHECK_IS(tern_amo_start(t, private, TERN_AMO_ADD, 1, &old, &op), -EPERM);
	CHECK_IS(tern_copy_start(t, private, private + 100, 10, &op), -EPERM);
	CHECK_IS(tern_copy_start(t, heap, private + 100, 10, &op), -EPERM);
	CHECK_IS(tern_store(t, private, &byte, 1), -EPERM);
	CHECK_IS(tern_put(t, heap + 5, &byte, 1), 0);
	CHECK_IS(op.pending, 0);
	CHECK(byte == 'x');
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void take(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static void look(tern *t, const tern_msg *m)
{
	size_t at = tern_msg_word(m, 0), len = tern_msg_word(m, 1);
	CHECK(memcmp(area[tern_msg_word(m, 2)] + at, board->image[1][tern_msg_word(m, 2)] + at,
		     len) == 0);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void put_and_tell(tern *t, struct chance *c)
{
	for (unsigned i = 0; i < rounds; i++) {
		size_t len = model_length(c, MOST), at = chance_below(c, (uint32_t)(AREA - len));
		uint64_t k = chance_below(c, 2);
		model_scatter(board->image[1][k] + at, len, c);
		if (i % 2) {
			CHECK_IS(tern_put(t, board->at[1][k] + at, board->image[1][k] + at, len),
				 0);
			CHECK_IS(tern_request(t, 1, LOOK, at, len, k), 0);
		} else {
			CHECK_IS(tern_put_request(t, board->at[1][k] + at, LOOK,
						  board->image[1][k] + at, len, at, len, k),
				 0);
		}
		CHECK_IS(tern_wait(t, &told, 1), 0);
	}
}

static void talk(void)
{
	tern *t = ranks_open();
	struct chance c = { seed };
	CHECK_IS(tern_on(t, ASK, use_private), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	CHECK_IS(tern_on(t, LOOK, look), 0);
	areas_make(t);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_request(t, 1, ASK), 0);
		CHECK_IS(tern_wait(t, &told, 1), 0);
		board->image[0][0][5] = 'x';
		put_and_tell(t, &c);
		tern_hold(t);
		CHECK_IS(tern_put(t, board->at[1][1], "y", 1), -EPERM);
		const tern_part list[] = { { .addr = board->at[1][0], .run = 9 },
					   { .addr = board->at[1][1], .run = 9 } };
		const tern_part from = { .base = secret, .run = 18 };
		CHECK_IS(tern_put_parts(t, list, 2, &from, 1), -EPERM);
		CHECK_IS(tern_put(t, board->at[1][0], board->image[1][0], 9), 0);
		tern_release(t);
	}
	areas_check(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(handlers_find_what_was_put_before_their_message_and_use_no_private_memory_of_others)
{
	seed = check_seed();
	rounds = check_scaled(200);
	job_run("1", 2, talk);
}

TEST(handlers_find_what_was_put_by_messages_before_theirs)
{
	seed = check_seed();
	rounds = check_scaled(200);
	job_run("0", 2, talk);
}

/* -- Beside messages: how long a round trip takes while much data moves. Printed, not judged. -- */

static void pong(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static int by_length(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
	return a < b ? -1 : a > b;
}

static uint64_t round_trip(tern *t, tern_op *op)
{
	enum { TRIPS = 301 };
	static uint64_t ns[TRIPS];
	int n = 0;
	while (n < TRIPS && (!op || op->pending)) {
		uint64_t began = clock_ns();
		CHECK_IS(tern_request(t, 1, ASK), 0);
		CHECK_IS(tern_wait(t, &told, 1), 0);
		ns[n++] = clock_ns() - began;
	}
	qsort(ns, (size_t)n, sizeof *ns, by_length);
	return n ? ns[n / 2] : 0;
}

static void measure(void)
{
	enum { LONG = 64 << 20 };
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, pong), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	unsigned char *mine = malloc(LONG);
	REQUIRE(mine);
	memset(mine, (int)tern_rank(t) + 1, LONG);
	if (tern_rank(t) == 1)
		REQUIRE(tern_register(t, mine, LONG, &board->at[1][1]) == 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		tern_op op = TERN_OP;
		uint64_t quiet = round_trip(t, NULL);
		CHECK_IS(tern_get_start(t, mine, board->at[1][1], LONG, &op), 0);
		uint64_t during = round_trip(t, &op);
		printf("    round trip %llu ns, %llu ns during a get of 64 MiB%s\n",
		       (unsigned long long)quiet, (unsigned long long)during,
		       *way == '1' ? "" : " by messages");
		CHECK_IS(tern_op_wait(t, &op), 0);
		for (size_t i = 0; i < LONG; i++)
			if (!CHECK(mine[i] == 2))
				break;
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(messages_are_answered_while_a_large_transfer_is_under_way)
{
	job_run("1", 2, measure);
	job_run("0", 2, measure);
}
