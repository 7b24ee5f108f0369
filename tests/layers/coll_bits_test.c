/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of reals, bit by bit: NaNs of every kind, infinities and zeros of both signs. All
 * members get the same bits. MIN and MAX, and with TERN_REDUCE_EXACT also sums, products and scans,
 * give what a plain loop over the members gives, through outboxes, by messages, without the right
 * to each other's memory, and on several machines.
 */
#include <math.h>
#include <string.h>
#include <tern/coll.h>

#include "lib/chance.h"
#include "lib/ranks.h"
#include "lib/type_size.h"

enum { MOST = 3001 };

/* -- The reference ----------------------------------------------------------------------------- */

/* Of float: rounded to one after each operation. Of located values, the second is the location. */
struct value {
	double re, im;
};

static double real_of(uint32_t member, size_t i)
{
	static const uint64_t odd[] = { 0x7ff8000000000000, 0xfff8000000000000, 0x7ffc000020000000,
					0xfff9000040000000, 0x7ff0000000000000, 0xfff0000000000000,
					0x0000000000000000, 0x8000000000000000 };
	uint64_t x = chance_of(member, i);
	double real = ldexp((double)(x >> 40), (int)(x % 40) - 40) * (x >> 20 & 1 ? 1 : -1);
	uint32_t all_odd = i % 5 == 1, zeros = i % 5 == 2;
	if (zeros || (all_odd && x % 3 == 0))
		memcpy(&real, &odd[zeros ? 6 + x % 2 : x / 3 % 8], sizeof real);
	return real;
}

static double rounded(double x, enum tern_type type)
{
	volatile double wide = x; /* an operation is not joined with the next one */
	volatile float narrow = (float)x;
	return type == TERN_TYPE_FLOAT || type == TERN_TYPE_COMPLEX_FLOAT ? narrow : wide;
}

static struct value value_of(uint32_t member, size_t i, enum tern_type type)
{
	struct value v = { rounded(real_of(member, i), type), 0 };
	if (type == TERN_TYPE_COMPLEX_FLOAT || type == TERN_TYPE_COMPLEX_DOUBLE)
		v.im = rounded(real_of(member + 50, i), type);
	else if (type == TERN_TYPE_DOUBLE_AT)
		v.im = member;
	return v;
}

/* Less in a MIN, or more in a MAX; a NaN is before all others. */
static bool before(double a, double b, bool most)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && !isnan(b);
	if (a == b)
		return most ? signbit(b) && !signbit(a) : signbit(a) && !signbit(b);
	return most ? a > b : a < b;
}

static struct value product(struct value a, struct value b, enum tern_type type)
{
	double re = rounded(a.re * b.re, type), im = rounded(a.re * b.im, type);
	if (type == TERN_TYPE_FLOAT || type == TERN_TYPE_DOUBLE)
		return (struct value){ re, 0 };
	return (struct value){ rounded(re - rounded(a.im * b.im, type), type),
			       rounded(im + rounded(a.im * b.re, type), type) };
}

static struct value combined(struct value a, struct value b, enum tern_type type, unsigned how)
{
	switch (how) {
	case TERN_REDUCE_SUM:
		return (struct value){ rounded(a.re + b.re, type), rounded(a.im + b.im, type) };
	case TERN_REDUCE_PRODUCT:
		return product(a, b, type);
	default:
		return before(b.re, a.re, how == TERN_REDUCE_MAX) ? b : a;
	}
}

/* -- What came --------------------------------------------------------------------------------- */

static void element_set(unsigned char *at, size_t i, enum tern_type type, struct value v)
{
	float narrow[2] = { (float)v.re, (float)v.im };
	double wide[2] = { v.re, v.im };
	tern_double_at located = { v.re, type == TERN_TYPE_DOUBLE_AT ? (uint64_t)v.im : 0 };
	size_t size = type_size(type);
	const void *from = type == TERN_TYPE_DOUBLE_AT ? (const void *)&located
			   : type == TERN_TYPE_FLOAT || type == TERN_TYPE_COMPLEX_FLOAT
				   ? (const void *)narrow
				   : wide;
	memcpy(at + i * size, from, size);
}

static void canonical_set(unsigned char *at, size_t i, enum tern_type type, struct value v)
{
	static const uint64_t nan64 = 0x7ff8000000000000;
	double nan;
	memcpy(&nan, &nan64, sizeof nan);
	v.re = isnan(v.re) ? nan : v.re;
	v.im = isnan(v.im) ? nan : v.im;
	element_set(at, i, type, v);
}

static unsigned char in[MOST * 16], out[MOST * 16], expected[MOST * 16];

static void expect_set(size_t n, enum tern_type type, unsigned how, uint32_t last)
{
	for (size_t i = 0; i < n; i++) {
		struct value v = value_of(0, i, type);
		for (uint32_t m = 1; m <= last; m++)
			v = combined(v, value_of(m, i, type), type, how);
		if (last)
			canonical_set(expected, i, type, v);
		else
			element_set(expected, i, type, v);
	}
}

static void expect(size_t n, enum tern_type type, unsigned how, uint32_t last, const char *call)
{
	size_t size = type_size(type);
	expect_set(n, type, how, last);
	for (size_t i = 0; i < n; i++)
		if (!CHECK(memcmp(out + i * size, expected + i * size, size) == 0)) {
			printf("    %s of type %d, operation %u: element %zu of %zu\n", call,
			       (int)type, how, i, n);
			return;
		}
}

static void all_agree(tern_team *team, size_t bytes, enum tern_type type, unsigned how)
{
	uint64_t mine = 0, all[RANKS_AT_MOST];
	for (size_t i = 0; i < bytes; i++)
		mine = mine * 1099511628211u + out[i] + 1;
	CHECK_IS(tern_team_allgather(team, &mine, all, sizeof mine), 0);
	for (uint32_t i = 1; i < tern_team_size(team); i++)
		if (!CHECK(all[i] == all[0]))
			printf("    type %d, operation %u: members 0 and %u have other bits\n",
			       (int)type, how, i);
}

/* -- The calls --------------------------------------------------------------------------------- */

/* In place, with parts of other lengths; what is not this member's is as it was. */
static void try_parts(tern_team *team, enum tern_type type, unsigned how, size_t n)
{
	uint32_t me = tern_team_rank(team), size = tern_team_size(team);
	size_t counts[RANKS_AT_MOST], left = n, at = 0, bytes = type_size(type);
	for (uint32_t i = 0; i < size; left -= counts[i++]) {
		counts[i] = i == size - 1 ? left : left / 3;
		at += i < me ? counts[i] : 0;
	}
	memcpy(out, in, n * bytes);
	CHECK_IS(tern_team_reduce_scatter(team, out, out + at * bytes, counts, type,
					  how | TERN_REDUCE_EXACT),
		 0);
	CHECK(memcmp(out, in, at * bytes) == 0);
	expect_set(n, type, how, size - 1);
	memcpy(out, expected, at * bytes);
	at += counts[me];
	CHECK(memcmp(out + at * bytes, in + at * bytes, (n - at) * bytes) == 0);
	memcpy(out + at * bytes, expected + at * bytes, (n - at) * bytes);
	expect(n, type, how, size - 1, "exact reduce_scatter in place");
}

static void try_one(tern_team *team, enum tern_type type, unsigned how, size_t n)
{
	uint32_t me = tern_team_rank(team), last = tern_team_size(team) - 1, root = last / 2;
	unsigned exact = how | TERN_REDUCE_EXACT;
	size_t bytes = n * type_size(type);
	for (size_t i = 0; i < n; i++)
		element_set(in, i, type, value_of(me, i, type));
	CHECK_IS(tern_team_allreduce(team, in, out, n, type, how), 0);
	all_agree(team, bytes, type, how);
	if (how == TERN_REDUCE_MIN || how == TERN_REDUCE_MAX)
		expect(n, type, how, last, "allreduce");
	CHECK_IS(tern_team_allreduce(team, in, out, n, type, exact), 0);
	expect(n, type, how, last, "exact allreduce");
	CHECK_IS(tern_team_reduce(team, root, in, out, n, type, exact), 0);
	if (me == root)
		expect(n, type, how, last, "exact reduce");
	CHECK_IS(tern_team_scan(team, in, out, n, type, exact), 0);
	expect(n, type, how, me, "exact scan");
	CHECK_IS(tern_team_exscan(team, in, out, n, type, exact), 0);
	if (me)
		expect(n, type, how, me - 1, "exact exscan");
	try_parts(team, type, how, n);
	memcpy(out, in, bytes);
	CHECK_IS(tern_team_exscan(team, out, out, n, type, exact), 0);
	expect(n, type, how, me ? me - 1 : 0, "exact exscan in place");
}

static void rank_main(void)
{
	static const size_t counts[] = { 1, 4, 7, 70, 300, MOST };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++)
		for (unsigned how = TERN_REDUCE_SUM; how <= TERN_REDUCE_MAX; how++) {
			bool end = how >= TERN_REDUCE_MIN;
			try_one(all, TERN_TYPE_FLOAT, how, counts[c]);
			try_one(all, TERN_TYPE_DOUBLE, how, counts[c]);
			if (end)
				try_one(all, TERN_TYPE_DOUBLE_AT, how, counts[c]);
			else
				try_one(all, TERN_TYPE_COMPLEX_FLOAT, how, counts[c]);
			if (!end)
				try_one(all, TERN_TYPE_COMPLEX_DOUBLE, how, counts[c]);
		}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_sizes(void)
{
	static const uint32_t sizes[] = { 2, 3, 6 };
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		ranks_run(sizes[i], rank_main);
}

TEST(members_have_the_same_bits_through_outboxes)
{
	try_sizes();
}

TEST(members_have_the_same_bits_by_messages)
{
	setenv("TERN_NET", "udp", 1);
	try_sizes();
	unsetenv("TERN_NET");
}

TEST(members_have_the_same_bits_where_they_do_not_share_memory)
{
	setenv("TERN_GRANT", "1", 1);
	try_sizes();
	unsetenv("TERN_GRANT");
}

/* By name alone: ranks of several machines, or of a simulated one. */
TEST(members_have_the_same_bits_at_the_ranks_of_a_launcher)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	rank_main();
}
