/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator, the heap as programs see it, and addresses. */
#include "mem/heap/heap.h"

#include <errno.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum { START = 4096, LIMIT = START + (64 << 10), THINGS = 200 };

/* -- The allocator alone --------------------------------------------------------------- */

TEST(an_empty_heap_gives_its_first_bytes_and_every_allocation_its_own_aligned_place)
{
	struct heap h;
	uint64_t a, b, c, d;
	heap_init(&h, START, LIMIT);
	CHECK_IS(heap_take(&h, 1, &a), 0);
	CHECK_IS(heap_take(&h, 0, &b), 0);
	CHECK_IS(heap_take(&h, 65, &c), 0);
	CHECK_IS(heap_take(&h, 1, &d), 0);
	CHECK_IS(a, START);
	CHECK_IS(b, START + 64);
	CHECK_IS(c, START + 128);
	CHECK_IS(d, START + 256);
	CHECK_IS(heap_size(&h, c), 128);
	CHECK_IS(heap_size(&h, c + 64), 0);
	heap_fini(&h);
}

TEST(only_the_beginning_of_what_is_taken_can_be_given_back_and_only_once)
{
	struct heap h;
	uint64_t a, b;
	heap_init(&h, START, LIMIT);
	CHECK_IS(heap_give(&h, START), -EINVAL);
	CHECK_IS(heap_take(&h, 256, &a), 0);
	CHECK_IS(heap_take(&h, 256, &b), 0);
	CHECK_IS(heap_give(&h, a + 64), -EINVAL);
	CHECK_IS(heap_give(&h, a + 1), -EINVAL);
	CHECK_IS(heap_give(&h, LIMIT), -EINVAL);
	CHECK_IS(heap_give(&h, 0), -EINVAL);
	CHECK_IS(heap_give(&h, UINT64_MAX), -EINVAL);
	CHECK_IS(heap_give(&h, a), 0);
	CHECK_IS(heap_give(&h, a), -EINVAL);
	CHECK_IS(heap_size(&h, a), 0);
	CHECK_IS(heap_size(&h, b), 256);
	heap_fini(&h);
}

TEST(a_full_heap_says_so_and_loses_nothing)
{
	struct heap h;
	uint64_t at, none = 77;
	heap_init(&h, START, LIMIT);
	CHECK_IS(heap_take(&h, LIMIT - START + 1, &none), -ENOMEM);
	CHECK_IS(heap_take(&h, UINT64_MAX, &none), -ENOMEM);
	CHECK_IS(heap_take(&h, UINT64_MAX - 62, &none),
		 -ENOMEM); /* rounding it up would overflow */
	CHECK_IS(heap_take(&h, LIMIT - START, &at), 0);
	CHECK_IS(heap_take(&h, 1, &none), -ENOMEM);
	CHECK_IS(none, 77);
	CHECK_IS(heap_give(&h, at), 0);
	CHECK_IS(heap_take(&h, LIMIT - START, &at), 0);
	heap_fini(&h);
}

struct thing {
	uint64_t at, bytes;
};

static bool apart(const struct thing *x, const struct thing *y)
{
	return x->at + x->bytes <= y->at || y->at + y->bytes <= x->at;
}

static void check_thing(const struct thing *things, unsigned i)
{
	CHECK(things[i].at % HEAP_ALIGN == 0);
	CHECK(things[i].at >= START && things[i].at + things[i].bytes <= LIMIT);
	for (unsigned j = 0; j < THINGS; j++)
		CHECK(j == i || !things[j].bytes || apart(&things[i], &things[j]));
}

TEST(whatever_is_taken_and_given_nothing_overlaps_and_in_the_end_all_is_one_piece)
{
	static struct thing things[THINGS];
	struct heap h;
	struct chance c = { check_seed() };
	heap_init(&h, START, LIMIT);
	for (unsigned n = check_scaled(20000); n; n--) {
		unsigned i = chance_below(&c, THINGS);
		if (things[i].bytes) {
			CHECK_IS(heap_give(&h, things[i].at), 0);
			things[i].bytes = 0;
			continue;
		}
		uint64_t bytes = 1 + chance_below(&c, chance_one_in(&c, 20) ? 20000 : 600);
		if (heap_take(&h, bytes, &things[i].at))
			continue;
		things[i].bytes = bytes;
		check_thing(things, i);
	}
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].bytes)
			CHECK_IS(heap_give(&h, things[i].at), 0);
	uint64_t all;
	CHECK_IS(heap_take(&h, LIMIT - START, &all), 0);
	CHECK_IS(all, START);
	heap_fini(&h);
}

/* A wall at the end keeps what is free from becoming the end of the heap. */
TEST(neighbors_that_are_free_are_one_piece_in_whatever_order_they_were_given)
{
	static const unsigned order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	for (unsigned i = 0; i < 6; i++) {
		struct heap h;
		uint64_t at[3], wall, whole;
		heap_init(&h, START, LIMIT);
		for (unsigned k = 0; k < 3; k++)
			CHECK_IS(heap_take(&h, 256, &at[k]), 0);
		CHECK_IS(heap_take(&h, LIMIT - START - 3 * 256, &wall), 0);
		for (unsigned k = 0; k < 3; k++)
			CHECK_IS(heap_give(&h, at[order[i][k]]), 0);
		CHECK_IS(heap_take(&h, 3 * 256, &whole), 0);
		CHECK_IS(whole, START);
		CHECK_IS(heap_give(&h, wall), 0);
		CHECK_IS(heap_take(&h, LIMIT - START - 3 * 256, &wall), 0);
		heap_fini(&h);
	}
}

/* -- The heap of a rank ------------------------------------------------------------------- */

static bool all_are(const unsigned char *p, size_t len, unsigned char value)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

TEST(heap_memory_is_aligned_zero_when_first_given_out_and_seen_by_every_rank)
{
	local_open(3);
	for (uint32_t r = 0; r < 3; r++) {
		unsigned char *p = handed_alloc(local[r], 100000);
		REQUIRE(p);
		CHECK((uintptr_t)p % 64 == 0);
		CHECK(all_are(p, 100000, 0));
		memset(p, (int)r + 1, 100000);
		tern_addr a = handed_addr(local[r], p);
		CHECK_IS(tern_addr_rank(a), r);
		for (uint32_t other = 0; other < 3; other++) {
			unsigned char *seen = handed_local(local[other], a, 100000);
			REQUIRE(seen);
			CHECK(all_are(seen, 100000, (unsigned char)(r + 1)));
		}
		CHECK_IS(tern_free(local[r], p), 0);
	}
	local_close();
}

TEST(freeing_what_is_not_the_beginning_of_an_allocation_is_refused)
{
	int here;
	local_open(2);
	char *p = handed_alloc(local[0], 1000), *other = handed_alloc(local[1], 1000);
	REQUIRE(p && other);
	CHECK_IS(tern_free(local[0], p + 64), -EINVAL);
	CHECK_IS(tern_free(local[0], other), -EINVAL);
	int rc = tern_free(local[0], &here);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, "rank 0") && sentence_has(rc, "tern_free"));
	CHECK_IS(tern_free(local[0], NULL), 0);
	CHECK_IS(tern_free(local[0], p), 0);
	CHECK_IS(tern_free(local[0], p), -EINVAL);
	CHECK_IS(tern_free(local[1], other), 0);
	local_close();
}

TEST(addresses_name_heap_bytes_and_nothing_else)
{
	static int private;
	local_open(2);
	char *p = handed_alloc(local[1], 1000);
	REQUIRE(p);
	tern_addr a = handed_addr(local[1], p);
	CHECK(a != TERN_ADDR_NONE);
	CHECK(handed_addr(local[1], p + 5) == a + 5);
	CHECK(handed_addr(local[1], p - 1) == TERN_ADDR_NONE); /* it is the first of the heap */
	CHECK(handed_addr(local[1], p - 4096) == TERN_ADDR_NONE);
	CHECK(handed_addr(local[0], p) == TERN_ADDR_NONE); /* another rank's */
	CHECK(handed_addr(local[1], &private) == TERN_ADDR_NONE);
	CHECK(handed_addr(local[1], NULL) == TERN_ADDR_NONE);
	CHECK(handed_at(a, 0) == (a & UINT64_C(0xffffffffffff)));
	CHECK_IS(tern_addr_rank(handed_at(a, 65535)), 65535);
	CHECK(handed_local(local[0], TERN_ADDR_NONE, 1) == NULL);
	CHECK(handed_local(local[0], handed_at(a, 2), 1) == NULL); /* no such rank */
	CHECK(handed_local(local[0], handed_at(a, 0), 1) == NULL); /* nothing is allocated there */
	CHECK(handed_local(local[0], a, SIZE_MAX) == NULL);
	CHECK(handed_local(local[0], a, SIZE_MAX - 100) == NULL);
	CHECK(handed_local(local[0], a + (UINT64_C(1) << 39), 1) == NULL);
	local_close();
}

TEST(an_address_that_cannot_be_given_is_an_error_and_nothing_is_written)
{
	static int private;
	void *untouched = &private, *p = untouched;
	tern_addr a = 7;
	local_open(2);
	int rc = tern_addr_of(local[1], &private, &a);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "rank 1") && sentence_has(rc, "tern_addr_of()"));
	CHECK(a == 7);
	rc = tern_addr_local(local[0], TERN_ADDR_NONE, 1, &p);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "TERN_ADDR_NONE") && sentence_has(rc, "tern_addr_local()"));
	rc = tern_addr_local(local[0], handed_at(0, 2) + 1, 1, &p);
	CHECK_IS(rc, -ERANGE);
	CHECK(sentence_has(rc, "rank 2"));
	CHECK(p == untouched);
	local_close();
}

TEST(memory_is_aligned_as_asked_for_and_what_was_skipped_is_used)
{
	void *p, *untouched = &p;
	char *small, *gap;
	local_open(2);
	small = handed_alloc(local[1], 8);
	REQUIRE(small);
	for (size_t align = 1; align <= 1 << 20; align *= 2) {
		REQUIRE(tern_alloc_aligned(local[1], 3 * align, align, &p) == 0);
		CHECK_IS((uintptr_t)p % align, 0);
		CHECK_IS((uintptr_t)p % 64, 0);
		CHECK_IS(tern_free(local[1], p), 0);
	}
	REQUIRE(tern_alloc_aligned(local[1], 4096, 4096, &p) == 0);
	gap = handed_alloc(local[1], 8);
	CHECK(gap == small + 64);
	CHECK_IS(tern_free(local[1], gap), 0);
	CHECK_IS(tern_free(local[1], p), 0);
	static const size_t none[] = { 0, 3, 96, SIZE_MAX };
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		p = untouched;
		int rc = tern_alloc_aligned(local[1], 8, none[i], &p);
		CHECK(rc == -EINVAL && p == untouched && sentence_has(rc, "power of two"));
	}
	for (size_t bytes = 128; bytes <= 1 << 20; bytes *= 2) { /* swapped */
		int rc = tern_alloc_aligned(local[1], 64, bytes, &p);
		CHECK(rc == -EINVAL && p == untouched && sentence_has(rc, "multiple"));
	}
	CHECK_IS(tern_alloc_aligned(local[1], 0, (size_t)1 << 60, &p), -ENOMEM);
	CHECK_IS(tern_free(local[1], small), 0);
	local_close();
}

TEST(only_memory_of_all_ranks_has_an_address_at_each_of_them)
{
	int private;
	local_open(1);
	char *own = handed_alloc(local[0], 8), *all = handed_alloc_all(local[0], 8);
	REQUIRE(own && all);
	CHECK(tern_addr_at(local[0], 0, all) == handed_addr(local[0], all));
	CHECK(tern_addr_at(local[0], 0, own) == TERN_ADDR_NONE);
	CHECK(tern_addr_at(local[0], 0, &private) == TERN_ADDR_NONE);
	CHECK(tern_addr_at(local[0], 0, NULL) == TERN_ADDR_NONE);
	CHECK(tern_addr_at(local[0], 65536, all) ==
	      TERN_ADDR_NONE); /* it would be that of rank 0 */
	int rc = tern_put(local[0], tern_addr_at(local[0], 1, all), all, 8);
	CHECK(rc == -ERANGE && sentence_has(rc, "rank 1"));
	rc = tern_put(local[0], tern_addr_at(local[0], 0, own), all, 8);
	CHECK(rc == -EFAULT && sentence_has(rc, "tern_addr_at()"));
	local_close();
}

TEST(a_collective_call_during_a_barrier_is_refused_before_it_changes_anything)
{
	tern_op op[2] = { TERN_OP, TERN_OP }, put = TERN_OP;
	static char from[4 << 20];
	int private;
	void *p = &private, *far = NULL;
	local_open(2);
	REQUIRE(tern_alloc(local[1], sizeof from, &far) == 0);
	tern_addr a = handed_addr(local[1], far);
	CHECK_IS(tern_barrier_start(local[0], &op[0]), 0);
	CHECK_IS(tern_put_start(local[0], a, from, sizeof from, &put), 0);
	_Atomic uint64_t *word = &local[0]->own->group->job.rank[0].word;
	uint64_t before = atomic_load(word);
	int rc = tern_alloc_all(local[0], 64, &p);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "tern_alloc_all()") && sentence_has(rc, "rank 0"));
	CHECK(p == &private);
	rc = tern_free_all(local[0], p);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "tern_free_all()"));
	CHECK(atomic_load(word) == before); /* it has told nobody anything */
	rc = tern_store_sync_all(local[0]);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "tern_store_sync_all()"));
	CHECK_IS(put.pending, 1); /* nor waited for anything */
	CHECK_IS(tern_barrier_start(local[1], &op[1]), 0);
	CHECK_IS(tern_op_wait(local[0], &op[0]), 0);
	CHECK_IS(tern_op_wait(local[1], &op[1]), 0);
	CHECK_IS(tern_op_wait(local[0], &put), 0);
	local_close();
}

/* -- Too little ----------------------------------------------------------------------------- */

TEST(a_heap_that_is_spent_is_an_error_and_what_was_allocated_stays)
{
	setenv("TERN_HEAP", "4M", 1);
	local_open(2);
	unsigned char *p = handed_alloc(local[0], 1 << 20);
	REQUIRE(p);
	memset(p, 7, 1 << 20);
	errno = 0;
	CHECK(handed_alloc(local[0], 8 << 20) == NULL);
	CHECK_IS(errno, ENOMEM);
	CHECK(sentence_has(-ENOMEM, "TERN_HEAP") && sentence_has(-ENOMEM, "rank 0"));
	CHECK(handed_alloc(local[0], SIZE_MAX) == NULL);
	unsigned got = 0;
	while (handed_alloc(local[0], 1000))
		got++;
	CHECK(got > 500 && got < 4096);
	CHECK(all_are(p, 1 << 20, 7));
	CHECK_IS(tern_free(local[0], p), 0);
	CHECK(handed_alloc(local[0], 1 << 20) == p);
	CHECK(handed_alloc(local[1], 1 << 20) != NULL); /* the others have theirs */
	local_close();
}

static void budget_beyond_the_front(uint32_t ranks, uint64_t more)
{
	struct job j;
	char text[32];
	REQUIRE(job_create(&j, ranks, 0) == 0);
	snprintf(text, sizeof text, "%llu", (unsigned long long)(j.head->committed + more));
	job_unmap(&j);
	job_forget(&j);
	setenv("TERN_MEMORY", text, 1);
}

TEST(a_budget_that_is_spent_is_an_error_and_what_fits_can_still_be_had)
{
	setenv("TERN_HEAP", "1G", 1);
	budget_beyond_the_front(2, 1 << 20);
	local_open(2);
	unsigned char *p = handed_alloc(local[0], 256 << 10);
	REQUIRE(p);
	memset(p, 7, 256 << 10);
	errno = 0;
	CHECK(handed_alloc(local[0], 64 << 20) == NULL);
	CHECK_IS(errno, ENOMEM);
	CHECK(sentence_has(-ENOMEM, "TERN_MEMORY") && sentence_has(-ENOMEM, "rank 0"));
	CHECK(handed_alloc(local[0], 1000) != NULL); /* what failed took nothing */
	CHECK(handed_alloc(local[0], 256 << 10) != NULL);
	CHECK(handed_alloc(local[1], 1000) != NULL);
	CHECK(handed_alloc(local[1], 64 << 20) == NULL);
	CHECK(all_are(p, 256 << 10, 7));
	for (int i = 0; i < 100; i++) { /* nothing is lost on the way */
		void *q = handed_alloc(local[0], 128 << 10);
		CHECK(q != NULL);
		CHECK(handed_alloc(local[0], 64 << 20) == NULL);
		CHECK_IS(tern_free(local[0], q), 0);
	}
	local_close();
}

/* -- All together --------------------------------------------------------------------------- */

enum { ALL = 4 };
static tern_addr addresses[ALL];
static uint64_t seed;

static void nothing(tern *t)
{
	(void)t;
}

/*
 * Allocations of its own in between, as every rank likes; the common ones fall together all the
 * same.
 */
static void allocate_alike(tern *t)
{
	struct chance own = { seed + tern_rank(t) }, same = { seed };
	uint32_t me = tern_rank(t);
	void *kept[20] = { NULL };
	for (int i = 0; i < 60; i++) {
		unsigned k = chance_below(&same, 20);
		size_t bytes = 1 + chance_below(&same, 100000);
		if (chance_one_in(&own, 2))
			CHECK(handed_alloc(t, chance_below(&own, 10000)) != NULL);
		if (kept[k]) {
			CHECK_IS(tern_free_all(t, kept[k]), 0);
			kept[k] = NULL;
			continue;
		}
		unsigned char *p = kept[k] = handed_alloc_all(t, bytes);
		REQUIRE(p);
		addresses[me] = handed_addr(t, p);
		memset(p, (int)me, bytes);
		CHECK_IS(tern_barrier(t), 0);
		for (uint32_t r = 0; r < ALL; r++) {
			CHECK(addresses[r] == tern_addr_at(t, r, p));
			CHECK(addresses[r] + bytes - 1 == tern_addr_at(t, r, p + bytes - 1));
			unsigned char *theirs = handed_local(t, addresses[r], bytes);
			CHECK(theirs && theirs[0] == r && theirs[bytes - 1] == r);
		}
		CHECK_IS(tern_barrier(t), 0);
	}
}

TEST(symmetric_memory_has_the_same_offset_at_every_rank)
{
	seed = check_seed();
	ranks_run_threads(ALL, nothing, allocate_alike);
}

static void allocate_unlike(tern *t)
{
	uint32_t me = tern_rank(t);
	void *before = handed_alloc_all(t, 1000);
	CHECK(!t->own->barrier.call);
	errno = 0;
	CHECK(handed_alloc_all(t, me == 2 ? 2000 : 1000) == NULL);
	CHECK_IS(errno, EINVAL); /* at every rank */
	CHECK(sentence_has(-EINVAL, "tern_alloc_all"));
	void *after = handed_alloc_all(t, 1000);
	CHECK(before && after == (char *)before + 1024); /* what was refused took nothing */
	CHECK_IS(tern_free_all(t, me == 1 ? before : after), -EINVAL); /* not the same everywhere */
	CHECK_IS(tern_free_all(t, me == 3 ? (char *)before + 64 : before), -EINVAL);
	CHECK_IS(tern_free(t, before), -EINVAL); /* the collective one frees it */
	CHECK_IS(tern_free_all(t, before), 0);
	CHECK_IS(tern_free_all(t, before), -EINVAL);
	CHECK_IS(tern_free_all(t, after), 0);
	CHECK(handed_alloc_all(t, 1000) == before);
}

TEST(symmetric_sizes_that_differ_are_refused_at_every_rank)
{
	ranks_run_threads(ALL, nothing, allocate_unlike);
}

static void allocate_too_much(tern *t)
{
	void *p = handed_alloc_all(t, 1 << 20);
	CHECK(p != NULL);
	errno = 0;
	CHECK(handed_alloc_all(t, 3 << 20) == NULL);
	CHECK_IS(errno, ENOMEM);
	CHECK_IS(tern_free_all(t, p), 0);
	CHECK(handed_alloc_all(t, 1 << 20) == p);
}

TEST(symmetric_memory_that_the_heap_has_not_is_refused_at_every_rank)
{
	setenv("TERN_HEAP", "4M", 1);
	ranks_run_threads(ALL, nothing, allocate_too_much);
}

static void allocate_beyond_the_budget(tern *t)
{
	void *p = handed_alloc_all(t, 64 << 10);
	CHECK(p != NULL);
	/* There is memory for some of them. */
	errno = 0;
	CHECK(handed_alloc_all(t, 512 << 10) == NULL);
	CHECK_IS(errno, ENOMEM);
	CHECK(handed_alloc_all(t, 64) != NULL);
}

TEST(symmetric_memory_that_the_budget_allows_some_ranks_only_is_refused_at_every_rank)
{
	budget_beyond_the_front(ALL, 2 << 20);
	ranks_run_threads(ALL, nothing, allocate_beyond_the_budget);
}
