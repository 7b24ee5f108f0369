/* SPDX-License-Identifier: BSD-3-Clause */
/* How messages and payloads lie in packets, and in how many parts a packet is given to its wire. */
#include "net/packet/record.h"

#include "base/chance.h"
#include "lib/flow_sides.h"

enum {
	SHOTS = 100,
	ID = 5,
	WORDS = TERN_WORDS_MAX,
	NEED = 2 + 8 + 8, /* bytes of a record with a word and a payload, before that */
	HEADERS = PACKET_FRONT + PACKET_TAG
};

/* What side 0 has sent, and where its parts end. */
static struct shot {
	size_t len;
	int parts;
	unsigned char bytes[DATAGRAM_MAX];
} shot[SHOTS];
static unsigned shots;
static size_t widest; /* bytes of a datagram */

static size_t spy_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return widest;
}

static void spy_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	(void)w;
	for (; n; n--, o++) {
		REQUIRE(shots < SHOTS && outgoing_bytes(o) <= widest);
		CHECK(o->parts >= 1 && o->parts <= PACKET_PARTS);
		shot[shots].parts = o->parts;
		shot[shots].len = outgoing_copy(shot[shots].bytes, o);
		shots++;
	}
}

static struct wire_ops spy_ops;
static struct path *path;

/* With flow alone, so that a packet is what its records make it. */
static void begin(size_t most)
{
	wire_provides = PROVIDES_RELIABLE | PROVIDES_ORDER;
	sides_open(strategies[0], 0);
	spy_ops = queue_ops;
	spy_ops.most = spy_most;
	spy_ops.send = spy_send;
	side[0].wire.ops = &spy_ops;
	widest = most;
	shots = 0;
	path = path_of(&side[0]);
}

static unsigned char pattern(size_t i, uint64_t of)
{
	return (unsigned char)(i * 7 + i / 251 + of * 29);
}

/* A request with so many words, the first of which is its number, and a payload. */
static struct block *write_one(unsigned n, uint64_t number, size_t len)
{
	struct tern_lane *lane = &side[0].lanes[1];
	struct parcel p = { .bits = (uint64_t)ID << TERN_ID_SHIFT | n, .n = n };
	struct block *b;
	REQUIRE(lane_ready(lane) && pool_take(&side[0].net.net, len, &b) == 0);
	block_set(b, BLOCK_SENT);
	for (unsigned i = 0; i < n; i++)
		p.word[i] = number + i;
	for (size_t i = 0; i < len; i++)
		b->data[i] = (char)pattern(i, number);
	p.bits |= TERN_HEAD_PAYLOAD;
	p.payload = b->data;
	p.len = len;
	lane_put(lane, &p);
	path->staged += TERN_LINE + len;
	path->staged_messages++;
	return b;
}

static void send_all(void)
{
	path_pump(path, true);
	post_flush(&side[0].net);
	CHECK_IS(path->staged, 0);
	CHECK_IS(path->staged_messages, 0);
	for (unsigned i = 0; i < shots; i++)
		CHECK(shot[i].len - path->front <= path->most - HEADERS);
}

static void deliver(unsigned i)
{
	post_take(&side[1].net, &(struct datagram){ .bytes = shot[i].bytes, .len = shot[i].len });
}

/* The next request at side 1 is this one. */
static void check_came(unsigned n, uint64_t number, size_t len)
{
	struct tern_inlet *in = &side[1].peers[0].requests;
	const tern_msg *m = inlet_at(in);
	uint64_t x;
	size_t got;
	while ((x = atomic_load(&m->head) ^ in->expect) & TERN_HEAD_CONTROL && inlet_control(in, x))
		m = inlet_at(in);
	REQUIRE(!(x >> TERN_LAP_SHIFT));
	CHECK_IS(tern_msg_count(m), n);
	for (unsigned i = 0; i < n; i++)
		CHECK_IS(tern_msg_word(m, i), number + i);
	const char *data = tern_msg_data(m, &got);
	REQUIRE(data && got == len);
	unsigned wrong = 0;
	for (size_t i = 0; i < len; i++)
		wrong += (unsigned char)data[i] != pattern(i, number);
	CHECK_IS(wrong, 0);
	in->cursor += message_bytes(inlet_at(in), x);
	in->handled++;
	block_set(block_of(data), BLOCK_FREE);
}

/* Sends what is written, `n` messages of `words` words and `len` bytes; the parts of its packet. */
static int parts_of(unsigned n, unsigned words, size_t len)
{
	shots = 0;
	for (unsigned i = 0; i < n; i++)
		write_one(words, i, len);
	send_all();
	CHECK_IS(shots, 1);
	deliver(0);
	for (unsigned i = 0; i < n; i++)
		check_came(words, i, len);
	look_twice(&side[1]); /* the credits come back */
	look_twice(&side[0]);
	return shot[0].parts;
}

TEST(blocks_that_lie_one_behind_the_other_go_as_one_part)
{
	begin(DATAGRAM_MAX);
	CHECK_IS(parts_of(4, 1, TERN_PAYLOAD_MAX), 3);
	CHECK_IS(parts_of(3, 4, TERN_PAYLOAD_MAX), 3);
	CHECK_IS(parts_of(3, 6, TERN_PAYLOAD_MAX), 7); /* its record is longer than a line */
	CHECK_IS(parts_of(3, 1, TERN_PAYLOAD_MAX - 1), 7);
	CHECK_IS(parts_of(3, 1, PACKET_COPY + 1), 7);
	CHECK_IS(parts_of(3, 1, PACKET_COPY), 1);
	sides_close();
}

TEST(where_a_block_between_two_is_of_another_they_are_two_parts)
{
	struct block *b;
	begin(DATAGRAM_MAX);
	write_one(1, 0, TERN_PAYLOAD_MAX);
	REQUIRE(pool_take(&side[0].net.net, 0, &b) == 0);
	write_one(1, 1, TERN_PAYLOAD_MAX);
	send_all();
	CHECK_IS(shots, 1);
	CHECK_IS(shot[0].parts, 5);
	deliver(0);
	check_came(1, 0, TERN_PAYLOAD_MAX);
	check_came(1, 1, TERN_PAYLOAD_MAX);
	sides_close();
}

TEST(a_guard_that_changes_bytes_gets_them_all_in_one_part)
{
	begin(DATAGRAM_MAX);
	side[0].net.copies = true;
	CHECK_IS(parts_of(4, 1, TERN_PAYLOAD_MAX), 1);
	sides_close();
}

TEST(a_packet_has_no_more_payloads_than_there_are_parts_for)
{
	enum { PAYLOADS = 12, FIRST = (PACKET_PARTS - 1) / 2 };
	begin(DATAGRAM_MAX);
	for (unsigned i = 0; i < PAYLOADS; i++)
		write_one(1, i, 600);
	send_all();
	CHECK_IS(shots, 2);
	CHECK_IS(shot[0].parts, 1 + 2 * FIRST);
	CHECK_IS(shot[1].parts, 1 + 2 * (PAYLOADS - FIRST));
	for (unsigned i = 0; i < PAYLOADS; i++) {
		if (i == 0 || i == FIRST)
			deliver(i / FIRST);
		check_came(1, i, 600);
	}
	sides_close();
}

/* Where the payload begins in a datagram; DATAGRAM_MAX: not as a whole. */
static size_t payload_at(const struct shot *s, uint64_t number, size_t len)
{
	for (size_t at = 0; at + len <= s->len; at++) {
		size_t same = 0;
		while (same < len && s->bytes[at + same] == pattern(same, number))
			same++;
		if (same == len)
			return at;
	}
	return DATAGRAM_MAX;
}

TEST(a_whole_payload_begins_a_line_of_its_datagram_behind_a_line_that_is_no_others)
{
	struct chance c = { check_seed() };
	begin(DATAGRAM_MAX);
	parts_of(1, 1, 8); /* from now on it is known how long headers are */
	for (unsigned round = 0; round < check_scaled(200); round++) {
		unsigned n = 1 + chance_below(&c, 5), words = 1 + chance_below(&c, WORDS);
		size_t len = chance_one_in(&c, 3) ? TERN_PAYLOAD_MAX
						  : PACKET_COPY + 1 + chance_below(&c, 3000);
		size_t end = 0;
		parts_of(n, words, len);
		for (unsigned i = 0; i < n; i++) {
			size_t at = payload_at(&shot[0], i, len);
			REQUIRE(at < DATAGRAM_MAX);
			CHECK_IS(at % TERN_LINE, 0);
			CHECK(at >= end + TERN_LINE);
			end = at + len;
		}
		/* And no more is skipped than must be. */
		CHECK(shot[0].len < (TERN_LINE * 2 + WORDS * 8 + len) * n + TERN_LINE);
	}
	sides_close();
}

/* Two blocks, one behind the other, in a packet that has so many bytes more than they need. */
static void check_tight(size_t spare)
{
	begin(DATAGRAM_MAX);
	parts_of(1, 1, 8);
	size_t gap = -(path->front + NEED) % TERN_LINE;
	path->most = 2 * (NEED + TERN_PAYLOAD_MAX) + spare + HEADERS;
	shots = 0;
	write_one(1, 0, TERN_PAYLOAD_MAX);
	write_one(1, 1, TERN_PAYLOAD_MAX);
	send_all();
	CHECK_IS(payload_at(&shot[0], 0, TERN_PAYLOAD_MAX), path->front + NEED + gap);
	for (unsigned i = 0; i < shots; i++)
		deliver(i);
	check_came(1, 0, TERN_PAYLOAD_MAX);
	check_came(1, 1, TERN_PAYLOAD_MAX);
	if (spare >= gap)
		CHECK_IS(shots, 1);
	if (shots == 1)
		CHECK_IS(shot[0].parts, spare >= gap + TERN_LINE - NEED ? 3 : 5);
	sides_close();
}

TEST(a_payload_that_fills_a_datagram_lies_where_there_is_room)
{
	for (size_t spare = 0; spare < 2 * TERN_LINE; spare++) {
		begin(DATAGRAM_MAX);
		parts_of(1, 1, 8);
		size_t gap = -(path->front + NEED) % TERN_LINE;
		path->most = TERN_PAYLOAD_MAX + NEED + spare + HEADERS;
		parts_of(1, 1, TERN_PAYLOAD_MAX);
		CHECK_IS(payload_at(&shot[0], 0, TERN_PAYLOAD_MAX) % TERN_LINE == 0, spare >= gap);
		sides_close();
		check_tight(spare);
	}
}

TEST(what_is_skipped_before_a_payload_tells_nothing_of_earlier_packets)
{
	begin(DATAGRAM_MAX);
	parts_of(1, 1, 8);
	memset(side[0].net.batch[0].bytes, 0xff, sizeof side[0].net.batch[0].bytes);
	parts_of(1, 1, 600);
	size_t skipped = path->front + NEED, at = payload_at(&shot[0], 0, 600);
	CHECK(skipped < at && at < DATAGRAM_MAX);
	for (; skipped < at; skipped++)
		CHECK_IS(shot[0].bytes[skipped], 0);
	sides_close();
}

TEST(what_does_not_fit_goes_on_in_the_next_packet_and_comes_as_it_was)
{
	static const size_t most[] = { 600, 1400, 4000, 9000 };
	for (unsigned i = 0; i < sizeof most / sizeof *most; i++) {
		begin(most[i]);
		for (unsigned k = 0; k < 3; k++)
			write_one(2, k, TERN_PAYLOAD_MAX - k);
		send_all();
		for (unsigned k = 0; k < shots; k++)
			deliver(k);
		for (unsigned k = 0; k < 3; k++)
			check_came(2, k, TERN_PAYLOAD_MAX - k);
		CHECK_IS(counted(1, PULSE_PACKETS_MALFORMED), 0);
		sides_close();
	}
}

/* Whether side 1 has begun a payload that is not whole when the first datagram has come. */
static bool first_is_in_pieces(size_t most, size_t len)
{
	begin(most);
	for (unsigned k = 0; k < 10; k++)
		write_one(2, k, len);
	send_all();
	CHECK(shots > 1);
	deliver(0);
	bool open = path_of(&side[1])->in[STREAM_REQUESTS].open;
	sides_close();
	return open;
}

TEST(where_datagrams_are_long_a_payload_that_has_no_room_waits_for_the_next)
{
	for (size_t len = TERN_PAYLOAD_MAX - 1; len <= TERN_PAYLOAD_MAX; len++) {
		CHECK(!first_is_in_pieces(DATAGRAM_MAX, len));
		CHECK(!first_is_in_pieces(2 * TERN_PAYLOAD_MAX + 1, len));
		CHECK(first_is_in_pieces(2 * TERN_PAYLOAD_MAX, len));
	}
}

/* Whether a payload is begun in a datagram that has room for so many bytes of it. */
static bool begun_in(size_t room, size_t len)
{
	enum { NARROW = 1400 };
	begin(NARROW);
	side[0].net.copies = true;
	size_t before = NARROW - HEADERS - 2 * NEED - room;
	write_one(1, 0, before);
	write_one(1, 1, len);
	send_all();
	deliver(0);
	bool begun = requests_begun() == 2;
	for (unsigned k = 1; k < shots; k++)
		deliver(k);
	check_came(1, 0, before);
	check_came(1, 1, len);
	sides_close();
	return begun;
}

TEST(a_piece_of_a_payload_has_64_bytes_at_least_unless_that_is_all_of_it)
{
	CHECK(begun_in(64, 1000));
	CHECK(!begun_in(63, 1000));
	CHECK(begun_in(63, 63));
	CHECK(begun_in(20, 20));
	CHECK(!begun_in(19, 20));
}
