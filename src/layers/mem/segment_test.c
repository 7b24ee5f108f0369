/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication segments: filling, ending, and everything that is refused. */
#include <errno.h>

#include "lib/local.h"
#include "lib/mem_model.h"
#include "mem/mem.h"

enum { ASK, TELL, ASK4, RANKS = 4, BYTES = 100000, GUARD = 64 };

static unsigned char room[GUARD + BYTES + GUARD], image[GUARD + BYTES + GUARD], data[BYTES];
static unsigned char *const base = room + GUARD, *const base_image = image + GUARD;
static int info;

/* What the end function saw, and what it is to return. */
static struct {
	unsigned calls;
	tern *t;
	void *base, *info;
	size_t next;
	bool whole; /* everything had come */
} end;

static size_t note_end(tern *t, void *at, void *arg)
{
	end.calls++;
	end.t = t;
	end.base = at;
	end.info = arg;
	end.whole = memcmp(room, image, sizeof room) == 0;
	size_t next = end.next;
	end.next = 0;
	return next;
}

static void ranks_open(void)
{
	struct chance c = { 7 };
	local_open(RANKS);
	memset(room, 0xee, sizeof room);
	memset(image, 0xee, sizeof image);
	model_scatter(data, BYTES, &c);
}

static tern_segment segment_of_rank_0(size_t bytes)
{
	tern_segment s = 0;
	REQUIRE(tern_segment_open(local[0], base, bytes, note_end, &info, &s) == 0);
	return s;
}

static void check_room(void)
{
	CHECK(model_same(room, image, sizeof room));
}

/* Sends and waits; the operation's result. */
static int xfer(uint32_t from, tern_segment s, const void *bytes, size_t len)
{
	tern_op op = TERN_OP;
	int rc = tern_segment_put_start(local[from], s, bytes, len, &op);
	int ended = tern_op_wait(local[from], &op);
	return rc ? rc : ended;
}

TEST(a_segment_filled_by_one_sender_ends_with_the_last_byte)
{
	ranks_open();
	tern_segment s = segment_of_rank_0(1000);
	memcpy(base_image, data, 999);
	CHECK_IS(xfer(1, s, data, 999), 0);
	CHECK_IS(end.calls, 0);
	check_room();
	base_image[999] = data[999];
	CHECK_IS(xfer(1, s + 999, data + 999, 1), 0);
	CHECK_IS(end.calls, 1);
	CHECK(end.whole && end.t == local[0] && end.base == base && end.info == &info);
	check_room();
	CHECK(xfer(1, s, data, 1) < 0); /* it is closed */
	check_room();
	local_close();
}

enum { CUTS = 64 };

struct cut {
	size_t at, len;
};

/* Cuts all of the segment into pieces, in random order; how many. */
static unsigned cut_up(struct cut *cut, struct chance *c)
{
	unsigned n = 0;
	for (size_t at = 0; at < BYTES; n++) {
		size_t len = n + 1 == CUTS ? BYTES : 1 + model_length(c, 20000);
		cut[n] = (struct cut){ at, len < BYTES - at ? len : BYTES - at };
		at += cut[n].len;
	}
	for (unsigned i = n - 1; i; i--) {
		unsigned other = chance_below(c, i + 1);
		struct cut kept = cut[i];
		cut[i] = cut[other];
		cut[other] = kept;
	}
	return n;
}

TEST(senders_fill_a_segment_in_any_order_with_blocks_of_any_length)
{
	struct cut cut[CUTS];
	ranks_open();
	struct chance c = { check_seed() };
	for (unsigned n = check_scaled(30); n; n--) {
		tern_op op[RANKS] = { TERN_OP };
		unsigned cuts = cut_up(cut, &c);
		tern_segment s = segment_of_rank_0(BYTES);
		memset(room, 0xee, sizeof room);
		memcpy(base_image, data, BYTES);
		end.calls = 0;
		for (unsigned i = 0; i < cuts; i++) {
			uint32_t from = chance_below(&c, RANKS); /* the owner too */
			CHECK_IS(end.calls, 0);
			CHECK_IS(tern_segment_put_start(local[from], s + cut[i].at,
							data + cut[i].at, cut[i].len, &op[from]),
				 0);
		}
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_op_wait(local[r], &op[r]), 0);
		CHECK_IS(end.calls, 1);
		CHECK(end.whole);
		check_room();
	}
	local_close();
}

TEST(four_words_travel_as_thirty_two_bytes)
{
	ranks_open();
	tern_op op = TERN_OP;
	tern_segment s = segment_of_rank_0(96);
	const uint64_t words[4] = { 1, UINT64_MAX, 0x0123456789abcdef, 4 };
	CHECK_IS(tern_segment_put_start(local[2], s + 64, words, 32, &op), 0);
	CHECK_IS(tern_segment_put_start(local[3], s, words, 32, &op), 0);
	CHECK_IS(tern_op_wait(local[2], &op), 0);
	memcpy(base_image, words, 32);
	memcpy(base_image + 64, words, 32);
	check_room();
	CHECK_IS(tern_segment_put_start(local[1], s + 33, words, 32, &op), 0);
	memcpy(base_image + 33, words, 32);
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	CHECK_IS(end.calls, 1);
	check_room();
	CHECK_IS(tern_segment_put_start(local[1], s, words, 32, &op), 0);
	CHECK(tern_op_wait(local[1], &op) < 0);
	check_room();
	local_close();
}

TEST(an_end_function_that_returns_a_count_keeps_the_segment_open)
{
	ranks_open();
	tern_segment s = segment_of_rank_0(100);
	end.next = 40;
	memcpy(base_image, data, 100);
	CHECK_IS(xfer(1, s, data, 100), 0);
	CHECK_IS(end.calls, 1);
	CHECK_IS(xfer(1, s, data, 41), -EOVERFLOW); /* more than it said */
	check_room();
	memcpy(base_image + 60, data, 39);
	CHECK_IS(xfer(2, s + 60, data, 39), 0);
	CHECK_IS(end.calls, 1);
	base_image[0] = 'x';
	CHECK_IS(xfer(2, s, "x", 1), 0);
	CHECK_IS(end.calls, 2);
	CHECK(end.whole);
	check_room();
	CHECK(xfer(2, s, "y", 1) < 0);
	local_close();
}

TEST(a_segment_without_an_end_function_closes_when_all_has_come)
{
	ranks_open();
	tern_segment s;
	REQUIRE(tern_segment_open(local[0], base, 10, NULL, NULL, &s) == 0);
	memcpy(base_image, data, 10);
	CHECK_IS(xfer(1, s, data, 10), 0);
	CHECK(xfer(1, s, data, 10) < 0);
	CHECK_IS(tern_segment_close(local[0], s), -EINVAL);
	check_room();
	local_close();
}

TEST(shortening_takes_off_what_is_still_to_come)
{
	ranks_open();
	tern_segment s = segment_of_rank_0(1000);
	memcpy(base_image + 500, data, 100);
	CHECK_IS(xfer(1, s + 500, data, 100), 0);
	CHECK_IS(tern_segment_shorten(local[0], s, 901), -EINVAL);
	CHECK_IS(tern_segment_shorten(local[0], s, 800), 0);
	CHECK_IS(end.calls, 0);
	CHECK_IS(xfer(1, s, data, 101), -EOVERFLOW);
	check_room();
	memcpy(base_image, data, 90);
	CHECK_IS(xfer(1, s, data, 90), 0);
	CHECK_IS(tern_segment_shorten(local[0], s, 10), 0); /* to nothing: that is the end */
	CHECK_IS(end.calls, 1);
	CHECK_IS(tern_segment_shorten(local[0], s, 0), -EINVAL);
	CHECK_IS(tern_segment_shorten(local[1], s, 0), -EINVAL);
	check_room();
	local_close();
}

/* -- Refused ----------------------------------------------------------------------------- */

TEST(stale_foreign_out_of_range_and_overrunning_data_is_refused_and_nothing_written)
{
	ranks_open();
	tern_op op = TERN_OP;
	CHECK(xfer(1, (tern_segment)0, data, 1) < 0); /* rank 0 has never opened one */
	tern_segment old = segment_of_rank_0(1000);
	CHECK_IS(tern_segment_close(local[0], old), 0);
	int rc = xfer(1, old, data, 10);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "rank 0"));
	tern_segment s = segment_of_rank_0(1000); /* in the same place */
	CHECK(s != old);
	CHECK_IS(xfer(1, old, data, 10), -EFAULT);
	CHECK_IS(xfer(1, s + ((tern_segment)1 << 48), data, 10), -EFAULT); /* rank 1 has none */
	CHECK_IS(tern_segment_put_start(local[1], s | (tern_segment)RANKS << 48, data, 10, &op),
		 -ERANGE);
	CHECK_IS(xfer(1, s + ((tern_segment)1 << 32), data, 10), -EFAULT); /* another index */
	CHECK_IS(xfer(1, s + 1000, data, 1), -EFAULT);
	CHECK_IS(xfer(1, s + 999, data, 2), -EFAULT);
	CHECK_IS(xfer(1, s + 0xffffffff, data, 1), -EFAULT);
	CHECK_IS(xfer(1, s, data, 1001), -EFAULT);
	CHECK(xfer(1, s, data, (size_t)1 << 40) < 0);
	CHECK_IS(op.pending, 0);
	check_room();
	CHECK_IS(end.calls, 0);
	memcpy(base_image, data, 999); /* and it still expects every byte */
	CHECK_IS(xfer(1, s, data, 999), 0);
	rc = xfer(2, s, data, 2);
	CHECK_IS(rc, -EOVERFLOW);
	CHECK(sentence_has(rc, "rank 0"));
	check_room();
	base_image[5] = 'z';
	CHECK_IS(xfer(2, s + 5, "z", 1), 0);
	CHECK_IS(end.calls, 1);
	local_close();
}

TEST(data_that_runs_over_the_end_of_a_segment_does_not_reach_the_next_one)
{
	static unsigned char second[20000];
	ranks_open();
	tern_segment s = segment_of_rank_0(1000), next;
	REQUIRE(tern_segment_open(local[0], second, sizeof second, NULL, NULL, &next) == 0);
	CHECK(xfer(1, s + 0xffffff00, data, 3 * TERN_PAYLOAD_MAX) < 0);
	for (size_t i = 0; i < sizeof second; i++)
		CHECK(second[i] == 0);
	CHECK(xfer(1, s, data, 3 * TERN_PAYLOAD_MAX) < 0);
	check_room();
	local_close();
}

TEST(zero_bytes_into_a_segment_change_nothing)
{
	ranks_open();
	tern_segment s = segment_of_rank_0(10);
	CHECK_IS(xfer(1, s, NULL, 0), 0);
	CHECK_IS(end.calls, 0);
	CHECK_IS(xfer(1, s, data, 11), -EFAULT);
	memcpy(base_image, data, 10);
	CHECK_IS(xfer(1, s, data, 10), 0);
	check_room();
	CHECK_IS(end.calls, 1);
	local_close();
}

TEST(opening_says_when_no_segment_is_free)
{
	static unsigned char rooms[TERN_SEGMENTS_MAX];
	static tern_segment s[TERN_SEGMENTS_MAX];
	tern_segment more;
	ranks_open();
	CHECK_IS(TERN_SEGMENTS_MAX, 256);
	for (int i = 0; i < TERN_SEGMENTS_MAX; i++) {
		CHECK_IS(tern_segment_open(local[0], &rooms[i], 1, NULL, NULL, &s[i]), 0);
		for (int j = 0; j < i; j++)
			CHECK(s[j] != s[i]);
	}
	int rc = tern_segment_open(local[0], base, 1, NULL, NULL, &more);
	CHECK_IS(rc, -ENOBUFS);
	CHECK(sentence_has(rc, "rank 0"));
	CHECK_IS(tern_segment_open(local[1], base, 1, NULL, NULL, &more),
		 0); /* a table for each rank */
	for (int i = TERN_SEGMENTS_MAX - 1; i >= 0; i--)
		CHECK_IS(xfer(2, s[i], &data[i], 1), 0);
	CHECK(memcmp(rooms, data, TERN_SEGMENTS_MAX) == 0);
	CHECK_IS(tern_segment_open(local[0], base, 1, NULL, NULL, &more), 0);
	CHECK_IS(tern_segment_open(local[0], NULL, 1, NULL, NULL, &more), -EINVAL);
	CHECK_IS(tern_segment_open(local[0], base, 0, NULL, NULL, &more), -EINVAL);
	CHECK_IS(tern_segment_close(local[1], s[0]), -EINVAL); /* another rank's */
	local_close();
}

/* -- From the end function ------------------------------------------------------------------ */

static tern_segment reopened;

static size_t close_and_open_another(tern *t, void *at, void *arg)
{
	tern_segment *mine = arg;
	end.calls++;
	CHECK_IS(tern_segment_close(t, *mine), 0);
	CHECK_IS(tern_segment_open(t, (char *)at + 500, 20, note_end, &info, &reopened), 0);
	return 0;
}

TEST(an_end_function_may_close_its_segment_and_open_another)
{
	ranks_open();
	tern_segment s;
	REQUIRE(tern_segment_open(local[0], base, 10, close_and_open_another, &s, &s) == 0);
	memcpy(base_image, data, 10);
	CHECK_IS(xfer(1, s, data, 10), 0);
	CHECK_IS(end.calls, 1);
	memcpy(base_image + 500, data, 20);
	CHECK_IS(xfer(1, reopened, data, 20), 0);
	CHECK_IS(end.calls, 2);
	CHECK(xfer(1, s, data, 10) < 0);
	check_room();
	local_close();
}

static size_t count_rounds(tern *t, void *at, void *arg)
{
	(void)t;
	(void)at;
	unsigned *rounds = arg;
	return --*rounds ? 64 : 0;
}

TEST(a_segment_that_is_refilled_again_and_again_takes_every_round)
{
	ranks_open();
	tern_segment s;
	unsigned rounds = 500, sent = 0;
	tern_op op = TERN_OP;
	REQUIRE(tern_segment_open(local[0], base, 64, count_rounds, &rounds, &s) == 0);
	while (rounds) {
		CHECK_IS(tern_segment_put_start(local[1], s, data + sent, 64, &op), 0);
		CHECK_IS(tern_op_wait(local[1], &op), 0);
		sent++;
	}
	CHECK_IS(sent, 500);
	memcpy(base_image, data + 499, 64);
	check_room();
	local_close();
}

/* -- Replies ----------------------------------------------------------------------------------- */

static int reply_codes[4];

static void reply_block(tern *t, const tern_msg *m)
{
	size_t at = tern_msg_word(m, 1), len = tern_msg_word(m, 2);
	reply_codes[0] = tern_segment_reply(t, m, tern_msg_word(m, 0) + at, data + at, len);
	if (!reply_codes[0])
		reply_codes[1] = tern_segment_reply(t, m, tern_msg_word(m, 0), data, 1);
}

static void reply_four(tern *t, const tern_msg *m)
{
	const uint64_t words[4] = { 1, 2, 3, 4 };
	reply_codes[0] =
		tern_segment_reply(t, m, tern_msg_word(m, 0) + tern_msg_word(m, 1), words, 32);
}

TEST(a_request_handler_fills_the_segment_of_whoever_asked)
{
	ranks_open();
	local_on(ASK, reply_block);
	local_on(ASK4, reply_four);
	tern_segment s = segment_of_rank_0(9000 + 32);
	CHECK_IS(tern_request(local[0], 1, ASK, s, 1000, 8000), 0);
	local_settle();
	CHECK_IS(reply_codes[0], 0);
	CHECK_IS(reply_codes[1], -EALREADY);
	memcpy(base_image + 1000, data + 1000, 8000);
	CHECK_IS(tern_request(local[0], 2, ASK, s, 0, 1000), 0);
	local_settle();
	memcpy(base_image, data, 1000);
	check_room();
	CHECK_IS(end.calls, 0);
	CHECK_IS(tern_request(local[0], 3, ASK4, s, 9000), 0);
	memcpy(base_image + 9000, (uint64_t[]){ 1, 2, 3, 4 }, 32);
	local_settle();
	CHECK_IS(end.calls, 1);
	CHECK(end.whole);
	check_room();
	local_close();
}

TEST(a_reply_into_a_segment_is_refused_where_it_does_not_belong)
{
	ranks_open();
	local_on(ASK, reply_block);
	local_on(ASK4, reply_four);
	tern_segment s = segment_of_rank_0(100), of_3;
	REQUIRE(tern_segment_open(local[3], base, 100, NULL, NULL, &of_3) == 0);
	CHECK_IS(tern_request(local[0], 1, ASK, of_3, 0, 10), 0); /* not the asker's */
	local_settle();
	CHECK_IS(reply_codes[0], -EINVAL);
	CHECK_IS(tern_request(local[0], 1, ASK4, of_3, 0), 0);
	local_settle();
	CHECK_IS(reply_codes[0], -EINVAL);
	CHECK_IS(tern_request(local[0], 1, ASK, s, 0, TERN_PAYLOAD_MAX + 1), 0);
	local_settle();
	CHECK_IS(reply_codes[0], -EMSGSIZE);
	CHECK_IS(tern_request(local[0], 1, ASK, s, 95, 10),
		 0); /* the owner refuses it, and says so */
	local_settle();
	CHECK_IS(reply_codes[0], 0);
	check_room();
	CHECK_IS(end.calls, 0);
	const uint64_t words[4] = { 0 };
	CHECK_IS(tern_segment_reply(local[0], NULL, s, data, 1), -EPERM); /* outside a handler */
	CHECK_IS(tern_segment_reply(local[0], NULL, s, words, 32), -EPERM);
	local_close();
}

TEST(hundreds_of_transfers_under_one_handle_into_many_segments)
{
	enum { MANY = 50, EACH = 2000 };
	static tern_segment s[MANY];
	ranks_open();
	struct chance c = { check_seed() };
	tern_op op[RANKS] = { TERN_OP };
	for (int i = 0; i < MANY; i++)
		REQUIRE(tern_segment_open(local[0], base + i * EACH, EACH, note_end, &info,
					  &s[i]) == 0);
	for (int step = 0; step < EACH / 100; step++)
		for (int i = 0; i < MANY; i++) {
			uint32_t from = 1 + chance_below(&c, RANKS - 1);
			size_t at = (size_t)step * 100;
			CHECK_IS(tern_segment_put_start(local[from], s[i] + at,
							data + i * EACH + at, 100, &op[from]),
				 0);
		}
	memcpy(base_image, data, MANY * EACH);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_op_wait(local[r], &op[r]), 0);
	CHECK_IS(end.calls, MANY);
	check_room();
	local_close();
}
