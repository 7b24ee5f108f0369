/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions whose order matters: an operation of the program that does not commute, and sums that
 * round, with TERN_REDUCE_EXACT. Both combine the members from the first one on, at every root, in
 * place and not, through outboxes and by messages.
 */
#include <string.h>
#include <tern/coll.h>

#include "lib/chance.h"
#include "lib/ranks.h"

enum { MOST = 9001 };

/* 24 bytes, which divide neither a cell nor a line. */
struct map {
	uint64_t value, at, count;
};

static struct map maps[MOST], map_out[MOST];
static double reals[MOST], real_out[MOST];

/* A map is x -> value * x + at; the right one comes after the left one. */
static struct map after(struct map l, struct map r)
{
	return (struct map){ l.value * r.value, l.at * r.value + r.at, l.count + r.count };
}

static void map_after(void *left, const void *right, size_t n, void *arg)
{
	struct map *l = left;
	const struct map *r = right;
	CHECK(arg == maps);
	for (size_t i = 0; i < n; i++)
		l[i] = after(l[i], r[i]);
}

static const tern_reduce_op after_op = { map_after, maps, sizeof(struct map) };
#define AFTER TERN_TYPE_USER, TERN_REDUCE_BY(&after_op)

static struct map map_of(uint32_t member, size_t i)
{
	return (struct map){ chance_of(member, i) | 1, chance_of(member + 99, i), 1 };
}

/* So far apart that every order of adding them rounds in another way. */
static double real_of(uint32_t member, size_t i)
{
	double x = (double)(chance_of(member, i) % 1000003) / 7;
	return member % 3 == 0 ? x * 1e17 : member % 3 == 1 ? x : -x * 1e16;
}

static uint64_t maps_wrong(const struct map *at, size_t n, uint32_t last)
{
	uint64_t wrong = 0;
	for (size_t i = 0; i < n; i++) {
		struct map x = map_of(0, i);
		for (uint32_t m = 1; m <= last; m++)
			x = after(x, map_of(m, i));
		wrong += at[i].value != x.value || at[i].at != x.at || at[i].count != x.count;
	}
	return wrong;
}

static uint64_t reals_wrong(const double *at, size_t n, uint32_t last)
{
	uint64_t wrong = 0;
	for (size_t i = 0; i < n; i++) {
		double x = real_of(0, i);
		for (uint32_t m = 1; m <= last; m++)
			x += real_of(m, i);
		wrong += memcmp(&x, &at[i], sizeof x) != 0;
	}
	return wrong;
}

static void set(uint32_t me, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		maps[i] = map_of(me, i);
		reals[i] = real_of(me, i);
	}
}

static void try_reduce(tern_team *team, uint32_t root, size_t n, bool in_place)
{
	uint32_t me = tern_team_rank(team), last = tern_team_size(team) - 1;
	struct map *m = in_place ? maps : map_out;
	double *d = in_place ? reals : real_out;
	unsigned sum = TERN_REDUCE_SUM | TERN_REDUCE_EXACT;
	set(me, n);
	CHECK_IS(tern_team_reduce(team, root, maps, m, n, AFTER), 0);
	CHECK_IS(tern_team_reduce(team, root, reals, d, n, TERN_TYPE_DOUBLE, sum), 0);
	CHECK(me != root || maps_wrong(m, n, last) == 0);
	CHECK(me != root || reals_wrong(d, n, last) == 0);
	set(me, n);
	CHECK_IS(tern_team_allreduce(team, maps, m, n, AFTER), 0);
	CHECK_IS(tern_team_allreduce(team, reals, d, n, TERN_TYPE_DOUBLE, sum), 0);
	CHECK_IS(maps_wrong(m, n, last), 0);
	CHECK_IS(reals_wrong(d, n, last), 0);
}

static void try_scan(tern_team *team, size_t n)
{
	uint32_t me = tern_team_rank(team);
	set(me, n);
	CHECK_IS(tern_team_scan(team, maps, map_out, n, AFTER), 0);
	CHECK_IS(maps_wrong(map_out, n, me), 0);
	CHECK_IS(tern_team_exscan(team, maps, map_out, n, AFTER), 0);
	CHECK(!me || maps_wrong(map_out, n, me - 1) == 0);
}

static void rank_main(void)
{
	static const size_t counts[] = { 1, 3, 40, 700, MOST };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
		for (uint32_t root = 0; root < tern_size(t); root++) {
			try_reduce(all, root, counts[c], false);
			try_reduce(all, root, counts[c], true);
		}
		try_scan(all, counts[c]);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_sizes(const char *net)
{
	static const uint32_t sizes[] = { 2, 3, 6 }; /* the last combines slices, if it is long */
	if (net)
		setenv("TERN_NET", net, 1);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		ranks_run(sizes[i], rank_main);
	unsetenv("TERN_NET");
}

TEST(members_are_combined_in_their_order_through_outboxes)
{
	try_sizes(NULL);
}

TEST(members_are_combined_in_their_order_by_messages)
{
	try_sizes("udp");
}

/*
 * The others wait in the long call while a poll ends the short one, whose handle they have: what
 * they wait for is of another kind then.
 */
static void rank_behind(void)
{
	enum { LONG = 32768, SHORT = 500, OFTEN = 10 };
	tern *t = ranks_open();
	tern_team *all;
	static struct map in[LONG], out[LONG];
	uint64_t few[SHORT] = { 0 }, sums[SHORT];
	REQUIRE(tern_team_all(t, &all) == 0);
	for (size_t i = 0; i < LONG; i++)
		in[i] = map_of(tern_rank(t), i);
	for (unsigned k = 0; k < OFTEN; k++) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_team_scan_start(all, few, sums, SHORT, TERN_TYPE_UINT64,
					      TERN_REDUCE_SUM, tern_rank(t) ? &op : NULL),
			 0);
		CHECK_IS(tern_team_allreduce(all, in, out, LONG, AFTER), 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
	}
	CHECK_IS(maps_wrong(out, LONG, tern_size(t) - 1), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_long_call_goes_on_behind_one_that_a_poll_ends)
{
	setenv("TERN_NET", "udp", 1);
	ranks_run(4, rank_behind);
	unsetenv("TERN_NET");
}
