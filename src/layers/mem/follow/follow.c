/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a put and the message behind it travel: pieces, the records of what has not left, arrival;
 * and the put with a request in its split-phase form.
 */
#include "mem/follow/follow.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

/*
 * A piece has the address of its data as its word. What brings the message has the address of the
 * rest, without its rank, the number of the message's words, and its handler in the first word. It
 * has as many lines as the message, which it becomes on arrival: the words follow the first one,
 * and the last of 6 and of 8 goes behind the data.
 */
enum {
	META_WORDS_SHIFT = ADDR_RANK_SHIFT,
	META_ID_SHIFT = META_WORDS_SHIFT + 4,
	META_WORDS = 15, /* a mask */
};
_Static_assert(META_ID_SHIFT + 10 <= 64, "a handler's number has its place");

enum { PIECES_AT_ONCE = 4 }; /* of each in a poll */

/* -- Pieces --------------------------------------------------------------------------------- */

/* Words that follow the first one, of a message with n. */
static unsigned words_ahead(unsigned n)
{
	return n <= TERN_LINE_WORDS ? TERN_LINE_WORDS - 1 : TERN_WORDS_MAX - 1;
}

/* Bytes behind the data of the piece that brings the message. */
static size_t piece_tail(unsigned n)
{
	return n > words_ahead(n) ? sizeof(uint64_t) : 0;
}

static int piece_send(struct mem *m, const struct follow *f, enum mem_handler id, const void *data,
		      size_t len, unsigned n, const uint64_t *words)
{
	return f->reply ? layer_reply_more(m->e, f->rank, id, data, len, n, words)
			: layer_request(m->e, f->rank, id, data, len, n, words);
}

/*
 * The message, with the rest of the data. If that has left already, the address is of its last
 * byte: its owner looks whether it is there.
 */
static int message_send(struct mem *m, const struct follow *f)
{
	uint64_t words[TERN_WORDS_MAX] = { addr_moved(f->left ? f->dst : f->dst - 1, 0) |
					   (uint64_t)f->n << META_WORDS_SHIFT |
					   (uint64_t)f->id << META_ID_SHIFT };
	unsigned ahead = words_ahead(f->n), n = f->n <= TERN_LINE_WORDS ? f->n : ahead;
	size_t tail = piece_tail(f->n);
	char joined[TERN_PAYLOAD_MAX];
	union word value;
	const void *data = f->left ? word_value(&value, f->src, f->left) : NULL;
	n = n < ahead ? n : ahead;
	memcpy(&words[1], f->word, n * sizeof *words);
	if (tail) {
		if (f->left)
			word_copy(joined, data, f->left);
		memcpy(joined + f->left, &f->word[ahead], tail);
		data = joined;
	}
	return piece_send(m, f, MEM_THEN, data, f->left + tail, 1 + n, words);
}

static int data_send(struct mem *m, const struct follow *f, size_t len)
{
	union word value;
	return piece_send(m, f, MEM_PIECE, word_value(&value, f->src, len), len, 1, &f->dst);
}

/* The slot has counted itself, so that `op` is not told again. */
int follow_passed_on(struct follow *f, int rc)
{
	if (!rc) {
		f->op->pending--;
		f->op = NULL;
	}
	return rc;
}

/* The last of the data, in a request that its owner answers: the answer is for `op`. */
static int data_ask(struct mem *m, struct follow *f)
{
	struct slot *s = slot_take(m, f->rank, SLOTS_QUICK);
	return s ? follow_passed_on(f, staged_send(m, s, f->dst, f->src, f->left, f->op)) : -EAGAIN;
}

/* -- What has not left yet ------------------------------------------------------------------ */

static void told(struct mem *m, tern_op **op, int error)
{
	tern_op *one = *op;
	*op = NULL;
	if (one)
		op_end(m->e, one, error);
}

/* A transfer has moved the data, or could not: then there is nothing to tell the target. */
static int moved_step(struct mem *m, struct follow *f)
{
	if (f->move.pending)
		return -EAGAIN;
	if (f->move.error)
		return f->move.error;
	told(m, &f->local, 0);
	told(m, &f->op, 0);
	int rc = f->id == TERN_HANDLER_NONE
			 ? 0
			 : tern_request_array(m->e->t, f->rank, f->id, f->n, f->word);
	f->over = !rc;
	return rc;
}

/* Sends the next piece; a code if it cannot: -EAGAIN for now. */
static int follow_step(struct mem *m, struct follow *f)
{
	size_t len = f->left < TERN_PAYLOAD_MAX ? f->left : TERN_PAYLOAD_MAX;
	int rc;
	if (f->moves)
		return f->signal.word ? signal_step(m, f) : moved_step(m, f);
	if (f->op && f->left && f->left <= TERN_PAYLOAD_MAX) {
		rc = data_ask(m, f);
	} else if (f->left + piece_tail(f->n) > TERN_PAYLOAD_MAX) {
		rc = data_send(m, f, len);
	} else {
		rc = message_send(m, f);
		f->over = !rc;
	}
	if (rc)
		return rc;
	f->dst += len;
	f->src += len;
	f->left -= len;
	if (!f->left)
		told(m, &f->local, 0);
	return 0;
}

/* Up to a few pieces: how many. A message without room is tried again by the next poll. */
static unsigned follow_steps(struct mem *m, struct follow *f)
{
	unsigned sent = 0;
	int rc = 0;
	if (!f->reply) /* those never wait, and may be sent in a handler */
		library_hold(m->e);
	while (!f->over && !rc && sent < PIECES_AT_ONCE) {
		rc = follow_step(m, f);
		sent += !rc;
	}
	if (!f->reply)
		library_release(m->e);
	m->follows.sent += sent;
	if (rc && rc != -EAGAIN) {
		f->error = rc;
		f->over = true;
	}
	return sent;
}

static void follow_end(struct mem *m, struct follow *f)
{
	struct follow over = *f;
	memory_free(f->copy);
	if (f->reply)
		m->e->site.peer[f->rank].owing = false;
	else
		record_give(&m->follows.pool, f);
	/* An error has one place. */
	told(m, &over.local, over.op || over.reply ? 0 : over.error);
	told(m, &over.op, over.error);
	told(m, &over.gone, over.error);
}

static void follow_count(tern_op *op)
{
	if (op)
		op->pending++;
}

void follow_fill(struct follow *f, const tern_long *what, uint32_t rank, bool reply)
{
	*f = (struct follow){ .record = f->record,
			      .move = f->move,
			      .rank = rank,
			      .reply = reply,
			      .dst = what->dst,
			      .src = what->src,
			      .left = what->len,
			      .local = what->local,
			      .op = reply ? NULL : what->op,
			      .id = what->id,
			      .n = what->n };
	if (what->n)
		memcpy(f->word, what->words, what->n * sizeof *f->word);
	follow_count(f->local);
	follow_count(f->op);
}

void follow_begin(struct mem *m, struct follow *f)
{
	follow_steps(m, f);
	if (f->over) {
		follow_end(m, f);
		return;
	}
	struct follow **last = &m->follows.first;
	while (*last)
		last = &(*last)->next;
	f->next = NULL;
	*last = f;
	mem_busy(m);
}

/* Nothing that is called here runs the program's functions: the list stays as it is. */
unsigned follow_progress(struct mem *m)
{
	unsigned sent = 0;
	for (struct follow **at = &m->follows.first; *at;) {
		struct follow *f = *at;
		sent += follow_steps(m, f);
		if (f->over) {
			*at = f->next;
			follow_end(m, f);
		} else {
			at = &f->next;
		}
	}
	mem_busy(m);
	return sent;
}

void follow_close(struct mem *m)
{
	for (struct follow *f = m->follows.first; f; f = f->next)
		memory_free(f->copy);
	pool_free(&m->follows.pool);
	memory_free(m->follows.reply);
}

/* -- Arrival -------------------------------------------------------------------------------- */

static int piece_place(struct mem *m, tern_addr a, const char *data, size_t len)
{
	if (len)
		return own_move(m, a, (char *)(uintptr_t)data, len, true);
	return mem_reach(m, a, 1) ? 0 : EFAULT;
}

static void piece_refused(struct endpoint *e, const tern_msg *msg)
{
	poll_trouble_warn(e, error_set(-EFAULT,
				       "rank %u refused data from rank %u, and the message behind "
				       "it: the memory is not there (any more), or not that long",
				       e->t->rank, tern_msg_src(msg)));
}

/* A thread may serve it; if it is refused, so is the message behind it. */
void on_piece(tern *t, const tern_msg *msg)
{
	size_t len;
	const char *data = tern_msg_data(msg, &len);
	piece_place(mem_of(t), addr_moved(tern_msg_word(msg, 0), t->rank), data, len);
}

void on_then(tern *t, const tern_msg *msg)
{
	size_t len;
	const char *data = tern_msg_data(msg, &len);
	uint64_t meta = tern_msg_word(msg, 0), words[TERN_WORDS_MAX];
	unsigned n = (unsigned)(meta >> META_WORDS_SHIFT) & META_WORDS;
	unsigned id = (unsigned)(meta >> META_ID_SHIFT) % TERN_HANDLER_SLOTS;
	tern_addr a = addr_moved(meta, t->rank);
	bool fits = n <= TERN_LINE_WORDS ||
		    (n <= TERN_WORDS_MAX && tern_msg_count(msg) == TERN_WORDS_MAX);
	for (unsigned i = 0; fits && i < words_ahead(n); i++)
		words[i] = tern_msg_word(msg, 1 + i);
	size_t tail = fits ? piece_tail(n) : 0;
	if (len >= tail && tail) {
		len -= tail;
		memcpy(&words[words_ahead(n)], data + len, tail);
	}
	/* It lies in the same memory as the pieces: it is refused with them. */
	if (!fits || piece_place(mem_of(t), a, data, len) || id >= TERN_HANDLER_MAX) {
		piece_refused(t->own, msg);
		return;
	}
	payload_return(t->own);
	message_become(t, msg, id, n, words, NULL, 0);
}

/* -- A put with a request, split-phase ------------------------------------------------------ */

static int follow_take(struct mem *m, struct follow **out)
{
	struct wait w = { .call = "a put with a request" };
	return mem_record(m, &m->follows.pool, &w, out);
}

static void tell_over(struct endpoint *e, tern_op *op)
{
	if (op)
		op_over(e, op);
}

int follow_now(tern *t, const tern_msg *msg, const tern_long *what, uint32_t rank)
{
	int rc = tern_put(t, what->dst, what->src, what->len);
	if (!rc && msg)
		rc = tern_reply_array(t, msg, what->id, what->n, what->words);
	else if (!rc)
		rc = tern_request_array(t, rank, what->id, what->n, what->words);
	if (rc)
		return rc;
	tell_over(t->own, what->local);
	tell_over(t->own, msg ? NULL : what->op);
	return 0;
}

/* One message, which has the data; the source is free when the call returns. */
static int start_staged(struct mem *m, const tern_long *what, uint32_t rank)
{
	tern_long staged = *what;
	struct follow f = { .n = 0 };
	staged.local = staged.op = NULL;
	follow_fill(&f, &staged, rank, false);
	int rc = message_send(m, &f);
	if (!rc)
		tell_over(m->e, what->local);
	return rc;
}

/* The same in two messages: the data, for which its owner answers, and what follows it. */
static int start_asked(struct mem *m, const tern_long *what, uint32_t rank)
{
	tern_long rest = *what;
	struct follow *f;
	int rc = follow_take(m, &f);
	if (rc)
		return rc;
	rc = staged_put(m, what->dst, what->src, what->len, what->op);
	if (rc) {
		record_give(&m->follows.pool, f);
		return rc;
	}
	rest.dst += what->len;
	rest.len = 0;
	rest.local = rest.op = NULL;
	follow_fill(f, &rest, rank, false);
	follow_begin(m, f);
	tell_over(m->e, what->local);
	return 0;
}

int follow_written_down(struct mem *m, const tern_long *what, uint32_t rank, tern_op *gone,
			const struct signal *g)
{
	/* Under a hold a transfer would have to wait, but pieces need not. */
	bool moves = g || what->parts ||
		     (layer_maps(m->e, rank) && what->len > TERN_PAYLOAD_MAX && !held(m->e));
	struct follow *f;
	int rc = follow_take(m, &f);
	if (rc)
		return rc;
	if (what->parts)
		rc = tern_put_parts_start(m->e->t, what->parts->dst, what->parts->dsts,
					  what->parts->src, what->parts->srcs, &f->move);
	else if (moves)
		rc = tern_put_start(m->e->t, what->dst, what->src, what->len, &f->move);
	if (rc) {
		record_give(&m->follows.pool, f);
		return rc;
	}
	follow_fill(f, what, rank, false);
	f->moves = moves;
	f->gone = gone;
	follow_count(gone);
	if (g)
		f->signal = *g;
	follow_begin(m, f);
	return 0;
}

static int start_far(tern *t, const tern_long *what, uint32_t rank)
{
	tern_op own = TERN_OP;
	bool blocks = !what->local && !what->op;
	size_t tail = piece_tail(what->n);
	if (!what->parts && !what->op && what->len + tail <= TERN_PAYLOAD_MAX)
		return start_staged(mem_of(t), what, rank);
	if (!what->parts && what->op && what->len <= TERN_PAYLOAD_MAX)
		return start_asked(mem_of(t), what, rank);
	int rc = blocks ? rules_wait(t->own, "a blocking put with a request") : 0;
	rc = rc ? rc : follow_written_down(mem_of(t), what, rank, blocks ? &own : NULL, NULL);
	return blocks ? op_finish(t, NULL, &own, rc) : rc;
}

/* Where this process can touch all of it, a transfer moves it in this call. */
static int start_parts(tern *t, const tern_long *what)
{
	tern_long all = *what;
	if (!what->parts->dsts)
		return error_set(-EINVAL, "a put of parts with a request has no part to go to");
	uint32_t rank = tern_addr_rank(what->parts->dst[0].addr);
	bool silent = what->id == TERN_HANDLER_NONE;
	int rc = silent ? rules_program(t->own, "a put of parts")
			: rules_send(t->own, rank, what->id, what->n, 0);
	all.n = silent ? 0 : what->n;
	return rc ? rc : start_far(t, &all, rank);
}

int tern_put_request_start_array(tern *t, const tern_long *what)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	if (what->parts)
		return start_parts(t, what);
	uint32_t rank = tern_addr_rank(what->dst);
	int rc = rules_send(t->own, rank, what->id, what->n, 0);
	if (!rc && what->len)
		rc = mem_check(m, what->dst, what->len, "a put with a request");
	if (rc)
		return rc;
	bool here = what->len <= START_IN_ONE_GO && mem_reach(m, what->dst, what->len);
	return !what->len || here ? follow_now(t, NULL, what, rank) : start_far(t, what, rank);
}
