/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broken rule returns a code and a sentence with the rule, the handler and the
 * rank; nothing is sent, nothing is harmed. Where what is legal, as a table:
 * tests/legal_test.c.
 */
#include <errno.h>
#include <tern/async.h>
#include <tern/mem.h>

#include "../../tests/local.h"
#include "core/rules.h"

enum { ASK = 3, TELL = 4, UNKNOWN = 99, BREAK = 12, BREAK_REPLY = 13 };

static int code;
static char sentence[400];
static int (*breaking)(tern *t, const tern_msg *m);
static const unsigned char bytes[TERN_PAYLOAD_MAX + 1];

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
		CHECK(!tern_claim(local[1], dst, 10));
		CHECK_IS(errno, ERANGE);
		CHECK_IS(tern_forgive(local[1], dst), -ERANGE);
	}
	check_unharmed();
}

TEST(too_many_words_are_refused)
{
	static const uint64_t words[9];
	ranks_open();
	note_code(tern_request(local[0], 1, ASK, 1, 2, 3, 4, 5, 6, 7));
	CHECK_IS(code, -E2BIG);
	CHECK(says("7 words") && says("at most 6") && says("handler 3") && says("rank 1"));
	CHECK_IS(tern_request(local[0], 1, ASK, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), -E2BIG);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1, 1, 2, 3, 4, 5, 6, 7), -E2BIG);
	CHECK_IS(tern_request_array(local[0], 1, ASK, 9, words), -E2BIG);
	CHECK_IS(tern_request_array(local[0], 1, ASK, UINT32_MAX, words), -E2BIG);
	void *claimed = tern_claim(local[0], 1, 10);
	CHECK_IS(tern_commit(local[0], claimed, ASK, 1, 2, 3, 4, 5, 6, 7), -E2BIG);
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	check_unharmed();
}

TEST(too_long_a_payload_is_refused)
{
	ranks_open();
	note_code(tern_request_data(local[0], 1, ASK, bytes, TERN_PAYLOAD_MAX + 1));
	CHECK_IS(code, -EMSGSIZE);
	CHECK(says("8193") && says("8192") && says("handler 3") && says("rank 1"));
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, SIZE_MAX), -EMSGSIZE);
	CHECK(!tern_claim(local[0], 1, TERN_PAYLOAD_MAX + 1));
	CHECK_IS(errno, EMSGSIZE);
	CHECK(!tern_claim(local[0], 1, SIZE_MAX));
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
	void *claimed = tern_claim(local[0], 1, 10);
	CHECK_IS(tern_commit(local[0], claimed, UNKNOWN), -ENXIO);
	CHECK_IS(tern_commit(local[0], claimed, TERN_HANDLER_MAX), -ERANGE);
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	check_unharmed();
}

static void reply_badly(tern *t, const tern_msg *m)
{
	static const uint64_t words[7];
	CHECK_IS(tern_reply(t, m, UNKNOWN), -ENXIO);
	CHECK_IS(tern_reply(t, m, UNKNOWN, 1, 2), -ENXIO);
	CHECK_IS(tern_reply(t, m, TERN_HANDLER_MAX), -ERANGE);
	CHECK_IS(tern_reply_array(t, m, TELL, 7, words), -E2BIG);
	note_code(tern_reply(t, m, TELL, 1, 2, 3, 4, 5, 6, 7));
	CHECK_IS(code, -E2BIG);
	CHECK(says("handler 4") && says("rank 0"));
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, TERN_PAYLOAD_MAX + 1), -EMSGSIZE);
	CHECK_IS(tern_reply_data(t, m, UNKNOWN, bytes, 1), -ENXIO);
	CHECK(!tern_reply_claim(t, m, TERN_PAYLOAD_MAX + 1));
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
	CHECK(!tern_reply_claim(t, m, 1));
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
	CHECK(!tern_reply_claim(local[0], NULL, 1));
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

/* -- Each rule is broken, and then its advice is followed ---------------------------------- */

/*
 * `broken` breaks the rule, in the place that it is for; `advised` does what the sentence says.
 * Both return what the library does, and 1 stands for "nothing yet".
 */
static _Atomic int broken_code, advised_code;
static char broken_sentence[400];
static const tern_msg *before_msg; /* of another handler */
static _Atomic uint64_t happened;

static void broke(int rc)
{
	snprintf(broken_sentence, sizeof broken_sentence, "%s", tern_strerror(rc));
	broken_code = rc;
}

static int code_of(const void *got)
{
	return got ? 0 : -errno;
}

static void advised_request(tern *t, void *arg)
{
	(void)arg;
	advised_code = tern_request(t, 0, ASK, 1);
}

static void on_handler(tern *t, const tern_msg *m)
{
	(void)m;
	broke(tern_request(t, 0, ASK, 1));
	CHECK_IS(tern_defer(t, advised_request, NULL), 0);
}

static void on_program(tern *t, const tern_msg *m)
{
	(void)m;
	broke(tern_close(t));
}

static void on_reply_in_reply(tern *t, const tern_msg *m)
{
	broke(tern_reply(t, m, TELL, 1));
	CHECK_IS(tern_defer(t, advised_request, NULL), 0);
}

static void on_reply_other(tern *t, const tern_msg *m)
{
	broke(tern_reply(t, NULL, TELL, 1));
	advised_code = tern_reply(t, m, TELL, 1);
}

static void on_reply_twice(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, 1), 0);
	broke(tern_reply(t, m, TELL, 2));
	CHECK_IS(tern_defer(t, advised_request, NULL), 0);
}

static void on_handling(tern *t, const tern_msg *m)
{
	const tern_msg *kept = tern_keep(t, before_msg);
	broke(code_of(kept));
	kept = tern_keep(t, m);
	advised_code = code_of(kept);
	if (kept)
		CHECK_IS(tern_drop(t, kept), 0);
}

static void handler_of(tern_handler *fn, bool reply)
{
	local_open(2);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	local_on(BREAK, reply ? answer_to_break : fn);
	local_on(BREAK_REPLY, fn);
	CHECK_IS(tern_request(local[0], 1, BREAK), 0);
	local_settle();
}

static void try_program(void)
{
	handler_of(on_program, false);
	advised_code = tern_close(local[1]);
	local[1] = NULL;
}

static void delivery_deferred(tern *t, void *arg)
{
	(void)arg;
	broke(tern_set_delivery(t, TERN_DELIVERY_POLL));
}

static void try_delivery(void)
{
	ranks_open();
	CHECK_IS(tern_defer(local[0], delivery_deferred, NULL), 0);
	local_settle();
	CHECK_IS(broken_code, rule_table[RULE_DELIVERY].code);
	tern_hold(local[0]);
	broke(tern_set_delivery(local[0], TERN_DELIVERY_POLL));
	tern_release(local[0]);
	advised_code = tern_set_delivery(local[0], TERN_DELIVERY_POLL);
}

static void try_reply_outside(void)
{
	ranks_open();
	broke(tern_reply(local[0], NULL, TELL, 1));
	advised_code = tern_request(local[0], 1, ASK, 1);
}

static void *use_elsewhere(void *arg)
{
	broke(tern_request(arg, 1, ASK, 1));
	tern_attach(arg);
	advised_code = tern_request(arg, 1, ASK, 1);
	return NULL;
}

static void try_thread(void)
{
	pthread_t thread;
	setenv("TERN_CHECK", "1", 1);
	ranks_open();
	REQUIRE(pthread_create(&thread, NULL, use_elsewhere, local[0]) == 0);
	pthread_join(thread, NULL);
	tern_attach(local[0]);
	unsetenv("TERN_CHECK");
}

/* The child says what it was told, and its parent does it in its place. */
static void try_forked(void)
{
	int pipes[2], status;
	ranks_open();
	REQUIRE(pipe(pipes) == 0);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		broke(tern_request(local[0], 1, ASK, 1));
		bool told = write(pipes[1], &broken_code, sizeof broken_code) > 0 &&
			    write(pipes[1], broken_sentence, sizeof broken_sentence) > 0;
		_exit(told ? 0 : 1);
	}
	REQUIRE(read(pipes[0], &broken_code, sizeof broken_code) == sizeof broken_code);
	REQUIRE(read(pipes[0], broken_sentence, sizeof broken_sentence) == sizeof broken_sentence);
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	close(pipes[0]);
	close(pipes[1]);
	advised_code = tern_request(local[0], 1, ASK, 1);
}

static int wait_in_turn(tern *t, void *arg)
{
	tern_op *op = arg;
	if (broken_code == 1)
		broke(tern_wait(t, &happened, 1));
	return op->pending && !happened ? -EAGAIN : 0;
}

static void try_turn(void)
{
	static tern_op turn;
	ranks_open();
	happened = 0;
	CHECK_IS(tern_queue(local[0], wait_in_turn, &turn, &turn), 0);
	while (broken_code == 1)
		tern_poll(local[0]);
	happened = 1;
	advised_code = tern_op_wait(local[0], &turn);
}

static void try_hold(void)
{
	ranks_open();
	happened = 1;
	tern_hold(local[0]);
	broke(tern_wait(local[0], &happened, 1));
	tern_release(local[0]);
	advised_code = tern_wait(local[0], &happened, 1);
}

static void try_words(void)
{
	uint64_t words[7] = { 0 };
	ranks_open();
	broke(tern_request_array(local[0], 1, ASK, 7, words));
	advised_code = tern_request_data(local[0], 1, ASK, words, sizeof words);
}

static void try_payload(void)
{
	ranks_open();
	broke(tern_request_data(local[0], 1, ASK, bytes, sizeof bytes));
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_PAYLOAD_MAX), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes + TERN_PAYLOAD_MAX, 1), 0);
	void *there = tern_alloc(local[1], sizeof bytes);
	advised_code = tern_put(local[0], tern_addr_of(local[1], there), bytes, sizeof bytes);
}

static void try_number(void)
{
	ranks_open();
	broke(tern_request(local[0], 1, TERN_HANDLER_MAX));
	advised_code = tern_request(local[0], 1, ASK);
}

static void try_registered(void)
{
	ranks_open();
	broke(tern_request(local[0], 1, UNKNOWN));
	local_close();
	local_open(2);
	local_on(UNKNOWN, note_request);
	advised_code = tern_request(local[0], 1, UNKNOWN);
}

static void try_rank(void)
{
	ranks_open();
	broke(tern_request(local[0], 3, ASK));
	advised_code = tern_request(local[0], 2, ASK);
}

/* In a handler, or by a function of its own. */
static const struct {
	tern_handler *handler;
	bool reply;
	void (*run)(void);
} trials[RULES] = {
	[RULE_HANDLER] = { .handler = on_handler },
	[RULE_PROGRAM] = { .run = try_program },
	[RULE_DELIVERY] = { .run = try_delivery },
	[RULE_REPLY_OUTSIDE] = { .run = try_reply_outside },
	[RULE_REPLY_REPLY] = { .handler = on_reply_in_reply, .reply = true },
	[RULE_REPLY_OTHER] = { .handler = on_reply_other },
	[RULE_REPLY_TWICE] = { .handler = on_reply_twice },
	[RULE_HANDLING] = { .handler = on_handling },
	[RULE_THREAD] = { .run = try_thread },
	[RULE_FORKED] = { .run = try_forked },
	[RULE_TURN] = { .run = try_turn },
	[RULE_HOLD] = { .run = try_hold },
	[RULE_WORDS] = { .run = try_words },
	[RULE_PAYLOAD] = { .run = try_payload },
	[RULE_NUMBER] = { .run = try_number },
	[RULE_REGISTERED] = { .run = try_registered },
	[RULE_RANK] = { .run = try_rank },
};

/* The last words of a sentence about a rule that was broken. */
static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), more = strlen(end);
	return len > more && strcmp(text + len - more, end) == 0;
}

TEST(what_the_sentence_of_each_rule_advises_is_allowed)
{
	for (int r = 0; r < RULES; r++) {
		broken_code = advised_code = 1;
		if (trials[r].handler)
			handler_of(trials[r].handler, trials[r].reply);
		else if (CHECK(trials[r].run != NULL))
			trials[r].run();
		for (int i = 0; i < 1000 && advised_code == 1; i++)
			local_settle();
		if (!CHECK_IS(broken_code, rule_table[r].code) || !CHECK_IS(advised_code, 0) ||
		    !CHECK(ends_with(broken_sentence, rule_table[r].advice)))
			printf("    rule %d: %s\n", r, broken_sentence);
		local_settle();
		local_close();
	}
}

static int close_it(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_close(t);
}

static int change_delivery(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_set_delivery(t, TERN_DELIVERY_POLL);
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

TEST(registering_a_handler_has_rules_too)
{
	local_open(2);
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX, note_request), -ERANGE);
	CHECK(sentence_has(-ERANGE, "768"));
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX - 1, note_request), 0);
	CHECK_IS(tern_on(local[1], TERN_HANDLER_MAX - 1, note_request), 0);
	CHECK_IS(tern_on(local[0], ASK, NULL), -EINVAL);
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX - 1, note_reply),
		 0); /* until the first message */
	CHECK_IS(tern_request(local[0], 1, TERN_HANDLER_MAX - 1, 1), 0);
	CHECK_IS(tern_on(local[0], ASK, note_request), -EBUSY);
	CHECK(sentence_has(-EBUSY, "rank 0"));
	local_settle();
	CHECK_IS(requests.count, 1);
	CHECK_IS(tern_on(local[1], ASK, note_request), -EBUSY);
	local_close();
}

TEST(a_handler_is_named_as_the_call_names_it_and_any_expression_can_be_registered)
{
	static tern_handler *const table[] = { note_request, note_reply };
	local_open(2);
	CHECK_IS(tern_on(local[0], 1, note_request), 0);
	CHECK_IS(tern_on(local[0], 2, &note_request), 0);
	CHECK_IS(tern_on(local[0], 3, table[1]), 0);
	tern_handler *variable = note_request;
	CHECK_IS(tern_on(local[0], 9, variable), 0);
	CHECK_IS(tern_on(local[0], 10, local[1] ? note_request : note_reply), 0);
	CHECK_IS(tern_on(local[0], 4, (tern_handler *[]){ note_request, note_reply }[1]), 0);
	CHECK_IS((tern_on)(local[0], 5, note_request), 0);
	CHECK_IS(tern_on_named(local[0], 6, note_request, "another"), 0);
	CHECK_IS(tern_on_named(local[0], 7, note_request, "no name \x1b[2J"), 0);
	int (*on)(tern * t, unsigned id, tern_handler *fn) = tern_on;
	CHECK_IS(on(local[0], 8, note_request), 0);
	CHECK(strcmp(tern_stats_handler_name(local[0], 1), "note_request") == 0);
	CHECK(strcmp(tern_stats_handler_name(local[0], 2), "note_request") == 0);
	for (unsigned id = 3; id <= 10; id++)
		if (id != 6)
			CHECK(tern_stats_handler_name(local[0], id) == NULL);
	CHECK(strcmp(tern_stats_handler_name(local[0], 6), "another") == 0);
	CHECK(tern_stats_handler_name(local[0], TERN_STATS_HANDLERS) == NULL);
	CHECK(strcmp(tern_stats_handler_name(local[0], TERN_HANDLER_MAX), "on_put") == 0);
	local_close();
}

TEST(a_handler_that_only_the_sender_knows_is_found_out_on_arrival)
{
	local_open(2);
	CHECK_IS(tern_on(local[0], ASK, note_request), 0);
	CHECK_IS(tern_on(local[0], TELL, note_request), 0);
	CHECK_IS(tern_on(local[1], TELL, note_request), 0);
	tern_hold(local[1]); /* so that all are found at a stretch */
	for (unsigned n = 0; n < 3; n++) {
		static const uint64_t words[3];
		CHECK_IS(tern_request_array(local[0], 1, ASK, n, words), 0);
	}
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	CHECK_IS(tern_request(local[0], 1, TELL, 8), 0);
	tern_release(local[1]);
	note_code(tern_poll(local[1]));
	CHECK_IS(code, -ENXIO);
	CHECK(says("rank 1") && says("rank 0") && says("handler 3 (note_request)"));
	CHECK_IS(tern_poll(local[1]), 0); /* told once */
	CHECK_IS(requests.count, 1);
	CHECK_IS(requests.word[0], 8);
	for (int i = 0; i < 2 * TERN_POOL_BLOCKS; i++) { /* no block was lost */
		CHECK_IS(tern_request_data(local[0], 1, TELL, bytes, 100), 0);
		local_settle();
	}
	local_close();
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
