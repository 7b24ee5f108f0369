/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels whose ends have no memory in common: when what is put leaves, and what a mirror does
 * with what comes.
 */
#include "lib/chan_pair.h"
#include "lib/far.h"

static void far_start(uint32_t n)
{
	far_use(NULL); /* these look at single packets */
	local_polled();
	local_open(n);
	pair_open(7);
	chan_settle();
	REQUIRE(pair_to->far == 1 && pair_from->mirror);
}

/* Polls at the reader only, until it has the value; whether that ever came. */
static bool comes(uint64_t expected)
{
	uint64_t value = ~expected;
	int rc = -EAGAIN;
	for (int i = 0; i < 100000 && rc == -EAGAIN; i++) {
		(void)!tern_poll(local[1]);
		rc = try_get(&in, &value);
	}
	return rc == 0 && CHECK_IS(value, expected);
}

static unsigned mirrors_of(uint32_t r)
{
	unsigned n = 0;
	for (struct tern_chan *c = chans_of(local[r])->first; c; c = c->next)
		n += c->fills;
	return n;
}

/* -- When it leaves --------------------------------------------------------------------------- */

TEST(a_value_leaves_with_its_put_though_the_sender_does_nothing_more)
{
	far_start(2);
	for (uint64_t i = 0; i < 1000; i++) {
		pair_to->burst = 0; /* as if some time had passed */
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		REQUIRE(comes(i));
		chan_settle();
	}
	pair_end();
}

/* As if much had been put just now, for ever. */
static void in_a_burst(void)
{
	pair_to->since = local[0]->own->world->now() + (UINT64_C(1) << 40);
	pair_to->burst = UINT32_MAX;
	pair_to->pressed = pair_to->leaf;
}

TEST(what_is_put_in_a_burst_leaves_together_when_the_sender_polls)
{
	uint64_t value;
	far_start(2);
	in_a_burst();
	uint64_t sent = local_handled();
	for (uint64_t i = 0; i < 100; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
	CHECK(pair_to->owes && local[0]->own->work);
	for (int i = 0; i < 1000; i++)
		(void)!tern_poll(local[1]);
	CHECK_IS(try_get(&in, &value), -EAGAIN);
	(void)!tern_poll(local[0]);
	for (uint64_t i = 0; i < 100; i++)
		REQUIRE(comes(i));
	CHECK_IS(local_handled() - sent, 1);
	CHECK(!pair_to->owes && !local[0]->own->work); /* so that it can sleep */
	pair_end();
}

TEST(the_end_of_a_message_leaves_at_once_with_all_before_it)
{
	far_start(2);
	in_a_burst();
	for (uint64_t i = 0; i < 100; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	for (uint64_t i = 0; i < 100; i++)
		REQUIRE(comes(i));
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_END);
	pair_end();
}

TEST(what_was_put_off_leaves_before_its_rank_does)
{
	far_start(2);
	in_a_burst();
	for (uint64_t i = 0; i < 100; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
	local_close_one(0);
	for (uint64_t i = 0; i < 100; i++)
		REQUIRE(comes(i));
	uint64_t value;
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -ESHUTDOWN);
	local_close();
}

/* -- Ranks that have left ---------------------------------------------------------------------- */

TEST(what_a_rank_sent_before_it_left_is_found_though_nobody_had_looked_yet)
{
	far_start(2);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
	lost_drain_begin(local[1]->own, 0); /* as if it had gone just now */
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	chan_settle();
	CHECK_IS(pair_get(), 5);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_CLOSED);
	local_close();
}

TEST(that_a_reader_closed_before_it_left_is_found_too)
{
	far_start(2);
	CHECK_IS(tern_chan_close(pair_from), 0);
	lost_drain_begin(local[0]->own, 1);
	CHECK(out_limit(pair_to) != 0);
	chan_settle();
	CHECK_IS(out_limit(pair_to), 0);
	CHECK_IS(out_gone(pair_to), -EPIPE);
	local_close();
}

static int put_rc;
static void put_here(tern *t, const tern_msg *m)
{
	(void)t;
	put_rc = tern_chan_put(&out, &(uint64_t){ tern_msg_word(m, 0) }, sizeof(uint64_t));
}

TEST(what_a_handler_puts_leaves_at_the_end_of_its_poll)
{
	far_start(2);
	local_on(1, put_here);
	CHECK_IS(tern_request(local[1], 0, 1, 55), 0);
	put_rc = 1;
	while (put_rc == 1)
		(void)!tern_poll(local[0]);
	CHECK_IS(put_rc, 0);
	CHECK(comes(55));
	pair_end();
}

/* -- Readers near and far ---------------------------------------------------------------------- */

TEST(a_list_of_ranks_near_and_far_gets_everything_and_the_slowest_is_waited_for)
{
	const uint32_t list[] = { 2, 0, 1 };
	tern_chan *to, *from[3];
	tern_in ends[3];
	uint64_t put = 0, value = 0;
	far_start(3);
	REQUIRE(tern_chan_to_list(local[0], list, 3, 9, &to) == 0);
	CHECK_IS(to->far, 2);
	tern_out o = tern_chan_out(to);
	for (uint32_t r = 0; r < 3; r++) {
		REQUIRE(tern_chan_from(local[r], 0, 9, &from[r]) == 0);
		ends[r] = tern_chan_in(from[r]);
		CHECK_IS(from[r]->mirror != NULL, r != 0);
	}
	for (int lap = 0; lap < 5; lap++) {
		uint64_t first = put;
		for (; try_put(&o, put) == 0; put++)
			;
		CHECK(put - first >= PIPE_WORDS && put - first <= PIPE_LEAVES * LEAF_WORDS);
		chan_settle();
		for (uint32_t i = 0; i < 3; i++) {
			CHECK_IS(try_put(&o, put), -EAGAIN); /* until the last has read */
			uint32_t r = ((uint32_t)lap + i) % 3;
			for (uint64_t n = first; n < put; n++)
				REQUIRE(try_get(&ends[r], &value) == 0 && value == n);
			chan_settle();
		}
	}
	CHECK_IS(tern_chan_close(from[2]), 0);
	CHECK_IS(tern_chan_close(from[0]), 0);
	chan_settle();
	for (uint64_t n = 0; n < 5 * PIPE_WORDS; n++) /* those who have closed are not waited for */
		CHECK(tern_chan_put(&o, &(uint64_t){ n }, sizeof(uint64_t)) == 0 &&
		      tern_chan_get(&ends[1], &value, sizeof value) == 0 && value == n);
	CHECK_IS(tern_chan_close(to), 0);
	CHECK_IS(tern_chan_get(&ends[1], &value, sizeof value), -EPIPE);
	CHECK_IS(tern_chan_close(from[1]), 0);
	pair_end();
}

TEST(both_sides_get_their_memory_back)
{
	far_start(2);
	CHECK_IS(tern_chan_close(pair_to), 0);
	CHECK_IS(tern_chan_close(pair_from), 0);
	for (uint64_t i = 0; i < 200; i++) {
		pair_open(i);
		for (uint64_t n = 0; n < i; n++)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ n }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_close(i % 2 ? pair_to : pair_from), 0);
		CHECK_IS(tern_chan_close(i % 2 ? pair_from : pair_to), 0);
	}
	chan_settle();
	chans_sweep(chans_of(local[0]));
	CHECK(chans_of(local[0])->first == NULL);
	CHECK(chans_of(local[1])->first == NULL); /* mirrors go by themselves */
	for (int i = 0; i < BUCKETS; i++)
		CHECK(chans_of(local[1])->named[i] == NULL);
	local_close();
}

/* -- What messages say is checked -------------------------------------------------------------- */

static uint64_t number_of(void)
{
	return pair_to->listener[0].mirror;
}

static int stream(uint32_t src, uint64_t number, const uint64_t *word, unsigned n)
{
	uint64_t words[TERN_WORDS_MAX] = { number };
	int rc = 0;
	memcpy(words + 1, word, n * sizeof *word);
	CHECK_IS(layer_request(local[src]->own, 1, CHAN_STREAM, NULL, 0, n + 1, words), 0);
	for (int i = 0; i < 1000 && rc >= 0; i++) {
		(void)!tern_poll(local[src]);
		rc = tern_poll(local[1]);
	}
	return rc;
}

TEST(what_comes_for_a_mirror_from_another_rank_or_under_an_old_number_is_dropped)
{
	const uint64_t data[] = { STREAM_DATA | 1 << ITEM_BITS, 99 };
	far_start(3);
	CHECK(stream(2, number_of(), data, 2) >= 0);
	CHECK(stream(0, number_of() + 1, data, 2) >= 0);
	CHECK(stream(0, UINT64_MAX, data, 2) >= 0);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	CHECK(stream(0, number_of(), data, 2) >= 0); /* as it should be */
	CHECK_IS(pair_get(), 99);
	CHECK_IS(tern_chan_close(pair_from), 0);
	CHECK(stream(0, number_of(), data, 2) >= 0);
	local_close();
}

TEST(what_is_no_channels_data_is_dropped_and_said)
{
	const uint64_t bad[][2] = {
		{ STREAM_DATA, 1 },                             /* nothing, */
		{ STREAM_DATA | 2 << ITEM_BITS, 1 },            /* more than there is, */
		{ STREAM_DATA | UINT64_MAX << ITEM_BITS, 1 },   /* much more, */
		{ 4, 1 },                                       /* no item, */
		{ STREAM_OVER | PIPE_OPEN << ITEM_BITS, 1 },    /* no end, */
		{ STREAM_OVER | PIPE_CLOSED << ITEM_BITS, 1 },  /* something behind it */
		{ STREAM_OVER | (PIPE_LEFT + 1) << ITEM_BITS }, /* no state */
	};
	far_start(2);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_IS(stream(0, number_of(), bad[i], i == 6 ? 1 : 2), -EBADMSG);
	CHECK(sentence_has(-EBADMSG, "rank 0"));
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	pair_end();
}

TEST(more_than_a_mirror_holds_is_not_taken)
{
	static uint64_t data[STREAM_WORDS];
	uint64_t number;
	int rc = 0;
	far_start(2);
	number = number_of();
	data[0] = STREAM_DATA | (uint64_t)(STREAM_WORDS - 1) << ITEM_BITS;
	for (int i = 0; i < 5; i++)
		CHECK_IS(
			layer_request(local[0]->own, 1, CHAN_STREAM, data, sizeof data, 1, &number),
			0);
	for (int i = 0; i < 1000 && rc >= 0; i++) {
		(void)!tern_poll(local[0]);
		rc = tern_poll(local[1]);
	}
	CHECK_IS(rc, -EBADMSG);
	for (unsigned i = 0; i < PIPE_LEAVES * LEAF_WORDS; i++)
		REQUIRE(pair_get() == 0);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	local_close();
}

static void tell(uint32_t src, uint64_t serial, uint64_t freed, uint64_t state, uint64_t number)
{
	const uint64_t words[] = { serial, 0, freed, state, number };
	CHECK_IS(layer_request(local[src]->own, 0, CHAN_TELL, NULL, 0, 5, words), 0);
	chan_settle();
}

TEST(what_a_mirror_cannot_have_told_changes_nothing)
{
	far_start(3);
	uint64_t serial = pair_to->serial, number = number_of();
	struct reader *r = &pair_to->pipe->reader[0];
	tell(2, serial, 0, READER_CLOSED, number);     /* not its rank, */
	tell(1, serial + 1, 0, READER_CLOSED, number); /* not its ring, */
	tell(1, serial, 0, READER_CLOSED, number + 1); /* not its number, */
	tell(1, serial, 1, READER_OPEN, number);       /* a leaf that was not entered, */
	tell(1, serial, 0, READER_NONE, number);       /* no state, */
	tell(1, serial, 0, READER_LEFT + 1, number);   /* nor is this */
	CHECK_IS(atomic_load(&r->freed), 0);
	CHECK_IS(atomic_load(&r->state), READER_OPEN);
	tell(1, serial, 0, READER_CLOSED, number);
	CHECK_IS(atomic_load(&r->state), READER_CLOSED);
	CHECK_IS(mirrors_of(1), 1);
	local_close();
}
