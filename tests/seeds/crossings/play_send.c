/* SPDX-License-Identifier: BSD-3-Clause */
/* Send and receive in their forms. */
#include "play.h"

enum form { PLAIN, AUTO, RENDEZVOUS, SYNC, PARTS };
enum other { EXACT, STARTED, ANY_RANK, ANY_ID, IN_PARTS, PROBED };

/* Many steps share one id, so that the order of their messages is seen. */
static tern_id id_of(const struct step *s, unsigned i)
{
	if (s->other == ANY_RANK || s->other == ANY_ID)
		return (tern_id)(1000 + s->number) << 16 | (s->other == ANY_ID ? i : 0);
	return 7;
}

/* A receive that has too little room: only where the sender waits to be told. */
static bool too_short(const struct step *s)
{
	return s->form == SYNC && s->len && s->value % 8 == 0 && s->other != IN_PARTS;
}

static int verdict(const struct step *s)
{
	return too_short(s) ? -EMSGSIZE : 0;
}

/* -- The sender ------------------------------------------------------------------------------- */

static void sent(struct pending *w, int rc)
{
	code_is(w->s, "a send", rc, verdict(w->s));
}

/* Two runs with a hole between them. */
static void in_parts(struct pending *w, size_t len)
{
	size_t head = len / 3;
	w->part[0] = (tern_part){ .base = w->bytes, .run = head };
	w->part[1] = (tern_part){ .base = w->bytes + head + 24, .run = len - head };
}

static void send_one(const struct step *s, unsigned i)
{
	static const unsigned flags[] = { [AUTO] = TERN_SEND_AUTO,
					  [RENDEZVOUS] = TERN_SEND_RENDEZVOUS,
					  [SYNC] = TERN_SEND_SYNC };
	struct pending *w = pending_new(s, i, s->len + 24, sent);
	tern_op *op = waits_here(s) && s->to != me ? NULL : &w->op;
	uint64_t number = message_number(s, i);
	tern_id id = id_of(s, i);
	content_fill(w->bytes, 0, s->len, number);
	int rc;
	if (s->form == PLAIN) {
		op = NULL;
		rc = tern_send(t, s->to, id, w->bytes, s->len);
	} else if (s->form == PARTS) {
		in_parts(w, s->len);
		memmove(w->part[1].base, w->bytes + w->part[0].run, w->part[1].run);
		rc = tern_send_parts_start(t, s->to, id, w->part, 2, TERN_SEND_AUTO, op);
	} else {
		rc = tern_send_start(t, s->to, id, w->bytes, s->len, flags[s->form], op);
	}
	pending_begun(w, rc, op != NULL);
}

/* -- The receiver ----------------------------------------------------------------------------- */

static void received(struct pending *w, int rc)
{
	const struct step *s = w->s;
	tern_envelope *env = &w->env;
	unsigned i = w->i;
	if (!code_is(s, "a receive", rc, verdict(s)) || rc)
		return;
	number_is(s, "the envelope's source", env->src, s->from);
	number_is(s, "the envelope's length", env->len, s->len);
	if (s->other == ANY_ID)
		i = (unsigned)(env->id - id_of(s, 0));
	number_is(s, "the envelope's id", env->id, id_of(s, i));
	if (i >= s->count)
		return;
	if (s->other == IN_PARTS)
		memmove(w->bytes + w->part[0].run, w->part[1].base, w->part[1].run);
	bytes_are(s, "a message", w->bytes, 0, s->len, message_number(s, i));
	if (s->other != IN_PARTS && !untouched(w, s->len))
		wrong(s, "something is written behind the message");
}

/* The message that the receive will take. */
static void probe(const struct step *s, tern_match match)
{
	tern_envelope env;
	match.flags = TERN_PROBE_WAIT;
	if (!code_is(s, "tern_probe()", tern_probe(t, &match, &env), 1))
		return;
	number_is(s, "the source of what waits", env.src, s->from);
	number_is(s, "the length of what waits", env.len, s->len);
}

/* Nobody else is there: then a receive from any rank has nobody to wait for. */
static bool alone(void)
{
	return (gone | UINT64_C(1) << me) == (UINT64_C(1) << program.ranks) - 1;
}

static void recv_one(const struct step *s, unsigned i, bool may_wait)
{
	size_t spare = s->other == IN_PARTS ? 24 : s->value % 3 * 40;
	struct pending *w = pending_new(s, i, too_short(s) ? s->len - 1 : s->len + spare, received);
	tern_envelope *env = &w->env;
	tern_op *op = may_wait && (s->other == EXACT || waits_here(s)) ? NULL : &w->op;
	tern_match match = { .rank = s->other == ANY_RANK && !alone() ? TERN_RANK_ANY : s->from,
			     .id = id_of(s, 0),
			     .any = s->other == ANY_ID ? 0xffff : 0 };
	int rc;
	if (s->other == PROBED && op == NULL)
		probe(s, match);
	if (s->other == IN_PARTS) {
		in_parts(w, s->len);
		rc = tern_recv_parts_start(t, &match, w->part, 2, env, op);
	} else if (s->other == EXACT && !op) {
		rc = tern_recv(t, s->from, match.id, w->bytes, w->len, env);
	} else {
		rc = tern_recv_start(t, &match, w->bytes, w->len, env, op);
	}
	pending_begun(w, rc, op != NULL);
}

/* A rank that sends to itself starts the receive first. */
void send_play(const struct step *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (i % 50 == 49) /* in the middle of a burst, too */
			come_late(s);
		if (s->to == me)
			recv_one(s, i, s->from != me);
		if (s->from == me)
			send_one(s, i);
	}
}
