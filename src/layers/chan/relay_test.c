/* SPDX-License-Identifier: BSD-3-Clause */
/* One sender, many readers: in one ring, and through relays. One thread plays all ranks. */
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
		uint64_t item = 0;
		CHECK_IS(in_wait(&ends[r], &k, &item), -ENOMSG);
		CHECK_IS(item, ITEM_CALL | 3u << ITEM_BITS);
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
	for (uint32_t r = 1; r <= n; r++) {
		CHECK(chans_of(local[r])->relays == NULL); /* their work is done */
		CHECK_IS(tern_chan_close(from[r]), 0);
	}
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

TEST(a_list_so_long_that_relays_have_relays_works_too)
{
	struct chance c = { check_seed() };
	everybody_gets_everything(CHECK_SLOWER > 1 ? 150 : 199, &c);
}

static unsigned relays_of(uint32_t r)
{
	unsigned n = 0;
	for (struct tern_chan *c = chans_of(local[r])->first; c; c = c->next)
		n += c->sends && !c->fills;
	return n;
}

TEST(one_ring_serves_sixteen_ranks_and_relays_come_with_the_seventeenth)
{
	many_open(16);
	CHECK_IS(to->listeners, 16);
	CHECK_IS(relays_of(1), 0);
	local_close();
	many_open(17);
	CHECK_IS(to->listeners, 16);
	CHECK_IS(relays_of(1), 1);
	CHECK_IS(relays_of(2), 0);
	local_close();
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
		one_goes(40, 10, closes); /* reads from the first ring */
		one_goes(40, 35, closes); /* from a relay's */
	}
	one_goes(40, 1, true); /* the relay itself: it goes on relaying */
}

TEST(when_a_relay_leaves_those_behind_it_are_told_and_the_others_go_on)
{
	struct chance c = { check_seed() };
	many_open(40);
	REQUIRE(relays_of(1) == 1);
	flow(&c, 5000);
	local_close_one(1);
	from[1] = NULL;
	chan_settle();
	unsigned told = 0;
	for (uint32_t r = 2; r <= 40; r++) {
		if (ends[r].chan->feeder != 1)
			continue;
		uint64_t value;
		while (tern_chan_information(&ends[r]) != TERN_CHAN_CLOSED)
			REQUIRE(get_next(r));
		CHECK_IS(tern_chan_get(&ends[r], &value, sizeof value), -ESHUTDOWN);
		CHECK(sentence_has(-ESHUTDOWN, "rank 1 has left"));
		from[r] = NULL;
		told++;
	}
	CHECK(told >= 10);
	flow(&c, 10000);
	CHECK_IS(tern_chan_close(to), 0);
	drain_all(-EPIPE);
	local_close();
}

/* One of the calls that put something, or ask whether it can be; how many words it takes. */
enum { CALLS = 8 };
static int put_by(unsigned call, unsigned *words)
{
	const uint64_t two[2] = { 0 }, three[3] = { 0 };
	size_t done = 0;
	*words = call == 0 ? LEAF_WORDS + 1 : 1; /* inline, until its leaf is full */
	switch (call) {
	case 0:
		return tern_chan_put(&out, &(uint64_t){ 0 }, sizeof(uint64_t));
	case 1:
		return tern_chan_put(&out, three, sizeof three);
	case 2:
		return tern_chan_put_some(&out, two, 16, &done);
	case 3:
		return tern_chan_end(&out);
	case 4:
		return tern_chan_call(&out, 3);
	case 5:
		return tern_chan_room(&out, 8);
	case 6:
		*words = LEAF_WORDS + 1;
		return try_put(&out, 0);
	default:
		*words = LEAF_WORDS + 1;
		return tern_chan_put(&out, two, 16);
	}
}

/* `goes` leaves, and `cut` ranks lie behind it. */
static void check_sender_told(uint32_t n, uint32_t goes, unsigned cut, unsigned call)
{
	unsigned words;
	char behind[64], relay[32];
	snprintf(behind, sizeof behind, "does not reach %u of its ranks", cut);
	snprintf(relay, sizeof relay, "rank %u, which passed it on", goes);
	many_open(n);
	local_close_one(goes);
	serve();
	int rc = put_by(call, &words);
	for (unsigned i = 1; !rc && i < words; i++)
		rc = put_by(call, &words);
	if (!CHECK_IS(rc, -ESHUTDOWN) ||
	    !CHECK(sentence_has(rc, behind) && sentence_has(rc, relay)))
		printf("    in call %u\n", call);
	CHECK_IS(put_by(call, &words), 0); /* once */
	local_close();
}

TEST(the_sender_is_told_once_that_a_relay_has_left_whatever_it_calls_next)
{
	for (unsigned call = 0; call < CALLS; call++)
		check_sender_told(40, 1, 13, call);
}

TEST(the_sender_is_told_of_a_relay_behind_a_relay)
{
	check_sender_told(199, 9, 8, 5);
}

TEST(what_has_come_to_a_relay_is_passed_on_before_it_leaves)
{
	many_open(20);
	for (int i = 0; i < 100; i++)
		CHECK_IS(put_next(), 0);
	for (uint32_t r = 1; r < 20; r++)
		local_close_one(r); /* none of them has polled since */
	while (got[20] < put && get_next(20))
		;
	CHECK_IS(got[20], put);
	local_close();
}

TEST(when_the_sender_leaves_that_goes_through_relays_too)
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
		serve(); /* a relay learns it from its own ring */
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
