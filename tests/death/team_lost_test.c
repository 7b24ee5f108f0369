/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * A rank dies while a team is being made, and another member comes late: the call may succeed there
 * and fail elsewhere. Whatever each member calls next, on the team that it got or on the first one,
 * returns, and the survivors of the first one have a team that works.
 */
#include <string.h>
#include <tern/coll.h>

#include "lib/chance.h"
#include "lib/net_traffic.h"

enum { RANKS = 5, SIZE = 256 };
enum next { BARRIER, FREE, QUIET, AGAIN, SURVIVORS, NEXTS };

static const char *const next_name[NEXTS] = { "barrier", "free", "quiet", "split", "survivors" };

static struct board {
	_Atomic uint32_t ready;
	_Atomic int split[RANKS], next[RANKS];
} * board;

static uint32_t victim, late, parts;
static uint64_t dies_after; /* ns */
static enum next next;

static int call_next(tern_team **made)
{
	tern_team *other;
	switch (next) {
	case BARRIER:
		return tern_team_barrier(*made);
	case FREE:
		return tern_team_free(*made);
	case QUIET:
		return tern_team_quiet(*made);
	case AGAIN:
		return tern_team_split(*made, 0, 0, &other);
	default:
		return tern_team_survivors(*made, &other);
	}
}

static void *die_soon(void *arg)
{
	ranks_nap(*(const uint64_t *)arg);
	raise(SIGKILL);
	return NULL;
}

static void lose_one(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *made = NULL, *left;
	uint32_t me = tern_rank(t);
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_forgive(t, victim), 0);
	CHECK_IS(tern_team_barrier(all), 0);
	atomic_fetch_add(&board->ready, 1);
	while (atomic_load(&board->ready) < RANKS)
		ranks_nap(100000);
	pthread_t killer;
	if (me == victim)
		REQUIRE(pthread_create(&killer, NULL, die_soon, &dies_after) == 0);
	if (me == late)
		ranks_nap(40000000); /* the death comes before that, or about when it comes */
	int rc = tern_team_split(all, (int)(me % parts), 0, &made);
	if (me == victim)
		raise(SIGKILL);
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	atomic_store(&board->split[me], rc);
	if (!rc) {
		rc = call_next(&made);
		CHECK(rc == 0 || rc == -EOWNERDEAD);
	}
	atomic_store(&board->next[me], rc);
	REQUIRE(tern_team_survivors(all, &left) == 0);
	while (tern_team_size(left) == RANKS) { /* whose death was not known to all */
		tern_team *again;
		CHECK_IS(tern_team_barrier(left), -EOWNERDEAD);
		REQUIRE(tern_team_survivors(left, &again) == 0);
		CHECK_IS(tern_team_free(left), 0);
		left = again;
	}
	CHECK_IS(tern_team_barrier(left), 0);
	CHECK_IS(tern_team_quiet(left), 0);
	CHECK_IS(tern_team_free(left), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_one(struct chance *c)
{
	victim = (uint32_t)chance_below(c, RANKS);
	late = (victim + 1 + (uint32_t)chance_below(c, RANKS - 1)) % RANKS;
	parts = 1 + (uint32_t)chance_below(c, 3);
	dies_after = chance_below(c, 60000000);
	memset(board, 0, sizeof *board);
	ranks_start(RANKS, 0, lose_one);
	if (!CHECK_IS(ranks_reap(RANKS, 0), 1)) {
		printf("    %s on %u parts; rank %u died, rank %u was late; split and next:",
		       next_name[next], parts, victim, late);
		for (uint32_t r = 0; r < RANKS; r++)
			printf(" %d %d", atomic_load(&board->split[r]),
			       atomic_load(&board->next[r]));
		printf("\n");
	}
	ranks_end();
}

static void try_all(const char *net)
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	struct chance c = { check_seed() };
	setenv("TERN_NET", net, 1);
	setenv("TERN_GRACE", "1000", 1);
	board = ranks_shared(sizeof *board);
	for (unsigned i = check_scaled(50); i; i--)
		for (int n = 0; n < NEXTS; n++) {
			next = (enum next)n;
			try_one(&c);
		}
}

TEST(no_call_hangs_after_a_death_in_a_split_over_shared_memory)
{
	try_all("shm");
}

TEST(no_call_hangs_after_a_death_in_a_split_over_udp)
{
	try_all("udp");
}

/* -- What a stuck call is called -------------------------------------------------------------- */

static FILE *said;

static void wait_long(void)
{
	atomic_store(&check_failures, 0);
	tern_team *all;
	tern *t = ranks_open();
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_team_barrier(all), 0);
	if (tern_rank(t) == 1)
		ranks_nap(1500000000);
	else
		dup2(fileno(said), 2);
	CHECK_IS(next == FREE ? tern_team_free(all) : tern_team_quiet(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void check_said(enum next call, const char *name)
{
	char line[SIZE] = "";
	said = tmpfile();
	REQUIRE(said != NULL);
	next = call;
	ranks_run(2, wait_long);
	rewind(said);
	REQUIRE(fgets(line, sizeof line, said) != NULL);
	if (!CHECK(strstr(line, name)))
		printf("    %s", line);
	fclose(said);
}

TEST(a_stuck_call_has_the_name_of_the_call_that_was_made)
{
	setenv("TERN_STUCK", "1", 1);
	check_said(FREE, " in tern_team_free()");
	check_said(QUIET, " in tern_team_quiet()");
	unsetenv("TERN_STUCK");
}
