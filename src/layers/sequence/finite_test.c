/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer may say of a block, right and wrong. */
#include <errno.h>

#include <tern/sequence.h>

#include "core/direct.h"
#include "core/layer.h"
#include "lib/local.h"
#include "sequence/sequence.h"

enum { KIND = 2, FIRST = BLOCK_STEP /* the number of the first block */ };

static uint64_t said; /* the word that rank 1 answers with */
static unsigned accepted, ended;
static _Alignas(8) char memory[3 * TERN_PAYLOAD_MAX];

static void *take(tern *t, uint32_t from, unsigned id, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)arg;
	accepted++;
	return len <= sizeof memory ? memory : NULL;
}

static void end(tern *t, uint32_t from, unsigned id, void *data, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)data, (void)len, (void)arg;
	ended++;
}

static void answer_ask(tern *t, const tern_msg *m)
{
	const uint64_t words[] = { tern_msg_word(m, 0), said };
	layer_reply(t->own, SEQUENCE_VERDICT, NULL, 0, 2, words);
}

static void answer_end(tern *t, const tern_msg *m)
{
	const uint64_t words[] = { tern_msg_word(m, 0), said,       UINT64_MAX,
				   UINT64_MAX,          UINT64_MAX, UINT64_MAX };
	layer_reply(t->own, SEQUENCE_MISSING, NULL, 0, 6, words);
}

/* Announces a block to rank 1. */
static void ask(size_t len, uint64_t shift)
{
	const uint64_t words[] = { FIRST, len, KIND | shift << BLOCK_SHIFT };
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_ASK, NULL, 0, 3, words), 0);
}

static void drop(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void begin(void)
{
	accepted = ended = 0;
	local_polled();
	local_open(2);
	CHECK_IS(tern_sequence_on(local[1], KIND, take, end, NULL), 0);
}

static int send_saying(uint64_t word, enum tern_way way)
{
	said = word;
	return tern_sequence_send(local[0], 1, KIND, memory, sizeof memory, way);
}

TEST(a_verdict_is_a_code_whatever_the_peer_says)
{
	begin();
	layer_on(local[1]->own, SEQUENCE_ASK, answer_ask);
	CHECK_IS(send_saying(EINVAL, TERN_WAY_FULL), -EINVAL);
	CHECK_IS(send_saying((uint64_t)-EINVAL, TERN_WAY_PLAIN), -EINVAL);
	CHECK_IS(send_saying(UINT64_C(0x80000001), TERN_WAY_FULL), -EBADMSG);
	CHECK_IS(send_saying(UINT64_C(0xffffffff), TERN_WAY_PLAIN), -EBADMSG);
	CHECK_IS(send_saying(UINT64_MAX / 3, TERN_WAY_FULL), -EBADMSG);
	local_close();
}

static void answer_by_questions(tern *t, const tern_msg *m)
{
	const uint64_t words[] = { FIRST, 32, KIND | (uint64_t)SHIFT_LINE2 << BLOCK_SHIFT };
	static const unsigned question[] = { SEQUENCE_ASK, SEQUENCE_END };
	(void)m;
	layer_reply(t->own, question[said++], NULL, 0, 3, words);
}

/* It has no lane for an answer. */
TEST(a_question_that_comes_as_a_reply_is_not_answered)
{
	begin();
	CHECK_IS(tern_on(local[0], 0, answer_by_questions), 0);
	CHECK_IS(tern_on(local[1], 0, answer_by_questions), 0);
	for (said = 0; said < 2;) {
		CHECK_IS(tern_request(local[1], 0, 0), 0);
		CHECK_IS(tern_poll(local[0]), 1);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK_IS(tern_poll(local[0]), 0);
	}
	local_close();
}

TEST(what_it_says_of_packets_that_are_missing_is_a_code_too)
{
	begin();
	layer_on(local[1]->own, SEQUENCE_END, answer_end);
	layer_on(local[1]->own, SEQUENCE_PACKET, drop); /* so that it is asked for */
	CHECK_IS(send_saying(UINT64_C(0x80000001), TERN_WAY_FULL), -EBADMSG);
	CHECK_IS(send_saying((uint64_t)-ENOMEM, TERN_WAY_FULL), -ENOMEM);
	local_close();
}

static uint64_t sent[4]; /* packets with each number, as far as there are places */

static void count_packet(tern *t, const tern_msg *m)
{
	uint64_t i = tern_msg_word(m, 1);
	(void)t;
	CHECK(i < 3);
	sent[i < 3 ? i : 3]++;
}

/* First all from the second on, and far more than there are; then none. */
static void answer_more(tern *t, const tern_msg *m)
{
	const uint64_t words[] = {
		tern_msg_word(m, 0), said, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX
	};
	layer_reply(t->own, SEQUENCE_MISSING, NULL, 0, 6, words);
	said = 0;
}

TEST(packets_that_a_block_does_not_have_are_never_sent)
{
	begin();
	memset(sent, 0, sizeof sent);
	layer_on(local[1]->own, SEQUENCE_END, answer_more);
	layer_on(local[1]->own, SEQUENCE_PACKET, count_packet);
	CHECK_IS(send_saying(EAGAIN, TERN_WAY_FULL), 0);
	CHECK_IS(sent[0], 1);
	CHECK_IS(sent[1], 2);
	CHECK_IS(sent[2], 2);
	CHECK_IS(sent[3], 0);
	local_close();
}

TEST(a_length_that_no_memory_has_is_not_accepted)
{
	begin();
	ask(SIZE_MAX, SHIFT_PAYLOAD);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(accepted, 0);
	ask(SIZE_MAX, SHIFT_LINE2);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(accepted, 0);
	local_close();
}

TEST(a_packet_that_does_not_fit_its_block_is_dropped)
{
	begin();
	ask(sizeof memory - 1, SHIFT_PAYLOAD);
	const uint64_t packets[][2] = { { FIRST, 2 },
					{ FIRST, sizeof memory },
					{ FIRST, UINT64_MAX },
					{ 2 * FIRST, 0 },
					{ 0, 0 } };
	for (unsigned i = 0; i < sizeof packets / sizeof *packets; i++)
		CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_PACKET, memory, TERN_PAYLOAD_MAX,
				       2, packets[i]),
			 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(accepted, 1);
	CHECK_IS(ended, 0);
	local_close();
}

static void *take_any(tern *t, uint32_t from, unsigned id, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)len;
	return arg;
}

/* The sanitizers' builds see that nothing is left of the notes on which packets have come. */
TEST(a_block_that_is_under_way_goes_with_its_endpoint)
{
	enum { PACKETS = CAME_FEW + 2 };
	static char many[2 * PACKET];
	const uint64_t head[] = { FIRST, (uint64_t)PACKETS * PACKET,
				  (KIND + 1) | (uint64_t)SHIFT_PAYLOAD << BLOCK_SHIFT };
	const uint64_t second[] = { FIRST, 1 };
	begin();
	CHECK_IS(tern_sequence_on(local[1], KIND + 1, take_any, end, many), 0);
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_ASK, NULL, 0, 3, head), 0);
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_PACKET, memory, PACKET, 2, second), 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(sequence_of(local[1])->in[0].early, 1);
	CHECK_IS(ended, 0);
	local_close();
}

/* Its sender has given up on the first; the early packets of that are not those of the second. */
TEST(a_block_takes_the_place_of_one_that_is_under_way)
{
	static char other[sizeof memory];
	const uint64_t second[] = { 2 * FIRST, sizeof memory,
				    KIND | (uint64_t)SHIFT_PAYLOAD << BLOCK_SHIFT };
	begin();
	memset(memory, 0, sizeof memory);
	memset(other, 7, sizeof other);
	ask(sizeof memory, SHIFT_PAYLOAD);
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_PACKET, memory, PACKET, 2,
			       (const uint64_t[]){ FIRST, 1 }),
		 0);
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_ASK, NULL, 0, 3, second), 0);
	for (uint64_t i = 0; i < sizeof memory / PACKET; i++)
		CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_PACKET, other, PACKET, 2,
				       (const uint64_t[]){ 2 * FIRST, i }),
			 0);
	while (tern_poll(local[1]) > 0)
		;
	CHECK_IS(accepted, 2);
	CHECK_IS(ended, 1);
	CHECK(memcmp(memory, other, sizeof memory) == 0);
	local_close();
}

/* Lines that are doubled, in the wrong order, too long or of another length. */
static void lines_come(const uint64_t *order, unsigned n)
{
	enum { LEN = 7 * 16 / 2 }; /* three lines and a half */
	begin();
	ask(LEN, SHIFT_LINE2);
	memset(memory, 0, LEN + 8);
	for (unsigned i = 0; i < n; i++) {
		const uint64_t line[] = { FIRST + order[i], 100 + order[i], 200 + order[i], 9, 9 };
		CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_LINE4, NULL, 0, 5, line), 0);
		CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_LINE2, NULL, 0, 3, line), 0);
	}
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(accepted, 1);
	CHECK_IS(ended, 1);
	const uint64_t *word = (const uint64_t *)(const void *)memory;
	for (uint64_t i = 0; i < 7; i++)
		CHECK_IS(word[i], (i % 2 ? 200 : 100) + i / 2);
	CHECK_IS(word[7], 0);
	local_close();
}

static void note_missing(tern *t, const tern_msg *m)
{
	(void)t;
	said = tern_msg_word(m, 2);
}

TEST(lines_that_came_in_order_are_not_missing)
{
	const uint64_t line[] = { FIRST, FIRST + 1, 0 };
	begin();
	layer_on(local[0]->own, SEQUENCE_MISSING, note_missing);
	ask(56, SHIFT_LINE2);
	for (int i = 0; i < 2; i++)
		CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_LINE2, NULL, 0, 3,
				       (uint64_t[]){ line[i], 0, 0 }),
			 0);
	CHECK_IS(layer_request(local[0]->own, 1, SEQUENCE_END, NULL, 0, 3, line), 0);
	local_settle();
	CHECK_IS(said, 2);
	local_close();
}

TEST(lines_make_a_block_in_any_order_and_however_often_they_come)
{
	static const uint64_t short_first[] = { 3, 0, 0, 2, 7, BLOCK_INDEX, 3, 1, 1 };
	static const uint64_t short_last[] = { 0, 1, 2, 0, 3, 3 };
	static const uint64_t short_alone[] = { 1, 0, 2, 3 };
	lines_come(short_first, sizeof short_first / sizeof *short_first);
	lines_come(short_last, sizeof short_last / sizeof *short_last);
	lines_come(short_alone, sizeof short_alone / sizeof *short_alone);
}

TEST(a_block_of_any_length_arrives_and_nothing_beyond_it_is_written)
{
	static char from[300];
	begin();
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (char)(i * 7 + 1);
	for (size_t len = 0; len < sizeof from; len++) {
		memset(memory, 0, sizeof from + 64);
		CHECK_IS(tern_sequence_send(local[0], 1, KIND, from, len, TERN_WAY_FULL), 0);
		CHECK_IS(ended, len + 1);
		CHECK(memcmp(memory, from, len) == 0 && memory[len] == 0 && memory[len + 31] == 0);
	}
	local_close();
}

/* Rank 1 handles a packet as ever, and whatever it answers is lost. */
static tern_handler *line_handler, *packet_handler;

/* An item of a post may not be answered so, and its lane is full. */
static void unanswered(tern *t, const tern_msg *m, tern_handler *fn)
{
	t->answer = &t->own->refuse;
	t->own->item = m;
	t->own->item_layer = LAYER_POST;
	fn(t, m);
	t->own->item = NULL;
}

static void line_unanswered(tern *t, const tern_msg *m)
{
	unanswered(t, m, line_handler);
}

static void packet_unanswered(tern *t, const tern_msg *m)
{
	unanswered(t, m, packet_handler);
}

static tern_handler *replace(unsigned id, tern_handler *fn)
{
	tern_handler *before = local[1]->handler[TERN_HANDLER_MAX + id];
	layer_on(local[1]->own, id, fn);
	return before;
}

/* The acknowledgement is lost: the sender asks, and is told. */
TEST(a_block_whose_acknowledgement_is_lost_has_arrived_once)
{
	begin();
	line_handler = replace(SEQUENCE_LINE4, line_unanswered);
	packet_handler = replace(SEQUENCE_PACKET, packet_unanswered);
	CHECK_IS(tern_sequence_send(local[0], 1, KIND, memory, 100, TERN_WAY_FULL), 0);
	CHECK_IS(tern_sequence_send(local[0], 1, KIND, memory, 128, TERN_WAY_FULL), 0);
	CHECK_IS(tern_sequence_send(local[0], 1, KIND, memory, sizeof memory, TERN_WAY_FULL), 0);
	CHECK_IS(accepted, 3);
	CHECK_IS(ended, 3);
	local_close();
}

/* What a sender takes by itself counts as handled, and what is for another block is no answer. */
TEST(an_answer_is_taken_where_it_lies_if_it_is_the_one_that_is_waited_for)
{
	begin();
	struct sequence *q = sequence_of(local[0]);
	const struct tern_inlet *in = &local[0]->own->site.peer[1].replies;
	CHECK_IS(tern_sequence_send(local[0], 1, KIND, memory, 64, TERN_WAY_FULL), 0);
	if (!layer_may_take(local[0]))
		check_skip("without membarrier nothing is taken but by polls");
	struct shipment s = shipment_of(q, 1, KIND, memory, 64, SHIFT_LINE4);
	uint64_t before = inlet_handled(in);
	shipment_number(&s);
	q->out[1].busy = true;
	CHECK_IS(shipment_verdict(&s), ANSWER_NONE);
	CHECK_IS(shipment_ask(&s), 0);
	CHECK_IS(shipment_ask(&s), 0); /* asked twice, answered twice */
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(shipment_done(&s), ANSWER_NONE);
	CHECK_IS(shipment_verdict(&s), 0);
	CHECK_IS(inlet_handled(in), before + 1);
	CHECK_IS(shipment_packets(&s, 2), 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(shipment_done(&s), ANSWER_NONE); /* the second verdict is before it */
	CHECK(tern_poll(local[0]) > 0);
	CHECK_IS(q->out[1].answered, 1);
	CHECK_IS(ended, 2);
	shipment_number(&s);
	CHECK_IS(shipment_ask(&s), 0);
	CHECK(tern_poll(local[1]) > 0);
	shipment_number(&s);
	CHECK_IS(shipment_verdict(&s), ANSWER_NONE); /* of the block before */
	local_close();
}
