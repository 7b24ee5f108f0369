/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts with a signal, and locks. */
#include "memory.h"

enum signal_form { ADDS, ADDS_STARTED, STORES };
enum signal_wait { AT_LEAST, EQUAL, MORE, IN_TIME };

/* -- Signals ---------------------------------------------------------------------------------- */

static void signalled(struct pending *w, int rc)
{
	code_is(w->s, "tern_put_signal()", rc, 0);
}

static uint64_t signals_before(const struct step *s)
{
	uint64_t n = 0;
	for (unsigned k = 0; k < s->number; k++) {
		const struct step *b = &program.step[k];
		if (b->kind == SIGNAL && b->from == s->from && b->to == s->to)
			n += b->count;
	}
	return n;
}

static void signal_one(const struct step *s, unsigned i)
{
	struct pending *w = pending_new(s, i, s->len, signalled);
	tern_op *op = s->form == ADDS || waits_here(s) ? NULL : &w->op;
	struct written *there = &mine->of[me];
	tern_addr to = at(s->to, there->signalled), word = at(s->to, &there->signal);
	content_fill(w->bytes, 0, s->len, message_number(s, i));
	int rc = s->form == STORES
			 ? tern_put_signal_start(
				   t, to, w->bytes, s->len,
				   &(tern_change){ .word = word,
						   .what = TERN_AMO_STORE,
						   .value = signals_before(s) + i + 1 },
				   op)
			 : tern_put_signal_start(
				   t, to, w->bytes, s->len,
				   &(tern_change){ .word = word, .what = TERN_AMO_ADD, .value = 1 },
				   op);
	pending_begun(w, rc, op != NULL);
}

static int signal_wait(const struct step *s)
{
	const uint64_t *word = &mine->of[s->from].signal, all = signals_before(s) + s->count;
	return s->other == AT_LEAST ? tern_wait_word(t, word, TERN_WORD_GE, all)
	       : s->other == EQUAL  ? tern_wait_word(t, word, TERN_WORD_EQ, all)
	       : s->other == MORE   ? tern_wait_word(t, word, TERN_WORD_GT, all - 1)
				    : tern_wait_word_for(t, word, TERN_WORD_GE, all, UINT64_MAX);
}

/* One after the other. The other side says when it has seen the last, as of stores. */
void signal_play(const struct step *s)
{
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	char *copy = malloc(s->len + 1);
	for (unsigned i = 0; i < s->count && s->from == me; i++) {
		pending_wait_all();
		signal_one(s, i);
	}
	if (s->to == me && code_is(s, "tern_wait_word()", signal_wait(s), 0)) {
		memcpy(copy, mine->of[s->from].signalled, s->len);
		bytes_are(s, "what was put before a signal", copy, 0, s->len,
			  message_number(s, s->count - 1));
		if (s->from != me)
			code_is(s, "tern_send()", tern_send(t, s->from, id, NULL, 0), 0);
	}
	if (s->from == me && s->to != me)
		code_is(s, "tern_recv()", tern_recv(t, s->to, id, NULL, 0, NULL), 0);
	free(copy);
}

/* -- Locks ------------------------------------------------------------------------------------ */

static bool lock_users(const struct step *s, uint32_t rank)
{
	return rank == s->from || step_has(s->started, rank);
}

/* A number that is read, and written by whoever has the lock. */
static void lock_use(const struct step *s, struct guarded *g)
{
	tern_addr holder = at(s->to, &g->holder), count = at(s->to, &g->count);
	uint64_t had = 0, self = me + 1, who = 0;
	code_is(s, "tern_put()", tern_put(t, holder, &self, sizeof self), 0);
	code_is(s, "tern_get()", tern_get(t, &had, count, sizeof had), 0);
	had++;
	code_is(s, "tern_put()", tern_put(t, count, &had, sizeof had), 0);
	code_is(s, "tern_get()", tern_get(t, &who, holder, sizeof who), 0);
	number_is(s, "who has the lock", who, self);
}

static int lock_get(const struct step *s, tern_lock *lock)
{
	int rc;
	if (s->form == 0)
		return tern_lock_take(t, lock);
	while ((rc = tern_lock_try(t, lock)) == -EAGAIN)
		(void)!tern_poll(t);
	return rc;
}

/* A lock whose home is gone is broken. */
static bool lock_broken(const struct guarded *g)
{
	uint64_t offset = at(0, &g->lock) & ((UINT64_C(1) << 47) - 1);
	return step_has(gone, (uint32_t)(offset / 64 % program.ranks));
}

void lock_play(const struct step *s)
{
	struct guarded *g = &mine->guarded[s->other];
	if (!lock_users(s, me) || step_has(gone, s->to) || lock_broken(g))
		return;
	for (unsigned i = 0; i < s->count; i++) {
		if (!code_is(s, "taking a lock", lock_get(s, &g->lock), 0))
			return;
		lock_use(s, g);
		code_is(s, "tern_lock_release()", tern_lock_release(t, &g->lock), 0);
	}
}

void locked_check(const struct step *s)
{
	uint64_t count[LOCKS] = { 0 };
	for (unsigned k = 0; k < s->number; k++) {
		const struct step *b = &program.step[k];
		for (uint32_t r = 0; b->kind == LOCK && b->to == me && r < program.ranks; r++)
			count[b->other] += lock_users(b, r) ? b->count : 0;
	}
	for (unsigned i = 0; i < LOCKS; i++)
		number_is(s, "how often a lock was had", mine->guarded[i].count, count[i]);
}
