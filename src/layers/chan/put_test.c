/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting and getting, by one thread that has both ends. */
#include "lib/chan_pair.h"
#include "lib/chance.h"

enum { RING_MOST = PIPE_LEAVES * LEAF_WORDS, LAPS = 5 };

TEST(what_is_put_is_there_at_once_and_comes_out_in_order)
{
	uint64_t value;
	pair_start();
	for (uint64_t i = 0; i < LAPS * RING_MOST; i++) {
		CHECK_IS(try_get(&in, &value), -EAGAIN);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		value = ~i;
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
		CHECK_IS(value, i);
	}
	pair_end();
}

TEST(every_value_of_64_bits_is_only_a_value)
{
	const uint64_t values[] = { 0,        UINT64_MAX, (uint64_t)-56, (uint64_t)-8,
				    1,        UINT32_MAX, 0xffffffc8,    56,
				    INT64_MAX };
	enum { VALUES = sizeof values / sizeof *values };
	pair_start();
	for (unsigned i = 0; i < RING_MOST; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ values[i % VALUES] }, sizeof(uint64_t)) +
				 (pair_get() != values[i % VALUES]),
			 0);
	pair_end();
}

TEST(sixteen_bytes_that_were_put_as_eight_are_waited_for)
{
	uint64_t two[2] = { 0, 0 };
	pair_start();
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	chan_settle();
	tern_hold(local[1]);
	CHECK_IS(tern_chan_get(&in, two, 16), -EDEADLK); /* half of it is no value */
	tern_release(local[1]);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 2 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_get(&in, two, 16), 0);
	CHECK(two[0] == 1 && two[1] == 2);
	pair_end();
}

TEST(four_sixteen_and_any_number_of_bytes_come_out_in_the_same_sizes)
{
	struct chance c = { check_seed() };
	unsigned char data[300], got[300];
	uint32_t four = 0;
	uint64_t two[2];
	pair_start();
	for (unsigned i = 0; i < check_scaled(20000); i++) {
		uint64_t number = chance_next(&c), pair[2] = { number, ~number };
		size_t len = chance_below(&c, sizeof data);
		unsigned skew = chance_below(&c, 8);
		for (unsigned k = 0; k < skew; k++)
			REQUIRE(tern_chan_put(&out, &(uint64_t){ k }, sizeof(uint64_t)) == 0 &&
				pair_get() == k);
		CHECK_IS(tern_chan_put(&out, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t)), 0);
		CHECK_IS(tern_chan_put(&out, pair, 16), 0);
		chance_fill(data, len, number);
		CHECK_IS(tern_chan_put(&out, data, len), 0);
		CHECK_IS(tern_chan_get(&in, &four, sizeof four), 0);
		CHECK_IS(four, (uint32_t)number);
		CHECK_IS(tern_chan_get(&in, two, 16), 0);
		CHECK(memcmp(two, pair, sizeof two) == 0);
		memset(got, 0xee, sizeof got);
		CHECK_IS(tern_chan_get(&in, got, len), 0);
		CHECK(chance_filled(got, len, number));
		CHECK(len == sizeof got || got[len] == 0xee);
	}
	pair_end();
}

TEST(sixteen_bytes_are_two_words_to_whoever_gets_words)
{
	uint64_t two[2] = { 11, 12 };
	pair_start();
	for (unsigned i = 0; i < 2 * RING_MOST; i++) {
		CHECK_IS(tern_chan_put(&out, two, 16), 0);
		CHECK_IS(pair_get(), 11);
		CHECK_IS(pair_get(), 12);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 13 }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 14 }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_get(&in, two, 16), 0); /* and the other way round */
		CHECK(two[0] == 13 && two[1] == 14);
		two[0] = 11, two[1] = 12;
	}
	pair_end();
}

/* -- Full and empty ------------------------------------------------------------------------ */

static uint64_t fill(void)
{
	uint64_t n = 0;
	int rc;
	chan_settle();
	while ((rc = try_put(&out, n)) == 0)
		n++;
	CHECK_IS(rc, -EAGAIN);
	return n;
}

TEST(a_full_channel_takes_nothing_without_waiting_and_all_of_it_comes_out)
{
	pair_start();
	for (int lap = 0; lap < LAPS; lap++) {
		uint64_t n = fill();
		CHECK(n >= PIPE_WORDS && n <= RING_MOST);
		CHECK_IS(try_put(&out, 1), -EAGAIN);
		for (uint64_t i = 0; i < n; i++)
			REQUIRE(pair_get() == i);
		uint64_t value;
		CHECK_IS(try_get(&in, &value), -EAGAIN);
	}
	pair_end();
}

static int word_rc;
static void put_here(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	word_rc = tern_chan_put(&out, &(uint64_t){ 99 }, sizeof(uint64_t));
}

static int get_rc;
static void get_here(tern *t, const tern_msg *m)
{
	uint64_t value;
	(void)t, (void)m;
	get_rc = tern_chan_get(&in, &value, sizeof value);
}

TEST(a_put_or_get_that_has_to_wait_is_refused_in_a_handler_and_takes_nothing)
{
	local_open(2);
	local_on(1, put_here);
	local_on(2, get_here);
	pair_open(1);
	REQUIRE(tern_request(local[0], 1, 2, 0, 0) == 0);
	local_settle();
	CHECK_IS(get_rc, -EPERM);
	uint64_t n = fill();
	REQUIRE(tern_request(local[1], 0, 1, 0, 0) == 0);
	local_settle();
	CHECK_IS(word_rc, -EPERM);
	chan_settle();
	REQUIRE(tern_request(local[0], 1, 2, 0, 0) == 0);
	local_settle();
	CHECK_IS(get_rc, 0); /* there was data: it got 0 */
	for (uint64_t i = 1; i < n; i++)
		REQUIRE(pair_get() == i);
	chan_settle();
	REQUIRE(tern_request(local[1], 0, 1, 0, 0) == 0);
	local_settle();
	CHECK_IS(word_rc, 0);
	CHECK_IS(pair_get(), 99);
	pair_end();
}

TEST(under_a_hold_a_put_or_get_that_has_to_wait_is_a_deadlock)
{
	uint64_t value = 5;
	char block[100] = "";
	tern_chan *none;
	pair_start();
	tern_hold(local[0]);
	tern_hold(local[1]);
	CHECK_IS(tern_chan_from(local[0], 1, 99, &none), -EDEADLK);
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EDEADLK);
	CHECK_IS(tern_chan_next(&in), -EDEADLK);
	CHECK_IS(tern_chan_run(&in), -EDEADLK);
	CHECK_IS(tern_chan_get(&in, block, 10), -EDEADLK);
	uint64_t n = fill();
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), -EDEADLK);
	CHECK(sentence_has(-EDEADLK, "hold"));
	CHECK_IS(tern_chan_put(&out, ((uint64_t[]){ 1, 2 }), 16), -EDEADLK);
	CHECK_IS(tern_chan_put(&out, block, 10), -EDEADLK);
	CHECK_IS(tern_chan_end(&out), -EDEADLK);
	for (uint64_t i = 0; i < n; i++)
		REQUIRE(pair_get() == i);
	chan_settle();
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 42 }, sizeof(uint64_t)), 0);
	CHECK_IS(pair_get(), 42); /* nothing of what was refused is in between */
	tern_release(local[0]);
	tern_release(local[1]);
	pair_end();
}

TEST(a_block_is_refused_whole_when_it_would_have_to_wait_and_may_not)
{
	static char block[PIPE_WORDS * 8];
	pair_start();
	uint64_t n = 0;
	while (tern_chan_room(&out, sizeof block) == 0)
		REQUIRE(tern_chan_put(&out, &(uint64_t){ n++ }, sizeof(uint64_t)) == 0);
	tern_hold(local[0]);
	CHECK_IS(tern_chan_put(&out, block, sizeof block), -EDEADLK);
	for (uint64_t i = 0; i < n; i++)
		REQUIRE(pair_get() == i);
	uint64_t value;
	chan_settle();
	CHECK_IS(try_get(&in, &value), -EAGAIN);
	tern_hold(local[1]);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 3 }, sizeof(uint64_t)), 0);
	chan_settle();
	CHECK_IS(tern_chan_get(&in, block, 24), -EDEADLK);
	CHECK_IS(pair_get(), 3);
	pair_end();
}

TEST(room_says_what_can_be_put_as_a_block_without_waiting)
{
	static char block[PIPE_WORDS * 8], back[PIPE_WORDS * 8];
	struct chance c = { check_seed() };
	pair_start();
	tern_hold(local[0]); /* so that nothing waits */
	tern_hold(local[1]);
	CHECK_IS(tern_chan_room(&out, sizeof block + 1), -EMSGSIZE);
	CHECK_IS(tern_chan_ready(&in, sizeof block + 1), -EMSGSIZE);
	CHECK_IS(tern_chan_room(&out, 0), 0);
	CHECK_IS(tern_chan_ready(&in, 0), 0);
	uint64_t put = 0, got = 0;
	for (unsigned i = 0; i < check_scaled(3000); i++) {
		size_t len = chance_below(&c, chance_one_in(&c, 2) ? 200 : sizeof block) + 1;
		int rc = tern_chan_room(&out, len);
		chance_fill((unsigned char *)block, len, put);
		if (rc == 0)
			put += CHECK_IS(tern_chan_put(&out, block, len), 0) ? words_of(len) : 0;
		else
			CHECK_IS(rc, -EAGAIN);
		len = chance_below(&c, 400) * 8;
		chan_settle();
		rc = tern_chan_ready(&in, len);
		CHECK_IS(rc, words_of(len) <= put - got ? 0 : -EAGAIN);
		CHECK_IS(tern_chan_get(&in, back, len), rc ? -EDEADLK : 0);
		got += rc ? 0 : words_of(len);
		if (chance_one_in(&c, 20)) { /* all read: the most there can be has room */
			for (; got < put; got++)
				pair_get();
			chan_settle();
			CHECK_IS(tern_chan_room(&out, sizeof block), 0);
		}
	}
	pair_end();
}

TEST(an_end_that_was_given_back_goes_on_where_it_stood)
{
	struct chance c = { check_seed() };
	pair_start();
	for (uint64_t put = 0, got = 0; put < 2 * RING_MOST;) {
		if (try_put(&out, put) == 0)
			put++;
		if (chance_one_in(&c, 3)) {
			tern_chan_out_back(&out);
			memset(&out, 0, sizeof out);
			out = tern_chan_out(pair_to);
		}
		if (got == put) /* over a network room comes back later */
			chan_settle();
		else if (chance_one_in(&c, 2) || put - got > PIPE_WORDS)
			CHECK_IS(pair_get(), got), got++;
		if (chance_one_in(&c, 3)) {
			tern_chan_in_back(&in);
			memset(&in, 0, sizeof in);
			in = tern_chan_in(pair_from);
		}
	}
	pair_end();
}

TEST(a_channel_to_oneself_works)
{
	tern_chan *to, *from;
	local_open(1);
	REQUIRE(tern_chan_to(local[0], 0, 3, &to) == 0);
	REQUIRE(tern_chan_from(local[0], 0, 3, &from) == 0);
	out = tern_chan_out(to);
	in = tern_chan_in(from);
	for (int lap = 0; lap < LAPS; lap++) {
		uint64_t n = fill();
		for (uint64_t i = 0; i < n; i++)
			REQUIRE(pair_get() == i);
	}
	CHECK_IS(tern_chan_close(from), 0);
	CHECK_IS(tern_chan_close(to), 0);
	local_close();
}

TEST(lines_that_somebody_has_written_over_are_refused_and_not_followed)
{
	const int32_t bad[] = { 8, -64, -55, INT32_MIN, -12 };
	uint64_t value;
	pair_start();
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
		CHECK_IS(pair_get(), 1);
		int32_t good = atomic_exchange(&in.line->count, bad[i]);
		CHECK_IS(tern_chan_ready(&in, 8), -EBADMSG);
		CHECK_IS(tern_chan_peek(&in), TERN_CHAN_CLOSED);
		CHECK_IS(tern_chan_next(&in), -EBADMSG);
		CHECK(sentence_has(-EBADMSG, "channel 7 from rank 0"));
		atomic_store(&in.line->count, good);
	}
	in.line->word[LINE_WORDS - 1] = 200; /* no item that there is */
	atomic_store(&in.line->mark, 0);
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EBADMSG);
	CHECK_IS(tern_chan_run(&in), -EBADMSG);
	pair_end();
}

/* -- Some of a block --------------------------------------------------------------------------- */

TEST(a_block_of_any_length_goes_through_in_parts_as_there_is_room_and_data)
{
	enum { BYTES = 1000003 };
	struct chance c = { check_seed() };
	unsigned char *data = malloc(BYTES), *got = malloc(BYTES);
	size_t put = 0, taken = 0;
	int putting = 1, getting = 1;
	chance_fill(data, BYTES, 9);
	pair_start();
	while (getting) {
		size_t before = put;
		if (putting && chance_one_in(&c, 2))
			putting = tern_chan_put_some(&out, data, BYTES, &put);
		CHECK(putting == 0 || putting == 1 || putting == -EAGAIN);
		CHECK(put - before <= PIPE_WORDS * 8 + TERN_CHAN_FULL); /* a part is bounded */
		if (chance_one_in(&c, 2))
			getting = tern_chan_get_some(&in, got, BYTES, &taken);
		if (getting == -EAGAIN)
			chan_settle();
		CHECK(getting == 0 || getting == 1 || getting == -EAGAIN);
	}
	CHECK_IS(taken, BYTES);
	CHECK_IS(tern_chan_put_some(&out, data, BYTES, &put), 0); /* nothing is left */
	CHECK(chance_filled(got, BYTES, 9));
	free(data);
	free(got);
	pair_end();
}

TEST(some_of_a_block_that_the_message_ends_within_is_told_from_a_message_that_is_over)
{
	char data[100] = "", got[100];
	size_t put = 0, taken = 0;
	pair_start();
	CHECK_IS(tern_chan_put_some(&out, data, 96, &put), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	chan_settle();
	CHECK_IS(tern_chan_get_some(&in, got, 100, &taken), -EMSGSIZE);
	CHECK(sentence_has(-EMSGSIZE, "4 bytes before"));
	CHECK_IS(taken, 96);
	taken = 0;
	CHECK_IS(tern_chan_get_some(&in, got, 100, &taken), -ENODATA);
	CHECK_IS(tern_chan_next(&in), 0);
	CHECK_IS(tern_chan_get_some(&in, got, 100, &taken), -EAGAIN);
	CHECK_IS(tern_chan_close(pair_from), 0);
	chan_settle();
	put = 0;
	int rc;
	while ((rc = tern_chan_put_some(&out, data, 96, &put)) == 0)
		put = 0;
	CHECK_IS(rc, -EPIPE);
	CHECK_IS(tern_chan_close(pair_to), 0);
	local_close();
}
