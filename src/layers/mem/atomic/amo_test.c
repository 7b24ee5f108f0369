/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: what each does, what is refused, and that many at once add up. Between processes:
 * tests/layers/mem_region_test.c.
 */
#include <errno.h>
#include <math.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "lib/ranks.h"
#include "mem/mem.h"

/* Eight words of rank 1, in its heap and registered. */
static _Atomic uint64_t *word[2], private[8];
static tern_addr at[2];

static void words_open(void)
{
	local_open(2);
	word[0] = handed_alloc(local[1], sizeof private);
	word[1] = private;
	REQUIRE(word[0]);
	at[0] = handed_addr(local[1], word[0]);
	REQUIRE(tern_register(local[1], private, sizeof private, &at[1]) == 0);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 8; i++)
			word[k][i] = 0xeeeeeeeeeeeeeeee;
}

/* Only the word in the middle may have changed. */
static void words_check(int k, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		CHECK_IS(word[k][i], i == 3 ? value : 0xeeeeeeeeeeeeeeee);
}

struct step {
	enum tern_amo what;
	uint64_t operand, after;
};

static const struct step steps64[] = {
	{ TERN_AMO_SWAP, 10, 10 },
	{ TERN_AMO_ADD, 5, 15 },
	{ TERN_AMO_ADD, UINT64_MAX, 14 },
	{ TERN_AMO_AND, 12, 12 },
	{ TERN_AMO_OR, 3, 15 },
	{ TERN_AMO_XOR, 5, 10 },
	{ TERN_AMO_MIN, 11, 10 },
	{ TERN_AMO_MIN, 9, 9 },
	{ TERN_AMO_MAX, 8, 9 },
	{ TERN_AMO_MAX, UINT64_MAX, UINT64_MAX }, /* unsigned */
	{ TERN_AMO_ADD, 1, 0 },
	{ TERN_AMO_MIN, UINT64_MAX, 0 },
	{ TERN_AMO_SWAP, 0x123456789abcdef0, 0x123456789abcdef0 },
};

TEST(every_operation_on_64_bits_does_what_it_says_and_tells_the_value_before)
{
	words_open();
	for (int k = 0; k < 2; k++) {
		uint64_t before = 0xeeeeeeeeeeeeeeee, old;
		for (unsigned i = 0; i < sizeof steps64 / sizeof *steps64; i++) {
			old = 77;
			CHECK_IS(tern_amo(local[i % 2], at[k] + 24, steps64[i].what,
					  steps64[i].operand, i % 3 ? &old : NULL),
				 0);
			CHECK(i % 3 == 0 || old == before);
			words_check(k, steps64[i].after);
			before = steps64[i].after;
		}
	}
	local_close();
}

TEST(every_operation_on_32_bits_leaves_its_neighbour_alone)
{
	static const struct step steps[] = {
		{ TERN_AMO_SWAP, 10, 10 },        { TERN_AMO_ADD, 5, 15 },
		{ TERN_AMO_ADD, UINT32_MAX, 14 }, { TERN_AMO_AND, 12, 12 },
		{ TERN_AMO_OR, 3, 15 },           { TERN_AMO_XOR, 5, 10 },
		{ TERN_AMO_MIN, 11, 10 },         { TERN_AMO_MIN, 9, 9 },
		{ TERN_AMO_MAX, 8, 9 },           { TERN_AMO_MAX, UINT32_MAX, UINT32_MAX },
		{ TERN_AMO_ADD, 2, 1 },
	};
	words_open();
	for (int k = 0; k < 2; k++)
		for (int half = 0; half < 2; half++) {
			uint32_t before = 0xeeeeeeee, old;
			word[k][3] = 0xeeeeeeeeeeeeeeee;
			for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
				CHECK_IS(tern_amo(local[0], at[k] + 24 + 4 * (unsigned)half,
						  steps[i].what, (uint32_t)steps[i].operand, &old),
					 0);
				CHECK_IS(old, before);
				before = (uint32_t)steps[i].after;
				words_check(k, half ? (uint64_t)before << 32 | 0xeeeeeeee
						    : UINT64_C(0xeeeeeeee00000000) | before);
			}
		}
	local_close();
}

TEST(compare_and_swap_changes_what_is_expected_and_nothing_else)
{
	words_open();
	for (int k = 0; k < 2; k++) {
		uint64_t old = 0;
		uint32_t old32 = 0;
		CHECK_IS(tern_cas(local[0], at[k] + 24, 1, 2, &old), 0);
		CHECK_IS(old, 0xeeeeeeeeeeeeeeee);
		words_check(k, 0xeeeeeeeeeeeeeeee);
		CHECK_IS(tern_cas(local[0], at[k] + 24, 0xeeeeeeeeeeeeeeee, 2, &old), 0);
		CHECK_IS(old, 0xeeeeeeeeeeeeeeee);
		words_check(k, 2);
		CHECK_IS(tern_cas(local[0], at[k] + 24, 2, UINT64_MAX, (uint64_t *)NULL), 0);
		words_check(k, UINT64_MAX);
		CHECK_IS(tern_cas(local[0], at[k] + 28, 5, 6, &old32), 0);
		CHECK_IS(old32, UINT32_MAX);
		CHECK_IS(tern_cas(local[0], at[k] + 28, UINT32_MAX, 6, &old32), 0);
		CHECK_IS(old32, UINT32_MAX);
		words_check(k, UINT64_C(0x6ffffffff));
	}
	local_close();
}

TEST(doubles_add_and_have_a_least_and_a_most)
{
	words_open();
	for (int k = 0; k < 2; k++) {
		double old = 0, value;
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_SWAP, 0, (uint64_t *)NULL), 0);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_ADD, 1.5, &old), 0);
		CHECK(old == 0.0);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_ADD, -4.0, &old), 0);
		CHECK(old == 1.5);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_MIN, -2.0, &old), 0);
		CHECK(old == -2.5);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_MIN, -3.0, &old), 0);
		CHECK(old == -2.5);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_MAX, -INFINITY, &old), 0);
		CHECK(old == -3.0);
		CHECK_IS(tern_amo(local[0], at[k] + 24, TERN_AMO_MAX, 1e300, (double *)NULL), 0);
		memcpy(&value, (void *)&word[k][3], 8);
		CHECK(value == 1e300);
		static const enum tern_amo others[] = { TERN_AMO_AND, TERN_AMO_OR, TERN_AMO_XOR };
		for (int i = 0; i < 3; i++)
			CHECK_IS(tern_amo(local[0], at[k] + 24, others[i], 1, &old), -EINVAL);
	}
	local_close();
}

TEST(two_zeros_and_a_nan_leave_the_value_as_it_is)
{
	static const double kept[] = { 0.0, -0.0, NAN, 1.5 }, other[] = { -0.0, 0.0, 1.5, NAN };
	words_open();
	for (int i = 0; i < 16; i++) {
		void *p = (void *)&word[i & 1][3];
		memcpy(p, &kept[i / 4], 8);
		CHECK_IS(tern_amo(local[0], at[i & 1] + 24, i & 2 ? TERN_AMO_MIN : TERN_AMO_MAX,
				  other[i / 4], (double *)NULL),
			 0);
		CHECK(memcmp(p, &kept[i / 4], 8) == 0);
	}
	local_close();
}

TEST(an_address_that_is_not_aligned_or_not_there_is_refused_and_nothing_changes)
{
	uint64_t old = 77;
	uint32_t old32 = 77;
	double oldd = 77;
	words_open();
	for (int k = 0; k < 2; k++) {
		for (unsigned off = 1; off < 8; off++) {
			CHECK_IS(tern_amo(local[0], at[k] + 24 + off, TERN_AMO_ADD, 1, &old),
				 -EINVAL);
			CHECK_IS(tern_cas(local[0], at[k] + 24 + off, 1, 1, &old), -EINVAL);
			CHECK_IS(tern_amo(local[0], at[k] + 24 + off, TERN_AMO_ADD, 1, &oldd),
				 -EINVAL);
			if (off % 4 == 0)
				continue;
			CHECK_IS(tern_amo(local[0], at[k] + 24 + off, TERN_AMO_ADD, 1, &old32),
				 -EINVAL);
			CHECK_IS(tern_cas(local[0], at[k] + 24 + off, 1, 1, &old32), -EINVAL);
		}
		words_check(k, 0xeeeeeeeeeeeeeeee);
	}
	CHECK_IS(tern_amo(local[0], TERN_ADDR_NONE, TERN_AMO_ADD, 1, &old), -EFAULT);
	CHECK_IS(tern_amo(local[0], handed_at(at[0], 2), TERN_AMO_ADD, 1, &old), -ERANGE);
	CHECK_IS(tern_amo(local[0], at[1] + sizeof private, TERN_AMO_ADD, 1, &old), -EFAULT);
	CHECK_IS(tern_cas(local[0], at[0] + (64 << 20), 1, 1, &old32), -EFAULT);
	CHECK(old == 77 && old32 == 77 && oldd == 77);
	CHECK_IS(tern_unregister(local[1], at[1]), 0);
	CHECK_IS(tern_amo(local[0], at[1], TERN_AMO_ADD, 1, &old), -EFAULT);
	local_close();
}

TEST(split_phase_atomics_tell_the_value_before_when_they_complete)
{
	static _Atomic uint64_t flag;
	uint64_t old[3] = { 77, 77, 77 };
	uint32_t old32[2] = { 77, 77 };
	double oldd[2] = { 77, 77 };
	tern_op op = { .flag = &flag };
	words_open();
	for (int k = 0; k < 2; k++) {
		atomic_store(&flag, 0);
		word[k][3] = 5;
		word[k][4] = 0;
		CHECK_IS(tern_amo_start(local[0], at[k] + 24, TERN_AMO_ADD, 1, &old[0], &op), 0);
		CHECK_IS(tern_amo_start(local[0], at[k] + 24, TERN_AMO_ADD, 1, (uint64_t *)NULL,
					&op),
			 0);
		CHECK_IS(tern_cas_start(local[0], at[k] + 24, 7, 9, &old[1], &op), 0);
		CHECK_IS(tern_cas_start(local[0], at[k] + 24, 9, 10, &old32[0], &op), 0);
		CHECK_IS(tern_amo_start(local[0], at[k] + 28, TERN_AMO_ADD, 1, &old32[1], &op), 0);
		CHECK_IS(tern_amo_start(local[0], at[k] + 32, TERN_AMO_ADD, 2.5, &oldd[0], &op), 0);
		CHECK_IS(tern_amo_start(local[0], at[k] + 32, TERN_AMO_MAX, 3.5, &oldd[1], &op), 0);
		CHECK_IS(tern_amo_start(local[0], at[k] + 25, TERN_AMO_ADD, 1, &old[2], &op),
			 -EINVAL);
		CHECK_IS(tern_amo_start(local[0], at[k] + 24, TERN_AMO_XOR, 1, &oldd[0], &op),
			 -EINVAL);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		CHECK_IS(atomic_load(&flag), 7);
		CHECK(old[0] == 5 && old[1] == 7 && old[2] == 77 && old32[0] == 9 && old32[1] == 0);
		CHECK(oldd[0] == 0.0 && oldd[1] == 2.5);
		CHECK_IS(word[k][3], UINT64_C(1) << 32 | 10);
	}
	local_close();
}

/* Alignment is that of the memory, wherever its region begins. */
TEST(a_region_at_an_odd_place_has_its_aligned_words_where_they_lie)
{
	static _Alignas(8) unsigned char bytes[64];
	tern_addr a;
	local_open(2);
	REQUIRE(tern_register(local[1], bytes + 4, 40, &a) == 0);
	CHECK_IS(tern_amo(local[0], a, TERN_AMO_ADD, 1, (uint64_t *)NULL), -EINVAL);
	CHECK_IS(tern_amo(local[0], a + 4, TERN_AMO_ADD, 1, (uint64_t *)NULL), 0);
	CHECK_IS(tern_amo(local[0], a, TERN_AMO_ADD, 1, (uint32_t *)NULL), 0);
	CHECK_IS(bytes[8], 1);
	CHECK_IS(bytes[4], 1);
	local_close();
}

/* -- Many at once ------------------------------------------------------------------------------ */

enum { THREADS = 4 };
static tern_addr shared;
static unsigned times;

static void add_from_everywhere(tern *t)
{
	if (tern_rank(t) == 0) {
		_Atomic uint64_t *p = handed_alloc(t, 256);
		REQUIRE(p);
		shared = handed_addr(t, p);
	}
	CHECK_IS(tern_barrier(t), 0);
	_Atomic uint64_t *mine = handed_local(t, shared, 256);
	REQUIRE(mine);
	uint64_t seen = 0, found, old, me = tern_rank(t);
	for (unsigned i = 0; i < times; i++) {
		CHECK_IS(tern_amo(t, shared, TERN_AMO_ADD, 1, &old), 0);
		CHECK(i == 0 || old > seen);
		seen = old;
		atomic_fetch_add(mine, 1); /* and plain C11 ones, which agree */
		CHECK_IS(tern_amo(t, shared + 8, TERN_AMO_ADD, 1, (uint32_t *)NULL), 0);
		atomic_fetch_add((_Atomic uint32_t *)(mine + 1), 1);
		CHECK_IS(tern_amo(t, shared + 16, TERN_AMO_ADD, 0.5, (double *)NULL), 0);
		CHECK_IS(tern_amo(t, shared + 24, TERN_AMO_MAX, i * THREADS + me, (uint64_t *)NULL),
			 0);
		CHECK_IS(tern_amo(t, shared + 32, TERN_AMO_XOR, UINT64_C(1) << (8 * me + i % 8),
				  (uint64_t *)NULL),
			 0);
		do /* a counter by compare and swap */
			old = atomic_load(mine + 5);
		while (tern_cas(t, shared + 40, old, old + 1, &found) == 0 && found != old);
	}
	CHECK_IS(tern_barrier(t), 0);
	double sum;
	memcpy(&sum, (void *)(mine + 2), 8);
	CHECK_IS(mine[0], 2 * THREADS * times);
	CHECK_IS(mine[1], 2 * THREADS * times);
	CHECK(sum == 0.5 * THREADS * times);
	CHECK_IS(mine[3], (times - 1) * THREADS + THREADS - 1);
	CHECK_IS(mine[4],
		 0); /* `times` is a multiple of 16: every bit was turned an even number of times */
	CHECK_IS(mine[5], THREADS * times);
	CHECK_IS(tern_barrier(t), 0);
}

static void nothing(tern *t)
{
	(void)t;
}

TEST(atomics_of_many_threads_add_up_with_each_other_and_with_c11_ones)
{
	times = check_scaled(20000) / 16 * 16;
	ranks_run_threads(THREADS, nothing, add_from_everywhere);
}
