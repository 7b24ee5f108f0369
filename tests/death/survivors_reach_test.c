/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * Survivors of a death, one of whom gives up another one that lives, before the agreement or at any
 * look in it. Who has given up gets no team, and its error names the other one; whoever gets a team
 * gets the same. When it has ended, the others go on.
 */
#include <string.h>
#include <tern/coll.h>

#include "coll/run.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { RANKS = 5, ROUNDS = 20, LOOKS = 60 };

struct board {
	_Atomic uint64_t ready, members[RANKS];
};

static struct board *board;
static uint32_t victim, doubter, doubted;
static _Atomic int looks; /* at the doubted one, until it is given up */
static struct net_ops doubting;
static int (*check_really)(struct net *net, uint32_t rank);

static int check_doubting(struct net *net, uint32_t rank)
{
	int rc = check_really(net, rank);
	if (rank == NET_ALL)
		return rc + (atomic_load(&looks) <= 0);
	if (rc || rank != doubted || atomic_fetch_sub(&looks, 1) > 0)
		return rc;
	return error_set(-EHOSTUNREACH, "rank %u cannot reach rank %u", doubter, doubted);
}

/* From now on the network tells of the doubted rank, after some looks, that it does not answer. */
static void doubt(tern *t)
{
	struct net *net = t->own->site.peer[doubted].net;
	check_really = net->ops->check;
	doubting = *net->ops;
	doubting.check = check_doubting;
	net->ops = &doubting;
}

static uint64_t members_of(const tern_team *team)
{
	uint64_t set = 0;
	for (uint32_t i = 0; i < tern_team_size(team); i++)
		set |= UINT64_C(1) << tern_team_member(team, i);
	return set;
}

static bool lost_code(int rc)
{
	return rc == -EOWNERDEAD || rc == -ESHUTDOWN;
}

static void go_on(tern *t, tern_team *left)
{
	uint64_t one = 1, sum = 0;
	int rc;
	atomic_store(&board->members[tern_rank(t)], members_of(left));
	while ((rc = tern_team_allreduce(left, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM))) {
		tern_team *next;
		CHECK(lost_code(rc));
		REQUIRE(tern_team_survivors(left, &next) == 0);
		CHECK_IS(tern_team_free(left), 0);
		left = next;
	}
	CHECK_IS(sum, RANKS - 2);
	CHECK(!(members_of(left) >> victim & 1) && !(members_of(left) >> doubter & 1));
	CHECK_IS(tern_team_free(left), 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *left = NULL;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	CHECK_IS(tern_team_barrier(all), 0);
	atomic_fetch_add(&board->ready, 1);
	while (!tern_team_barrier(all))
		;
	if (tern_rank(t) == doubter)
		doubt(t);
	int rc = tern_team_survivors(all, &left);
	if (rc) {
		char name[32];
		snprintf(name, sizeof name, "reach rank %u", doubted);
		CHECK_IS(tern_rank(t), doubter);
		CHECK_IS(rc, -EHOSTUNREACH);
		CHECK(strstr(tern_strerror(rc), name));
	} else if (tern_rank(t) != doubter) {
		go_on(t, left);
	} else { /* it was given up too late to matter */
		atomic_store(&board->members[doubter], members_of(left));
	}
	fflush(NULL);
	_exit(atomic_load(&check_failures) ? 1 : 0);
}

static void try_one(struct chance *c, const char *net, int after)
{
	board = ranks_shared(sizeof *board);
	victim = (uint32_t)chance_below(c, RANKS);
	doubter = (victim + 1 + (uint32_t)chance_below(c, RANKS - 1)) % RANKS;
	do
		doubted = (uint32_t)chance_below(c, RANKS);
	while (doubted == victim || doubted == doubter);
	atomic_store(&looks, after);
	if (net)
		setenv("TERN_NET", net, 1);
	ranks_start(RANKS, 0, rank_main);
	while (atomic_load(&board->ready) < RANKS)
		ranks_nap(100000);
	kill(ranks_pid[victim], SIGKILL);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	uint64_t set = 0;
	for (uint32_t r = 0; r < RANKS; r++) {
		uint64_t mine = atomic_load(&board->members[r]);
		CHECK(!mine || !set || mine == set);
		set = mine ? mine : set;
	}
	ranks_end();
	unsetenv("TERN_NET");
	munmap(board, sizeof *board);
}

TEST(who_has_given_up_a_member_before_gets_no_team)
{
	struct chance c = { check_seed() };
	for (int n = 0; n < ROUNDS; n++)
		try_one(&c, n % 4 ? NULL : "udp", 0);
}

TEST(who_gives_up_a_member_in_the_agreement_never_gets_another_team)
{
	struct chance c = { check_seed() };
	for (int n = 0; n < ROUNDS; n++)
		try_one(&c, n % 4 ? NULL : "udp", (int)chance_below(&c, LOOKS));
}
