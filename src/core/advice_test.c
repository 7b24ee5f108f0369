/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rule of the model is broken, and then the advice of its sentence is followed. */
#include <errno.h>
#include <tern/async.h>
#include <tern/mem.h>

#include "core/rules.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK = 3, TELL = 4, UNKNOWN = 99, BREAK = 12, BREAK_REPLY = 13 };

static const unsigned char bytes[TERN_REQUEST_MAX + 1];

static void answer_to_break(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, BREAK_REPLY), 0);
}

static void ranks_open(void)
{
	local_open(3);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	CHECK_IS(tern_request(local[0], 1, ASK), 0); /* the inline path is taken from here on */
	local_settle();
}

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
	const tern_msg *kept = handed_keep(t, before_msg);
	broke(code_of(kept));
	kept = handed_keep(t, m);
	advised_code = code_of(kept);
	if (kept)
		CHECK_IS(tern_msg_drop(t, kept), 0);
}

static void handler_runs(tern_handler *fn, bool reply)
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
	handler_runs(on_program, false);
	advised_code = tern_close(local[1]);
	local[1] = NULL;
}

static void delivery_deferred(tern *t, void *arg)
{
	(void)arg;
	broke(tern_delivery_set(t, TERN_DELIVERY_POLL));
}

static void try_delivery(void)
{
	ranks_open();
	CHECK_IS(tern_defer(local[0], delivery_deferred, NULL), 0);
	local_settle();
	CHECK_IS(broken_code, rule_table[RULE_DELIVERY].code);
	tern_hold(local[0]);
	broke(tern_delivery_set(local[0], TERN_DELIVERY_POLL));
	tern_release(local[0]);
	advised_code = tern_delivery_set(local[0], TERN_DELIVERY_POLL);
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
	CHECK_IS(tern_async_start(local[0], wait_in_turn, &turn, &turn), 0);
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
	uint64_t words[TERN_WORDS_MAX + 1] = { 0 };
	ranks_open();
	broke(tern_request_array(local[0], 1, ASK, TERN_WORDS_MAX + 1, words));
	advised_code = tern_request_data(local[0], 1, ASK, words, sizeof words);
}

static void try_payload(void)
{
	ranks_open();
	broke(tern_request_data(local[0], 1, ASK, bytes, sizeof bytes));
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, TERN_REQUEST_MAX), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes + TERN_REQUEST_MAX, 1), 0);
	void *there = handed_alloc(local[1], sizeof bytes);
	advised_code = tern_put(local[0], handed_addr(local[1], there), bytes, sizeof bytes);
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
			handler_runs(trials[r].handler, trials[r].reply);
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
