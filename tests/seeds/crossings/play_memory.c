/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, gets, atomics and stores. Of each rank's memory, which all ranks have alike, a part never
 * changes, for gets; and each other rank has a part that it alone writes, so it knows what is
 * there.
 */
#include <stdatomic.h>

#include <tern/async.h>

#include "play.h"

enum { ON_PUT = 9, ON_PUT_SEEN, AREA = LONGEST + 4096, WORDS = 64, REGISTERED = 64 << 10 };
enum put_form { PLAIN, STARTED, PARTS, VALUE, LOCAL, THEN, ASYNC_PUT, REGISTERED_PUT };
enum get_form { GET_PLAIN, GET_STARTED, GET_PARTS, GET_VALUE, GET_ASYNC };
enum amo_form { AMO_64, AMO_32, CAS_64, CAS_32, AMO_REAL, AMO_SHARED };

/* One rank's memory. */
struct memory {
	_Atomic uint64_t shared;
	unsigned char fixed[AREA];
	struct written {
		unsigned char bytes[AREA], stored[AREA];
		uint64_t word[WORDS];
	} of[]; /* a part for each rank */
};
static struct memory *mine;
static tern_addr registered[RANKS_MOST]; /* memory that is no heap */
static unsigned char *private_memory;
static uint64_t model_word[RANKS_MOST][WORDS];
static unsigned told_due; /* requests behind puts, and their replies */
static _Atomic unsigned told;

static tern_addr at(uint32_t rank, const void *p)
{
	return tern_addr_at(t, rank, p);
}

/* -- Puts ------------------------------------------------------------------------------------- */

/* What was put is got again, and must be that. */
static void put_again(struct pending *w, int rc)
{
	const struct step *s = w->s;
	char *back = malloc(s->len + 1);
	tern_addr from = s->form == REGISTERED_PUT ? registered[s->to] + (tern_addr)me * REGISTERED
						   : at(s->to, mine->of[me].bytes);
	if (code_is(s, "a put", rc, 0) &&
	    code_is(s, "tern_get()", tern_get(t, back, from, w->word), 0))
		bytes_are(s, "what was put", back, 0, w->word, message_number(s, w->i));
	free(back);
}

static void on_put(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	static char copy[LONGEST]; /* an interrupt may have come in the middle of malloc() */
	size_t len = s->len;
	(void)own;
	memcpy(copy, mine->of[tern_msg_src(m)].bytes, len);
	bytes_are(s, "what was put before a request", copy, 0, len,
		  message_number(s, (unsigned)tern_msg_word(m, 1)));
	code_is(s, "a reply", tern_reply(t, m, ON_PUT_SEEN, 0), 0);
}

static void on_put_seen(tern *own, const tern_msg *m)
{
	(void)own, (void)m;
	atomic_fetch_add(&told, 1);
}

static int all_seen(tern *own, void *arg)
{
	(void)own, (void)arg;
	return atomic_load(&told) >= told_due;
}

/* Runs of 8 bytes, one behind the other. */
static int put_parts(struct pending *w, tern_addr to, size_t len, tern_op *op)
{
	size_t *count = malloc(sizeof *count + sizeof(ptrdiff_t));
	ptrdiff_t *stride = (ptrdiff_t *)(void *)(count + 1);
	w->own[0] = count;
	*count = len / 8;
	*stride = 8;
	w->part[0] =
		(tern_part){ .addr = to, .run = 8, .dims = 1, .count = count, .stride = stride };
	w->part[1] = (tern_part){ .base = w->bytes, .run = *count * 8 };
	return tern_put_parts_start(t, &w->part[0], 1, &w->part[1], 1, op);
}

static int put_one(const struct step *s, struct pending *w, tern_addr to, size_t len, tern_op **op)
{
	uint64_t value = 0;
	switch (s->form) {
	case PLAIN:
		*op = NULL;
		return tern_put(t, to, w->bytes, len);
	case PARTS:
		return put_parts(w, to, len, *op);
	case VALUE:
		memcpy(&value, w->bytes, len);
		return tern_put_local_start(t, to, &value, len, &(tern_op)TERN_OP, *op);
	case LOCAL:
		*op = &w->op;
		return tern_put_local_start(t, to, w->bytes, len, &w->op, &w->op);
	case THEN:
		*op = NULL;
		return tern_put_request(t, to, ON_PUT, w->bytes, len, s->number, w->i);
	case ASYNC_PUT:
		*op = &w->op;
		return tern_async_put_start(t, to, w->bytes, len, TERN_ADDR_NONE, &w->op);
	default:
		return tern_put_start(t, to, w->bytes, len, *op);
	}
}

static size_t put_len(const struct step *s)
{
	return s->form == VALUE            ? (size_t)1 << s->len % 4
	       : s->form == PARTS          ? s->len - s->len % 8
	       : s->form == REGISTERED_PUT ? s->len % REGISTERED
					   : s->len;
}

/* One after the other to the same place: each is complete before the next. */
void put_play(const struct step *s)
{
	if (s->from != me)
		return;
	pending_wait_all();
	for (unsigned i = 0; i < s->count; i++) {
		size_t len = put_len(s);
		struct pending *w = pending_new(s, i, s->len + 8, put_again);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		w->word = len;
		content_fill(w->bytes, 0, len, message_number(s, i));
		tern_addr to = s->form == REGISTERED_PUT
				       ? registered[s->to] + (tern_addr)me * REGISTERED
				       : at(s->to, mine->of[me].bytes);
		int rc = put_one(s, w, to, len, &op);
		pending_begun(w, rc, op != NULL);
		if (op && i + 1 < s->count)
			pending_wait_all();
		told_due += s->form == THEN;
		if (s->form == THEN) /* its handler looks before the next one comes */
			code_is(s, "waiting for a reply", tern_wait_until(t, all_seen, NULL), 0);
	}
}

/* -- Gets ------------------------------------------------------------------------------------- */

static void got(struct pending *w, int rc)
{
	if (code_is(w->s, "a get", rc, 0))
		bytes_are(w->s, "what was got", w->bytes, w->word, w->len, w->s->to);
}

void get_play(const struct step *s)
{
	if (s->from != me)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		size_t len = s->form == GET_VALUE ? 8 : s->len;
		struct pending *w = pending_new(s, i, len, got);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		uint64_t value;
		w->word = (s->value >> 9) % (AREA - len + 1) / 8 * 8;
		tern_addr from = at(s->to, mine->fixed) + w->word;
		int rc;
		if (s->form == GET_PLAIN) {
			op = NULL;
			rc = tern_get(t, w->bytes, from, len);
		} else if (s->form == GET_VALUE) {
			op = NULL;
			rc = tern_get(t, &value, from, len);
			memcpy(w->bytes, &value, rc ? 0 : len);
		} else if (s->form == GET_ASYNC) {
			op = &w->op;
			rc = tern_async_get_start(t, w->bytes, from, len, op);
		} else if (s->form == GET_PARTS) {
			w->part[0] = (tern_part){ .base = w->bytes, .run = len };
			w->part[1] = (tern_part){ .addr = from, .run = len };
			rc = tern_get_parts_start(t, &w->part[0], 1, &w->part[1], 1, op);
		} else {
			rc = tern_get_start(t, w->bytes, from, len, op);
		}
		pending_begun(w, rc, op != NULL);
	}
}

/* -- Atomics ---------------------------------------------------------------------------------- */

static void operated(struct pending *w, int rc)
{
	if (code_is(w->s, "an atomic operation", rc, 0) && w->s->form != AMO_SHARED)
		number_is(w->s, "the value before", w->old, w->word);
}

static uint64_t amo_model(enum tern_amo what, uint64_t a, uint64_t b)
{
	return what == TERN_AMO_ADD   ? a + b
	       : what == TERN_AMO_AND ? (a & b)
	       : what == TERN_AMO_OR  ? (a | b)
	       : what == TERN_AMO_XOR ? (a ^ b)
	       : what == TERN_AMO_MIN ? (b < a ? b : a)
	       : what == TERN_AMO_MAX ? (b > a ? b : a)
				      : b;
}

static int amo_one(const struct step *s, unsigned i, struct pending *w, tern_op *op)
{
	unsigned k = (s->number + i) % WORDS;
	uint64_t *word = &model_word[s->to][k], operand = content_of(s->value, i);
	tern_addr a = at(s->to, &mine->of[me].word[k]);
	enum tern_amo what = (enum tern_amo)(operand >> 40 & 7) % (TERN_AMO_SWAP + 1);
	uint32_t low = (uint32_t)operand;
	w->word = *word;
	if (s->form == AMO_SHARED)
		return tern_amo_start(t, at(s->to, (void *)&mine->shared), TERN_AMO_ADD,
				      operand % 1000, (uint64_t *)NULL, op);
	if (s->form == AMO_64) {
		*word = amo_model(what, *word, operand);
		return tern_amo_start(t, a, what, operand, &w->old, op);
	}
	if (s->form == CAS_64) {
		uint64_t guess = operand & 1 ? *word : ~*word;
		*word = operand & 1 ? operand : *word;
		return tern_cas_start(t, a, guess, operand, &w->old, op);
	}
	if (s->form == AMO_REAL) {
		double was;
		*word = operand;
		memcpy(&was, &operand, sizeof was);
		return tern_amo_start(t, a, TERN_AMO_SWAP, was, (double *)(void *)&w->old, op);
	}
	w->word = (uint32_t)*word;
	uint32_t guess = operand >> 33 & 1 ? (uint32_t)*word : ~(uint32_t)*word;
	uint32_t after = s->form == AMO_32   ? (uint32_t)amo_model(what, (uint32_t)*word, low)
			 : operand >> 33 & 1 ? low
					     : (uint32_t)*word;
	*word = *word >> 32 << 32 | after;
	return s->form == AMO_32
		       ? tern_amo_start(t, a, what, low, (uint32_t *)(void *)&w->old, op)
		       : tern_cas_start(t, a, guess, low, (uint32_t *)(void *)&w->old, op);
}

/* A word is not operated on while it is: fewer are under way than there are words. */
void amo_play(const struct step *s)
{
	if (s->from != me)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		struct pending *w = pending_new(s, i, 0, operated);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		int rc = amo_one(s, i, w, op);
		pending_begun(w, rc, op != NULL);
	}
}

/* What all ranks have added to this one's word, in the steps before this one. */
void shared_check(const struct step *s)
{
	uint64_t sum = 0;
	for (unsigned k = 0; k < s->number; k++) {
		const struct step *b = &program.step[k];
		for (unsigned i = 0;
		     b->kind == AMO && b->form == AMO_SHARED && b->to == me && i < b->count; i++)
			sum += content_of(b->value, i) % 1000;
	}
	number_is(s, "the sum of all ranks", atomic_load(&mine->shared), sum);
}

/* -- Stores ----------------------------------------------------------------------------------- */

/*
 * They are counted: the other side waits for as many bytes as are stored to it by this step. Then
 * it says so, since the next step stores to the same place.
 */
void store_play(const struct step *s)
{
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	char *data = malloc(s->len + 1);
	uint64_t seen = 0;
	for (unsigned i = 0; i < s->count && s->from == me; i++) {
		content_fill(data, 0, s->len, message_number(s, 0));
		code_is(s, "tern_store()",
			tern_store(t, at(s->to, mine->of[me].stored), data, s->len), 0);
	}
	if (s->to == me) {
		code_is(s, "tern_store_sync()", tern_store_sync(t, (uint64_t)s->len * s->count), 0);
		memcpy(data, mine->of[s->from].stored, s->len);
		bytes_are(s, "what was stored", data, 0, s->len, message_number(s, 0));
		code_is(s, "tern_send()",
			tern_send(t, s->from, id, &(uint64_t){ s->number }, sizeof(uint64_t)), 0);
	}
	if (s->from == me) {
		code_is(s, "tern_recv()", tern_recv(t, s->to, id, &seen, sizeof seen, NULL), 0);
		number_is(s, "the word", seen, s->number);
	}
	free(data);
}

void memory_lost(const struct step *s, uint32_t rank, enum kind how)
{
	tern_addr to = at(rank, mine->of[me].word), from = at(rank, mine->fixed);
	uint64_t word = 0;
	int rc = 0;
	while (!rc)
		rc = how == PUT   ? tern_put(t, to, &word, sizeof word)
		     : how == GET ? tern_get(t, &word, from, sizeof word)
				  : tern_amo(t, to, TERN_AMO_ADD, 1, &word);
	code_is(s, "using the memory of the lost rank", rc, gone_code);
}

/* -- Opening ----------------------------------------------------------------------------------- */

void memory_open(void)
{
	const struct step s = { .kind = PUT };
	const size_t bytes = sizeof *mine + program.ranks * sizeof(struct written);
	tern_addr own;
	code_is(&s, "tern_on()", tern_on(t, ON_PUT, on_put), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_PUT_SEEN, on_put_seen), 0);
	code_is(&s, "tern_alloc_all()", tern_alloc_all(t, bytes, (void **)&mine), 0);
	content_fill(mine->fixed, 0, AREA, me);
	private_memory = calloc(RANKS_MOST, REGISTERED);
	code_is(&s, "tern_register()",
		tern_register(t, private_memory, (size_t)RANKS_MOST * REGISTERED, &own), 0);
	code_is(&s, "tern_team_allgather()",
		tern_team_allgather(place[0].team, &own, registered, sizeof own), 0);
	code_is(&s, "tern_barrier()", tern_barrier(t), 0);
}
