/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests, replies and posts. Those of one rank to another keep their order, so a handler knows
 * which one comes next, and compares all of it.
 */
#include <stdatomic.h>

#include <tern/mem.h>
#include <tern/post.h>

#include "play.h"

enum { ON_REQUEST = 3, ON_REPLY, ON_POST, ON_POSTS };
enum form { WORDS, DATA, CLAIM }; /* of a request */
enum other { NO_REPLY, REPLY_WORDS, REPLY_DATA, REPLY_SAME, REPLY_LATER, REPLY_PUT };
enum { NEXT_MOST = RANKS_MOST };

/* Where the messages of one kind from one rank to another are: which step, which one of it. */
struct cursor {
	unsigned step, i, handled;
};
static struct cursor requests[NEXT_MOST], replies[NEXT_MOST], posts[NEXT_MOST];
static unsigned replies_due;
static _Atomic unsigned replies_come;

static bool has_reply(const struct step *s)
{
	return s->other != NO_REPLY && s->other != REPLY_LATER;
}

/* The next message of a kind between two; NULL: there is none, and one has come. */
static const struct step *next(struct cursor *c, enum kind kind, uint32_t from, uint32_t to,
			       bool reply, unsigned *i)
{
	for (; c->step < program.steps; c->step++, c->i = 0) {
		const struct step *s = &program.step[c->step];
		if (s->kind == kind && s->from == from && s->to == to && c->i < s->count &&
		    (!reply || has_reply(s))) {
			*i = c->i++;
			c->handled++;
			return s;
		}
	}
	return NULL;
}

static uint64_t word_of(const struct step *s, unsigned i, unsigned k)
{
	return content_of(message_number(s, i), 5000 + k);
}

/* -- At the receiver -------------------------------------------------------------------------- */

static void message_check(const struct step *s, const tern_msg *m, unsigned i, unsigned words,
			  size_t len, uint64_t number)
{
	static char copy[TERN_REQUEST_MAX]; /* which a planted fault may change */
	size_t got_len;
	const void *data = tern_msg_data(m, &got_len);
	number_is(s, "the number of words", tern_msg_count(m), words);
	for (unsigned k = 0; k < words && k < tern_msg_count(m); k++)
		number_is(s, "a word", tern_msg_word(m, k), word_of(s, i, k));
	if (number_is(s, "the length of the payload", got_len, len) && len) {
		memcpy(copy, data, len);
		bytes_are(s, "a payload", copy, 0, len, number);
	}
}

static size_t reply_len(const struct step *s)
{
	return s->other == REPLY_WORDS || s->other == REPLY_PUT ? 0 : s->len;
}

static void reply(const tern_msg *m, const struct step *s, unsigned i)
{
	uint64_t words[TERN_WORDS_MAX];
	size_t len = reply_len(s);
	for (unsigned k = 0; k < s->words; k++)
		words[k] = word_of(s, i, k);
	void *claimed = NULL;
	char data[TERN_REQUEST_MAX];
	int rc;
	if (s->other == REPLY_PUT) {
		content_fill(data, 0, s->len, message_number(s, i) + 1);
		const tern_long what = { .dst = tern_addr_at(t, s->from,
							     (char *)reply_room(me) + i * s->len),
					 .id = ON_REPLY,
					 .n = s->words,
					 .src = data,
					 .len = s->len,
					 .words = words };
		rc = tern_put_reply_array(t, m, &what);
	} else if (s->other == REPLY_SAME && len) {
		rc = tern_reply_claim(t, m, len, TERN_CLAIM_ANY, &claimed);
		if (!rc)
			content_fill(claimed, 0, len, message_number(s, i) + 1);
		rc = rc ? rc : tern_reply_commit_array(t, m, claimed, ON_REPLY, s->words, words);
	} else {
		content_fill(data, 0, len, message_number(s, i) + 1);
		rc = tern_reply_data_array(t, m, ON_REPLY, data, len, s->words, words);
	}
	code_is(s, "a reply", rc, 0);
}

static void on_request(tern *own, const tern_msg *m)
{
	const struct step nothing = { .kind = REQUEST, .from = tern_msg_src(m), .to = me };
	unsigned i;
	(void)own;
	const struct step *s =
		next(&requests[tern_msg_src(m)], REQUEST, tern_msg_src(m), me, false, &i);
	if (!s) {
		wrong(&nothing, "a request came that nobody sends");
		return;
	}
	message_check(s, m, i, s->words, s->form == WORDS ? 0 : s->len, message_number(s, i));
	if (has_reply(s))
		reply(m, s, i);
}

static void on_reply(tern *own, const tern_msg *m)
{
	const struct step nothing = { .kind = REQUEST, .from = me, .to = tern_msg_src(m) };
	unsigned i;
	(void)own;
	const struct step *s =
		next(&replies[tern_msg_src(m)], REQUEST, me, tern_msg_src(m), true, &i);
	if (s)
		message_check(s, m, i, s->words, reply_len(s), message_number(s, i) + 1);
	else
		wrong(&nothing, "a reply came that nobody sends");
	if (s && s->other == REPLY_PUT)
		bytes_are(s, "what was put before a reply",
			  (char *)reply_room(tern_msg_src(m)) + i * s->len, 0, s->len,
			  message_number(s, i) + 1);
	atomic_fetch_add(&replies_come, 1);
}

/* -- At the sender ---------------------------------------------------------------------------- */

static int request_one(const struct step *s, unsigned i)
{
	uint64_t w[TERN_WORDS_MAX];
	void *claimed;
	for (unsigned k = 0; k < TERN_WORDS_MAX; k++)
		w[k] = word_of(s, i, k);
	if (s->form == WORDS && s->words == 4)
		return tern_request(t, s->to, ON_REQUEST, w[0], w[1], w[2], w[3]);
	if (s->form == WORDS && s->words == 8)
		return tern_request(t, s->to, ON_REQUEST, w[0], w[1], w[2], w[3], w[4], w[5], w[6],
				    w[7]);
	if (s->form == WORDS)
		return tern_request_array(t, s->to, ON_REQUEST, s->words, w);
	if (s->form == CLAIM && s->len) {
		int rc = tern_claim(t, s->to, s->len, &claimed);
		if (rc)
			return rc;
		content_fill(claimed, 0, s->len, message_number(s, i));
		return tern_commit_array(t, claimed, ON_REQUEST, s->words, w);
	}
	char *data = malloc(s->len + 1);
	content_fill(data, 0, s->len, message_number(s, i));
	int rc = tern_request_data_array(t, s->to, ON_REQUEST, data, s->len, s->words, w);
	free(data);
	return rc;
}

static int replies_are_there(tern *own, void *arg)
{
	(void)own, (void)arg;
	return atomic_load(&replies_come) >= replies_due;
}

void replies_wait(const struct step *s)
{
	code_is(s, "waiting for replies", tern_wait_until(t, replies_are_there, NULL), 0);
}

void request_play(const struct step *s)
{
	if (s->from != me)
		return;
	if (s->other == REPLY_PUT) /* others of the same rank go to the same place */
		replies_wait(s);
	for (unsigned i = 0; i < s->count; i++) {
		if (!code_is(s, "a request", request_one(s, i), 0))
			return;
		replies_due += has_reply(s);
	}
	if (waits_here(s) || s->other == REPLY_PUT)
		replies_wait(s);
}

void request_lost(const struct step *s, uint32_t rank)
{
	code_is(s, "a request to the lost rank", tern_request(t, rank, ON_REQUEST, 0), gone_code);
}

/* -- Posts ------------------------------------------------------------------------------------ */

static void item_check(uint32_t src, unsigned words, const uint64_t *word)
{
	const struct step nothing = { .kind = POST, .from = src, .to = me };
	unsigned i;
	const struct step *s = next(&posts[src], POST, src, me, false, &i);
	if (!s) {
		wrong(&nothing, "an item came that nobody posts");
		return;
	}
	number_is(s, "the number of words", words, s->words % 7);
	for (unsigned k = 0; k < words; k++)
		number_is(s, "a word", word[k], word_of(s, i, k));
}

static void on_post(tern *own, const tern_msg *m)
{
	uint64_t word[TERN_WORDS_MAX];
	(void)own;
	for (unsigned k = 0; k < tern_msg_count(m); k++)
		word[k] = tern_msg_word(m, k);
	item_check(tern_msg_src(m), tern_msg_count(m), word);
}

static void on_posts(tern *own, const tern_msg *m, const uint64_t *words, size_t count)
{
	(void)own;
	for (size_t i = 0; i < count; i++)
		item_check(tern_msg_src(m), tern_msg_count(m), words + i * tern_msg_count(m));
}

void post_play(const struct step *s)
{
	if (s->from != me)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		uint64_t w[TERN_WORDS_MAX];
		for (unsigned k = 0; k < TERN_WORDS_MAX; k++)
			w[k] = word_of(s, i, k);
		int rc = tern_post_array(t, s->to, s->form ? ON_POSTS : ON_POST, s->words % 7, w);
		if (!code_is(s, "tern_post()", rc, 0))
			return;
	}
	if (waits_here(s))
		code_is(s, "tern_post_flush()", tern_post_flush(t), 0);
}

/* -- Counting --------------------------------------------------------------------------------- */

static unsigned expected(enum kind kind, uint32_t from, uint32_t to, bool reply, unsigned before)
{
	unsigned n = 0;
	for (unsigned k = 0; k < before; k++) {
		const struct step *s = &program.step[k];
		if (s->kind == kind && s->from == from && s->to == to && (!reply || has_reply(s)))
			n += s->count;
	}
	return n;
}

static void count_check(const struct step *s, const char *what, unsigned got, unsigned least)
{
	if (got < least)
		wrong(s, "%s: %u are handled, and %u were sent before", what, got, least);
}

void handled_check(const struct step *s, bool replied)
{
	for (uint32_t r = 0; r < program.ranks; r++) {
		count_check(s, "requests", requests[r].handled,
			    expected(REQUEST, r, me, false, s->number));
		count_check(s, "posts", posts[r].handled, expected(POST, r, me, false, s->number));
		if (replied)
			count_check(s, "replies", replies[r].handled,
				    expected(REQUEST, me, r, true, s->number));
	}
}

void requests_open(void)
{
	const struct step s = { .kind = REQUEST };
	code_is(&s, "tern_on()", tern_on(t, ON_REQUEST, on_request), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_REPLY, on_reply), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_POST, on_post), 0);
	code_is(&s, "tern_post_on()", tern_post_on(t, ON_POSTS, on_posts, NULL), 0);
}
