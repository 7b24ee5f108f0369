/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies with payloads above TERN_PAYLOAD_MAX, the large blocks that they lie in, and
 * the pieces that replies travel in without one.
 */
#include <errno.h>
#include <signal.h>

#include "endpoint/endpoint.h"
#include "lib/chance.h"
#include "lib/every_net.h"
#include "lib/handed.h"

enum { ASK, TELL, DROP, FLOOD = 5 * TERN_POOL_BLOCKS, KEPT = TERN_POOL_BLOCKS + 1 };

static unsigned char bytes[TERN_REQUEST_MAX + 1];
static const size_t lengths[] = { TERN_PAYLOAD_MAX + 1,  TERN_PAYLOAD_MAX + 64,
				  2 * TERN_PAYLOAD_MAX,  20000,
				  TERN_REQUEST_MAX - 63, TERN_REQUEST_MAX - 1,
				  TERN_REQUEST_MAX };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void ranks_open(tern_handler *ask)
{
	local_open(3);
	local_on(ASK, ask);
	local_on(TELL, note_reply);
	chance_fill(bytes, sizeof bytes, 1);
}

/* Every block of both classes can still be had. */
static void check_no_block_lost(void)
{
	void *claimed[2 * TERN_POOL_BLOCKS];
	local_settle();
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t dst = 0; dst < 3; dst++) {
			for (int i = 0; i < 2 * TERN_POOL_BLOCKS; i++) {
				size_t len = i % 2 ? TERN_REQUEST_MAX : 8;
				claimed[i] = handed_claim(local[r], dst, len);
				REQUIRE(claimed[i] != NULL);
				memset(claimed[i], 0xee, len);
			}
			for (int i = 0; i < 2 * TERN_POOL_BLOCKS; i++)
				CHECK_IS(tern_abandon(local[r], claimed[i]), 0);
		}
	local_close();
}

static void check_arrival(const struct noted *a, size_t len, uint64_t number)
{
	CHECK_IS(a->len, len);
	CHECK(chance_filled(a->data, len, number));
}

/* -- Lengths ------------------------------------------------------------------------------- */

/* The same words, and the same bytes. What it replies with may be changed at once. */
static void echo(tern *t, const tern_msg *m)
{
	static unsigned char copy[TERN_REQUEST_MAX];
	uint64_t words[TERN_WORDS_MAX];
	size_t len;
	const void *data = tern_msg_data(m, &len);
	arrival_note(&requests, t, m);
	for (unsigned i = 0; i < tern_msg_count(m); i++)
		words[i] = tern_msg_word(m, i);
	memcpy(copy, data, len);
	CHECK_IS(tern_reply_data_array(t, m, TELL, copy, len, tern_msg_count(m), words), 0);
	CHECK_IS(tern_reply_data(t, m, TELL, copy, len), -EALREADY);
	memset(copy, 0, sizeof copy);
}

static void any_length(void)
{
	const uint64_t words[TERN_WORDS_MAX] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	ranks_open(echo);
	for (unsigned k = 0; k < 3 * (TERN_WORDS_MAX + 1); k++) {
		unsigned n = k / 3;
		size_t len = lengths[n % LENGTHS];
		CHECK_IS(tern_request_data_array(local[0], k % 3, ASK, bytes, len, n, words), 0);
		local_settle();
		check_arrival(&requests, len, 1);
		check_arrival(&replies, len, 1);
		CHECK(replies.words == n && !memcmp(replies.word, words, n * sizeof *words));
	}
	CHECK_IS(replies.count, 3 * (TERN_WORDS_MAX + 1));
	check_no_block_lost();
}

TEST(a_request_of_any_length_up_to_32_KiB_arrives_and_is_answered_with_as_much)
{
	on_every_network(any_length);
}

static void reply_too_long(tern *t, const tern_msg *m)
{
	void *claimed = NULL;
	arrival_note(&requests, t, m);
	for (enum tern_claim_from from = TERN_CLAIM_ANY; from <= TERN_CLAIM_FRESH; from++)
		CHECK_IS(tern_reply_claim(t, m, sizeof bytes, from, &claimed), -EMSGSIZE);
	CHECK(sentence_has(-EMSGSIZE, "32768"));
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, sizeof bytes), -EMSGSIZE);
	CHECK(sentence_has(-EMSGSIZE, "a reply") && sentence_has(-EMSGSIZE, "32768"));
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, TERN_REQUEST_MAX), 0);
}

TEST(a_longer_request_and_a_longer_reply_are_refused)
{
	ranks_open(reply_too_long);
	for (uint32_t dst = 0; dst < 2; dst++) {
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, sizeof bytes), -EMSGSIZE);
		CHECK(sentence_has(-EMSGSIZE, "32769") && sentence_has(-EMSGSIZE, "32768"));
		CHECK(!handed_claim(local[0], dst, sizeof bytes));
		CHECK_IS(errno, EMSGSIZE);
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, TERN_REQUEST_MAX), 0);
		local_settle();
		CHECK_IS(replies.count, dst + 1);
	}
	CHECK_IS(requests.count, 2);
	check_no_block_lost();
}

/* -- More than there are blocks for ---------------------------------------------------------- */

static unsigned long long sum_of(const unsigned char *data, size_t len)
{
	unsigned long long sum = len;
	for (size_t i = 0; i < len; i += 509)
		sum = sum * 31 + data[i];
	return sum * 31 + data[len - 1];
}

static void check_sum(tern *t, const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	CHECK(sum_of(data, len) == tern_msg_word(m, 0));
	if (tern_msg_word(m, 1) % 2)
		CHECK_IS(tern_reply_data(t, m, TELL, data, len, tern_msg_word(m, 0)), 0);
	atomic_fetch_add(&requests.count, 1);
}

static void count_reply(tern *t, const tern_msg *m)
{
	size_t len;
	(void)t;
	const unsigned char *data = tern_msg_data(m, &len);
	CHECK(sum_of(data, len) == tern_msg_word(m, 0));
	atomic_fetch_add(&replies.count, 1);
}

static void flood_send(uint32_t from, uint32_t to, unsigned i)
{
	size_t len = lengths[i % LENGTHS];
	bytes[0] = (unsigned char)i;
	CHECK_IS(tern_request_data(local[from], to, ASK, bytes, len, sum_of(bytes, len), i), 0);
}

static void floods(void)
{
	ranks_open(check_sum);
	local_on(TELL, count_reply);
	for (unsigned i = 0; i < FLOOD; i++)
		for (uint32_t from = 0; from < 3; from++)
			for (uint32_t to = 0; to < 3; to++)
				flood_send(from, to, i);
	local_settle();
	CHECK_IS(requests.count, 9 * FLOOD);
	CHECK_IS(replies.count, 9 * FLOOD / 2);
	check_no_block_lost();
}

TEST(floods_from_all_to_all_wait_for_blocks_and_lose_nothing)
{
	on_every_network(floods);
}

/* A function that a handler defers sends the next one, so blocks are waited for in polls. */
static void send_on(tern *t, void *arg)
{
	uint64_t left = (uintptr_t)arg;
	uint32_t to = (tern_rank(t) + 1) % tern_size(t);
	CHECK_IS(tern_request_data(t, to, ASK, bytes, TERN_REQUEST_MAX, left), 0);
}

static void pass_on(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	uint64_t left = tern_msg_word(m, 0);
	if (left)
		CHECK_IS(tern_defer(t, send_on, (void *)(uintptr_t)(left - 1)), 0);
}

static void deferred(void)
{
	ranks_open(pass_on);
	for (unsigned i = 0; i < TERN_POOL_BLOCKS + 4; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX, 9), 0);
	for (int i = 0; i < 10; i++) /* deferred functions are no messages that it would wait for */
		local_settle();
	CHECK_IS(requests.count, 10 * (TERN_POOL_BLOCKS + 4));
	check_arrival(&requests, TERN_REQUEST_MAX, 1);
	check_no_block_lost();
}

TEST(functions_that_handlers_defer_send_them_on_in_a_circle)
{
	on_every_network(deferred);
}

TEST(without_a_large_block_short_payloads_go_on_and_the_other_way_round)
{
	ranks_open(note_request);
	tern_hold(local[0]);
	tern_hold(local[1]);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), -EAGAIN);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_PAYLOAD_MAX), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_PAYLOAD_MAX), -EAGAIN);
	tern_release(local[1]);
	tern_release(local[0]);
	local_settle();
	CHECK_IS(requests.count, 2 * TERN_POOL_BLOCKS);
	check_no_block_lost();
}

/* -- Claims --------------------------------------------------------------------------------- */

static void claims(void)
{
	void *claimed[TERN_POOL_BLOCKS];
	ranks_open(note_request);
	for (uint32_t dst = 0; dst < 2; dst++) {
		for (unsigned i = 0; i < TERN_POOL_BLOCKS; i++) {
			REQUIRE((claimed[i] = handed_claim(local[0], dst, TERN_REQUEST_MAX)));
			CHECK_IS((uintptr_t)claimed[i] % 64, 0);
			chance_fill(claimed[i], TERN_REQUEST_MAX, i);
		}
		CHECK(!handed_claim(local[0], dst, TERN_PAYLOAD_MAX + 1));
		CHECK_IS(errno, ENOBUFS);
		CHECK(sentence_has(-ENOBUFS, "16 large blocks"));
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, TERN_REQUEST_MAX), -ENOBUFS);
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, TERN_PAYLOAD_MAX), 0);
		for (unsigned i = 0; i < TERN_POOL_BLOCKS; i++) {
			size_t len = i ? lengths[i % LENGTHS] : 100;
			CHECK_IS(tern_claim_shorten(local[0], claimed[i], len), 0);
			CHECK_IS(tern_commit(local[0], claimed[i], ASK, i), 0);
			CHECK_IS(tern_commit(local[0], claimed[i], ASK, i), -EINVAL);
			local_settle();
			check_arrival(&requests, len, i);
		}
		void *empty = handed_claim(local[0], dst, TERN_REQUEST_MAX);
		CHECK_IS(tern_claim_shorten(local[0], empty, 0), 0);
		CHECK_IS(tern_commit(local[0], empty, ASK, 7), 0);
		local_settle();
		CHECK(requests.has_payload && !requests.len && requests.word[0] == 7);
	}
	check_no_block_lost();
}

TEST(claims_are_composed_shortened_committed_and_counted)
{
	on_every_network(claims);
}

static void return_it(tern *t, const tern_msg *m)
{
	void *claimed = NULL;
	size_t len;
	const void *data = tern_msg_data(m, &len);
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply_claim(t, m, len, TERN_CLAIM_SAME, &claimed), 0);
	CHECK(claimed == data);
	((unsigned char *)claimed)[0] = 42;
	CHECK_IS(tern_reply_commit(t, m, claimed, TELL), 0);
}

static void in_place(void)
{
	ranks_open(return_it);
	for (unsigned i = 0; i < 2 * FLOOD; i++) {
		CHECK_IS(tern_request_data(local[0], i % 2, ASK, bytes, lengths[i % LENGTHS]), 0);
		local_settle();
		CHECK_IS(replies.data[0], 42);
		replies.data[0] = bytes[0];
		check_arrival(&replies, lengths[i % LENGTHS], 1);
	}
	CHECK_IS(replies.count, 2 * FLOOD);
	check_no_block_lost();
}

TEST(a_reply_takes_the_requests_large_block)
{
	on_every_network(in_place);
}

/* -- Kept messages ---------------------------------------------------------------------------- */

static const tern_msg *kept[KEPT];
static unsigned keeps;

static void keep(tern *t, const tern_msg *m)
{
	if (CHECK(keeps < KEPT && tern_msg_keep(t, m, &kept[keeps]) == 0))
		keeps++;
}

static void drop_one(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_msg_drop(t, kept[--keeps]), 0);
}

TEST(a_sender_whose_large_blocks_are_all_kept_waits_until_one_is_dropped)
{
	ranks_open(keep);
	local_on(DROP, drop_one);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	local_settle();
	tern_hold(local[0]);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), -EAGAIN);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	tern_release(local[0]);
	local_settle();
	CHECK_IS(tern_msg_drop(local[1], kept[--keeps]), 0); /* the one without a payload */
	CHECK_IS(tern_request(local[0], 1, DROP), 0);        /* handled while the next call waits */
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	local_settle();
	CHECK_IS(keeps, TERN_POOL_BLOCKS);
	for (unsigned i = 0; i < keeps; i++) {
		CHECK(chance_filled(tern_msg_data(kept[i], NULL), TERN_REQUEST_MAX, 1));
		CHECK_IS(tern_msg_drop(local[1], kept[i]), 0);
	}
	keeps = 0;
	check_no_block_lost();
}

static void kept_far(void)
{
	ranks_open(keep);
	for (unsigned i = 0; i < KEPT - 1; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, lengths[i % LENGTHS]), 0);
	local_settle();
	local_on(ASK, note_request); /* over which those must not be written */
	for (unsigned i = 0; i < FLOOD && local[0]->own->site.asks; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes + 1, TERN_REQUEST_MAX), 0);
	local_settle();
	REQUIRE(keeps == KEPT - 1);
	for (unsigned i = 0; i < keeps; i++) {
		size_t len;
		const void *data = tern_msg_data(kept[i], &len);
		CHECK_IS(len, lengths[i % LENGTHS]);
		CHECK(chance_filled(data, len, 1));
		CHECK_IS(tern_msg_drop(local[1], kept[i]), 0);
	}
	keeps = 0;
	check_no_block_lost();
}

TEST(kept_payloads_stay_as_they_came)
{
	on_every_network(kept_far);
}

/* -- Ranks that die, memory, lies -------------------------------------------------------------- */

TEST(blocks_that_a_dead_rank_held_come_back)
{
	local_polled();
	ranks_open(note_request);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	tern_hold(local[1]); /* or a wait of this thread would serve it */
	job_rank_ended(&local[0]->own->group->job, 1, SIGKILL);
	local[0]->own->waiting.grace_ns = 1000000;
	CHECK_IS(tern_request_data(local[0], 2, ASK, bytes, TERN_REQUEST_MAX), 0);
	CHECK(tern_poll(local[2]) > 0);
	check_arrival(&requests, TERN_REQUEST_MAX, 1);
	tern_release(local[1]);
	local_close();
}

static struct job *job_of(uint32_t r)
{
	return &local[r]->own->group->job;
}

TEST(a_large_block_takes_memory_when_it_is_needed_and_not_before)
{
	local_polled();
	ranks_open(note_request);
	if (local[0]->own->site.asks)
		check_skip("over a network every rank has memory of its own");
	for (int i = 0; i < FLOOD; i++) { /* until the pair's ring has grown */
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_PAYLOAD_MAX), 0);
		local_settle();
	}
	uint64_t before = job_of(0)->head->committed;
	for (int i = 0; i < FLOOD; i++) {
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
		local_settle();
	}
	CHECK_IS(job_of(0)->head->committed, before + job_of(0)->large.bytes);
	job_of(0)->head->budget = job_of(0)->head->committed;
	void *claimed = handed_claim(local[0], 1, TERN_REQUEST_MAX);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), -ENOMEM);
	CHECK(sentence_has(-ENOMEM, "above 8192 bytes") && sentence_has(-ENOMEM, "TERN_MEMORY"));
	tern_hold(local[0]);
	CHECK_IS(tern_commit(local[0], claimed, ASK), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), -EAGAIN);
	tern_release(local[0]);
	CHECK_IS(tern_request_data(local[1], 0, ASK, bytes, TERN_REQUEST_MAX), -ENOMEM);
	local_close();
}

/* What the line of a message from 0 to 1 says, changed before rank 1 looks. */
static void lie(void (*change)(tern_msg *m))
{
	tern_hold(local[1]);
	char *line = local[0]->lane[1].tail;
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	change((tern_msg *)(void *)line);
	tern_release(local[1]);
	CHECK_IS(tern_poll(local[1]), -EBADMSG);
	CHECK(sentence_has(-EBADMSG, "rank 0"));
}

static void longer(tern_msg *m)
{
	m->payload++;
}

static void elsewhere(tern_msg *m)
{
	m->payload += (uint64_t)sizeof(struct large_block) << TERN_LEN_BITS;
}

static void to_a_layer(tern_msg *m)
{
	m->head += (uint64_t)TERN_HANDLER_MAX << TERN_ID_SHIFT;
}

TEST(a_large_payload_that_lies_elsewhere_or_is_for_a_layer_is_dropped)
{
	local_polled();
	ranks_open(note_request);
	if (local[0]->own->site.asks)
		check_skip("over a network rank 1 reads a line of its own");
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1), 0); /* opens the lane */
	local_settle();
	lie(longer);
	lie(elsewhere);
	lie(to_a_layer);
	CHECK_IS(requests.count, 1);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	local_settle();
	check_arrival(&requests, TERN_REQUEST_MAX, 1);
	local_close();
}
