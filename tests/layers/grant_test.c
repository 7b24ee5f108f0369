/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/*
 * TERN_GRANT: a stray store into another rank's heap ends its process, unless the owner has granted
 * the memory; and everything that Tern's calls do goes on.
 */
#include <setjmp.h>
#include <signal.h>

#include "lib/handed.h"
#include "lib/ranks.h"

enum { RANKS = 3, PAGE = 4096, TRY = 1 };

struct board {
	_Atomic int faults; /* of the rank that has tried */
	tern_addr at;
};

static struct board *board;
static sigjmp_buf fault;

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(fault, 1);
}

/* Whether a store to `p` is a fault; what was there stays. */
static bool store_faults(volatile char *p)
{
	struct sigaction before, mine = { .sa_handler = on_fault };
	bool faults = true;
	sigaction(SIGSEGV, &mine, &before);
	if (sigsetjmp(fault, 1) == 0) {
		*p = *p;
		faults = false;
	}
	sigaction(SIGSEGV, &before, NULL);
	return faults;
}

/* Where rank 0's heap has `at` in this process. */
static char *heap_of_0(tern *t, const char *mine, tern_addr mine_at, tern_addr at)
{
	const uint64_t offset = (UINT64_C(1) << 40) - 1;
	return (char *)(uintptr_t)mine - (mine_at & offset) - tern_rank(t) * ranks_job.heap_bytes +
	       (at & offset);
}

static void job_run(const char *grant, void (*rank_main)(void))
{
	setenv("TERN_GRANT", grant, 1);
	board = ranks_shared(sizeof *board);
	ranks_run(RANKS, rank_main);
	munmap(board, sizeof *board);
	unsetenv("TERN_GRANT");
}

/* How many of the other ranks a store to the byte `at` of rank 0's `memory` is a fault for. */
static int faults_at(tern *t, const char *mine, size_t at)
{
	tern_addr mine_at = handed_addr(t, mine);
	if (tern_rank(t) == 0) {
		atomic_store(&board->faults, 0);
		board->at = mine_at;
	}
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) && store_faults(heap_of_0(t, mine, mine_at, board->at) + at))
		atomic_fetch_add(&board->faults, 1);
	CHECK_IS(tern_barrier(t), 0);
	int faults = atomic_load(&board->faults);
	CHECK_IS(tern_barrier(t), 0);
	return faults;
}

static void strays(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	char *mine = handed_alloc(t, 8 * PAGE);
	void *p = NULL;
	mine += PAGE - (uintptr_t)mine % PAGE;
	CHECK_IS(faults_at(t, mine, 0), RANKS - 1);
	if (me == 0)
		CHECK_IS(tern_grant(t, 1, mine, 100), 0);
	CHECK_IS(faults_at(t, mine, 0), RANKS - 2);
	CHECK_IS(faults_at(t, mine, PAGE), RANKS - 1);
	CHECK_IS(tern_addr_local(t, board->at, 100, &p), me < 2 ? 0 : -EXDEV);
	CHECK_IS(tern_addr_local(t, board->at, 101, &p), me < 1 ? 0 : -EXDEV);
	/* Two grants meet in the second page. */
	if (me == 0) {
		CHECK_IS(tern_grant(t, TERN_RANK_ANY, mine + PAGE, 64), -ERANGE);
		CHECK_IS(tern_grant(t, TERN_RANK_ALL, mine + PAGE, 64), 0);
		CHECK_IS(tern_grant(t, 2, mine + PAGE + 64, 2 * PAGE), 0);
		CHECK_IS(tern_revoke(t, TERN_RANK_ALL, mine + PAGE, 64), 0);
		CHECK_IS(tern_revoke(t, 1, mine, 100), 0);
	}
	CHECK_IS(faults_at(t, mine, 0), RANKS - 1);
	CHECK_IS(faults_at(t, mine, PAGE), RANKS - 2);
	CHECK_IS(faults_at(t, mine, 3 * PAGE), RANKS - 2);
	CHECK_IS(faults_at(t, mine, 4 * PAGE), RANKS - 1);
	CHECK_IS(tern_addr_local(t, board->at, 100, &p), me < 1 ? 0 : -EXDEV);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_stray_store_is_a_fault_unless_the_owner_has_granted_the_memory)
{
	job_run("1", strays);
}

/* A grant to all is a grant to each rank; each revoke takes one back wherever there is one. */
static void by_rank_and_by_all(void)
{
	tern *t = ranks_open();
	bool owner = tern_rank(t) == 0;
	char *mine = handed_alloc(t, 2 * PAGE);
	mine += PAGE - (uintptr_t)mine % PAGE;
	if (owner) {
		CHECK_IS(tern_grant(t, TERN_RANK_ALL, mine, PAGE), 0);
		CHECK_IS(tern_revoke(t, 1, mine, PAGE), 0);
		CHECK_IS(tern_revoke(t, 1, mine, PAGE), -ENXIO);
	}
	CHECK_IS(faults_at(t, mine, 0), RANKS - 2);
	if (owner) {
		CHECK_IS(tern_revoke(t, TERN_RANK_ALL, mine, PAGE), 0);
		CHECK_IS(tern_revoke(t, TERN_RANK_ALL, mine, PAGE), -ENXIO);
		CHECK_IS(tern_revoke(t, 2, mine, PAGE), -ENXIO);
	}
	CHECK_IS(faults_at(t, mine, 0), RANKS - 1);
	if (owner) {
		CHECK_IS(tern_grant(t, 1, mine, PAGE), 0);
		CHECK_IS(tern_grant(t, TERN_RANK_ALL, mine, PAGE), 0);
		CHECK_IS(tern_revoke(t, TERN_RANK_ALL, mine, PAGE), 0);
	}
	CHECK_IS(faults_at(t, mine, 0), RANKS - 2); /* rank 1 had two */
	if (owner)
		CHECK_IS(tern_revoke(t, TERN_RANK_ALL, mine, PAGE), 0);
	CHECK_IS(faults_at(t, mine, 0), RANKS - 1);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_grant_to_all_is_a_grant_to_each_rank)
{
	job_run("1", by_rank_and_by_all);
}

static void trusting(void)
{
	tern *t = ranks_open();
	char *mine = handed_alloc(t, PAGE);
	CHECK_IS(faults_at(t, mine, 0), 0);
	CHECK_IS(tern_grant(t, TERN_RANK_ALL, mine, PAGE), 0);
	CHECK_IS(tern_revoke(t, 0, mine, PAGE), 0);
	CHECK_IS(faults_at(t, mine, 0), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(without_the_setting_every_rank_may_store)
{
	job_run("0", trusting);
}

/* -- Calls ------------------------------------------------------------------------------- */

/* Of all ranks on the memory of rank 0, each on its own words and together on the first. */
static void operate(tern *t, uint64_t *words)
{
	uint32_t me = tern_rank(t);
	tern_addr a = board->at + 64 * (me + 1);
	uint64_t value = 7 + me, got = 0, old;
	static char block[3 * PAGE], back[3 * PAGE];
	memset(block, 'a' + (int)me, sizeof block);
	CHECK_IS(tern_put(t, a, &value, 8), 0);
	CHECK_IS(tern_get(t, &got, a, 8), 0);
	CHECK_IS(got, value);
	CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 5, &old), 0);
	CHECK_IS(old, value);
	CHECK_IS(tern_amo(t, board->at, TERN_AMO_ADD, 1, (uint64_t *)NULL), 0);
	tern_addr far = board->at + (tern_addr)(me + 1) * sizeof block;
	CHECK_IS(tern_put(t, far, block, sizeof block), 0);
	CHECK_IS(tern_get(t, back, far, sizeof back), 0);
	CHECK(memcmp(block, back, sizeof back) == 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint32_t r = 0; me == 0 && r < RANKS; r++)
		CHECK_IS(words[8 * (r + 1)], 7 + r + 5);
}

static void calls(void)
{
	tern *t = ranks_open();
	uint64_t *words = handed_alloc(t, 16 * PAGE);
	if (tern_rank(t) == 0)
		board->at = handed_addr(t, words);
	CHECK_IS(tern_barrier(t), 0);
	operate(t, words);
	if (tern_rank(t) == 0)
		CHECK_IS(words[0], RANKS);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0)
		CHECK_IS(tern_grant(t, 1, words, 16 * PAGE), 0);
	CHECK_IS(tern_barrier(t), 0);
	operate(t, words); /* by rank 1 directly, by rank 2 through the owner */
	if (tern_rank(t) == 0)
		CHECK_IS(words[0], 2 * RANKS);
	CHECK_IS(tern_put(t, board->at - (UINT64_C(1) << 36), &words, 8), -EFAULT);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(puts_and_atomics_go_through_the_owner_where_nothing_was_granted)
{
	job_run("1", calls);
}

/* -- What is refused -------------------------------------------------------------------------- */

static int in_handler_said;

static void on_try(tern *t, const tern_msg *m)
{
	(void)m;
	in_handler_said = tern_grant(t, 0, &in_handler_said, 4);
}

static void refusals(void)
{
	tern *t = ranks_open();
	char *mine = handed_alloc(t, PAGE);
	char elsewhere[8];
	CHECK_IS(tern_on(t, TRY, on_try), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_grant(t, 1, elsewhere, sizeof elsewhere), -EFAULT);
		CHECK_IS(tern_grant(t, 1, mine, 0), -EFAULT);
		CHECK_IS(tern_grant(t, 1, mine, UINT64_C(1) << 39), -EFAULT);
		CHECK_IS(tern_grant(t, RANKS, mine, 8), -ERANGE);
		CHECK_IS(tern_revoke(t, 1, mine, 8), -ENXIO);
		CHECK_IS(tern_grant(t, 1, mine, 8), 0);
		CHECK_IS(tern_revoke(t, 1, mine, 9), -ENXIO);
		CHECK_IS(tern_revoke(t, 2, mine, 8), -ENXIO);
		CHECK_IS(tern_revoke(t, 1, mine, 8), 0);
		tern_hold(t);
		CHECK_IS(tern_grant(t, 1, mine, 8), -EDEADLK);
		tern_release(t);
		CHECK_IS(tern_request(t, 0, TRY), 0);
		while (!in_handler_said)
			CHECK(tern_poll(t) >= 0);
		CHECK_IS(in_handler_said, -EPERM);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(grants_that_make_no_sense_are_refused)
{
	job_run("1", refusals);
}
