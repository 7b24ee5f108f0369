/* SPDX-License-Identifier: BSD-3-Clause */
/* One sender, many readers of one ring. One thread plays all ranks. */
#include "lib/chan_pair.h"
#include "lib/chance.h"
#include "mem/mem.h"

enum { MOST = 200 };

static tern_chan *to, *from[MOST];
static tern_in ends[MOST];
static uint64_t put, got[MOST]; /* how many words, and how many of them at each rank */
static uint32_t ranks;

/* Rank 0 sends to ranks 1 to n. */
static void many_open(uint32_t n)
{
	uint32_t list[MOST];
	local_open(n + 1);
	for (uint32_t i = 0; i < n; i++)
		list[i] = i + 1;
	REQUIRE(tern_chan_to_list(local[0], list, n, 5, &to) == 0);
	out = tern_chan_out(to);
	for (uint32_t r = 1; r <= n; r++) {
		REQUIRE(tern_chan_from(local[r], 0, 5, &from[r]) == 0);
		ends[r] = tern_chan_in(from[r]);
		CHECK_IS(tern_chan_on(local[r], 3, (tern_proc *)abort, NULL), 0);
		got[r] = 0;
	}
	CHECK_IS(tern_chan_on(local[0], 3, (tern_proc *)abort, NULL), 0);
	put = 0;
	ranks = n;
}

/*
 * The put-th thing is a word, an end, a procedure, or a pair of words, as follows from its number.
 */
static int put_next(void)
{
	uint64_t two[2] = { put, put + 1 };
	int rc = tern_chan_room(&out, 64);
	if (rc)
		return rc;
	if (put % 31 == 0)
		rc = tern_chan_end(&out);
	else if (put % 37 == 0)
		rc = tern_chan_call(&out, 3);
	else if (put % 5 == 0 && (put + 1) % 31 && (put + 1) % 37) {
		rc = tern_chan_put(&out, two, 16);
		put++;
	} else
		rc = tern_chan_put(&out, &put, sizeof put);
	put++;
	return rc;
}

/* Takes one thing at rank r and checks that it is the next; false if there is none. */
static bool get_next(uint32_t r)
{
	uint64_t value = 0, n = got[r];
	int rc = try_get(&ends[r], &value);
	if (rc == -EAGAIN)
		return false;
	if (n % 31 == 0)
		CHECK(rc == -ENODATA && tern_chan_next(&ends[r]) == 0);
	else if (n % 37 == 0) {
		CHECK(rc == -ENOMSG);
		struct cursor k = in_cursor(&ends[r]);
		CHECK_IS(in_wait(&ends[r], &k), -ENOMSG);
		CHECK_IS(k.item, ITEM_CALL | 3u << ITEM_BITS);
		in_pass(&k);
		in_move(&ends[r], &k);
	} else
		REQUIRE(CHECK_IS(rc, 0) && CHECK_IS(value, n));
	got[r]++;
	return true;
}

static void serve(void)
{
	for (uint32_t r = 0; r <= ranks; r++)
		if (local[r])
			tern_poll(local[r]);
}

/* Together: those that share a ring wait for each other. */
static void drain_all(int code)
{
	uint64_t value;
	for (int idle = 0; idle < 10; idle++) {
		for (uint32_t r = 1; r <= ranks; r++)
			while (from[r] && got[r] < put && get_next(r))
				idle = 0;
		serve();
	}
	for (uint32_t r = 1; r <= ranks; r++) {
		if (!from[r])
			continue;
		if (!CHECK_IS(got[r], put))
			printf("    at rank %u\n", r);
		CHECK_IS(try_get(&ends[r], &value), code);
	}
}

static void flow(struct chance *c, uint64_t words)
{
	for (uint64_t goal = put + words; put < goal;) {
		for (unsigned n = chance_below(c, 2000); n && put_next() == 0; n--)
			;
		for (uint32_t r = 1; r <= ranks; r++)
			if (local[r] && from[r] &&
			    chance_below(c, r % 3 + 1) == 0) /* some are slower */
				for (unsigned n = chance_below(c, 1500); n && get_next(r); n--)
					;
		serve();
	}
}

static void everybody_gets_everything(uint32_t n, struct chance *c)
{
	many_open(n);
	flow(c, check_scaled(20000));
	CHECK_IS(tern_chan_close(to), 0);
	drain_all(-EPIPE);
	for (uint32_t r = 1; r <= n; r++)
		CHECK_IS(tern_chan_close(from[r]), 0);
	chan_settle();
	for (uint32_t r = 0; r <= n; r++) {
		chans_sweep(chans_of(local[r]));
		CHECK(chans_of(local[r])->first == NULL);
		CHECK_IS(mem_of(local[r])->own.extents, 0);
	}
	local_close();
}

TEST(every_rank_of_a_list_gets_all_that_is_put)
{
	struct chance c = { check_seed() };
	const uint32_t sizes[] = { 1, 3, 16, 17, 20, 40 };
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		everybody_gets_everything(sizes[i], &c);
}

TEST(a_long_list_works_too)
{
	struct chance c = { check_seed() };
	everybody_gets_everything(CHECK_SLOWER > 1 ? 150 : 199, &c);
}

/* -- Readers that go --------------------------------------------------------------------------- */

/* Whoever goes, however, the others get everything. */
static void one_goes(uint32_t n, uint32_t goes, bool closes)
{
	struct chance c = { check_seed() };
	many_open(n);
	flow(&c, 5000);
	while (put_next() == 0) /* full: it is waited for whoever is slowest */
		;
	if (closes)
		CHECK_IS(tern_chan_close(from[goes]), 0);
	else
		local_close_one(goes);
	from[goes] = NULL;
	flow(&c, 20000);
	CHECK_IS(tern_chan_close(to), 0);
	drain_all(-EPIPE);
	local_close();
}

TEST(a_reader_that_closes_or_leaves_is_not_waited_for)
{
	for (int closes = 0; closes < 2; closes++) {
		one_goes(3, 2, closes);
		one_goes(40, 1, closes);
		one_goes(40, 35, closes);
	}
}

TEST(when_the_sender_leaves_all_get_what_it_put_and_then_its_name)
{
	struct chance c = { check_seed() };
	many_open(40);
	flow(&c, 3000);
	local_close_one(0);
	drain_all(-ESHUTDOWN);
	for (uint32_t r = 1; r <= 40; r++) {
		uint64_t value;
		CHECK_IS(tern_chan_get(&ends[r], &value, sizeof value), -ESHUTDOWN);
		CHECK(sentence_has(-ESHUTDOWN, "rank 0 has left"));
	}
	local_close();
}

TEST(when_all_readers_have_gone_puts_fail)
{
	many_open(40);
	for (uint32_t r = 1; r <= 40; r++)
		CHECK_IS(tern_chan_close(from[r]), 0);
	int rc = 0;
	for (unsigned i = 0; !rc && i < 4 * PIPE_LEAVES * LEAF_WORDS; i++) {
		rc = try_put(&out, i);
		serve(); /* of ranks that are far, a poll hears it */
	}
	CHECK_IS(rc, -EPIPE);
	local_close();

	many_open(3);
	CHECK_IS(tern_chan_close(from[1]), 0);
	local_close_one(2);
	CHECK_IS(tern_chan_close(from[3]), 0);
	for (rc = 0; !rc;)
		rc = tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t));
	CHECK_IS(rc, -ESHUTDOWN); /* the worst that happened to one of them */
	CHECK(sentence_has(rc, "rank 2"));
	local_close();
}
