/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that do not make the same call, with TERN_CHECK: it fails at every member, with a
 * sentence that has both ranks and both calls, and the next call on the team succeeds.
 */
#include <string.h>
#include <tern/coll.h>
#include <tern/mem.h>

#include "lib/coll_calls.h"
#include "lib/ranks.h"

enum { MEMBERS = 4, ODD = 2 };

static tern *t;
static tern_team *all;
static bool split; /* _start and a wait, at every second member */

/* Of rank 0 and of rank ODD. */
static void told(int rc, const char *first, const char *odd)
{
	const char *said = tern_strerror(rc);
	CHECK_IS(rc, -EINVAL);
	const char *between = strstr(said, ", rank 2 ");
	if (!CHECK(strncmp(said, "rank 0 calls ", 13) == 0 && between && strstr(said, first) &&
		   strstr(said, first) < between && strstr(between, odd)))
		printf("    '%s'\n    should have '%s' and '%s'\n", said, first, odd);
	CHECK_IS(tern_team_barrier(all), 0);
}

static bool odd(void)
{
	return tern_rank(t) == ODD;
}

/* -- Calls ------------------------------------------------------------------------------------- */

static void try_calls(void)
{
	for (unsigned a = 0; a < CALLS; a++)
		for (unsigned b = 0; b < CALLS; b++) {
			char name[2][40];
			unsigned which = odd() ? b : a;
			bool start = split && tern_rank(t) % 2;
			snprintf(name[0], sizeof name[0], "tern_team_%s", call_name[a]);
			snprintf(name[1], sizeof name[1], "tern_team_%s", call_name[b]);
			int rc = call_whole(t, all, (enum coll_call)which, 1, 64, start);
			if (a == b)
				CHECK_IS(rc, 0);
			else
				told(rc, name[0], name[1]);
		}
}

/* -- Arguments --------------------------------------------------------------------------------- */

static void try_arguments(void)
{
	double x[8] = { 1 }, y[8] = { 0 };
	bool o = odd();
	told(tern_team_broadcast(all, 0, x, o ? 16 : 8), "of 8 bytes from member 0",
	     "of 16 bytes from member 0");
	told(tern_team_broadcast(all, o ? 1 : 0, x, 8), "of 8 bytes from member 0",
	     "of 8 bytes from member 1");
	told(tern_team_gather(all, o ? 3 : 0, x, call_out, 8), "to member 0", "to member 3");
	told(tern_team_allreduce(all, x, y, o ? 4 : 1, TERN_TYPE_DOUBLE, TERN_REDUCE_SUM),
	     "of 1 elements (double, SUM)", "of 4 elements (double, SUM)");
	told(tern_team_scan(all, x, y, 1, o ? TERN_TYPE_INT64 : TERN_TYPE_DOUBLE, TERN_REDUCE_SUM),
	     "(double, SUM)", "(int64, SUM)");
	told(tern_team_reduce(all, 0, x, y, 1, TERN_TYPE_DOUBLE,
			      o ? TERN_REDUCE_MAX : TERN_REDUCE_SUM | TERN_REDUCE_EXACT),
	     "(double, SUM | EXACT) to member 0", "(double, MAX) to member 0");
}

/* The same number of elements, cut in other ways. */
static void try_cuts(void)
{
	double x[8] = { 1 }, y[8] = { 0 };
	size_t even[MEMBERS] = { 2, 2, 2, 2 }, last[MEMBERS] = { 2, 2, 3, 1 };
	told(tern_team_reduce_scatter(all, x, y, odd() ? last : even, TERN_TYPE_DOUBLE,
				      TERN_REDUCE_SUM),
	     "(double, SUM) in parts of 2 2 2 2", "(double, SUM) in parts of 2 2 3 1");
	CHECK_IS(y[0], 0);
}

/* -- Lengths that differ from member to member ------------------------------------------------- */

/* At every member, and the data is untouched. */
static void told_lengths(int rc, const char *words)
{
	CHECK_IS(rc, -EINVAL);
	if (!CHECK(strncmp(tern_strerror(rc), words, strlen(words)) == 0))
		printf("    '%s'\n    should begin '%s'\n", tern_strerror(rc), words);
	for (size_t i = 0; i < 64; i++)
		CHECK_IS(call_out[i], 0xee);
	CHECK_IS(tern_team_barrier(all), 0);
}

static void try_lengths(void)
{
	tern_part in[MEMBERS], out[MEMBERS], *from_last = &out[MEMBERS - 1];
	for (uint32_t i = 0; i < MEMBERS; i++) {
		in[i] = (tern_part){ .base = call_in, .run = 8 };
		out[i] = (tern_part){ .base = call_out + 16 * i, .run = 8 };
	}
	memset(call_out, 0xee, sizeof call_out);
	from_last->run = odd() ? 16 : 8;
	told_lengths(tern_team_alltoallv(all, in, out),
		     "rank 3 calls tern_team_alltoallv with 8 bytes for rank 2, "
		     "rank 2 tern_team_alltoallv with 16 bytes from rank 3: ");
	told_lengths(tern_team_allgatherv(all, in, out),
		     "rank 3 calls tern_team_allgatherv with 8 bytes for rank 2, "
		     "rank 2 tern_team_allgatherv with 16 bytes from rank 3: ");
	told_lengths(tern_team_gatherv(all, ODD, in, out),
		     "rank 3 calls tern_team_gatherv with 8 bytes for rank 2, "
		     "rank 2 tern_team_gatherv with 16 bytes from rank 3: ");
	told_lengths(tern_team_scatterv(all, MEMBERS - 1, in, from_last),
		     "rank 3 calls tern_team_scatterv with 8 bytes for rank 2, "
		     "rank 2 tern_team_scatterv with 16 bytes from rank 3: ");
}

/* A member names another one, which does not name it. */
static void try_one_sided(void)
{
	const tern_part in = { .base = call_in, .run = 8 }, out = { .base = call_out, .run = 8 };
	tern_neighbor to = { .to = ODD, .from = TERN_RANK_NONE, .in = in, .out = out };
	tern_neighbor from = { .to = TERN_RANK_NONE, .from = ODD, .in = in, .out = out };
	tern_neighbor nothing = { .to = ODD, .from = ODD };
	size_t n = tern_rank(t) == 0;
	told_lengths(tern_team_exchange(all, &to, n),
		     "rank 0 calls tern_team_exchange with 8 bytes for rank 2, "
		     "rank 2 tern_team_exchange with no part from rank 0: ");
	told_lengths(tern_team_exchange(all, &from, n),
		     "rank 2 calls tern_team_exchange with no part for rank 0, "
		     "rank 0 tern_team_exchange with 8 bytes from rank 2: ");
	told_lengths(tern_team_exchange(all, &nothing, n),
		     "rank 0 calls tern_team_exchange with 0 bytes for rank 2, "
		     "rank 2 tern_team_exchange with no part from rank 0: ");
}

/* -- Memory of all ----------------------------------------------------------------------------- */

static void try_memory(void)
{
	void *p = NULL, *q = NULL;
	int rc = tern_alloc_all(t, odd() ? 64 : 128, &p);
	CHECK_IS(rc, -EINVAL);
	CHECK(strstr(tern_strerror(rc), "for 64 bytes at rank 2"));
	CHECK(strstr(tern_strerror(rc), "for 128 bytes at rank "));
	CHECK_IS(tern_alloc_all(t, 64, &p), 0);
	CHECK_IS(tern_alloc_all(t, 64, &q), 0);
	rc = tern_free_all(t, odd() ? p : q);
	CHECK_IS(rc, -EINVAL);
	CHECK(strstr(tern_strerror(rc), odd() ? "at ranks 2 and " : " and 2"));
	CHECK_IS(tern_free_all(t, p), 0);
	CHECK_IS(tern_free_all(t, q), 0);
}

/* Calls of all ranks that are on no team; of one with a handle another thread may have the
 * sentence. */
static bool in_two;

static void told_ranks(int rc, const char *words)
{
	CHECK_IS(rc, -EINVAL);
	if (!in_two && !CHECK(strncmp(tern_strerror(rc), words, strlen(words)) == 0))
		printf("    '%s'\n    should begin '%s'\n", tern_strerror(rc), words);
	CHECK_IS(tern_barrier(t), 0);
}

static int barrier_in_two(void)
{
	tern_op op = TERN_OP;
	int rc = tern_barrier_start(t, &op);
	in_two = true;
	return rc ? rc : tern_op_wait(t, &op);
}

static void try_ranks(void)
{
	void *p = NULL, *q = NULL;
	CHECK_IS(odd() ? barrier_in_two() : tern_barrier(t), 0);
	told_ranks(odd() ? barrier_in_two() : tern_alloc_all(t, 64, &p),
		   "rank 0 calls tern_alloc_all, rank 2 tern_barrier: ");
	told_ranks(odd() ? tern_alloc_all(t, 64, &p) : barrier_in_two(),
		   "rank 0 calls tern_barrier, rank 2 tern_alloc_all: ");
	in_two = false;
	told_ranks(odd() ? tern_barrier(t) : tern_alloc_all(t, 64, &p),
		   "rank 0 calls tern_alloc_all, rank 2 tern_barrier: ");
	told_ranks(odd() ? tern_alloc_all(t, 64, &p) : tern_barrier(t),
		   "rank 0 calls tern_barrier, rank 2 tern_alloc_all: ");
	CHECK(p == NULL);
	CHECK_IS(tern_alloc_all(t, 64, &p), 0);
	told_ranks(odd() ? tern_free_all(t, p) : tern_alloc_all(t, 64, &q),
		   "rank 0 calls tern_alloc_all, rank 2 tern_free_all: ");
	told_ranks(odd() ? tern_free_all(t, p) : tern_barrier(t),
		   "rank 0 calls tern_barrier, rank 2 tern_free_all: ");
	CHECK(q == NULL);
	CHECK_IS(tern_free_all(t, p), 0);
}

/* -- Teams ------------------------------------------------------------------------------------- */

static void try_teams(void)
{
	tern_team *team = NULL;
	uint32_t here[] = { 0, 1 }, there[] = { 0, 2 };
	told(odd() ? tern_team_split(all, 0, 0, &team) : tern_team_machine(all, &team),
	     "tern_team_machine", "tern_team_split");
	CHECK_IS(tern_team_list(all, odd() ? there : here, 2, &team), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL),
		     "rank 2 calls tern_team_list with 2 ranks, and rank 0, "
		     "which is one of them, with another list"));
	told(odd() ? tern_team_quiet(all) : tern_team_barrier(all), "tern_team_barrier",
	     "tern_team_quiet");
	CHECK(team == NULL);
	CHECK_IS(tern_team_split(all, 0, 0, &team), 0); /* is checked like the one that it is of */
	told(odd() ? tern_team_barrier(team) : tern_team_free(team), "tern_team_free",
	     "tern_team_barrier");
	CHECK_IS(tern_team_free(team), 0);
}

/* A member that has made one call less, whatever comes then. */
static void try_order(void)
{
	uint64_t x = 1, y = 0;
	if (!odd())
		told(tern_team_broadcast(all, 0, &x, 8), "tern_team_broadcast",
		     "tern_team_allgather");
	else
		told(tern_team_allgather(all, &x, call_out, 8), "tern_team_broadcast",
		     "tern_team_allgather");
	for (int i = 0; i < 200; i++) /* members count the same calls, and meet in the same ones */
		CHECK_IS(tern_team_scan(all, &x, &y, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	CHECK_IS(y, tern_rank(t) + 1);
}

/* Ranks 0 and ODD are in both teams, and call them in another order. */
static void try_two_teams(void)
{
	tern_team *one, *two;
	uint32_t first[] = { 0, 1, 2 }, second[] = { 0, 2, 3 };
	uint32_t me = tern_rank(t);
	int rc[2] = { -EINVAL, -EINVAL };
	uint64_t x = 1;
	CHECK_IS(tern_team_list(all, first, me < 3 ? 3 : 0, &one), 0);
	CHECK_IS(tern_team_list(all, second, me != 1 ? 3 : 0, &two), 0);
	if (odd())
		rc[1] = tern_team_broadcast(two, 0, &x, 8);
	if (one)
		rc[0] = tern_team_barrier(one);
	if (two && !odd())
		rc[1] = tern_team_broadcast(two, 0, &x, 8);
	CHECK_IS(rc[0], -EINVAL);
	CHECK_IS(rc[1], -EINVAL);
	const char *said = tern_strerror(-EINVAL),
		   *between = strstr(said, ", rank 2 tern_team_broadcast() of team ");
	if (!CHECK(strncmp(said, "rank 0 calls tern_team_barrier() of team ", 41) == 0 && between &&
		   strstr(between, "in the same order")))
		printf("    '%s'\n", said);
	CHECK_IS(tern_team_free(one), 0);
	CHECK_IS(tern_team_free(two), 0);
	CHECK_IS(tern_team_barrier(all), 0);
}

/* Both halves have one id: ranks of one wait in their calls, and those of the other for all. */
static void try_halves(void)
{
	tern_team *half;
	uint32_t me = tern_rank(t);
	CHECK_IS(tern_team_split(all, (int)me / 2, 0, &half), 0);
	for (int i = 0; me >= 2 && i < 3; i++) {
		if (me == 3)
			ranks_nap(20000000);
		CHECK_IS(tern_team_barrier(half), 0);
	}
	CHECK_IS(tern_team_barrier(all), 0);
	CHECK_IS(tern_team_free(half), 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	t = ranks_open();
	REQUIRE(tern_team_all(t, &all) == 0);
	try_calls();
	split = true;
	try_calls();
	try_arguments();
	try_cuts();
	try_lengths();
	try_one_sided();
	try_memory();
	try_ranks();
	try_teams();
	try_order();
	try_two_teams();
	try_halves();
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

/* One rank does not check: nobody does, and no call waits for words that never come. */
static void rank_unlike(void)
{
	if (strcmp(getenv("TERN_RANK"), "1") == 0)
		setenv("TERN_CHECK", "0", 1);
	atomic_store(&check_failures, 0);
	t = ranks_open();
	REQUIRE(tern_team_all(t, &all) == 0);
	for (unsigned which = 0; which < CALLS; which++)
		CHECK_IS(call_whole(t, all, (enum coll_call)which, 1, 64, which % 2), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(calls_that_do_not_match_fail_at_every_member_in_words)
{
	setenv("TERN_CHECK", "1", 1);
	ranks_run(MEMBERS, rank_main);
}

TEST(over_a_network_too)
{
	setenv("TERN_CHECK", "1", 1);
	setenv("TERN_NET", "udp", 1);
	ranks_run(MEMBERS, rank_main);
	unsetenv("TERN_NET");
}

TEST(a_team_is_checked_if_all_members_check)
{
	setenv("TERN_CHECK", "1", 1);
	ranks_run(3, rank_unlike);
}
