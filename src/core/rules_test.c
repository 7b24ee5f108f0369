/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broken rule returns a code and a sentence with the rule, the handler and the
 * rank; nothing is sent, nothing is harmed. advice_test.c does what the sentences advise;
 * tests/core/legal_test.c has what is legal where, as a table.
 */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"

enum { ASK = 3, TELL = 4, UNKNOWN = 99, BREAK = 12, BREAK_REPLY = 13 };

static int code;
static char sentence[400];
static int (*breaking)(tern *t, const tern_msg *m);
static const unsigned char bytes[TERN_REQUEST_MAX + 1];

static void note_code(int rc)
{
	code = rc;
	snprintf(sentence, sizeof sentence, "%s", tern_strerror(rc));
}

static bool says(const char *word)
{
	if (strstr(sentence, word))
		return true;
	printf("    the sentence lacks '%s': %s\n", word, sentence);
	return false;
}

static void break_in_request(tern *t, const tern_msg *m)
{
	note_code(breaking(t, m));
}

static void break_in_reply(tern *t, const tern_msg *m)
{
	note_code(breaking(t, m));
}

static void answer_to_break(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, BREAK_REPLY), 0);
}

static void ranks_open(void)
{
	local_open(3);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	local_on(BREAK, break_in_request);
	local_on(BREAK_REPLY, break_in_reply);
	local_on(BREAK + 2, answer_to_break);
	for (uint32_t r = 0; r < 9; r++) /* so that the inline path is taken from here on */
		CHECK_IS(tern_request(local[r / 3], r % 3, ASK, 1, 2), 0);
	local_settle();
	requests.count = 0;
}

/* Nothing arrived anywhere, and the next legal messages do. */
static void check_unharmed(void)
{
	unsigned before = requests.count + replies.count;
	local_settle();
	CHECK_IS(requests.count + replies.count, before);
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t dst = 0; dst < 3; dst++) {
			requests.count = 0;
			CHECK_IS(tern_request(local[r], dst, ASK, 1, 2, 3), 0);
			CHECK_IS(tern_request(local[r], dst, ASK, 5), 0);
			CHECK_IS(tern_request_data(local[r], dst, ASK, "abc", 4, 6), 0);
			local_settle();
			CHECK_IS(requests.count, 3);
			CHECK(requests.rank == dst && requests.src == r && requests.len == 4);
		}
	local_close();
}

TEST(a_rank_out_of_range_is_refused_by_every_send)
{
	ranks_open();
	for (uint32_t dst = 3; dst; dst = dst == 3 ? UINT32_MAX : 0) {
		note_code(tern_request(local[1], dst, ASK, 1));
		CHECK_IS(code, -ERANGE);
		CHECK(says(dst == 3 ? "rank 3" : "rank 4294967295") && says("handler 3") &&
		      says("0 to 2"));
		note_code(tern_request(local[1], dst, ASK, 1, 2));
		CHECK_IS(code, -ERANGE);
		note_code(tern_request_data(local[1], dst, ASK, bytes, 1, 2));
		CHECK_IS(code, -ERANGE);
		CHECK(!handed_claim(local[1], dst, 10));
		CHECK_IS(errno, ERANGE);
		CHECK_IS(tern_forgive(local[1], dst), -ERANGE);
	}
	check_unharmed();
}

TEST(too_many_words_are_refused)
{
	static const uint64_t words[9];
	ranks_open();
	note_code(tern_request_array(local[0], 1, ASK, 9, words));
	CHECK_IS(code, -E2BIG);
	CHECK(says("9 words") && says("at most 8") && says("handler 3") && says("rank 1"));
	CHECK_IS(tern_request_data_array(local[0], 1, ASK, bytes, 1, 9, words), -E2BIG);
	CHECK_IS(tern_request_array(local[0], 1, ASK, UINT32_MAX, words), -E2BIG);
	void *claimed = handed_claim(local[0], 1, 10);
	CHECK_IS(tern_commit_array(local[0], claimed, ASK, 9, words), -E2BIG);
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	check_unharmed();
}

TEST(too_long_a_payload_is_refused)
{
	ranks_open();
	note_code(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX + 1));
	CHECK_IS(code, -EMSGSIZE);
	CHECK(says("32769") && says("32768") && says("handler 3") && says("rank 1"));
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, SIZE_MAX), -EMSGSIZE);
	CHECK(!handed_claim(local[0], 1, TERN_REQUEST_MAX + 1));
	CHECK_IS(errno, EMSGSIZE);
	CHECK(!handed_claim(local[0], 1, SIZE_MAX));
	check_unharmed();
}

TEST(an_unknown_handler_is_refused_where_it_is_named)
{
	ranks_open();
	note_code(tern_request(local[0], 1, UNKNOWN, 1));
	CHECK_IS(code, -ENXIO);
	CHECK(says("handler 99") && says("rank 1") && says("registered"));
	CHECK_IS(tern_request_data(local[0], 1, UNKNOWN, bytes, 1), -ENXIO);
	CHECK_IS(tern_request(local[0], 1, TERN_HANDLER_MAX), -ERANGE);
	note_code(tern_request(local[0], 1, UINT32_MAX));
	CHECK_IS(code, -ERANGE);
	CHECK(says("0 to 767"));
	void *claimed = handed_claim(local[0], 1, 10);
	CHECK_IS(tern_commit(local[0], claimed, UNKNOWN), -ENXIO);
	CHECK_IS(tern_commit(local[0], claimed, TERN_HANDLER_MAX), -ERANGE);
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	check_unharmed();
}

static void reply_badly(tern *t, const tern_msg *m)
{
	static const uint64_t words[TERN_WORDS_MAX + 1];
	CHECK_IS(tern_reply(t, m, UNKNOWN), -ENXIO);
	CHECK_IS(tern_reply(t, m, UNKNOWN, 1, 2), -ENXIO);
	CHECK_IS(tern_reply(t, m, TERN_HANDLER_MAX), -ERANGE);
	note_code(tern_reply_array(t, m, TELL, 9, words));
	CHECK_IS(code, -E2BIG);
	CHECK(says("handler 4") && says("rank 0"));
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, TERN_REQUEST_MAX + 1), -EMSGSIZE);
	CHECK_IS(tern_reply_data(t, m, UNKNOWN, bytes, 1), -ENXIO);
	CHECK(!handed_reply_claim(t, m, TERN_REQUEST_MAX + 1));
	CHECK_IS(errno, EMSGSIZE);
	CHECK_IS(tern_reply(t, m, TELL, 77), 0); /* and the reply is still to be had */
}

TEST(a_reply_that_is_refused_can_be_made_good)
{
	local_open(3);
	local_on(BREAK, reply_badly);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	CHECK_IS(tern_request(local[0], 1, BREAK), 0);
	local_settle();
	CHECK_IS(replies.count, 1);
	CHECK_IS(replies.word[0], 77);
	replies.count = 0;
	check_unharmed();
}

static int reply_twice(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL), 0);
	CHECK_IS(tern_reply(t, m, TELL, 1, 2), -EALREADY);
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, 1), -EALREADY);
	CHECK(tern_reply(t, NULL, TELL) < 0);
	CHECK(!handed_reply_claim(t, m, 1));
	CHECK_IS(errno, EALREADY);
	return tern_reply(t, m, TELL, 1);
}

TEST(a_second_reply_is_refused)
{
	ranks_open();
	breaking = reply_twice;
	for (uint32_t dst = 0; dst < 2; dst++)
		for (unsigned n = 0; n < 3; n++) { /* pieces and whole lines */
			static const uint64_t words[3];
			CHECK_IS(tern_request_array(local[0], dst, BREAK, n, words), 0);
			local_settle();
			CHECK_IS(code, -EALREADY);
			CHECK(says("handler 12") && says("rank 0") && says("at most once"));
		}
	CHECK_IS(replies.count, 6);
	check_unharmed();
}

TEST(a_reply_outside_a_handler_is_refused)
{
	ranks_open();
	note_code(tern_reply(local[0], NULL, TELL, 1));
	CHECK_IS(code, -EPERM);
	CHECK(says("handler 4") && says("rank 0") && says("outside a handler"));
	CHECK_IS(tern_reply(local[0], NULL, TELL, 1, 2), -EPERM);
	CHECK_IS(tern_reply_data(local[0], NULL, TELL, bytes, 1), -EPERM);
	CHECK(!handed_reply_claim(local[0], NULL, 1));
	CHECK_IS(errno, EPERM);
	check_unharmed();
}

static const tern_msg *stale;

static int reply_to_another(tern *t, const tern_msg *m)
{
	if (!stale) {
		stale = m;
		return 0;
	}
	CHECK_IS(tern_reply(t, NULL, TELL), -EPERM);
	return tern_reply(t, stale, TELL);
}

TEST(a_reply_to_another_message_is_refused)
{
	ranks_open();
	breaking = reply_to_another;
	CHECK_IS(tern_request(local[0], 1, BREAK, 1, 2), 0);
	CHECK_IS(tern_request(local[2], 1, BREAK, 1, 2), 0);
	local_settle();
	CHECK_IS(code, -EPERM);
	CHECK(says("handler 12") && says("another message"));
	CHECK_IS(tern_reply(local[1], stale, TELL), -EPERM); /* nor after it has returned */
	CHECK_IS(replies.count, 0);
	check_unharmed();
}

static int break_by_request(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_request(t, 0, ASK, 1);
}

TEST(a_request_in_a_request_handler_is_refused)
{
	ranks_open();
	breaking = break_by_request;
	CHECK_IS(tern_request(local[0], 1, BREAK), 0);
	local_settle();
	CHECK_IS(code, -EPERM);
	CHECK(says("a request was called") && says("handler 12 (break_in_request)") &&
	      says("rank 0") && says("tern_defer"));
	check_unharmed();
}

static int break_by_reply(tern *t, const tern_msg *m)
{
	return tern_reply(t, m, TELL, 1);
}

TEST(a_reply_handler_that_sends_is_refused)
{
	ranks_open();
	for (int i = 0; i < 2; i++) {
		breaking = i ? break_by_reply : break_by_request;
		code = 0;
		CHECK_IS(tern_request(local[0], 1, BREAK + 2), 0);
		local_settle();
		CHECK_IS(code, -EPERM);
		CHECK(says("handler 13") && says("rank 1") &&
		      says("reply handler may send nothing"));
	}
	check_unharmed();
}

static int close_it(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_close(t);
}

static int change_delivery(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_delivery_set(t, TERN_DELIVERY_POLL);
}

TEST(nobody_is_advised_to_defer_what_deferred_functions_may_not_do)
{
	int (*const calls[])(tern * t, const tern_msg *m) = { close_it, change_delivery };
	for (int i = 0; i < 4; i++) {
		ranks_open();
		breaking = calls[i / 2];
		code = 0;
		CHECK_IS(tern_request(local[0], 1, i % 2 ? BREAK : BREAK + 2), 0);
		local_settle();
		CHECK_IS(code, -EPERM);
		CHECK(says("in the program") && !strstr(sentence, "tern_defer"));
		check_unharmed();
	}
}

TEST(every_code_has_a_sentence)
{
	static const int codes[] = { 0,      EAGAIN, EPERM,    EALREADY,   EDEADLK, ENXIO,
				     ERANGE, E2BIG,  EMSGSIZE, EOWNERDEAD, ENOMEM,  ENOBUFS,
				     EINVAL, EBUSY,  EPROTO,   ESHUTDOWN,  EBADMSG, ENOTSUP };
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		const char *text = tern_strerror(-codes[i]);
		CHECK(text && strlen(text) > 5);
		CHECK(i == 0 || strcmp(text, strerror(codes[i])) != 0);
	}
	CHECK(strlen(tern_strerror(-12345)) > 0);
	CHECK(strlen(tern_strerror(12)) > 0);
}
