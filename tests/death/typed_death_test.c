/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 RUN_SERIAL */
/*
 * Ranks that are killed while they send, or are sent to: buffers that they had taken come back,
 * sends end with an error that names them, and nobody hangs.
 */
#include <tern/buf.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "lib/typed_pool.h"
#include "typed/typed.h"

enum {
	RANKS = 3,
	KEEPER = 0,
	VICTIM = 1,
	THIRD = 2,
	SHORT_TYPE = 1,
	LONG_TYPE = 2,
	LONG = 1 << 20,
	COUNT = 4
};

struct board {
	_Atomic uint64_t open, under_way, dead, done;
};

static struct board *board;
static uint64_t seed;
static unsigned char data[LONG];
static unsigned flags;

static void open_types(tern *t)
{
	REQUIRE(tern_buf_alloc(t, SHORT_TYPE, 1000, COUNT, flags) == 0);
	REQUIRE(tern_buf_alloc(t, LONG_TYPE, LONG, COUNT, flags) == 0);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	CHECK_IS(tern_barrier(t), 0);
	atomic_fetch_add(&board->open, 1);
}

/* Sends what it can, as fast as it can, until it is killed. */
static void send_for_ever(tern *t)
{
	struct chance c = { seed };
	tern_op op = TERN_OP;
	for (;;) {
		bool is_long = chance_one_in(&c, 3);
		int rc = tern_buf_send_start(t, KEEPER, is_long ? LONG_TYPE : SHORT_TYPE, data,
					     is_long ? LONG : 900, TERN_BUF_NOWAIT,
					     is_long ? &op : NULL);
		if (rc == 0)
			atomic_store(&board->under_way, 1);
		tern_poll(t);
	}
}

/* Receives one message if there is one, and says whether it came from the third rank. */
static bool receive_any(tern *t, unsigned type)
{
	uint32_t src;
	size_t len;
	void *p = handed_buf(t, type, TERN_BUF_NOWAIT, &src, &len);
	if (!p)
		return false;
	CHECK(src == VICTIM || src == THIRD);
	if (src == VICTIM)
		CHECK_IS(len, type == LONG_TYPE ? LONG : 900);
	CHECK_IS(tern_buf_free(t, p), 0);
	return src == THIRD;
}

static unsigned free_buffers(tern *t, unsigned type)
{
	return bufpool_count_free(&typed_of(t)->queue[type]->pool);
}

/* Receives until the victim is dead, what it had announced too; then every buffer must be there. */
static void keep(tern *t)
{
	struct chance c = { seed + 1 };
	while (!atomic_load(&board->dead))
		if (chance_one_in(&c, 3))
			receive_any(t, SHORT_TYPE + chance_below(&c, 2));
	uint64_t until = clock_ns() + UINT64_C(100000000000);
	while ((free_buffers(t, SHORT_TYPE) < COUNT || free_buffers(t, LONG_TYPE) < COUNT) &&
	       clock_ns() < until)
		receive_any(t, SHORT_TYPE + chance_below(&c, 2));
	CHECK_IS(free_buffers(t, SHORT_TYPE), COUNT);
	CHECK_IS(free_buffers(t, LONG_TYPE), COUNT);
	atomic_store(&board->done, 1);
	for (unsigned n = 0; n < 100;) /* messages of the victim may still lie spilled */
		n += receive_any(t, SHORT_TYPE);
	while (tern_buf_close(t, SHORT_TYPE) == -EBUSY)
		tern_poll(t);
	CHECK_IS(tern_buf_close(t, LONG_TYPE), 0);
}

static void sender_dies(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	open_types(t);
	if (tern_rank(t) == VICTIM)
		send_for_ever(t);
	if (tern_rank(t) == KEEPER)
		keep(t);
	while (tern_rank(t) == THIRD && !atomic_load(&board->done))
		tern_poll(t);
	for (unsigned n = 0; tern_rank(t) == THIRD && n < 100;
	     n++) /* and leaves while they are being received */
		CHECK_IS(tern_buf_send(t, KEEPER, SHORT_TYPE, data, 1), 0);
	CHECK_IS(tern_close(t), 0);
}

static void kill_soon(struct chance *c)
{
	while (atomic_load(&board->open) < RANKS || !atomic_load(&board->under_way))
		ranks_nap(100000);
	ranks_nap(chance_below(c, 4000000));
	kill(ranks_pid[VICTIM], SIGKILL);
}

TEST(buffers_that_a_killed_sender_had_taken_come_back)
{
	static const unsigned each[] = { 0, TERN_BUF_ORDER, TERN_BUF_SPILL };
	struct chance c = { check_seed() };
	for (unsigned n = 0; n < (CHECK_SLOWER > 1 ? 3 : 24); n++) {
		flags = each[n % 3];
		seed = chance_next(&c);
		setenv("TERN_CHECK", n / 3 % 2 ? "1" : "0", 1);
		board = ranks_shared(sizeof *board);
		ranks_start(RANKS, 0, sender_dies);
		kill_soon(&c);
		CHECK_IS(ranks_reap(1, 0), 1);
		atomic_store(&board->dead, 1);
		CHECK_IS(ranks_reap(RANKS - 1, 0), 0);
		ranks_end();
		munmap(board, sizeof *board);
	}
}

TEST(a_buffer_that_was_taken_and_not_announced_comes_back)
{
	flags = TERN_BUF_REFUSE;
	tern *t[3];
	setenv("TERN_CHECK", "1", 1);
	REQUIRE(tern_open_local(3, t) == 0);
	REQUIRE(tern_buf_alloc(t[0], SHORT_TYPE, 1000, COUNT, flags) == 0);
	struct bufpool *k = &typed_of(t[0])->queue[SHORT_TYPE]->pool;
	uint32_t c;
	for (int n = 0; n < COUNT; n++) {
		REQUIRE(bufpool_take(k, 1, &c));
		memset(bufpool_buffer(k, c), 1, 500); /* and then it dies */
	}
	CHECK_IS(tern_buf_send(t[2], 0, SHORT_TYPE, data, 1), -ENOBUFS);
	job_rank_ended(&t[0]->own->group->job, 1, SIGKILL);
	for (int n = 0; n < 5; n++)
		CHECK(tern_poll(t[0]) >= 0);
	for (int n = 0; n < COUNT; n++)
		CHECK_IS(tern_buf_send(t[2], 0, SHORT_TYPE, data, 1), 0);
	CHECK_IS(tern_buf_send(t[2], 0, SHORT_TYPE, data, 1), -ENOBUFS);
	CHECK_IS(tern_poll(t[0]), COUNT); /* nobody is blamed for what it had written */
}

/* -- The receiver dies --------------------------------------------------------------------- */

enum form { LONG_STARTED, LONG_BLOCKING, SHORT_STARTED, SHORT_WAITING, SHORT_SPILLING, FORMS };
static enum form form;

static int send_in_form(tern *t)
{
	tern_op op = TERN_OP;
	if (form == SHORT_WAITING || form == SHORT_SPILLING)
		return tern_buf_send(t, VICTIM, SHORT_TYPE, data, 900);
	if (form == SHORT_STARTED) {
		int rc = tern_buf_send_start(t, VICTIM, SHORT_TYPE, data, 900, 0, &op);
		return rc ? rc : tern_op_wait(t, &op);
	}
	int rc = tern_buf_send_start(t, VICTIM, LONG_TYPE, data, LONG, 0,
				     form == LONG_STARTED ? &op : NULL);
	if (rc || form != LONG_STARTED)
		return rc;
	return tern_op_wait(t, &op);
}

static void check_error(int rc)
{
	if (!CHECK_IS(rc, -EOWNERDEAD) || !CHECK(strstr(tern_strerror(rc), "rank 1") != NULL))
		printf("    form %d: %s\n", form, tern_strerror(rc));
}

static void receiver_dies(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	open_types(t);
	while (tern_rank(t) == VICTIM) /* it receives for a while, and then only lies there */
		if (clock_ns() % 4) {
			receive_any(t, SHORT_TYPE);
			receive_any(t, LONG_TYPE);
		}
	int rc = 0;
	while (tern_rank(t) == THIRD && rc == 0) {
		rc = send_in_form(t);
		atomic_store(&board->under_way, 1);
	}
	if (tern_rank(t) == THIRD) {
		check_error(rc);
		check_error(send_in_form(t));
		CHECK_IS(tern_buf_send(t, KEEPER, SHORT_TYPE, data, 1), 0); /* the rest works */
		atomic_store(&board->done, 1);
	}
	while (!atomic_load(&board->done))
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_send_to_a_rank_that_is_killed_ends_with_an_error_that_names_it)
{
	struct chance c = { check_seed() };
	for (unsigned n = 0; n < (CHECK_SLOWER > 1 ? FORMS : 4 * FORMS); n++) {
		form = (enum form)(n % FORMS);
		flags = form == SHORT_SPILLING ? TERN_BUF_SPILL : 0;
		board = ranks_shared(sizeof *board);
		ranks_start(RANKS, 0, receiver_dies);
		kill_soon(&c);
		if (chance_one_in(&c, 2))
			ranks_nap(1000000); /* nobody has told the job yet */
		CHECK_IS(ranks_reap(RANKS, 0), 1);
		ranks_end();
		munmap(board, sizeof *board);
	}
}
