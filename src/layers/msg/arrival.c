/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives: handed to the receive that waits for it, or written down until one comes. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "msg/msg.h"

/* -- Cells ------------------------------------------------------------------------------ */

static void cell_give(struct msg *m, struct cell *c)
{
	for (struct cell *next; c; c = next) {
		next = c->next;
		record_give(&m->cells, c);
	}
}

/* Copies `len` bytes into cells; NULL if there are not that many. */
static struct cell *cells_fill(struct msg *m, const char *bytes, size_t len)
{
	struct cell *first = NULL, **link = &first;
	for (uint32_t n = cells_of(len); n; n--) {
		struct cell *c = record_take(&m->cells);
		if (!c) {
			cell_give(m, first);
			return NULL;
		}
		size_t part = len < CELL_BYTES ? len : CELL_BYTES;
		memcpy(c->bytes, bytes, part);
		bytes += part;
		len -= part;
		*link = c;
		link = &c->next;
	}
	return first;
}

static void cells_empty(struct cell *c, const struct layout *to, size_t len)
{
	struct run_walk w;
	if (len <= CELL_BYTES) {
		layout_fill(to, c->bytes, len);
		return;
	}
	layout_walk(to, &w);
	for (; len; c = c->next) {
		size_t part = len < CELL_BYTES ? len : CELL_BYTES;
		parts_copy(&w, c->bytes, part, false);
		len -= part;
	}
}

/* -- Arrivals ----------------------------------------------------------------------------- */

struct arrival *arrival_find(struct msg *m, uint32_t src, tern_id id, tern_id mask)
{
	if (mask == MSG_ID_EXACT)
		return src == TERN_RANK_ANY
			       ? NODE_OF(table_find(&m->by_id, src, id), struct arrival, any)
			       : NODE_OF(table_find(&m->by_key, src, id), struct arrival, key);
	for (struct node *n = m->ordered.first; n; n = n->next)
		if (!((n->id ^ id) & mask) && (src == TERN_RANK_ANY || n->rank == src))
			return NODE_OF(n, struct arrival, ordered);
	return NULL;
}

struct arrival *arrival_named(struct msg *m, uint32_t src, uint32_t name)
{
	for (struct node *n = m->ordered.first; n; n = n->next)
		if (n->rank == src && NODE_OF(n, struct arrival, ordered)->name == name)
			return NODE_OF(n, struct arrival, ordered);
	return NULL;
}

/*
 * What a ready message that waits for its receive takes of the room for those: senders have no
 * limit for them, so they must not use the room that senders were promised.
 */
static uint32_t held_by(uint8_t flags, bool whole, size_t len)
{
	return !(flags & TERN_SEND_READY) ? 0 : whole ? cells_of(len) : 1;
}

void arrival_drop(struct msg *m, struct arrival *a)
{
	m->held -= held_by(a->flags, a->whole, a->len);
	list_remove(&a->key);
	list_remove(&a->any);
	list_remove(&a->ordered);
	if (a->whole && !(a->flags & TERN_SEND_READY))
		m->peer[a->src].owed += cells_of(a->len);
	cell_give(m, a->cells);
	record_give(&m->arrivals, a);
}

void arrivals_forget(struct msg *m)
{
	for (struct node *n = m->ordered.first, *next; n; n = next) {
		next = n->next;
		if (layer_lost(m->e, n->rank) && !NODE_OF(n, struct arrival, ordered)->whole)
			arrival_drop(m, NODE_OF(n, struct arrival, ordered));
	}
}

/* A message as it comes off the ring. */
struct incoming {
	uint32_t src, name;
	tern_id id;
	tern_addr source;
	uint8_t flags;
	const char *bytes;
	size_t len;
	struct cell *cells; /* where it was written down, without `bytes`; neither: a question */
};

/*
 * Writes a message down; false if there is no room, which only a rank that ignores its limits can
 * bring about.
 */
static bool arrival_add(struct msg *m, const struct incoming *l)
{
	struct cell *cells = l->bytes ? cells_fill(m, l->bytes, l->len) : NULL;
	struct arrival *a = l->bytes && !cells ? NULL : record_take(&m->arrivals);
	if (!a) {
		cell_give(m, cells);
		return false;
	}
	a->src = l->src;
	a->name = l->name;
	a->source = l->source;
	a->flags = l->flags;
	a->len = l->len;
	a->whole = l->bytes != NULL;
	a->cells = cells;
	a->key = a->ordered = (struct node){ .rank = l->src, .id = l->id };
	a->any = (struct node){ .rank = TERN_RANK_ANY, .id = l->id };
	bool keyed = table_add(&m->by_key, &a->key) == 0;
	if (!keyed || table_add(&m->by_id, &a->any)) {
		if (keyed)
			list_remove(&a->key);
		cell_give(m, cells);
		record_give(&m->arrivals, a);
		return false;
	}
	list_append(&m->ordered, &a->ordered);
	return true;
}

/* -- The handlers ----------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

/* What is to be told the sender of a message; kind TELL_ROOM and no error: nothing. */
struct verdict {
	enum tell kind;
	int error;
	struct receiving *clear; /* for TELL_CLEAR */
};

static struct verdict incoming_refuse(struct msg *m, const struct incoming *l, int error)
{
	if (l->bytes && !(l->flags & TERN_SEND_READY))
		m->peer[l->src].owed += cells_of(l->len);
	poll_trouble(
		m->e,
		error_set(error, "message %#llx from rank %u %s", (unsigned long long)l->id, l->src,
			  error == -ENOMSG
				  ? "was sent in ready mode and found no receive: it was discarded"
				  : "came although there is no room for it: it was discarded"));
	error_warn("%s", tern_strerror(error));
	return (struct verdict){ .kind = TELL_REFUSED, .error = error };
}

static __attribute__((noinline)) struct verdict incoming_keep(struct msg *m,
							      const struct incoming *l)
{
	if ((l->flags & TERN_SEND_READY) &&
	    !recv_match(m, l->src, l->id, TERN_STATE_IN_PROGRESS)) /* nor is one being filled */
		return incoming_refuse(m, l, -ENOMSG);
	if (held_by(l->flags, l->bytes != NULL, l->len) > CELLS_HELD - m->held ||
	    !arrival_add(m, l))
		return incoming_refuse(m, l, -ENOBUFS);
	m->held += held_by(l->flags, l->bytes != NULL, l->len);
	m->e->waiting.unmatched = true;
	return (struct verdict){ .kind = TELL_ROOM };
}

INLINE struct verdict incoming_deliver(struct msg *m, const struct incoming *l, struct receiving *r)
{
	if (l->bytes && !(l->flags & TERN_SEND_READY))
		m->peer[l->src].owed += cells_of(l->len);
	int rc = l->bytes ? recv_take(m, r, l->src, l->id, l->bytes, l->len)
			  : recv_accept(m, r, l->src, l->id, l->len);
	if (rc)
		return (struct verdict){ .kind = TELL_REFUSED, .error = rc };
	if (l->cells) {
		cells_empty(l->cells, &r->layout, l->len);
		recv_over(m, r, 0);
	} else if (!l->bytes) {
		r->send_name = l->name;
		r->source = l->source;
		return (struct verdict){ .kind = TELL_CLEAR, .clear = r };
	}
	return (struct verdict){ .kind = l->flags & TERN_SEND_SYNC ? TELL_TAKEN : TELL_ROOM };
}

INLINE struct verdict incoming_arrived(struct msg *m, const struct incoming *l)
{
	struct receiving *r = recv_match(m, l->src, l->id, TERN_STATE_IN_USE);
	return r ? incoming_deliver(m, l, r) : incoming_keep(m, l);
}

/* `handler`: of the message, to which this is the reply. */
static __attribute__((noinline)) void incoming_answer(struct msg *m, const struct incoming *l,
						      struct verdict v, bool handler)
{
	uint64_t words[TELL_WORDS];
	if (!v.clear)
		tell_words(m, words, l->src, v.kind, l->name, v.error, l->id);
	else if (!flow_clear(m, v.clear, words))
		return;
	if (handler)
		layer_reply(m->e, MSG_TELL, NULL, 0, TELL_WORDS, words);
	else
		tell(m, l->src, words);
}

INLINE void incoming_told(struct msg *m, const struct incoming *l, struct verdict v, bool handler)
{
	if (TERN_UNLIKELY(v.kind != TELL_ROOM || tell_due(m, l->src)))
		incoming_answer(m, l, v, handler);
}

INLINE void incoming_take(struct msg *m, const struct incoming *l)
{
	incoming_told(m, l, incoming_arrived(m, l), true);
}

void arrival_take(struct msg *m, struct arrival *a, struct receiving *r)
{
	const struct incoming l = { a->src,   a->name, a->key.id, a->source,
				    a->flags, NULL,    a->len,    a->cells };
	struct verdict v = incoming_deliver(m, &l, r);
	arrival_drop(m, a);
	incoming_told(m, &l, v, false);
}

INLINE struct incoming incoming_of(const tern_msg *msg)
{
	uint64_t meta = tern_msg_word(msg, 1);
	return (struct incoming){ .src = tern_msg_src(msg),
				  .name = (uint32_t)(meta >> META_NAME_SHIFT),
				  .id = tern_msg_word(msg, 0),
				  .flags = (uint8_t)(meta >> META_FLAGS_SHIFT),
				  .len = meta & 0xffff };
}

/* A message of eight words. One of fewer, or with a longer length, breaks the protocol. */
static __attribute__((noinline)) void send_eight_arrived(struct msg *m, const tern_msg *msg,
							 struct incoming *l)
{
	uint64_t words[EIGHT_MOST / sizeof(uint64_t)];
	if (l->len > EIGHT_MOST || tern_msg_count(msg) != TERN_WORDS_MAX) {
		poll_trouble_warn(m->e, error_set(-EBADMSG,
						  "a message from rank %u says that %u words hold "
						  "%zu bytes: it was discarded",
						  l->src, tern_msg_count(msg), l->len));
		return;
	}
	memcpy(words, &msg->word[2], WORDS_MOST);
	words[4] = tern_msg_word(msg, 6);
	words[5] = tern_msg_word(msg, 7);
	l->bytes = (const char *)words;
	incoming_take(m, l);
}

void on_send_words(tern *t, const tern_msg *msg)
{
	struct incoming l = incoming_of(msg);
	if (TERN_UNLIKELY(l.len > WORDS_MOST)) {
		send_eight_arrived(msg_of(t), msg, &l);
		return;
	}
	l.bytes = (const char *)&msg->word[2];
	incoming_take(msg_of(t), &l);
}

void on_send_eager(tern *t, const tern_msg *msg)
{
	struct incoming l = incoming_of(msg);
	l.bytes = tern_msg_data(msg, &l.len);
	incoming_take(msg_of(t), &l);
}

void on_send_rts(tern *t, const tern_msg *msg)
{
	struct incoming l = incoming_of(msg);
	l.len = tern_msg_word(msg, 2);
	l.source = tern_msg_word(msg, 3);
	incoming_take(msg_of(t), &l);
}

/*
 * Parts that match a receive each: id, length and bytes of one after another; the first refusal is
 * told.
 */
void on_send_each(tern *t, const tern_msg *msg)
{
	struct incoming l = incoming_of(msg), told = l;
	struct verdict first = { .kind = TELL_ROOM };
	size_t len;
	const char *at = tern_msg_data(msg, &len);
	while (len >= 2 * sizeof(uint64_t)) {
		uint64_t head[2];
		memcpy(head, at, sizeof head);
		len -= sizeof head;
		if (head[1] > len)
			break;
		l.id = head[0];
		l.bytes = at + sizeof head;
		l.len = head[1];
		at = l.bytes + l.len;
		len -= l.len;
		struct verdict v = incoming_arrived(msg_of(t), &l);
		if (!first.error && v.error) {
			first = v;
			told = l;
		}
	}
	incoming_told(msg_of(t), &told, first, true);
}
