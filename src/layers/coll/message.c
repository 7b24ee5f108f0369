/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between members. One of up to TERN_PAYLOAD_MAX bytes is sent at once; where its receive
 * is not posted, it is kept. Of a longer one nothing is sent before its receiver is ready, so its
 * pieces always find their place.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coll/message.h"

/* A message whose team, call or step has not come here yet. */
struct early {
	struct early *next;
	uint64_t team, call;
	uint32_t src;
	uint16_t tag;
	uint16_t kind; /* enum early_kind */
	size_t len;
	unsigned char data[];
};

enum { NOTES = 256, EARLIES = 16 };

/* -- What has come early ----------------------------------------------------------------------- */

/* Handlers take them, which must not call malloc(); slabs are given back when the rank closes. */
struct slab {
	_Alignas(64) struct slab *next; /* and the messages behind it */
};

static struct early *early_slab(struct coll *c, size_t each, unsigned n)
{
	struct slab *slab = memory_new(1, sizeof *slab + n * each);
	struct early *first = NULL;
	if (!slab)
		return NULL;
	slab->next = c->slabs;
	c->slabs = slab;
	for (unsigned i = 0; i < n; i++) {
		struct early *one = (void *)((char *)(slab + 1) + i * each);
		one->next = first;
		first = one;
	}
	return first;
}

static struct early *early_new(struct coll *c, bool note)
{
	struct early **pool = note ? &c->note_free : &c->early_free;
	size_t each = (sizeof(struct early) + (note ? 0 : TERN_PAYLOAD_MAX) + 63) & ~(size_t)63;
	if (!*pool)
		*pool = early_slab(c, each, note ? NOTES : EARLIES);
	struct early *one = *pool;
	if (one)
		*pool = one->next;
	return one;
}

static void early_give(struct coll *c, struct early *one)
{
	struct early **pool = one->kind == EARLY_READY ? &c->note_free : &c->early_free;
	one->next = *pool;
	*pool = one;
}

/* Takes the message, or the note, that matches out of the list; NULL if it has not come. */
static struct early *early_find(const struct run *r, const struct step *s, enum early_kind kind)
{
	struct coll *c = r->team->coll;
	for (struct early **at = &c->early; *at; at = &(*at)->next) {
		struct early *one = *at;
		if (one->kind != kind || one->team != r->team->id || one->call != r->call ||
		    one->src != s->peer || one->tag != s->tag)
			continue;
		*at = one->next;
		return one;
	}
	return NULL;
}

void early_keep(struct coll *c, const tern_msg *m, enum early_kind kind, const void *data,
		size_t len)
{
	struct early *one = early_new(c, kind == EARLY_READY);
	if (!one) {
		poll_trouble_warn(c->e, error_set(-ENOMEM,
						  "rank %u has no memory for a message of a "
						  "collective call that it has not made yet",
						  c->e->t->rank));
		return;
	}
	*one = (struct early){ .team = tern_msg_word(m, 0),
			       .call = tern_msg_word(m, 1),
			       .tag = (uint16_t)tern_msg_word(m, 2),
			       .src = tern_msg_src(m),
			       .kind = (uint16_t)kind,
			       .len = len };
	if (len)
		memcpy(one->data, data, len);
	struct early **end = &c->early;
	while (*end)
		end = &(*end)->next;
	*end = one;
}

bool early_take(tern_team *team, enum early_kind kind, uint64_t *word, void *data, size_t len)
{
	struct coll *c = team->coll;
	for (struct early **at = &c->early; *at; at = &(*at)->next) {
		struct early *one = *at;
		if (one->kind != kind || one->team != team->id ||
		    team_member(team, one->src) == team->all.n)
			continue;
		*at = one->next;
		*word = one->call;
		memcpy(data, one->data, len);
		early_give(c, one);
		return true;
	}
	return false;
}

void early_forget(struct coll *c, uint64_t team)
{
	for (struct early **at = &c->early; *at;) {
		struct early *one = *at;
		if (one->team != team) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		early_give(c, one);
	}
}

void early_close(struct coll *c)
{
	for (struct slab *slab = c->slabs, *next; slab; slab = next) {
		next = slab->next;
		memory_free(slab);
	}
}

/* -- Arrival ----------------------------------------------------------------------------------- */

static struct run *run_find(const tern_team *team, uint64_t call)
{
	struct run *r = team->first;
	while (r && r->call != call)
		r = r->next;
	return r;
}

static struct step *recv_find(const struct run *r, uint32_t src, unsigned tag)
{
	for (unsigned i = 0; i < r->steps; i++) {
		struct step *s = &r->step[i];
		if (s->kind == STEP_RECV && s->begun && !s->over && s->peer == src && s->tag == tag)
			return s;
	}
	return NULL;
}

static void recv_end(struct run *r, struct step *s)
{
	s->over = true;
	r->receiving--;
}

static void recv_take(struct run *r, struct step *s, uint64_t place, const void *data, size_t len)
{
	if (place > s->len || len > s->len - place)
		return; /* no good member sends it: the lengths do not agree */
	if (len)
		memcpy(s->to + place, data, len);
	s->moved += len;
	if (s->moved >= s->len)
		recv_end(r, s);
}

/*
 * One that is being made has a new id, and the first one stays once it is made. One of survivors is
 * to come while a team that it can be made of is there.
 */
bool team_over(const struct coll *c, uint64_t id)
{
	const uint64_t low = (UINT64_C(1) << ID_BITS) - 1;
	if (id <= low)
		return id != TEAM_FIRST && id < c->next_id;
	const tern_team *team = c->teams;
	while (team && ((team->id & low) != (id & low) || team->id > id || team->retired))
		team = team->next;
	return !team;
}

/* Of a call that is over here, or a team that is not there any more: it failed. */
static bool message_stale(const struct coll *c, const tern_team *team, uint64_t id, uint64_t call)
{
	if (!team)
		return team_over(c, id);
	return team->first ? call < team->first->call : call < team->calls;
}

static void on_data(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	tern_team *team = team_find(c, tern_msg_word(m, 0));
	c->handled++;
	if (message_stale(c, team, tern_msg_word(m, 0), tern_msg_word(m, 1)))
		return;
	struct run *r = team ? run_find(team, tern_msg_word(m, 1)) : NULL;
	struct step *s = r ? recv_find(r, tern_msg_src(m), (unsigned)tern_msg_word(m, 2)) : NULL;
	if (s)
		recv_take(r, s, tern_msg_word(m, 3), data, data ? len : 0);
	else
		early_keep(c, m, EARLY_DATA, data, data ? len : 0);
}

static void on_ready(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	tern_team *team = team_find(c, tern_msg_word(m, 0));
	c->handled++;
	if (!message_stale(c, team, tern_msg_word(m, 0), tern_msg_word(m, 1)))
		early_keep(c, m, EARLY_READY, NULL, 0);
}

void message_handlers(struct endpoint *e)
{
	layer_on(e, COLL_DATA, on_data);
	layer_on(e, COLL_READY, on_ready);
}

/* -- Turns ------------------------------------------------------------------------------------- */

/*
 * Without room it is tried again; any other error ends the run. A peer that cannot be sent to is
 * lost to the team at once, though layers hear of it later: the next call must not go on without
 * it.
 */
static bool message_failed(struct run *r, uint32_t peer, int rc)
{
	if (rc != -EAGAIN)
		run_fail(r, receiver_left(rc) ? peer : r->team->coll->e->t->rank, rc);
	return false;
}

bool recv_turn(struct run *r, struct step *s)
{
	struct coll *c = r->team->coll;
	if (s->len > TERN_PAYLOAD_MAX) {
		const uint64_t words[] = { r->team->id, r->call, s->tag };
		int rc = layer_request(c->e, s->peer, COLL_READY, NULL, 0, 3, words);
		if (rc)
			return message_failed(r, s->peer, rc);
	}
	s->begun = true;
	r->receiving++;
	struct early *one = early_find(r, s, EARLY_DATA);
	if (one) {
		recv_take(r, s, 0, one->data, one->len);
		early_give(c, one);
	}
	return true;
}

bool send_turn(struct run *r, struct step *s)
{
	struct coll *c = r->team->coll;
	if (s->len > TERN_PAYLOAD_MAX && !s->begun) {
		struct early *ready = early_find(r, s, EARLY_READY);
		if (!ready)
			return false;
		early_give(c, ready);
	}
	s->begun = true;
	do {
		size_t left = s->len - s->moved;
		size_t len = left < TERN_PAYLOAD_MAX ? left : TERN_PAYLOAD_MAX;
		const uint64_t words[] = { r->team->id, r->call, s->tag, s->moved, s->len };
		int rc = layer_request(c->e, s->peer, COLL_DATA, len ? s->from + s->moved : NULL,
				       len, 5, words);
		if (rc)
			return message_failed(r, s->peer, rc);
		s->moved += len;
	} while (s->moved < s->len);
	return true;
}
