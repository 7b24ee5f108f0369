/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/*
 * Memory of a rank that has died, on the same machine: the first call that uses it after the
 * launcher has seen the death fails, though the program makes no other call.
 */
#include "lib/handed.h"
#include "lib/ranks.h"

enum { RANKS = 2, LIVING = 0, VICTIM = 1, AREA = 1 << 20, ROW = 48 };

struct board {
	tern_addr own, common, region;
	_Atomic uint64_t ready, under_way, dead;
};

static struct board *board;
static unsigned char bytes[AREA], room[AREA];

/* -- The calls ------------------------------------------------------------------------------- */

typedef int use_fn(tern *t, tern_addr a);

static int put_word(tern *t, tern_addr a)
{
	return tern_put(t, a, bytes, 8);
}

static int put_line(tern *t, tern_addr a)
{
	return tern_put(t, a, bytes, 64);
}

static int put_block(tern *t, tern_addr a)
{
	return tern_put(t, a, bytes, 5000);
}

static int put_long(tern *t, tern_addr a)
{
	return tern_put(t, a, bytes, AREA);
}

static int put_a_value(tern *t, tern_addr a)
{
	return tern_put(t, a, &(uint32_t){ 7 }, 4);
}

static int get_word(tern *t, tern_addr a)
{
	return tern_get(t, room, a, 8);
}

static int get_block(tern *t, tern_addr a)
{
	return tern_get(t, room, a, 5000);
}

static int get_long(tern *t, tern_addr a)
{
	return tern_get(t, room, a, AREA);
}

static int waited(tern *t, int rc, tern_op *op)
{
	return rc ? rc : tern_op_wait(t, op);
}

static int put_started(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	return waited(t, tern_put_start(t, a, bytes, 8, &op), &op);
}

static int put_long_started(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	return waited(t, tern_put_start(t, a, bytes, AREA, &op), &op);
}

static int get_started(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	return waited(t, tern_get_start(t, room, a, 64, &op), &op);
}

static int amo_started(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	return waited(t, tern_amo_start(t, a, TERN_AMO_ADD, 1, (uint64_t *)NULL, &op), &op);
}

static int add(tern *t, tern_addr a)
{
	uint64_t old;
	return tern_amo(t, a, TERN_AMO_ADD, 1, &old);
}

static int swap(tern *t, tern_addr a)
{
	return tern_amo(t, a, TERN_AMO_SWAP, 1, (uint64_t *)NULL);
}

static int add32(tern *t, tern_addr a)
{
	return tern_amo(t, a, TERN_AMO_ADD, 1, (uint32_t *)NULL);
}

static int add_double(tern *t, tern_addr a)
{
	return tern_amo(t, a, TERN_AMO_ADD, 1, (double *)NULL);
}

static int cas(tern *t, tern_addr a)
{
	uint64_t old;
	return tern_cas(t, a, 0, 1, &old);
}

static int cas32(tern *t, tern_addr a)
{
	return tern_cas(t, a, 0, 1, (uint32_t *)NULL);
}

static int store(tern *t, tern_addr a)
{
	return tern_store(t, a, bytes, 8);
}

static int put_signal(tern *t, tern_addr a)
{
	return tern_put_signal(t, a, bytes, 8,
			       &(tern_change){ .word = a, .what = TERN_AMO_ADD, .value = 1 });
}

static int put_signal_long(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	return waited(t,
		      tern_put_signal_start(
			      t, a, bytes, AREA,
			      &(tern_change){ .word = a, .what = TERN_AMO_ADD, .value = 1 }, &op),
		      &op);
}

static int rows(tern *t, tern_addr a, bool put)
{
	static const size_t count[] = { 10 };
	static const ptrdiff_t stride[] = { 2 * ROW };
	tern_part there = { .addr = a, .run = ROW, .dims = 1, .count = count, .stride = stride };
	tern_part here = { .base = room, .run = 10 * ROW };
	return put ? tern_put_parts(t, &there, 1, &here, 1)
		   : tern_get_parts(t, &here, 1, &there, 1);
}

static int put_rows(tern *t, tern_addr a)
{
	return rows(t, a, true);
}

static int get_rows(tern *t, tern_addr a)
{
	return rows(t, a, false);
}

static int copy_to(tern *t, tern_addr a)
{
	return tern_copy(t, a, handed_at(board->common, LIVING), 64);
}

static int copy_from(tern *t, tern_addr a)
{
	return tern_copy(t, handed_at(board->common, LIVING), a, 64);
}

static int local_pointer(tern *t, tern_addr a)
{
	void *p;
	return tern_addr_local(t, a, 8, &p);
}

static int after_a_flush(tern *t, tern_addr a)
{
	int rc = tern_flush(t);
	return rc ? rc : tern_put(t, a, bytes, 8);
}

static int before_quiet(tern *t, tern_addr a)
{
	int rc = tern_amo(t, a, TERN_AMO_ADD, 1, (uint64_t *)NULL);
	return rc ? rc : tern_flush(t);
}

static int region_put(tern *t, tern_addr a)
{
	(void)a;
	return tern_put(t, board->region, bytes, 1001);
}

static int region_get(tern *t, tern_addr a)
{
	(void)a;
	return tern_get(t, room, board->region, 1001);
}

static const struct use {
	const char *name;
	use_fn *fn;
} uses[] = {
	{ "put of a word", put_word },
	{ "put of a line", put_line },
	{ "put of a block", put_block },
	{ "long put", put_long },
	{ "put of a value", put_a_value },
	{ "get of a word", get_word },
	{ "get of a block", get_block },
	{ "long get", get_long },
	{ "put started", put_started },
	{ "long put started", put_long_started },
	{ "get started", get_started },
	{ "atomic started", amo_started },
	{ "addition", add },
	{ "swap", swap },
	{ "addition of 4 bytes", add32 },
	{ "addition of a double", add_double },
	{ "compare and swap", cas },
	{ "compare and swap of 4 bytes", cas32 },
	{ "store", store },
	{ "put of rows", put_rows },
	{ "get of rows", get_rows },
	{ "copy to it", copy_to },
	{ "copy from it", copy_from },
	{ "pointer", local_pointer },
	{ "put after a flush", after_a_flush },
	{ "atomic before quiet", before_quiet },
	{ "put to registered memory", region_put },
	{ "get from registered memory", region_get },
	{ "put with a signal", put_signal },
	{ "long put with a signal", put_signal_long },
};
enum { USES = sizeof uses / sizeof uses[0] };

/* -- The job --------------------------------------------------------------------------------- */

static struct {
	const struct use *use;
	bool common; /* in memory of tern_alloc_all() */
	bool late;   /* nothing of it is used before the death */
	bool worker; /* by a worker */
	bool again;  /* in the next session */
	bool grows;  /* the victim enlarges its heap until it dies */
	bool leaves; /* it closes instead of dying */
} now;

static void victim_main(tern *t)
{
	atomic_store(&board->ready, 1);
	while (!now.leaves || !atomic_load(&board->under_way)) {
		void *p;
		if (now.grows && tern_alloc(t, 64 << 10, &p) == 0)
			board->own = handed_addr(t, p);
		tern_poll(t);
	}
	CHECK_IS(tern_close(t), 0);
}

static tern_addr place(void)
{
	return now.common ? handed_at(board->common, VICTIM) : board->own;
}

static void living_main(tern *t)
{
	int rc = 0;
	while (!atomic_load(&board->ready))
		tern_poll(t);
	atomic_store(&board->under_way, 1);
	while (!atomic_load(&board->dead))
		if (!now.late && rc == 0)
			rc = now.use->fn(t, place());
	CHECK(rc == 0 || rc == -EOWNERDEAD); /* it may have been told already */
	rc = now.use->fn(t, place());
	if (!CHECK_IS(rc, -EOWNERDEAD) || !CHECK(strstr(tern_strerror(rc), "rank 1 is dead")))
		printf("    %s: %s\n", now.use->name, tern_strerror(rc));
	CHECK_IS(tern_put(t, handed_at(board->common, LIVING), bytes, 8), 0);
}

/* It uses that memory until it is told, and makes no other call. */
static void left_main(tern *t)
{
	int rc;
	while (!atomic_load(&board->ready))
		tern_poll(t);
	atomic_store(&board->under_way, 1);
	while ((rc = now.use->fn(t, place())) == 0)
		;
	if (!CHECK_IS(rc, -ESHUTDOWN))
		printf("    %s: %s\n", now.use->name, tern_strerror(rc));
	CHECK_IS(tern_close(t), 0);
}

static void next_session(tern *t)
{
	CHECK_IS(tern_close(t), 0);
	t = ranks_open();
	CHECK_IS(now.use->fn(t, place()), -EOWNERDEAD);
	CHECK_IS(tern_close(t), 0);
}

static void rank_main(void)
{
	tern *t = ranks_open(), *w = NULL;
	uint32_t me = tern_rank(t);
	tern_addr common = handed_addr(t, handed_alloc_all(t, 2 * AREA));
	if (me == VICTIM) {
		void *p = handed_alloc(t, 2 * AREA);
		board->own = handed_addr(t, p);
		board->common = common;
		CHECK_IS(tern_register(t, bytes, AREA, &board->region), 0);
		CHECK_IS(tern_grant(t, LIVING, p, 2 * AREA), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (me == VICTIM) {
		victim_main(t);
		return;
	}
	if (now.leaves) {
		left_main(t);
		return;
	}
	if (now.worker)
		REQUIRE(tern_worker_open(t, &w) == 0);
	living_main(now.worker ? w : t);
	if (now.worker)
		CHECK_IS(tern_close(w), 0);
	if (now.again)
		next_session(t);
	else
		CHECK_IS(tern_close(t), 0);
}

/* The test is the launcher: the calls must fail from the moment that it has told the job. */
static void job_run(const struct use *use)
{
	now.use = use;
	board = ranks_shared(sizeof *board);
	ranks_start(RANKS, 0, rank_main);
	while (!atomic_load(&board->under_way))
		ranks_nap(100000);
	ranks_nap(1000000);
	kill(ranks_pid[VICTIM], SIGKILL);
	CHECK_IS(ranks_reap(1, 0), 1);
	atomic_store(&board->dead, 1);
	if (!CHECK_IS(ranks_reap(1, 0), 0))
		printf("    %s\n", use->name);
	ranks_end();
	munmap(board, sizeof *board);
}

static void leave_run(const struct use *use)
{
	now.use = use;
	now.leaves = true;
	board = ranks_shared(sizeof *board);
	ranks_start(RANKS, 0, rank_main);
	CHECK_IS(ranks_reap(2, 0), 0);
	ranks_end();
	munmap(board, sizeof *board);
}

static void all_uses(void)
{
	for (int i = 0; i < USES; i++)
		job_run(&uses[i]);
}

TEST(no_call_succeeds_on_the_heap_of_a_rank_that_is_dead)
{
	all_uses();
}

TEST(nor_in_memory_that_all_ranks_have_allocated)
{
	now.common = true;
	all_uses();
}

TEST(nor_one_that_had_not_used_it_before)
{
	now.late = true;
	all_uses();
}

TEST(nor_of_a_worker)
{
	now.worker = true;
	setenv("TERN_WORKERS", "1", 1);
	for (int i = 0; i < USES; i += 4)
		job_run(&uses[i]);
}

TEST(nor_in_the_next_session)
{
	now.again = true;
	for (int i = 0; i < USES; i += 4)
		job_run(&uses[i]);
}

TEST(nor_in_memory_that_was_granted)
{
	setenv("TERN_GRANT", "1", 1);
	now.late = true; /* what was not granted waits, and would be told */
	job_run(&uses[0]);
	now.late = false;
	for (int i = 0; i < USES; i++)
		if (uses[i].fn != copy_to && uses[i].fn != copy_from)
			job_run(&uses[i]);
}

TEST(nor_in_what_it_allocated_while_it_died)
{
	now.grows = true;
	for (unsigned n = check_scaled(40); n; n--)
		job_run(&uses[n % 2 ? 0 : 1]);
}

TEST(memory_of_a_rank_that_has_left_is_not_that_of_a_dead_one)
{
	for (int i = 0; i < USES; i++)
		if (uses[i].fn == region_put || uses[i].fn == region_get)
			for (unsigned n = check_scaled(20); n; n--)
				leave_run(&uses[i]);
}
