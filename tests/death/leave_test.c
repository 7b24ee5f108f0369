/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 400 */
/*
 * What a member that has left or died means to the others, for each call: the table of
 * tern_coll(7). The leaver makes the call, or not, and closes its endpoint or kills itself;
 * another member comes late, when the leaver has gone if that can be.
 */
#include "lib/chance.h"
#include "lib/coll_calls.h"
#include "lib/net_traffic.h"

enum { RANKS = 4, LATE = 2 };
/* Calls that coll_calls.h does not have. */
enum { QUIET = CALLS, SPLIT, LIST, MACHINE, FREE, SURVIVORS, ALL_CALLS };

static const char *const more_name[] = { "quiet", "split", "list", "machine", "free", "survivors" };

/* Whose part a member needs for its own. */
enum needs { NEEDS_ALL, NEEDS_ROOT, ROOT_NEEDS, BOTH_NEED, NEEDS_FORMER, NEEDS_NEXT, NEEDS_NONE };

static enum needs needs_of(unsigned call)
{
	switch (call) {
	case CALL_BROADCAST:
	case CALL_SCATTER:
		return NEEDS_ROOT;
	case CALL_REDUCE:
	case CALL_GATHER:
		return ROOT_NEEDS;
	case CALL_GATHERV:
	case CALL_SCATTERV:
		return BOTH_NEED;
	case CALL_EXCHANGE:
		return NEEDS_NEXT;
	case CALL_SCAN:
	case CALL_EXSCAN:
		return NEEDS_FORMER;
	case FREE:
	case SURVIVORS:
		return NEEDS_NONE;
	default:
		return NEEDS_ALL;
	}
}

enum end { LEFT, DIED };

static struct board {
	_Atomic uint32_t ready, gone;
	_Atomic int rc[RANKS];
} * board;

static unsigned which;
static uint32_t root, leaver;
static size_t bytes;
static bool with_handle;
static enum end end;
static bool first;   /* the leaver makes the call before it goes */
static bool at_once; /* and has gone when others may still make the team */

static bool needs(uint32_t member, uint32_t other)
{
	switch (needs_of(which)) {
	case NEEDS_ALL:
		return true;
	case NEEDS_ROOT:
		return other == root;
	case ROOT_NEEDS:
		return member == root;
	case BOTH_NEED:
		return member == root || other == root;
	case NEEDS_NEXT:
		return (member + 1) % RANKS == other || (other + 1) % RANKS == member;
	case NEEDS_FORMER:
		return other < member;
	default:
		return false;
	}
}

/* -- The ranks --------------------------------------------------------------------------------- */

static int call_more(tern_team *team)
{
	uint32_t ranks[CALL_MEMBERS], n = tern_team_size(team);
	tern_team *made;
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = i;
	switch (which) {
	case QUIET:
		return tern_team_quiet(team);
	case SPLIT:
		return tern_team_split(team, (int)tern_team_rank(team) % 2, 0, &made);
	case LIST:
		return tern_team_list(team, ranks, n, &made);
	case MACHINE:
		return tern_team_machine(team, &made);
	case FREE:
		return tern_team_free(team);
	default:
		return tern_team_survivors(team, &made);
	}
}

/* Words that tell whether what came is what was sent. */
static void words_fill(uint32_t me)
{
	uint64_t *in = (uint64_t *)(void *)call_in;
	for (size_t i = 0; i < sizeof call_in / sizeof *in; i++)
		in[i] = which == CALL_BROADCAST ? root + 1 : me + 1;
	memset(call_out, 0, sizeof call_out);
}

static void words_check(uint32_t me, uint32_t ranks)
{
	const uint64_t *out = (const uint64_t *)(const void *)call_out;
	size_t each = bytes / sizeof *out;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < ranks; i++) {
		if (which == CALL_ALLGATHER || which == CALL_ALLTOALL || which == CALL_ALLTOALLV ||
		    which == CALL_ALLGATHERV ||
		    ((which == CALL_GATHER || which == CALL_GATHERV) && me == root))
			CHECK_IS(out[i * each + each - 1], i + 1);
		sum += (which != CALL_SCAN || i <= me) && (which != CALL_EXSCAN || i < me) ? i + 1
											   : 0;
	}
	if (which == CALL_ALLREDUCE || which == CALL_REDUCE_SCATTER || which == CALL_SCAN ||
	    (which == CALL_EXSCAN && me) || (which == CALL_REDUCE && me == root))
		CHECK_IS(out[each - 1], sum);
	if (which == CALL_EXCHANGE)
		CHECK_IS(out[each - 1], (me + ranks - 1) % ranks + 1);
	if (which == CALL_SCATTER || which == CALL_SCATTERV)
		CHECK_IS(out[each - 1], root + 1);
	if (which == CALL_BROADCAST)
		CHECK_IS(((const uint64_t *)(const void *)call_in)[each - 1], root + 1);
}

static void leaver_goes(tern *t)
{
	if (end == DIED) {
		atomic_store(&board->gone, 1);
		raise(SIGKILL);
	}
	CHECK_IS(tern_close(t), 0);
	atomic_store(&board->gone, 1);
}

static void member_main(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	uint32_t me = tern_rank(t);
	bool leaves = me == leaver;
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_forgive(t, leaver), 0);
	if (!at_once)
		CHECK_IS(tern_team_barrier(all), 0);
	words_fill(me);
	atomic_fetch_add(&board->ready, 1);
	while (leaves && !at_once && atomic_load(&board->ready) < RANKS)
		ranks_nap(100000);
	/* A leaver that needs the late one cannot go before it has come. */
	for (int i = 0; me == LATE && !atomic_load(&board->gone) && i < 20; i++)
		ranks_nap(1000000);
	if (me == LATE && end == DIED)
		ranks_nap(20000000); /* in which its death is told */
	if (leaves && !first) {
		leaver_goes(t);
		return;
	}
	int rc = which < CALLS ? call_whole(t, all, (enum coll_call)which, root, bytes, with_handle)
			       : call_more(all);
	atomic_store(&board->rc[me], rc);
	if (leaves) {
		CHECK_IS(rc, 0);
		leaver_goes(t);
		return;
	}
	if (!rc)
		words_check(me, RANKS);
	CHECK_IS(tern_close(t), 0);
}

/* -- The cells --------------------------------------------------------------------------------- */

static bool cell_holds(uint32_t member, int rc)
{
	int code = end == LEFT ? -ESHUTDOWN : -EOWNERDEAD;
	if (needs_of(which) == NEEDS_NONE || (end == LEFT && first))
		return rc == 0;
	if (!first && needs(member, leaver))
		return rc == code;
	return rc == 0 || rc == code;
}

static void try_cell(void)
{
	memset(board, 0, sizeof *board);
	ranks_start(RANKS, 0, member_main);
	bool failed = ranks_reap(RANKS, 0) != (end == DIED);
	ranks_end();
	for (uint32_t r = 0; r < RANKS; r++)
		failed |= r != leaver && !cell_holds(r, atomic_load(&board->rc[r]));
	if (CHECK(!failed))
		return;
	printf("    %s%s of %zu bytes, root %u; rank %u %s %s it: %d %d %d %d\n",
	       which < CALLS ? call_name[which] : more_name[which - CALLS],
	       with_handle ? "_start" : "", bytes, root, leaver, end == LEFT ? "left" : "died",
	       first ? "after" : "before", atomic_load(&board->rc[0]), atomic_load(&board->rc[1]),
	       atomic_load(&board->rc[2]), atomic_load(&board->rc[3]));
}

static void try_call(struct chance *c)
{
	static const size_t sizes[] = { 8, 4096, CALL_BYTES };
	for (int cell = 0; cell < 4; cell++) {
		end = cell & 1 ? DIED : LEFT;
		first = cell & 2;
		at_once = first && end == LEFT && chance_below(c, 2);
		leaver = (uint32_t)chance_below(c, 2);
		bytes = sizes[chance_below(c, 3)];
		with_handle = which < CALLS && chance_below(c, 2);
		root = (uint32_t)chance_below(c, RANKS);
		if (first && which == SURVIVORS)
			continue; /* it would be in the new team */
		try_cell();
	}
}

static void try_all(const char *net, const char *delivery, unsigned times)
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	struct chance c = { check_seed() };
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_NET", net, 1);
	setenv("TERN_GRACE", "1000", 1);
	board = ranks_shared(sizeof *board);
	for (unsigned i = check_scaled(times); i; i--)
		for (which = 0; which < ALL_CALLS; which++)
			try_call(&c);
}

/* By name alone: up to 16 ranks, of several machines. Each comes late in some sessions. */
TEST(the_ranks_of_a_launcher_leave_when_their_part_is_done)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	struct chance c = { 17 }; /* the same at all ranks */
	for (which = 0; which < SURVIVORS; which++) {
		tern_team *all;
		tern *t = ranks_open();
		uint32_t n = tern_size(t), me = tern_rank(t), late = (uint32_t)chance_below(&c, n);
		root = (uint32_t)chance_below(&c, n);
		bytes = chance_below(&c, 2) ? 8 : 20000;
		REQUIRE(tern_team_all(t, &all) == 0);
		words_fill(me);
		if (me == late)
			ranks_nap(100000000);
		CHECK_IS(which < CALLS ? call_make(all, (enum coll_call)which, root, bytes, NULL)
				       : call_more(all),
			 0);
		words_check(me, n);
		CHECK_IS(tern_close(t), 0);
	}
}

/* Calls in a row, each at its own time; then everybody leaves, and nobody has failed. */
static void series_main(void)
{
	enum { SERIES = 12 };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	uint32_t me = tern_rank(t);
	struct chance own = { me + 1 }, same = { which };
	REQUIRE(tern_team_all(t, &all) == 0);
	for (int i = 0; i < SERIES; i++) {
		which = (unsigned)chance_below(&same, CALLS);
		root = (uint32_t)chance_below(&same, RANKS);
		words_fill(me);
		if (chance_below(&own, 2))
			ranks_nap(chance_below(&own, 2000000));
		CHECK_IS(call_make(all, (enum coll_call)which, root, bytes, NULL), 0);
		words_check(me, RANKS);
	}
	CHECK_IS(tern_close(t), 0);
}

static void try_series(const char *net)
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_DELIVERY", "poll", 1);
	setenv("TERN_NET", net, 1);
	for (which = 0; which < 10; which++) {
		bytes = which % 2 ? 8 : 4096;
		ranks_run(RANKS, series_main);
	}
}

TEST(all_leave_after_their_last_call_and_nobody_fails_over_shared_memory)
{
	try_series("shm");
}

TEST(all_leave_after_their_last_call_and_nobody_fails_over_udp)
{
	try_series("udp");
}

TEST(each_call_without_a_member_over_shared_memory)
{
	try_all("shm", "poll", 2);
}

TEST(each_call_without_a_member_over_shared_memory_by_thread)
{
	try_all("shm", "thread", 1);
}

TEST(each_call_without_a_member_whose_memory_is_not_granted)
{
	setenv("TERN_GRANT", "1", 1);
	try_all("shm", "poll", 1);
	unsetenv("TERN_GRANT");
}

TEST(each_call_without_a_member_over_udp)
{
	try_all("udp", "poll", 1);
}

TEST(each_call_without_a_member_over_udp_by_thread)
{
	try_all("udp", "thread", 1);
}

TEST(each_call_without_a_member_over_libfabric)
{
	try_all("ofi/tcp", "poll", 1);
}
