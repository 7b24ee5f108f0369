/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way stores and their counts. */
#include <errno.h>
#include <signal.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum { RANKS = 4, SLOT = 64, ROUNDS = 50 };

static uint64_t stored(uint32_t r)
{
	struct mem *m = mem_of(local[r]);
	return atomic_load(&m->job->rank[r].stored);
}

TEST(a_store_puts_the_bytes_and_counts_them_at_the_target)
{
	unsigned char image[256];
	local_open(2);
	unsigned char *p = handed_alloc(local[1], 256);
	REQUIRE(p);
	tern_addr a = handed_addr(local[1], p);
	memset(p, 0xee, 256);
	memset(image, 0xee, 256);
	CHECK_IS(tern_store(local[0], a + 10, "abc", 3), 0);
	CHECK_IS(tern_store(local[1], a + 20, "de", 2), 0); /* to itself */
	CHECK_IS(tern_store(local[0], a + 30, NULL, 0), 0);
	memcpy(image + 10, "abc", 3);
	memcpy(image + 20, "de", 2);
	CHECK_IS(stored(1), 5);
	CHECK_IS(stored(0), 0);
	CHECK_IS(tern_store_sync(local[1], 4), 0);
	CHECK_IS(stored(1), 1); /* what is not taken off stays */
	CHECK_IS(tern_store_sync(local[1], 1), 0);
	CHECK_IS(tern_store_sync(local[1], 0), 0);
	CHECK_IS(tern_store(local[0], TERN_ADDR_NONE, "x", 1), -EFAULT);
	CHECK_IS(stored(0) + stored(1), 0);
	CHECK(memcmp(p, image, 256) == 0);
	local_close();
}

TEST(a_sync_with_a_limit_gives_up_and_takes_nothing_off)
{
	local_open(2);
	char *p = handed_alloc(local[1], 8);
	REQUIRE(p);
	CHECK_IS(tern_store(local[0], handed_addr(local[1], p), "abc", 3), 0);
	int rc = tern_store_sync_for(local[1], 4, 0);
	CHECK_IS(rc, -ETIMEDOUT);
	CHECK(sentence_has(rc, "tern_store_sync_for() has waited for 0 ns, which is its limit"));
	CHECK_IS(tern_store_sync_for(local[1], 4, 1000000), -ETIMEDOUT);
	CHECK_IS(stored(1), 3);
	CHECK_IS(tern_store(local[0], handed_addr(local[1], p), "d", 1), 0);
	CHECK_IS(tern_store_sync_for(local[1], 4, 0), 0);
	CHECK_IS(stored(1), 0);
	tern_hold(local[1]);
	CHECK_IS(tern_store_sync_for(local[1], 0, 0), -EDEADLK);
	tern_release(local[1]);
	local_close();
}

TEST(stores_to_registered_memory_count_too)
{
	static char bytes[100000], source[100000];
	tern_addr a;
	local_open(2);
	memset(source, 7, sizeof source);
	REQUIRE(tern_register(local[1], bytes, sizeof bytes, &a) == 0);
	CHECK_IS(tern_store(local[0], a, source, sizeof source), 0);
	CHECK_IS(tern_store_sync(local[1], sizeof bytes), 0);
	CHECK(memcmp(bytes, source, sizeof bytes) == 0);
	local_close();
}

/* -- Of many ----------------------------------------------------------------------------- */

static uint64_t seed;

static void nothing(tern *t)
{
	(void)t;
}

/*
 * Every rank stores a number into its place at everybody; whoever has counted them all finds all.
 */
static void store_to_all(tern *t)
{
	uint32_t me = tern_rank(t);
	struct chance c = { seed + me };
	_Atomic uint64_t *mine = handed_alloc_all(t, RANKS * SLOT);
	REQUIRE(mine);
	tern_addr a = handed_addr(t, (void *)mine);
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		if (chance_one_in(&c, 10))
			ranks_nap(chance_below(&c, 3000000)); /* the others sleep in store_sync */
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_store(t, handed_at(a, r) + me * SLOT, &n, sizeof n), 0);
		CHECK_IS(tern_store_sync(t, RANKS * sizeof n), 0);
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(mine[r * SLOT / 8], n);
		CHECK_IS(tern_barrier(t), 0);
	}
}

TEST(whoever_has_counted_all_bytes_finds_them_in_place)
{
	seed = check_seed();
	ranks_run_threads(RANKS, nothing, store_to_all);
}

static void store_and_sync_all(tern *t)
{
	uint32_t me = tern_rank(t);
	struct chance c = { seed + me };
	unsigned char *mine = handed_alloc_all(t, 100000 * RANKS);
	static unsigned char bytes[RANKS][100000];
	REQUIRE(mine);
	tern_addr a = handed_addr(t, mine);
	for (unsigned n = 1; n <= 10; n++) {
		size_t len = 1 + n * 9999;
		memset(bytes[me], (int)(n + me), len);
		for (uint32_t r = 0; r < RANKS; r++)
			if (r != n % RANKS) /* counts differ from rank to rank */
				CHECK_IS(tern_store(t, handed_at(a, r) + me * 100000, bytes[me],
						    len),
					 0);
		if (chance_one_in(&c, 3))
			ranks_nap(chance_below(&c, 1000000));
		CHECK_IS(tern_store_sync_all(t), 0);
		for (uint32_t r = 0; r < RANKS; r++)
			if (me != n % RANKS)
				for (size_t i = 0; i < len; i++)
					CHECK(mine[r * 100000 + i] == n + r);
		CHECK_IS(atomic_load(&mem_of(t)->job->rank[me].stored), 0);
		CHECK_IS(tern_barrier(t), 0);
	}
}

TEST(when_all_ranks_have_synchronised_every_store_has_landed_and_counts_are_cleared)
{
	seed = check_seed();
	ranks_run_threads(RANKS, nothing, store_and_sync_all);
}

/* -- With messages ---------------------------------------------------------------------------- */

enum { LOOK, TELL };
static _Atomic uint64_t told[RANKS];

/* What its sender wrote before the message, by whatever means, is seen here. */
static void look(tern *t, const tern_msg *m)
{
	uint64_t *there = handed_local(t, tern_msg_word(m, 0), 3 * SLOT);
	CHECK(there && there[0] == tern_msg_word(m, 1));
	CHECK(there && there[SLOT / 8] == tern_msg_word(m, 1));
	CHECK(there && there[2 * SLOT / 8] == tern_msg_word(m, 1));
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told[tern_rank(t)], 1);
}

static void handlers(tern *t)
{
	CHECK_IS(tern_on(t, LOOK, look), 0);
	CHECK_IS(tern_on(t, TELL, tell), 0);
}

static void write_and_tell(tern *t)
{
	uint32_t me = tern_rank(t), next = (me + 1) % RANKS;
	char *mine = handed_alloc_all(t, 3 * SLOT);
	REQUIRE(mine);
	tern_addr there = tern_addr_at(t, next, mine);
	uint64_t *direct = handed_local(t, there, 3 * SLOT);
	REQUIRE(direct);
	for (uint64_t n = 0; n < check_scaled(5000); n++) {
		*direct = n; /* plain stores */
		CHECK_IS(tern_put(t, there + SLOT, &n, sizeof n), 0);
		CHECK_IS(tern_store(t, there + 2 * SLOT, &n, sizeof n), 0);
		CHECK_IS(tern_request(t, next, LOOK, there, n), 0);
		CHECK_IS(tern_wait(t, &told[me], 1), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
}

TEST(what_a_sender_wrote_before_a_message_is_seen_by_its_handler)
{
	ranks_run_threads(RANKS, handlers, write_and_tell);
}

TEST(the_heap_of_a_rank_that_died_is_refused_and_the_rank_named)
{
	local_open(3);
	uint64_t word = 1, old;
	void *p = handed_alloc(local[1], 4096);
	REQUIRE(p);
	tern_addr a = handed_addr(local[1], p);
	CHECK_IS(tern_put(local[0], a, &word, sizeof word), 0);
	job_rank_ended(&local[0]->own->group->job, 1, SIGKILL);
	CHECK(tern_poll(local[0]) >= 0); /* hears of it */
	int rc = tern_put(local[0], a, &word, sizeof word);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	CHECK_IS(tern_get(local[0], &word, a, sizeof word), -EOWNERDEAD);
	CHECK_IS(tern_amo(local[0], a, TERN_AMO_ADD, 1, &old), -EOWNERDEAD);
	CHECK_IS(tern_store(local[0], a, &word, sizeof word), -EOWNERDEAD);
	CHECK_IS(tern_addr_local(local[0], a, 8, &p), -EOWNERDEAD);
}
