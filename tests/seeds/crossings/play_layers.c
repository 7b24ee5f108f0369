/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed messages, channels, asynchronous sends, light threads. */
#include <stdatomic.h>

#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/thread.h>

#include "play.h"

enum { BUFFER_BYTES = 70000, BUFFERS = 4, DRAIN = 5, THREAD = 6, NAMES = 1000, TURNS = 1000 };

bool plays(enum kind kind)
{
	for (unsigned i = 0; i < program.steps; i++)
		if (program.step[i].kind == kind)
			return true;
	return false;
}

/* -- Typed messages: a type for each sender, so that it is known who is next ------------------ */

static void buf_sent(struct pending *w, int rc)
{
	code_is(w->s, "a typed send", rc, 0);
}

static void buf_send_one(const struct step *s, unsigned i)
{
	struct pending *w = pending_new(s, i, s->len, buf_sent);
	content_fill(w->bytes, 0, s->len, message_number(s, i));
	bool stay = s->form && !waits_here(s);
	int rc = stay ? tern_buf_send_start(t, s->to, me, w->bytes, s->len, 0, &w->op)
		      : tern_buf_send(t, s->to, me, w->bytes, s->len);
	pending_begun(w, rc, stay);
}

static void buf_recv_one(const struct step *s, unsigned i)
{
	tern_buf b;
	if (!code_is(s, "tern_buf_recv()", tern_buf_recv(t, s->from, 0, &b), 0))
		return;
	number_is(s, "the sender", b.src, s->from);
	if (number_is(s, "the length", b.len, s->len))
		bytes_are(s, "a typed message", b.data, 0, s->len, message_number(s, i));
	code_is(s, "tern_buf_free()", tern_buf_free(t, b.data), 0);
}

void typed_play(const struct step *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (s->from == me)
			buf_send_one(s, i);
		if (s->to == me)
			buf_recv_one(s, i);
	}
}

/* -- Channels --------------------------------------------------------------------------------- */

enum chan_form { IN_WORDS, IN_BLOCKS, IN_BOTH };

static int chan_put_one(const struct step *s, tern_out *o, unsigned i)
{
	uint64_t word = content_of(message_number(s, i), 0);
	int rc = s->form != IN_BLOCKS ? tern_chan_put(o, &word, sizeof word) : 0;
	if (rc || s->form == IN_WORDS)
		return rc;
	char *data = malloc(s->len + 1);
	content_fill(data, 0, s->len, message_number(s, i));
	rc = tern_chan_put(o, data, s->len);
	free(data);
	return rc;
}

static void chan_get_one(const struct step *s, tern_in *in, unsigned i)
{
	uint64_t word = 0;
	char *data = malloc(s->len + 1);
	if (s->form != IN_BLOCKS) {
		code_is(s, "tern_chan_get()", tern_chan_get(in, &word, sizeof word), 0);
		number_is(s, "a word", word, content_of(message_number(s, i), 0));
	}
	if (s->form != IN_WORDS &&
	    code_is(s, "tern_chan_get()", tern_chan_get(in, data, s->len), 0))
		bytes_are(s, "a block", data, 0, s->len, message_number(s, i));
	free(data);
}

static void chan_send(const struct step *s)
{
	tern_chan *c;
	if (!code_is(s, "tern_chan_to()", tern_chan_to(t, s->to, NAMES + s->number, &c), 0))
		return;
	tern_out o = tern_chan_out(c);
	for (unsigned i = 0; i < s->count; i++)
		code_is(s, "a put into a channel", chan_put_one(s, &o, i), 0);
	code_is(s, "tern_chan_end()", tern_chan_end(&o), 0);
	tern_chan_out_back(&o);
	code_is(s, "tern_chan_close()", tern_chan_close(c), 0);
}

static void chan_recv(const struct step *s)
{
	tern_chan *c;
	uint64_t word;
	if (!code_is(s, "tern_chan_from()", tern_chan_from(t, s->from, NAMES + s->number, &c), 0))
		return;
	tern_in in = tern_chan_in(c);
	for (unsigned i = 0; i < s->count; i++)
		chan_get_one(s, &in, i);
	code_is(s, "a get behind the message", tern_chan_get(&in, &word, sizeof word), -ENODATA);
	code_is(s, "tern_chan_next()", tern_chan_next(&in), 0);
	code_is(s, "a get behind the end", tern_chan_get(&in, &word, sizeof word), -EPIPE);
	tern_chan_in_back(&in);
	code_is(s, "tern_chan_close()", tern_chan_close(c), 0);
}

void chan_play(const struct step *s)
{
	if (s->from == s->to) /* its puts would wait for its own gets */
		return;
	if (s->from == me)
		chan_send(s);
	else
		chan_recv(s);
}

/* -- Asynchronous sends: those of one rank to another come in order --------------------------- */

static struct {
	unsigned step, i;
	_Atomic unsigned drained;
	char data[BUFFER_BYTES]; /* no malloc(), in the middle of which an interrupt may come */
} chains[RANKS_MOST];

static const struct step *chain_next(uint32_t from, unsigned *i)
{
	for (; chains[from].step < program.steps; chains[from].step++, chains[from].i = 0) {
		const struct step *s = &program.step[chains[from].step];
		if (s->kind == ASYNC && s->from == from && s->to == me &&
		    chains[from].i < s->count) {
			*i = chains[from].i++;
			return s;
		}
	}
	return NULL;
}

/* own: the step plus 1, the message, how much of it has come. */
static int drain(tern *own, tern_incoming *m, void *arg)
{
	const struct step nothing = { .kind = ASYNC, .from = m->src, .to = me };
	(void)own, (void)arg;
	if (!m->own[0]) {
		unsigned i = 0;
		const struct step *s = chain_next(m->src, &i);
		if (!s) {
			wrong(&nothing, "a message came that nobody sends");
			return 0;
		}
		m->own[0] = s->number + 1;
		m->own[1] = i;
	}
	const struct step *s = &program.step[m->own[0] - 1];
	char *data = chains[m->src].data;
	size_t done = m->own[2];
	int rc = tern_chan_get_some(m->in, data, s->len, &done);
	m->own[2] = done;
	if (rc > 0 || rc == -EAGAIN)
		return rc;
	if (code_is(s, "tern_chan_get_some()", rc, 0))
		bytes_are(s, "an asynchronous message", data, 0, s->len,
			  message_number(s, (unsigned)m->own[1]));
	atomic_fetch_add(&chains[m->src].drained, 1);
	return 0;
}

static int fill(tern *own, tern_out *out, void *arg)
{
	struct pending *w = arg;
	size_t done = w->word;
	(void)own;
	int rc = tern_chan_put_some(out, w->bytes, w->len, &done);
	w->word = done;
	return rc;
}

/* A function in turns. */
static int count_down(tern *own, void *arg)
{
	struct pending *w = arg;
	(void)own;
	return ++w->old < 5;
}

static void handed_over(struct pending *w, int rc)
{
	code_is(w->s, "what was handed over", rc, 0);
	if (w->i == TURNS)
		number_is(w->s, "the number of turns", w->old, 5);
}

static int drained_all(tern *own, void *arg)
{
	const struct step *until = arg;
	unsigned due[RANKS_MOST] = { 0 };
	(void)own;
	for (unsigned k = 0; k < until->number; k++) {
		const struct step *s = &program.step[k];
		if (s->kind == ASYNC && s->to == me)
			due[s->from] += s->count;
	}
	for (uint32_t r = 0; r < program.ranks; r++)
		if (atomic_load(&chains[r].drained) < due[r] && !step_has(gone, r))
			return 0;
	return 1;
}

void async_check(const struct step *s)
{
	struct step until = *s;
	code_is(s, "waiting for asynchronous messages", tern_wait_until(t, drained_all, &until), 0);
}

static void async_start(const struct step *s, unsigned i)
{
	struct pending *w = pending_new(s, i, s->len, handed_over);
	content_fill(w->bytes, 0, s->len, message_number(s, i));
	code_is(s, "tern_async_send_start()",
		tern_async_send_start(t, s->to, DRAIN, fill, w, &w->op), 0);
	pending_begun(w, 0, true);
	if (s->form != 1)
		return;
	w = pending_new(s, TURNS, 0, handed_over);
	pending_begun(w, tern_async_start(t, count_down, w, &w->op), true);
}

void async_play(const struct step *s)
{
	for (unsigned i = 0; i < s->count && s->from == me; i++)
		async_start(s, i);
	struct step until = *s;
	until.number++;
	if (s->to == me && waits_here(s))
		async_check(&until);
}

/* -- Threads ---------------------------------------------------------------------------------- */

static _Atomic unsigned threads_ended;
static unsigned threads_due;

static uint64_t result_of(const struct step *s, unsigned i)
{
	return content_of(s->value, 7000 + i);
}

static uint64_t thread_run(tern *own, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	const struct step *s = &program.step[word[0] % program.steps];
	unsigned i = (unsigned)word[1];
	const tern_thread_info self = tern_thread_self(own);
	size_t len = self.len;
	number_is(s, "the creator", self.creator, s->from);
	for (unsigned k = 2; k < TERN_WORDS_MAX; k++)
		number_is(s, "a word of a thread", word[k], content_of(s->value, k));
	if (number_is(s, "the length of its data", len, s->form ? s->len : 0) && len) {
		static char copy[TERN_PAYLOAD_MAX]; /* as above: no malloc() */
		memcpy(copy, self.data, len);
		bytes_are(s, "the data of a thread", copy, 0, len, message_number(s, i));
	}
	if (s->value & 2)
		code_is(s, "tern_thread_yield()", tern_thread_yield(own), 0);
	return result_of(s, i);
}

static void thread_ended(tern *own, uint32_t rank, int rc, uint64_t result, void *arg)
{
	const struct pending *w = arg;
	(void)own;
	number_is(w->s, "the rank of a thread", rank, w->s->to);
	code_is(w->s, "a thread", rc, 0);
	number_is(w->s, "the result of a thread", result, result_of(w->s, w->i));
	atomic_fetch_add(&threads_ended, 1);
}

static int threads_have_ended(tern *own, void *arg)
{
	(void)own, (void)arg;
	return atomic_load(&threads_ended) >= threads_due;
}

/* Puts what is under way before `given`, until every thread has ended. */
static void spawn_one(const struct step *s, unsigned i, struct pending **given)
{
	uint64_t word[TERN_WORDS_MAX] = { s->number, i };
	for (unsigned k = 2; k < TERN_WORDS_MAX; k++)
		word[k] = content_of(s->value, k);
	if (!s->form) {
		tern_thread th;
		uint64_t result = 0;
		code_is(s, "tern_thread_start()",
			tern_thread_start_array(t, s->to, THREAD, &th, TERN_WORDS_MAX, word), 0);
		code_is(s, "tern_thread_join()", tern_thread_join(t, &th, &result), 0);
		number_is(s, "the result of a thread", result, result_of(s, i));
		return;
	}
	struct pending *w = pending_new(s, i, s->len, NULL);
	w->next = *given;
	*given = w;
	content_fill(w->bytes, 0, s->len, message_number(s, i));
	threads_due++;
	const tern_spawn_args a = { .rank = s->to,
				    .id = THREAD,
				    .n = TERN_WORDS_MAX,
				    .words = word,
				    .done = thread_ended,
				    .arg = w,
				    .data = w->bytes,
				    .len = s->len };
	code_is(s, "tern_spawn_with()", tern_spawn_with(t, &a), 0);
}

void spawn_play(const struct step *s)
{
	struct pending *given = NULL;
	for (unsigned i = 0; i < s->count && s->from == me; i++)
		spawn_one(s, i, &given);
	if (s->from == me)
		code_is(s, "waiting for threads", tern_wait_until(t, threads_have_ended, NULL), 0);
	for (struct pending *w; (w = given) != NULL; pending_drop(w))
		given = w->next;
}

void more_open(void)
{
	const struct step s = { .kind = TYPED };
	for (uint32_t r = 0; r < program.ranks && plays(TYPED); r++)
		code_is(&s, "tern_buf_alloc()",
			tern_buf_alloc(t, r, BUFFER_BYTES, BUFFERS,
				       TERN_BUF_ORDER | (r % 2 ? TERN_BUF_SPILL : TERN_BUF_WAIT)),
			0);
	if (plays(ASYNC))
		code_is(&s, "tern_async_on()", tern_async_on(t, DRAIN, drain, NULL), 0);
	if (plays(SPAWN)) /* a rank that may have threads sends in another way */
		code_is(&s, "tern_thread_on()", tern_thread_on(t, THREAD, thread_run, NULL), 0);
}
