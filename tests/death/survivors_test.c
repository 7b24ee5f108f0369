/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 RUN_SERIAL */
/*
 * Ranks are killed in the middle of collectives, and during the agreement on who is left. A call
 * that needs a dead member fails and names it; the survivors agree on one team and go on in it.
 */
#include <string.h>
#include <tern/coll.h>

#include "coll/message.h"
#include "coll/run.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { RANKS = 5, ROUNDS = 24 };

struct board {
	_Atomic uint64_t ready, made[RANKS], size[RANKS], members[RANKS];
};

static struct board *board;
static uint32_t victim, second;
static unsigned steps; /* of the agreement before the second one dies */

/* Calls until one fails, as it must when a member has died. */
static int call_until_lost(tern_team *team)
{
	int rc = 0;
	for (uint64_t i = 0; !rc; i++) {
		uint64_t mine = i, all[RANKS], sum;
		switch (i % 4) {
		case 0:
			rc = tern_team_barrier(team);
			break;
		case 1:
			rc = tern_team_allreduce(team, &mine, &sum, 1, TERN_TYPE_UINT64,
						 TERN_REDUCE_SUM);
			CHECK(rc || sum == mine * tern_team_size(team));
			break;
		case 2:
			rc = tern_team_allgather(team, &mine, all, sizeof mine);
			break;
		default:
			rc = tern_team_broadcast(team, (uint32_t)i % RANKS, &mine, sizeof mine);
		}
		if (i == 10)
			atomic_fetch_add(&board->ready, 1);
	}
	return rc;
}

static uint64_t members_of(const tern_team *team)
{
	uint64_t set = 0;
	for (uint32_t i = 0; i < tern_team_size(team); i++)
		set |= UINT64_C(1) << tern_team_member(team, i);
	return set;
}

/* The outbox of the team that was left is used again, whatever is in its cells. */
static void outbox_again(tern *t, tern_team *left, const struct outbox *old)
{
	tern_team *half;
	uint64_t one = 1, sum = 0;
	CHECK_IS(tern_team_split(left, (int)tern_team_rank(left) % 2, 0, &half), 0);
	bool again = half->own_outbox == old || left->own_outbox == old;
	for (const struct outbox *d = coll_of(t)->outboxes; d; d = d->next)
		again |= d == old;
	CHECK(again);
	for (int i = 0; i < 2 * OUTBOX_CELLS; i++) {
		CHECK_IS(
			tern_team_allreduce(half, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
			0);
		CHECK_IS(sum, tern_team_size(half));
	}
	CHECK_IS(tern_team_free(half), 0);
}

static void lose_one(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *left;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	int rc = call_until_lost(all);
	char name[16], other[16];
	snprintf(name, sizeof name, "rank %u", victim);
	snprintf(other, sizeof other, "rank %u", second);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), name) ||
	      (steps < RANKS && strstr(tern_strerror(rc), other)));
	CHECK_IS(tern_team_barrier(all), -EOWNERDEAD);
	uint64_t pass = all->pass;
	CHECK_IS(tern_team_quiet(all), -EOWNERDEAD);
	CHECK_IS(all->pass, pass); /* it sends nothing */
	if (tern_rank(t) == second && steps < RANKS) {
		survivors_dies_at = steps;
		(void)!tern_team_survivors(all, &left);
		raise(SIGKILL);
	}
	const struct outbox *old = all->own_outbox;
	if (!CHECK_IS(tern_team_survivors(all, &left), 0))
		printf("    %s\n", tern_strerror(rc));
	CHECK(!all->own_outbox);
	CHECK_IS(tern_team_barrier(all), -ESTALE);
	atomic_store(&board->members[tern_rank(t)], members_of(left));
	CHECK(!(members_of(left) >> victim & 1));
	/* The second may have died after the view was made: then once more. */
	uint64_t one = 1, sum = 0;
	while ((rc = tern_team_allreduce(left, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM))) {
		tern_team *next;
		CHECK_IS(rc, -EOWNERDEAD);
		REQUIRE(tern_team_survivors(left, &next) == 0);
		CHECK_IS(tern_team_free(left), 0);
		left = next;
	}
	CHECK_IS(sum, tern_team_size(left));
	for (int i = 0; i < 100; i++)
		CHECK_IS(tern_team_barrier(left), 0);
	outbox_again(t, left, old);
	CHECK_IS(tern_team_quiet(left), 0);
	CHECK_IS(tern_team_free(left), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void lose(struct chance *c, const char *net)
{
	board = ranks_shared(sizeof *board);
	victim = (uint32_t)chance_below(c, RANKS);
	second = (victim + 1 + (uint32_t)chance_below(c, RANKS - 1)) % RANKS;
	if (net)
		setenv("TERN_NET", net, 1);
	ranks_start(RANKS, 0, lose_one);
	while (atomic_load(&board->ready) < RANKS)
		ranks_nap(100000);
	ranks_nap(chance_below(c, 1000000));
	kill(ranks_pid[victim], SIGKILL);
	uint32_t dead = steps < RANKS ? 2 : 1;
	CHECK_IS(ranks_reap(RANKS, 0), dead);
	uint64_t set = 0;
	for (uint32_t r = 0; r < RANKS; r++) {
		uint64_t mine = atomic_load(&board->members[r]);
		if (mine && !set)
			set = mine;
		if (mine)
			CHECK_IS(mine, set);
	}
	ranks_end();
	unsetenv("TERN_NET");
	munmap(board, sizeof *board);
}

TEST(survivors_of_one_death_go_on)
{
	struct chance c = { check_seed() };
	steps = RANKS;
	for (int n = 0; n < ROUNDS; n++)
		lose(&c, NULL);
}

TEST(a_second_death_at_every_step_of_the_agreement_never_gives_two_teams)
{
	struct chance c = { check_seed() };
	for (steps = 0; steps < RANKS; steps++)
		for (int n = 0; n < ROUNDS / 4; n++)
			lose(&c, NULL);
}

TEST(survivors_agree_over_a_network)
{
	struct chance c = { check_seed() };
	for (steps = 0; steps <= RANKS; steps++)
		lose(&c, "udp");
}

/* Rank 0 tells a view that lacks itself, and lives: the others know better, and repeat it. */
static void view_repeated(void)
{
	enum { LEADER, OTHERS = 2 };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *left = NULL;
	REQUIRE(tern_team_all(t, &all) == 0);
	if (tern_rank(t) == LEADER) {
		const uint64_t alive = 1 << 1 | 1 << 2, words[] = { all->id, LEADER, 0, 0 };
		for (uint32_t r = 1; r <= OTHERS; r++)
			CHECK_IS(
				layer_request(t->own, r, COLL_VIEW, &alive, sizeof alive, 4, words),
				0);
		while (coll_of(t)->handled < OTHERS)
			CHECK(tern_poll(t) >= 0);
	} else {
		CHECK_IS(tern_team_survivors(all, &left), 0);
		CHECK_IS(members_of(left), 1 << 1 | 1 << 2);
		CHECK_IS(tern_team_barrier(left), 0);
		CHECK_IS(tern_team_free(left), 0);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(who_has_a_view_repeats_it_whatever_it_knows_itself)
{
	ranks_run(3, view_repeated);
}

/* By name alone, with more than VICTIM ranks, such as those of several machines. */
enum { VICTIM = 3 };

static void rounds_of(tern_team *all, uint32_t rank)
{
	uint64_t one = 1, sum;
	int rc = 0;
	for (int i = 0; !rc; i++) {
		if (rank == VICTIM && i == 30)
			raise(SIGKILL);
		rc = tern_team_allreduce(all, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM);
		CHECK(rc || sum == tern_team_size(all));
	}
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 3"));
}

TEST(the_ranks_of_a_launcher_lose_one_and_go_on)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	tern_team *all, *left;
	uint64_t one = 1, sum = 0;
	tern *t = ranks_open();
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	REQUIRE(tern_team_all(t, &all) == 0);
	rounds_of(all, tern_rank(t));
	REQUIRE(tern_team_survivors(all, &left) == 0);
	CHECK_IS(tern_team_size(left), tern_size(t) - 1);
	for (int i = 0; i < 100; i++)
		CHECK_IS(
			tern_team_allreduce(left, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
			0);
	CHECK_IS(sum, tern_size(t) - 1);
	CHECK_IS(tern_team_free(left), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}
