/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that are killed in the middle of a transfer, as target or as initiator: the
 * other side's operations end, with an error that names the rank where they cannot
 * succeed, and it goes on.
 */
#include "lib/handed.h"
#include "lib/mem_model.h"
#include "lib/ranks.h"

enum { RANKS = 3, LIVING = 0, VICTIM = 1, THIRD = 2, AREA = 1 << 20 };

enum form { PUT, GET, ATOMIC, XFER, XFER4, WHEN, BLOCK, COPY_FROM, COPY_TO, COPY_WITHIN, FORMS };

static const char *const form_name[FORMS] = { "put",           "get",          "atomic",
					      "xfer",          "xfer4",        "when",
					      "block",         "copy from it", "copy to it",
					      "copy within it" };

struct board {
	tern_addr at[RANKS], flag;
	tern_segment segment;
	_Atomic uint64_t ready; /* ranks that have passed the barrier before it all, a bit each */
	_Atomic uint64_t under_way, dead, done;
};

static struct board *board;
static enum form form;
static bool by_test, blocking;
static unsigned char bytes[AREA], room[AREA];
static uint64_t seed;

static size_t never_full(tern *t, void *base, void *info)
{
	(void)t;
	(void)base;
	(void)info;
	return AREA;
}

static void rank_prepare(tern *t)
{
	static void *named = bytes;
	uint32_t me = tern_rank(t);
	REQUIRE(tern_register(t, bytes, AREA, &board->at[me]) == 0);
	CHECK_IS(tern_block_name(t, 0, &named, AREA), 0);
	if (me == VICTIM) {
		uint64_t *flag = handed_alloc(t, 64);
		REQUIRE(flag);
		board->flag = handed_addr(t, flag);
		REQUIRE(tern_segment_open(t, room, AREA, never_full, NULL, &board->segment) == 0);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	CHECK_IS(tern_barrier(t), 0);
	atomic_fetch_or(&board->ready, UINT64_C(1) << me);
}

static int start(tern *t, tern_op *op)
{
	static uint64_t old;
	static const uint64_t words[4];
	tern_addr there = board->at[VICTIM], third = board->at[THIRD];
	switch (form) {
	case PUT:
		return op ? tern_put_start(t, there, room, AREA, op)
			  : tern_put(t, there, room, AREA);
	case GET:
		return op ? tern_get_start(t, room, there, AREA, op)
			  : tern_get(t, room, there, AREA);
	case ATOMIC:
		return tern_amo_start(t, there, TERN_AMO_ADD, 1, &old, op);
	case XFER:
		return tern_segment_put_start(t, board->segment, room, 128, op);
	case XFER4:
		return tern_segment_put_start(t, board->segment, words, 32, op);
	case WHEN:
		return tern_get_when_start(t, room, board->flag, 8,
					   &(tern_when){ .flag = board->flag, .least = 1 }, op);
	case BLOCK:
		return tern_block_get_start(
			t, room, 100, VICTIM,
			&(tern_block){ .name = 0, .stride = 100, .run = 50, .count = 100 }, op);
	case COPY_FROM:
		return tern_copy_start(t, third, there, AREA, op);
	case COPY_TO:
		return tern_copy_start(t, there, third, AREA, op);
	default:
		return tern_copy_start(t, there, there + AREA / 2, AREA / 2, op);
	}
}

static int end(tern *t, tern_op *op)
{
	int rc;
	if (!by_test)
		return tern_op_wait(t, op);
	while ((rc = tern_op_test(t, op)) == 0)
		;
	return rc < 0 ? rc : 0;
}

/* Starts some, or one that blocks, and waits for them; the first error. */
static int some(tern *t, unsigned n)
{
	tern_op op = TERN_OP;
	int rc = 0;
	if (blocking) {
		atomic_store(&board->under_way, 1);
		return start(t, NULL);
	}
	for (unsigned i = 0; i < n && !rc; i++)
		rc = start(t, &op);
	atomic_store(&board->under_way, 1);
	int ended = end(t, &op);
	CHECK_IS(op.pending, 0);
	return rc < 0 && rc != -EAGAIN ? rc : ended;
}

static void check_error(int rc)
{
	if (!CHECK(rc < 0 && rc != -EAGAIN) ||
	    !CHECK(form == COPY_TO || strstr(tern_strerror(rc), "rank 1")))
		printf("    %s: %d: %s\n", form_name[form], rc, tern_strerror(rc));
}

static void go_on_until_it_dies(tern *t)
{
	int rc = 0;
	while (!rc)
		rc = some(t, form == WHEN ? TERN_WHEN_MAX : 200);
	check_error(rc);
	CHECK(atomic_load(&board->dead));
	for (int i = 0; i < 3; i++) /* and it stays so */
		check_error(some(t, 200));
	CHECK_IS(tern_put(t, board->at[LIVING], room, AREA), 0); /* the rest works */
	CHECK_IS(tern_flush(t), 0);
	atomic_store(&board->done, 1);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0); /* those of jobs before it are not its own */
	tern *t = ranks_open();
	rank_prepare(t);
	if (tern_rank(t) == LIVING)
		go_on_until_it_dies(t);
	while (tern_rank(t) == VICTIM) /* it serves for a while, and then only lies there */
		if (clock_ns() % 4 || !atomic_load(&board->under_way))
			tern_poll(t);
	while (!atomic_load(&board->done))
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

/*
 * Over a network the others may be through a barrier before it; killed inside, it would be missing
 * there.
 */
static void kill_when_under_way(uint32_t victim, struct chance *c)
{
	while (!atomic_load(&board->under_way) || !(atomic_load(&board->ready) >> victim & 1))
		ranks_nap(100000);
	ranks_nap(chance_below(c, 3000000));
	atomic_store(&board->dead, 1);
	kill(ranks_pid[victim], SIGKILL);
	if (chance_one_in(c, 2))
		ranks_nap(1000000); /* nobody has told the job yet */
}

static void die_as_target(enum form what, const char *single_copy, bool test, bool block,
			  struct chance *c)
{
	form = what;
	by_test = test;
	blocking = block;
	board = ranks_shared(sizeof *board);
	setenv("TERN_SINGLE_COPY", single_copy, 1);
	ranks_start(RANKS, 0, rank_main);
	kill_when_under_way(VICTIM, c);
	if (!CHECK_IS(ranks_reap(RANKS, 0), 1)) /* the victim alone */
		printf("    %s, TERN_SINGLE_COPY=%s\n", form_name[what], single_copy);
	ranks_end();
	munmap(board, sizeof *board);
}

TEST(whoever_waits_for_a_rank_that_is_killed_gets_an_error_that_names_it)
{
	struct chance c = { check_seed() };
	for (int what = 0; what < FORMS; what++)
		for (int way = 0; way < 2; way++)
			die_as_target((enum form)what, way ? "1" : "0", false, false, &c);
}

TEST(whoever_tests_for_a_rank_that_is_killed_gets_an_error_that_names_it)
{
	struct chance c = { check_seed() };
	for (int what = 0; what < FORMS; what++)
		die_as_target((enum form)what, what % 2 ? "1" : "0", true, false, &c);
}

TEST(a_blocking_call_ends_when_the_rank_it_needs_is_killed)
{
	struct chance c = { check_seed() };
	for (int what = 0; what < FORMS; what++)
		for (int way = 0; way < 2; way++)
			die_as_target((enum form)what, way ? "1" : "0", false, true, &c);
}

/* -- The initiator dies ---------------------------------------------------------------------- */

static void attack(tern *t)
{
	struct chance c = { seed + tern_rank(t) };
	tern_op op = TERN_OP;
	for (;;) {
		form = (enum form)chance_below(&c, FORMS);
		if (start(t, &op) == 0)
			atomic_store(&board->under_way, 1);
		if (form != WHEN && chance_one_in(&c, 20))
			tern_flush(t);
		tern_poll(t);
	}
}

/* The target gets its memory back, and what waits for the dead is dropped. */
static void survive(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	rank_prepare(t);
	uint32_t me = tern_rank(t);
	if (me == LIVING)
		attack(t); /* it is the one that is killed */
	while (!atomic_load(&board->dead))
		tern_poll(t);
	ranks_nap(2000000);
	if (me == VICTIM)
		CHECK_IS(tern_amo(t, board->flag, TERN_AMO_ADD, 5, (uint64_t *)NULL),
			 0); /* values it waited for are ready */
	for (int i = 0; i < 1000; i++)
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(tern_flush(t), 0);
	CHECK_IS(tern_unregister(t, board->at[me]), 0);
	memset(bytes, 0x55, AREA);
	atomic_fetch_add(&board->done, 1);
	while (atomic_load(&board->done) < RANKS - 1)
		tern_poll(t);
	for (size_t i = 0; i < AREA; i++)
		if (!CHECK(bytes[i] == 0x55))
			break;
	CHECK_IS(tern_put(t, board->at[me], room, 1), -EFAULT);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_target_goes_on_when_the_initiator_is_killed_in_the_middle)
{
	struct chance c = { check_seed() };
	for (unsigned n = CHECK_SLOWER > 1 ? 4 : 16; n; n--) {
		seed = chance_next(&c);
		board = ranks_shared(sizeof *board);
		setenv("TERN_SINGLE_COPY", n % 2 ? "1" : "0", 1);
		ranks_start(RANKS, 0, survive);
		while (!atomic_load(&board->under_way))
			ranks_nap(100000);
		ranks_nap(chance_below(&c, 5000000));
		kill(ranks_pid[LIVING], SIGKILL);
		CHECK_IS(ranks_reap(1, 0), 1);
		atomic_store(&board->dead, 1);
		CHECK_IS(ranks_reap(RANKS - 1, 0), 0);
		ranks_end();
		munmap(board, sizeof *board);
	}
}
