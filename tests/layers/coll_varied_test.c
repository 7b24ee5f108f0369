/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose lengths differ from member to member: gathering, scattering, the exchange with
 * neighbours, reductions of which each member gets a part, reductions by a function of the
 * program's; and grids. Through outboxes, by messages, and both.
 */
#include <string.h>
#include <tern/coll.h>

#include "lib/chance.h"
#include "lib/ranks.h"

enum { RANKS = 8, ROOM = 200000 };

static uint32_t me, n;
static unsigned char mine[ROOM], got[ROOM];

/* Byte i of what member `from` sends member `to`. */
static unsigned char byte_of(uint32_t from, uint32_t to, size_t i)
{
	return (unsigned char)chance_of(from * 31 + to, i);
}

/* Of nothing, a few bytes, and more than a cell has. */
static size_t length_of(uint32_t member, unsigned turn)
{
	static const size_t some[] = { 0, 13, 700, 9001, 31000 };
	return some[(member + turn) % (sizeof some / sizeof *some)];
}

static tern_part part_set(unsigned char *at, size_t len, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < len && from == me; i++)
		at[i] = byte_of(from, to, i);
	return (tern_part){ .base = len ? at : NULL, .run = len };
}

static size_t bytes_wrong(const unsigned char *at, size_t len, uint32_t from, uint32_t to)
{
	size_t wrong = 0;
	for (size_t i = 0; i < len; i++)
		wrong += at[i] != byte_of(from, to, i);
	return wrong;
}

/* Parts of all members, one behind the other, as they come; and whether they are right. */
static void parts_expect(tern_part *out, unsigned turn)
{
	size_t at = 0;
	memset(got, 0xee, sizeof got);
	for (uint32_t i = 0; i < n; at += length_of(i++, turn))
		out[i] = (tern_part){ .base = got + at, .run = length_of(i, turn) };
}

static void parts_check(uint32_t to, unsigned turn)
{
	size_t at = 0;
	for (uint32_t i = 0; i < n; at += length_of(i++, turn))
		CHECK_IS(bytes_wrong(got + at, length_of(i, turn), i, to), 0);
	CHECK_IS(got[at], 0xee); /* and nothing behind */
}

static int ended(tern *t, int rc, tern_op *op)
{
	return rc ? rc : tern_op_wait(t, op);
}

/* -- Gathering and scattering ------------------------------------------------------------------ */

static void try_gather(tern *t, tern_team *team, unsigned turn)
{
	tern_part out[RANKS], in = part_set(mine, length_of(me, turn), me, 99);
	uint32_t root = turn % n;
	tern_op op = TERN_OP;
	parts_expect(out, turn);
	CHECK_IS(tern_team_gatherv(team, root, &in, me == root ? out : NULL), 0);
	if (me == root)
		parts_check(99, turn);
	parts_expect(out, turn);
	CHECK_IS(ended(t, tern_team_gatherv_start(team, root, &in, out, &op), &op), 0);
	if (me == root)
		parts_check(99, turn);
	parts_expect(out, turn);
	CHECK_IS(tern_team_allgatherv(team, &in, out), 0);
	parts_check(99, turn);
	parts_expect(out, turn);
	CHECK_IS(ended(t, tern_team_allgatherv_start(team, &in, out, &op), &op), 0);
	parts_check(99, turn);
}

static void try_scatter(tern *t, tern_team *team, unsigned turn)
{
	tern_part in[RANKS], out = { .base = got, .run = length_of(me, turn) };
	uint32_t root = turn % n;
	tern_op op = TERN_OP;
	size_t at = 0;
	for (uint32_t i = 0; i < n; at += length_of(i++, turn))
		in[i] = part_set(mine + at, length_of(i, turn), root, i);
	memset(got, 0, sizeof got);
	CHECK_IS(tern_team_scatterv(team, root, me == root ? in : NULL, &out), 0);
	CHECK_IS(bytes_wrong(got, out.run, root, me), 0);
	memset(got, 0, sizeof got);
	CHECK_IS(ended(t, tern_team_scatterv_start(team, root, in, &out, &op), &op), 0);
	CHECK_IS(bytes_wrong(got, out.run, root, me), 0);
}

/* Both are told, the shorter length goes, and the team goes on. */
static void try_lengths_that_differ(tern_team *team)
{
	tern_part in = part_set(mine, 40, me, 99), out[RANKS];
	if (n < 2)
		return;
	memset(got, 0, sizeof got);
	for (uint32_t i = 0; i < n; i++)
		out[i] = (tern_part){ .base = got + i * 64, .run = i == n - 1 ? 30 : 40 };
	CHECK_IS(tern_team_gatherv(team, 0, &in, out), me == 0 || me == n - 1 ? -EMSGSIZE : 0);
	for (uint32_t i = 0; i < n && me == 0; i++)
		CHECK_IS(bytes_wrong(got + i * 64, out[i].run, i, 99), 0);
	in.run = me == n - 1 ? 0 : 40; /* one sends nothing where something is expected */
	for (uint32_t i = 0; i < n; i++)
		out[i].run = 40;
	CHECK_IS(tern_team_gatherv(team, 0, &in, out), me == 0 || me == n - 1 ? -EMSGSIZE : 0);
	CHECK_IS(tern_team_barrier(team), 0);
}

/* -- Neighbours -------------------------------------------------------------------------------- */

/* What a member sends in a direction has the direction in its bytes. */
static void try_ring(tern *t, tern_team *team, bool around, unsigned turn)
{
	tern_grid grid = { .dims = 1, .around = around };
	tern_neighbor list[2];
	tern_op op = TERN_OP;
	size_t half = ROOM / 2;
	REQUIRE(tern_grid_fit(&grid, n) == 0);
	for (unsigned k = 0; k < 2; k++) {
		int64_t step = k ? 1 : -1;
		uint32_t to = tern_grid_neighbor(&grid, me, 0, step);
		uint32_t from = tern_grid_neighbor(&grid, me, 0, -step);
		list[k] = (tern_neighbor){ .to = to, .from = from };
		list[k].in = part_set(mine + k * half, length_of(me, turn), me, k);
		size_t len = from == TERN_RANK_NONE ? 0 : length_of(from, turn);
		list[k].out = (tern_part){ .base = got + k * half, .run = len };
	}
	for (unsigned again = 0; again < 2; again++) {
		memset(got, 0, sizeof got);
		tern_neighbor given[2] = { list[0], list[1] };
		int rc = again ? tern_team_exchange_start(team, given, 2, &op)
			       : tern_team_exchange(team, given, 2);
		memset(given, 0xff, sizeof given); /* the list is free on return */
		CHECK_IS(ended(t, rc, &op), 0);
		for (unsigned k = 0; k < 2; k++)
			CHECK_IS(bytes_wrong(got + k * half, list[k].out.run, list[k].from, k), 0);
	}
}

/* -- Reductions -------------------------------------------------------------------------------- */

static void try_reduce_scatter(tern *t, tern_team *team, unsigned turn)
{
	static uint64_t in[ROOM / 8], out[ROOM / 8];
	size_t counts[RANKS], at = 0, before = 0, wrong = 0;
	tern_op op = TERN_OP;
	for (uint32_t i = 0; i < n; at += counts[i++]) {
		counts[i] = length_of(i, turn) / 8;
		before += i < me ? counts[i] : 0;
	}
	for (size_t i = 0; i < at; i++)
		in[i] = chance_of(me, i);
	memset(out, 0, sizeof out);
	CHECK_IS(tern_team_reduce_scatter(team, in, out, counts, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
		 0);
	CHECK_IS(ended(t,
		       tern_team_reduce_scatter_start(team, in, in + before, counts,
						      TERN_TYPE_UINT64, TERN_REDUCE_SUM, &op),
		       &op),
		 0);
	for (size_t i = 0; i < counts[me]; i++) {
		uint64_t sum = 0;
		for (uint32_t m = 0; m < n; m++)
			sum += chance_of(m, before + i);
		wrong += out[i] != sum || in[before + i] != sum;
	}
	CHECK_IS(wrong, 0);
	CHECK_IS(out[counts[me]], 0);
}

/* An element is a string of digits, in the order of the members: longer than a piece of a cell. */
static void digits_append(void *left, const void *right, size_t count, void *arg)
{
	size_t size = *(size_t *)arg;
	for (size_t i = 0; i < count; i++)
		strcat((char *)left + i * size, (const char *)right + i * size);
}

static void try_function(tern_team *team, size_t size)
{
	static char in[ROOM], out[ROOM];
	tern_reduce_op append = { digits_append, &size, size };
	size_t count = ROOM / RANKS / size, wrong = 0, counts[RANKS];
	for (size_t i = 0; i < count; i++)
		snprintf(in + i * size, size, "%u", me);
	CHECK_IS(tern_team_allreduce(team, in, out, count, TERN_TYPE_USER, TERN_REDUCE_BY(&append)),
		 0);
	for (size_t i = 0; i < count; i++)
		wrong += strncmp(out + i * size, "01234567", n) || strlen(out + i * size) != n;
	CHECK_IS(tern_team_scan(team, in, out, count, TERN_TYPE_USER, TERN_REDUCE_BY(&append)), 0);
	for (size_t i = 0; i < count; i++)
		wrong += strncmp(out + i * size, "01234567", me + 1) ||
			 strlen(out + i * size) != me + 1;
	for (uint32_t i = 0; i < n; i++)
		counts[i] = i == n - 1 ? count : 0;
	CHECK_IS(tern_team_reduce_scatter(team, in, out, counts, TERN_TYPE_USER,
					  TERN_REDUCE_BY(&append)),
		 0);
	for (size_t i = 0; i < counts[me]; i++)
		wrong += strncmp(out + i * size, "01234567", n) || strlen(out + i * size) != n;
	CHECK_IS(wrong, 0);
}

static void numbers_add(void *left, const void *right, size_t count, void *combined)
{
	uint32_t *a = left;
	const uint32_t *b = right;
	for (size_t i = 0; i < count; i++)
		a[i] += b[i];
	*(size_t *)combined += count;
}

static void try_own_part(tern_team *team)
{
	static uint32_t in[ROOM / 4], out[ROOM / 4];
	size_t counts[RANKS], combined = 0;
	tern_reduce_op add = { numbers_add, &combined, sizeof *in };
	for (uint32_t i = 0; i < n; i++)
		counts[i] = length_of(i, 0) / sizeof *in;
	CHECK_IS(tern_team_reduce_scatter(team, in, out, counts, TERN_TYPE_USER,
					  TERN_REDUCE_BY(&add)),
		 0);
	CHECK_IS(combined, (n - 1) * counts[me]); /* and nothing of another's */
}

/* -- Teams from lists -------------------------------------------------------------------------- */

/* The first half backwards, the rest but for the last one; and the last one alone is in none. */
static void try_lists(tern_team *team)
{
	uint32_t low[RANKS], high[RANKS], lows = n / 2, highs = 0;
	tern_team *part = team;
	for (uint32_t i = 0; i < lows; i++)
		low[i] = lows - 1 - i;
	for (uint32_t i = lows; i + 1 < n; i++)
		high[highs++] = i;
	bool none = me == n - 1;
	CHECK_IS(tern_team_list(team, me < lows ? low : high,
				me < lows ? lows
				: none    ? 0
					  : highs,
				&part),
		 0);
	CHECK(none == !part);
	CHECK_IS(tern_team_size(part), none ? 0 : me < lows ? lows : highs);
	CHECK(none || tern_team_member(part, tern_team_rank(part)) == me);
	CHECK(none || me >= lows || tern_team_rank(part) == lows - 1 - me);
	CHECK_IS(tern_team_member(team, n), TERN_RANK_NONE);
	if (part)
		CHECK_IS(tern_team_barrier(part), 0);
	CHECK_IS(tern_team_free(part), 0);
	/* Lists that are not the same are refused at all members, and the team goes on. */
	tern_team *bad = NULL;
	uint32_t all[RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	if (n > 1)
		CHECK_IS(tern_team_list(team, all, me ? n : n - 1, &bad), -EINVAL);
	CHECK(!bad);
	CHECK_IS(tern_team_split(team, 0, 0, &bad), 0); /* the same members, in their order */
	CHECK_IS(tern_team_rank(bad), me);
	CHECK_IS(tern_team_free(bad), 0);
}

static void rank_main(void)
{
	setenv("TERN_CHECK", "0",
	       1); /* which fails calls with lengths that differ at all members */
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	me = tern_rank(t);
	n = tern_size(t);
	for (unsigned turn = 0; turn < 5; turn++) {
		try_gather(t, all, turn);
		try_scatter(t, all, turn);
		try_ring(t, all, true, turn);
		try_ring(t, all, false, turn);
		try_reduce_scatter(t, all, turn);
	}
	try_lengths_that_differ(all);
	try_function(all, 8);
	try_function(all, 27);
	try_function(all, 8190);
	try_function(all, 16000);
	try_own_part(all);
	try_lists(all);
	CHECK_IS(tern_team_exchange(all, NULL, 0), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_sizes(void)
{
	for (uint32_t size = 1; size <= RANKS; size += size < 3 ? 1 : 3)
		ranks_run(size, rank_main);
}

TEST(lengths_of_each_member_through_outboxes)
{
	try_sizes();
}

TEST(lengths_of_each_member_by_messages)
{
	setenv("TERN_NET", "udp", 1);
	try_sizes();
	unsetenv("TERN_NET");
}

/* -- Lengths that differ -------------------------------------------------------------------------
 */

/*
 * The root and the last member are told which lengths, though blocks for the data run out behind
 * that, and the call is tried again.
 */
static void rank_unlike(void)
{
	setenv("TERN_CHECK", "0", 1);
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	tern_part in[RANKS], out = { .base = got, .run = 100000 };
	REQUIRE(tern_team_all(t, &all) == 0);
	me = tern_rank(t);
	n = tern_size(t);
	for (uint32_t i = 0; i < n; i++)
		in[i] = (tern_part){ .base = mine, .run = i == n - 1 ? 90000 : 100000 };
	for (int again = 0; again < 20; again++) {
		int rc = tern_team_scatterv(all, 0, in, &out);
		CHECK_IS(rc, me == 0 || me == n - 1 ? -EMSGSIZE : 0);
		CHECK(!rc || strstr(tern_strerror(rc), "tern_team_scatterv(): rank "));
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(the_sentence_about_lengths_that_differ_is_kept)
{
	ranks_run(4, rank_unlike);
	setenv("TERN_GRANT", "1", 1); /* by messages, and with few blocks */
	ranks_run(4, rank_unlike);
	unsetenv("TERN_GRANT");
}

/* -- Grids ------------------------------------------------------------------------------------- */

static void fit_is(uint32_t members, unsigned dims, uint32_t a, uint32_t b, uint32_t c)
{
	tern_grid g = { .dims = dims };
	CHECK_IS(tern_grid_fit(&g, members), 0);
	CHECK(g.size[0] == a && g.size[1] == b && g.size[2] == c);
}

TEST(members_are_divided_evenly_among_the_dimensions)
{
	fit_is(12, 2, 4, 3, 0);
	fit_is(7, 2, 7, 1, 0);
	fit_is(64, 3, 4, 4, 4);
	fit_is(24, 3, 4, 3, 2);
	fit_is(1, 1, 1, 0, 0);
	tern_grid given = { .dims = 3, .size = { 0, 3, 0 } };
	CHECK_IS(tern_grid_fit(&given, 12), 0);
	CHECK(given.size[0] == 2 && given.size[1] == 3 && given.size[2] == 2);
	tern_grid odd = { .dims = 2, .size = { 5 } }, full = { .dims = 1, .size = { 3 } },
		  none = { 0 };
	CHECK_IS(tern_grid_fit(&odd, 12), -EINVAL);
	CHECK_IS(tern_grid_fit(&full, 12), -EINVAL);
	CHECK_IS(tern_grid_fit(&none, 12), -EINVAL);
	CHECK_IS(tern_grid_fit(NULL, 12), -EINVAL);
	CHECK_IS(tern_grid_fit(&(tern_grid){ .dims = 2 }, 0), -EINVAL);
}

TEST(a_member_is_where_its_coordinates_are)
{
	tern_grid g = { .dims = 3, .size = { 2, 3, 4 }, .around = 1 << 1 };
	for (uint32_t i = 0; i < 24; i++) {
		int64_t at[3];
		tern_grid_coords(&g, i, at);
		CHECK(at[0] == i / 12 && at[1] == i / 4 % 3 && at[2] == i % 4);
		CHECK_IS(tern_grid_member(&g, at), i);
	}
	CHECK_IS(tern_grid_neighbor(&g, 0, 2, 1), 1);
	CHECK_IS(tern_grid_neighbor(&g, 0, 2, -1), TERN_RANK_NONE);
	CHECK_IS(tern_grid_neighbor(&g, 3, 2, 1), TERN_RANK_NONE);
	CHECK_IS(tern_grid_neighbor(&g, 0, 1, -1), 8); /* around */
	CHECK_IS(tern_grid_neighbor(&g, 0, 1, -7), 8);
	CHECK_IS(tern_grid_neighbor(&g, 0, 0, 1), 12);
	CHECK_IS(tern_grid_neighbor(&g, 0, 3, 1), TERN_RANK_NONE);
	CHECK_IS(tern_grid_neighbor(&g, TERN_RANK_NONE, 1, 1), TERN_RANK_NONE);
}

/* By name alone: ranks of several machines, of which some share memory. */
TEST(lengths_of_each_member_at_the_ranks_of_a_launcher)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	rank_main();
}
