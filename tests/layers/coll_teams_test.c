/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls under way at once on several teams: the rows and the columns of a grid of ranks, all ranks,
 * and all of them a second time. Each rank begins with another team, has several calls on each,
 * makes a blocking call on one while they are under way, and waits for them in an order of its own.
 * Only the calls on one team are in the same order at all its members.
 */
#include <tern/coll.h>
#include <tern/send.h>

#include "coll/run.h"
#include "lib/chance.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { TEAMS = 4, CALLS = 3, WORDS = 700, MEMBERS_MOST = 6, ROUNDS = 30, WIDE = 2 };

struct call {
	tern_op op;
	uint64_t in[WORDS], out[WORDS];
};

static struct call calls[TEAMS][CALLS];
static uint64_t first_seed; /* the same at all ranks */

/* What member `m` of team `k` gives to call `i` of a round, as its word `w`. */
static uint64_t word_of(uint32_t round, uint32_t k, uint32_t i, uint32_t m, size_t w)
{
	return chance_of(first_seed + round, ((k * CALLS + i) * UINT64_C(64) + m) * 4096 + w) %
	       1000;
}

/* The first member gives its color: the rows differ from each other, and so do the columns. */
static uint32_t salt_of(const tern_team *team)
{
	return tern_team_member(team, 0);
}

static size_t words_of(uint32_t round, uint32_t k, uint32_t i)
{
	return chance_of(first_seed + round, k * 7 + i) % 3 ? 1 + (k + i) % 6 : WORDS;
}

enum kind { SUM, BROADCAST, SCAN, BARRIER, KINDS };

static enum kind kind_of(uint32_t round, uint32_t k, uint32_t i)
{
	return (enum kind)(chance_of(first_seed + round, 1000 + k * 7 + i) % KINDS);
}

static int call_start(tern_team *team, uint32_t round, uint32_t k, uint32_t i)
{
	struct call *c = &calls[k][i];
	size_t n = words_of(round, k, i);
	c->op = (tern_op)TERN_OP;
	for (size_t w = 0; w < n; w++)
		c->in[w] = c->out[w] =
			word_of(round + salt_of(team), k, i, tern_team_rank(team), w);
	switch (kind_of(round, k, i)) {
	case SUM:
		return tern_team_allreduce_start(team, c->in, c->out, n, TERN_TYPE_UINT64,
						 TERN_REDUCE_SUM, &c->op);
	case BROADCAST:
		return tern_team_broadcast_start(team, i % tern_team_size(team), c->out,
						 n * sizeof *c->out, &c->op);
	case SCAN:
		return tern_team_scan_start(team, c->in, c->out, n, TERN_TYPE_UINT64,
					    TERN_REDUCE_SUM, &c->op);
	default:
		return tern_team_barrier_start(team, &c->op);
	}
}

static uint64_t expected(const tern_team *team, uint32_t round, uint32_t k, uint32_t i, size_t w)
{
	enum kind kind = kind_of(round, k, i);
	uint32_t n = tern_team_size(team), me = tern_team_rank(team);
	uint32_t from = kind == BROADCAST ? i % n : kind == BARRIER ? me : 0;
	uint32_t to = kind == SUM ? n - 1 : kind == SCAN ? me : from;
	uint64_t sum = 0;
	for (uint32_t m = from; m <= to; m++)
		sum += word_of(round + salt_of(team), k, i, m, w);
	return sum;
}

static void call_check(const tern_team *team, uint32_t round, uint32_t k, uint32_t i)
{
	bool right = true;
	for (size_t w = 0; w < words_of(round, k, i); w++)
		right &= calls[k][i].out[w] == expected(team, round, k, i, w);
	if (!CHECK(right))
		printf("    round %u team %u call %u kind %d\n", round, k, i,
		       (int)kind_of(round, k, i));
}

static void round_play(tern *t, tern_team **team, uint32_t round, struct chance *own)
{
	uint32_t first = (uint32_t)chance_below(own, TEAMS);
	for (uint32_t x = 0; x < TEAMS; x++)
		for (uint32_t k = (first + x) % TEAMS, i = 0; i < CALLS; i++)
			CHECK_IS(call_start(team[k], round, k, i), 0);
	/* Behind what was begun on that team, and beside what is under way on the others. */
	uint64_t one = 1, sum = 0;
	tern_team *blocking = team[round % TEAMS];
	CHECK_IS(tern_team_allreduce(blocking, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
		 0);
	CHECK_IS(sum, tern_team_size(blocking));
	first = (uint32_t)chance_below(own, TEAMS * CALLS);
	for (uint32_t x = 0; x < TEAMS * CALLS; x++) {
		uint32_t which = (first + x * 5) % (TEAMS * CALLS);
		struct call *c = &calls[which / CALLS][which % CALLS];
		CHECK_IS(tern_op_wait(t, &c->op), 0);
		call_check(team[which / CALLS], round, which / CALLS, which % CALLS);
	}
}

static void grid_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *team[TEAMS];
	int me = (int)tern_rank(t);
	struct chance own = { first_seed + 77 + tern_rank(t) };
	REQUIRE(tern_team_all(t, &team[0]) == 0);
	REQUIRE(tern_team_split(team[0], me / WIDE, me, &team[1]) == 0);
	REQUIRE(tern_team_split(team[0], me % WIDE, -me, &team[2]) == 0);
	REQUIRE(tern_team_split(team[0], 0, -me, &team[3]) == 0);
	for (uint32_t round = 0; round < ROUNDS; round++)
		round_play(t, team, round, &own);
	for (unsigned k = TEAMS; k-- > 0;)
		CHECK_IS(tern_team_free(team[k]), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_grids(const char *net, const char *delivery)
{
	setenv("TERN_SIGNAL", "38", 1);
	setenv("TERN_DELIVERY", delivery, 1);
	if (net)
		setenv("TERN_NET", net, 1);
	for (uint32_t n = 2; n <= MEMBERS_MOST; n += 2) {
		first_seed = check_seed();
		ranks_run(n, grid_rank);
	}
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

TEST(teams_at_once_through_outboxes)
{
	try_grids(NULL, "poll");
	try_grids(NULL, "thread");
	try_grids(NULL, "interrupt");
}

TEST(teams_at_once_by_messages)
{
	try_grids("udp", "poll");
	try_grids("udp", "thread");
}

TEST(teams_at_once_by_messages_with_faults)
{
	setenv("TERN_FAULT", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=5", 1);
	try_grids("udp", "poll");
	unsetenv("TERN_FAULT");
}

TEST(teams_at_once_over_libfabric)
{
	if (!traffic_usable("ofi/tcp"))
		check_skip("this build, or this machine, has no such network");
	try_grids("ofi/tcp", "poll");
}

/* -- What a team takes ------------------------------------------------------------------------- */

static uint64_t heap_bytes(tern *t)
{
	return atomic_load(&t->own->group->job.rank[tern_rank(t)].heap);
}

static void frugal_rank(void)
{
	static uint64_t in[1000], out[1000];
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *half;
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_team_barrier(all), 0);
	REQUIRE(tern_team_split(all, (int)tern_rank(t) % 2, 0, &half) == 0);
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK(r == tern_rank(t) || !t->lane[r].base);
	CHECK(heap_bytes(t) <= 2 * (sizeof(struct outbox) + (64 << 10)));
	CHECK_IS(tern_team_allreduce(all, in, out, 1000, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	CHECK(heap_bytes(t) >= OUTBOX_PLACES * CELL_LONG);
	CHECK_IS(tern_team_free(half), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(teams_of_one_machine_are_made_without_a_message_and_take_what_they_use)
{
	setenv("TERN_CHECK", "0", 1); /* its calls move more */
	ranks_run(5, frugal_rank);
}

/* Two are made, and freed in the order in which they were made, or the other way around. */
static void again_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *part[2];
	uint64_t before = 0, sum, one = 1;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 2; i++)
			REQUIRE(tern_team_split(all, 0, 0, &part[i]) == 0);
		CHECK(part[0]->own_outbox != part[1]->own_outbox);
		for (int i = 0; i < 2; i++) {
			CHECK_IS(tern_team_allreduce(part[i], &one, &sum, 1, TERN_TYPE_UINT64,
						     TERN_REDUCE_SUM),
				 0);
			CHECK_IS(sum, tern_size(t));
		}
		for (unsigned i = 0; i < 2; i++)
			CHECK_IS(tern_team_free(part[(i + round) % 2]), 0);
		before = round ? before : heap_bytes(t);
		CHECK_IS(heap_bytes(t), before);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(teams_use_again_what_those_before_them_took)
{
	ranks_run(3, again_rank);
}

static unsigned runs_kept(tern *t)
{
	unsigned n = 0;
	for (const struct run *r = coll_of(t)->spent; r; r = r->next)
		n++;
	return n;
}

static void spent_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (int i = 0; i < 100; i++) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_team_barrier_start(all, &op), 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK(runs_kept(t) <= 1);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(what_a_call_with_a_handle_took_is_given_back_before_the_next)
{
	ranks_run(2, spent_rank);
}

static void narrow_rank(void)
{
	static uint64_t in[1000], out[1000];
	void *p;
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	if (tern_rank(t) == 1)
		CHECK_IS(tern_alloc(t, 600 << 10, &p), 0);
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK(!all->outbox[0]);
	in[999] = tern_rank(t);
	CHECK_IS(tern_team_allreduce(all, in, out, 1000, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	CHECK_IS(out[999], 0 + 1 + 2);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_team_of_a_member_without_room_for_long_data_uses_messages)
{
	setenv("TERN_HEAP", "2M", 1);
	ranks_run(3, narrow_rank);
	unsetenv("TERN_HEAP");
}

/* Which takes the room after the team was made: then a call fails at all, and does not hang. */
static void late_narrow_rank(void)
{
	static uint64_t in[1000], out[1000];
	void *p;
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_team_barrier(all), 0);
	if (tern_rank(t) == 1)
		CHECK_IS(tern_alloc(t, 600 << 10, &p), 0);
	CHECK_IS(tern_team_allreduce(all, in, out, 1000, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
		 -ENOMEM);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_call_for_whose_data_a_member_has_no_room_any_more_fails_at_all)
{
	setenv("TERN_HEAP", "2M", 1);
	ranks_run(3, late_narrow_rank);
	unsetenv("TERN_HEAP");
}

/* -- What a team does not do ------------------------------------------------------------------- */

/* Failures of no rank of the job, with no error, and of another length. */
static void failures_tell_wrong(tern *t, const tern_team *team)
{
	static const struct failure bad[] = { { 7, -EINVAL, "" }, { 0, 0, "" }, { 0, 5, "" } };
	static const struct failure good = { 0, -EINVAL, "" };
	const uint64_t words[] = { team->id, team->calls };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_IS(layer_request(t->own, 0, COLL_FAILED, &bad[i], sizeof bad[i], 2, words),
			 0);
	CHECK_IS(layer_request(t->own, 0, COLL_FAILED, &good, sizeof good - 1, 2, words), 0);
	CHECK_IS(layer_request(t->own, 0, COLL_FAILED, NULL, 0, 2, words), 0);
}

static void lying_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	if (tern_rank(t) == 1)
		failures_tell_wrong(t, all);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_team_barrier(all), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_failure_that_no_good_member_tells_is_none)
{
	ranks_run(2, lying_rank);
}

static _Atomic bool *asked; /* by rank 0; rank 1 begins the call then */

static void busy_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_op op = TERN_OP;
	tern_team *all, *left = NULL;
	REQUIRE(tern_team_all(t, &all) == 0);
	while (tern_rank(t) == 1 && !atomic_load(asked))
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(tern_team_barrier_start(all, &op), 0);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_team_survivors(all, &left), -EBUSY);
		CHECK(strstr(tern_strerror(-EBUSY), "tern_team_barrier_start() is under way"));
		CHECK_IS(tern_team_free(all), -EBUSY);
		CHECK(!left);
		atomic_store(asked, true);
	}
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_team_with_a_call_under_way_is_not_freed_and_has_no_survivors)
{
	asked = ranks_shared(sizeof *asked);
	ranks_run(2, busy_rank);
	munmap((void *)asked, sizeof *asked);
}

/* -- Ids of teams ------------------------------------------------------------------------------ */

enum { SAME = 5 };

/* What a receive of any rank and any id takes, where `like` is one of these ids. */
static uint64_t any_of(tern *t, tern_id like)
{
	uint64_t word = 0;
	tern_envelope env;
	tern_match match = { .rank = TERN_RANK_ANY, .id = like, .any = TERN_ID_ANY };
	match.flags = TERN_PROBE_WAIT;
	CHECK_IS(tern_probe(t, &match, &env), 1);
	match.flags = 0;
	CHECK_IS(tern_recv_start(t, &match, &word, sizeof word, NULL, NULL), 0);
	CHECK_IS(env.id & UINT32_MAX, SAME);
	return word;
}

/* Each sends the next under one number: of two teams, of a copy of one, and of the program. */
static void ids_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *team[3];
	uint32_t here = tern_rank(t), next = (here + 1) % tern_size(t);
	REQUIRE(tern_team_all(t, &team[0]) == 0 && tern_team_all(t, &team[1]) == 0);
	REQUIRE(tern_team_split(team[1], 0, 0, &team[2]) == 0);
	for (uint32_t k = 0; k < 4; k++) {
		tern_id id = k < 3 ? tern_team_id(team[k], SAME) : SAME;
		CHECK_IS((id & TERN_ID_TEAM) != 0, k < 3);
		CHECK_IS(tern_send(t, next, id, &(uint64_t){ 100 * k + next }, 8), 0);
	}
	CHECK_IS(any_of(t, tern_team_id(team[2], 0)), 200 + here);
	CHECK_IS(any_of(t, 0), 300 + here);
	CHECK_IS(any_of(t, tern_team_id(team[0], 77)), here);
	CHECK_IS(any_of(t, tern_team_id(team[1], 0)), 100 + here);
	for (uint32_t k = 0; k < 3; k++)
		CHECK_IS(tern_team_free(team[k]), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(ids_of_a_team_are_apart_from_those_of_others_and_of_the_program)
{
	ranks_run(4, ids_rank);
}
