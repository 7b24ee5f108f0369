/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing, in every order, and what is told to the other side. */
#include "lib/chan_pair.h"
#include "lib/handed.h"
#include "mem/mem.h"

TEST(a_rank_or_a_list_that_does_not_exist_is_refused)
{
	tern_chan *c = NULL;
	const uint32_t twice[] = { 1, 0, 1 }, beyond[] = { 1, 2 };
	local_open(2);
	CHECK_IS(tern_chan_to(local[0], 2, 1, &c), -ERANGE);
	CHECK_IS(tern_chan_from(local[0], 2, 1, &c), -ERANGE);
	CHECK_IS(tern_chan_to_list(local[0], twice, 0, 1, &c), -EINVAL);
	CHECK_IS(tern_chan_to_list(local[0], twice, 3, 1, &c), -EINVAL);
	CHECK_IS(tern_chan_to_list(local[0], beyond, 2, 1, &c), -ERANGE);
	CHECK(c == NULL);
	CHECK_IS(mem_of(local[0])->own.extents, 0); /* nothing was allocated for them */
	local_close();
}

TEST(a_name_can_be_used_once_at_a_time_between_two_ranks)
{
	tern_chan *c = NULL, *other;
	const uint32_t both[] = { 0, 1 };
	pair_start();
	CHECK_IS(tern_chan_to(local[0], 1, 7, &c), -EEXIST);
	CHECK(sentence_has(-EEXIST, "channel 7 to rank 1"));
	CHECK_IS(tern_chan_to_list(local[0], both, 2, 7, &c), -EEXIST);
	CHECK(c == NULL);
	CHECK_IS(tern_chan_to(local[1], 0, 7, &other), 0); /* the other way is another channel */
	CHECK_IS(tern_chan_to(local[0], 0, 7, &other), 0);
	CHECK_IS(tern_chan_to(local[0], 1, 8, &other), 0);
	CHECK_IS(tern_chan_close(pair_to), 0);
	CHECK_IS(tern_chan_to(local[0], 1, 7, &c), 0); /* although its old readers are not done */
	local_close();
}

TEST(offers_of_one_name_are_taken_in_the_order_they_were_made)
{
	uint64_t value = 0;
	local_open(2);
	for (uint64_t i = 1; i <= 3; i++) {
		REQUIRE(tern_chan_to(local[0], 1, 7, &pair_to) == 0);
		out = tern_chan_out(pair_to);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_close(pair_to), 0);
	}
	for (uint64_t i = 1; i <= 3; i++) {
		REQUIRE(tern_chan_from(local[1], 0, 7, &pair_from) == 0);
		in = tern_chan_in(pair_from);
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
		CHECK_IS(value, i);
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EPIPE);
		CHECK_IS(tern_chan_close(pair_from), 0);
	}
	local_close();
}

TEST(a_rank_keeps_so_many_offers_and_no_more)
{
	tern_chan *c;
	setenv("TERN_HEAP", "256M", 1);
	local_open(2);
	for (unsigned i = 0; i < TERN_CHANS_MAX; i++)
		REQUIRE(tern_chan_to(local[0], 1, i, &c) == 0);
	size_t extents = mem_of(local[0])->own.extents;
	CHECK_IS(tern_chan_to(local[0], 1, TERN_CHANS_MAX, &c), -ENOBUFS);
	CHECK(sentence_has(-ENOBUFS, "rank 1"));
	CHECK_IS(tern_chan_from(local[1], 0, 5, &c), 0);
	CHECK_IS(tern_chan_to(local[0], 1, TERN_CHANS_MAX, &c), 0);
	CHECK_IS(mem_of(local[0])->own.extents, extents + 1); /* the one that was refused is gone */
	local_close();
}

TEST(one_rank_cannot_take_the_places_of_the_others)
{
	tern_chan *c;
	setenv("TERN_HEAP", "256M", 1);
	local_open(3);
	for (unsigned i = 0; i < TERN_CHANS_MAX / 2; i++)
		REQUIRE(tern_chan_to(local[0], 1, i, &c) == 0);
	CHECK_IS(tern_chan_to(local[0], 1, TERN_CHANS_MAX, &c), -ENOBUFS);
	CHECK_IS(tern_chan_to(local[2], 1, 1, &c), 0);
	local_close();
}

/* That have not been taken. */
static unsigned offers_at(uint32_t r)
{
	unsigned n = 0;
	for (const struct tern_chan *c = chans_of(local[r])->first; c; c = c->next)
		n += c->offered;
	return n;
}

TEST(a_list_of_which_one_rank_refuses_is_taken_back_everywhere)
{
	tern_chan *c;
	const uint32_t list[] = { 1, 2 };
	setenv("TERN_HEAP", "256M", 1);
	local_open(3);
	for (unsigned i = 0; i < TERN_CHANS_MAX / 2; i++)
		REQUIRE(tern_chan_to(local[0], 2, i, &c) == 0);
	size_t extents = mem_of(local[0])->own.extents;
	CHECK_IS(tern_chan_to_list(local[0], list, 2, 5000, &c), -ENOBUFS);
	local_settle();
	chan_settle();
	CHECK_IS(offers_at(1), 0);
	CHECK_IS(tern_chan_to(local[0], 1, 5000, &c), 0);
	CHECK_IS(mem_of(local[0])->own.extents, extents + 1);
	CHECK_IS(offers_at(1), 1);
	local_close();
}

TEST(a_heap_that_is_spent_refuses_a_channel_and_goes_on)
{
	tern_chan *c[200];
	unsigned n = 0;
	int rc = 0;
	setenv("TERN_HEAP", "2M", 1);
	local_open(2);
	while (n < 200 && (rc = tern_chan_to(local[0], 1, n, &c[n])) == 0)
		n++;
	CHECK_IS(rc, -ENOMEM);
	CHECK(sentence_has(-ENOMEM, "TERN_HEAP"));
	REQUIRE(n > 1);
	REQUIRE(tern_chan_from(local[1], 0, 0, &pair_from) == 0);
	CHECK_IS(tern_chan_close(c[0]), 0);
	CHECK_IS(tern_chan_to(local[0], 1, n, &c[n]), -ENOMEM); /* it may still be read */
	CHECK_IS(tern_chan_close(pair_from), 0);
	chan_settle();
	CHECK_IS(tern_chan_to(local[0], 1, n, &c[n]), 0);
	local_close();
}

TEST(the_memory_of_channels_comes_back)
{
	local_open(2);
	for (uint64_t i = 0; i < 500; i++) {
		pair_open(i % 3);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(pair_get(), i);
		CHECK_IS(tern_chan_close(i % 2 ? pair_to : pair_from), 0);
		CHECK_IS(tern_chan_close(i % 2 ? pair_from : pair_to), 0);
		chan_settle();
	}
	CHECK(mem_of(local[0])->own.extents <= 2);
	local_close();
}

/* -- Closing ---------------------------------------------------------------------------------- */

static uint64_t fill(void)
{
	uint64_t n = 0;
	while (try_put(&out, n) == 0)
		n++;
	return n;
}

/* Gets `n` values, and then there is nothing but `code`. */
static void drain(uint64_t n, int code)
{
	uint64_t value = 0;
	for (uint64_t i = 0; i < n; i++) {
		REQUIRE(tern_chan_get(&in, &value, sizeof value) == 0);
		REQUIRE(value == i);
	}
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), code);
	CHECK(sentence_has(code, "channel 7 from rank 0"));
	CHECK_IS(try_get(&in, &value), code);
	CHECK_IS(tern_chan_next(&in), code);
	CHECK_IS(tern_chan_run(&in), code);
	CHECK_IS(tern_chan_get(&in, &value, 8), code);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_CLOSED);
}

TEST(what_was_put_before_the_sending_end_was_closed_still_arrives)
{
	const uint64_t counts[] = { 0, 1, 7, LEAF_WORDS - 1, LEAF_WORDS, 3 * LEAF_WORDS };
	local_open(2);
	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
		for (int late = 0; late < 2; late++) {
			REQUIRE(tern_chan_to(local[0], 1, 7, &pair_to) == 0);
			out = tern_chan_out(pair_to);
			if (!late)
				REQUIRE(tern_chan_from(local[1], 0, 7, &pair_from) == 0);
			for (uint64_t n = 0; n < counts[i]; n++)
				CHECK_IS(tern_chan_put(&out, &(uint64_t){ n }, sizeof(uint64_t)),
					 0);
			CHECK_IS(tern_chan_close(pair_to), 0);
			if (late)
				REQUIRE(tern_chan_from(local[1], 0, 7, &pair_from) == 0);
			in = tern_chan_in(pair_from);
			drain(counts[i], -EPIPE);
			CHECK_IS(tern_chan_close(pair_from), 0);
		}
	local_close();
}

TEST(a_full_channel_can_be_closed_from_either_side)
{
	local_open(2);
	pair_open(7);
	uint64_t n = fill();
	CHECK_IS(tern_chan_close(pair_to), 0);
	drain(n, -EPIPE);
	CHECK_IS(tern_chan_close(pair_from), 0);

	pair_open(7);
	fill();
	CHECK_IS(tern_chan_close(pair_from), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), -EPIPE);
		CHECK(sentence_has(-EPIPE, "channel 7 of rank 0"));
		CHECK_IS(try_put(&out, 1), -EPIPE);
		CHECK_IS(tern_chan_put(&out, ((uint64_t[]){ 1, 2 }), 16), -EPIPE);
		CHECK_IS(tern_chan_end(&out), -EPIPE);
		CHECK_IS(tern_chan_room(&out, 8), -EPIPE);
	}
	CHECK_IS(tern_chan_close(pair_to), 0);
	local_close();
}

TEST(puts_into_a_channel_that_nobody_reads_fail_after_a_leaf_at_most)
{
	pair_start();
	CHECK_IS(tern_chan_close(pair_from), 0);
	chan_settle();
	int rc = 0;
	unsigned n = 0;
	while (!rc && n <= LEAF_WORDS) {
		rc = tern_chan_put(&out, &(uint64_t){ n }, sizeof(uint64_t));
		n += rc == 0;
	}
	CHECK_IS(rc, -EPIPE);
	CHECK_IS(n, LEAF_WORDS);
	CHECK_IS(tern_chan_close(pair_to), 0);
	CHECK_IS(chans_of(local[0])->first == NULL, 1);
	local_close();
}

TEST(an_offer_that_was_never_taken_does_not_hold_up_the_end_of_its_rank)
{
	local_open(2);
	REQUIRE(tern_chan_to(local[0], 1, 7, &pair_to) == 0);
	out = tern_chan_out(pair_to);
	uint64_t n = fill();
	CHECK(n > 0);
	local_close_one(1);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), -ESHUTDOWN);
	CHECK(sentence_has(-ESHUTDOWN, "rank 1"));
	local_close();
}

TEST(a_rank_that_leaves_without_closing_is_told_from_one_that_closes)
{
	pair_start();
	uint64_t n = fill();
	local_close_one(0);
	drain(n, -ESHUTDOWN); /* all that it put is still there */
	CHECK(sentence_has(-ESHUTDOWN, "rank 0 has left"));
	CHECK_IS(tern_chan_close(pair_from), 0);
	CHECK_IS(tern_chan_from(local[1], 0, 8, &pair_from), -ESHUTDOWN);
	CHECK_IS(tern_chan_to(local[1], 0, 8, &pair_to), -ESHUTDOWN);
	local_close();
}

TEST(an_offer_can_be_taken_when_its_maker_has_left)
{
	local_open(2);
	REQUIRE(tern_chan_to(local[0], 1, 7, &pair_to) == 0);
	REQUIRE(tern_chan_to(local[0], 1, 9, &pair_to) == 0);
	out = tern_chan_out(pair_to);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 0 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_close(pair_to), 0);
	local_close_one(0);
	REQUIRE(tern_chan_from(local[1], 0, 7, &pair_from) == 0);
	in = tern_chan_in(pair_from);
	drain(0, -ESHUTDOWN);
	REQUIRE(tern_chan_from(local[1], 0, 9, &pair_from) == 0);
	in = tern_chan_in(pair_from);
	uint64_t value = 1;
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
	CHECK_IS(value, 0);
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EPIPE);
	local_close();
}

/* -- What messages say is checked ------------------------------------------------------------- */

static int offered(uint64_t a, uint64_t reader)
{
	unsigned before = offers_at(1);
	uint64_t words[] = { 1, reader, 55, a }, other = 2;
	CHECK_IS(layer_request(local[0]->own, 1, CHAN_OFFER, NULL, 0, 4, words), 0);
	CHECK_IS(layer_request(local[0]->own, 1, CHAN_WITHDRAW, NULL, 0, 1, &other), 0);
	local_settle();
	return (int)(offers_at(1) - before);
}

TEST(an_offer_of_anything_but_a_ring_in_a_heap_is_refused)
{
	pair_start();
	if (!layer_maps(local[1]->own, 0)) { /* what it cannot map it cannot check, either */
		local_close();
		return;
	}
	tern_addr good = handed_addr(local[0], pair_to->pipe);
	CHECK_IS(offered(TERN_ADDR_NONE, 0), 0);
	CHECK_IS(offered(good + 64, 0), 0);
	CHECK_IS(offered(good, 2), 0);
	CHECK_IS(offered(good, UINT64_MAX), 0);
	CHECK_IS(offered(good + (UINT64_C(1) << 30), 0), 0);
	CHECK_IS(offered(handed_at(good, 2), 0), 0);
	CHECK_IS(offered(UINT64_MAX, 0), 0);
	local_close();
}

TEST(a_ring_is_aligned_to_its_leaves_wherever_the_heap_stands)
{
	local_open(2);
	for (uint64_t i = 0; i < 40; i++) {
		REQUIRE(handed_alloc(local[0], 64 * (i % 7)));
		pair_open(i);
		CHECK_IS((uintptr_t)pair_to->pipe % TERN_CHAN_LEAF, 0);
		CHECK((char *)pair_to->pipe - (char *)pair_to->memory < TERN_CHAN_LEAF);
	}
	local_close();
}
