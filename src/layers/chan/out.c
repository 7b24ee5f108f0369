/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending end: what the inline put leaves to the library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "chan/chan.h"
#include "core/wait.h"

/* -- The ring, as its producer sees it ------------------------------------------------- */

void pipe_init(struct pipe *r, unsigned readers)
{
	memset(r, 0, pipe_bytes(readers));
	for (int i = 0; i < PIPE_LEAVES; i++)
		atomic_store_explicit(&r->leaf[i].head.head, -TERN_CHAN_FULL, memory_order_relaxed);
	atomic_store_explicit(&r->guard.head, -TERN_CHAN_FULL, memory_order_relaxed);
}

bool out_listens(const struct tern_chan *c, unsigned i)
{
	/* chan.R8, acquire; released in reader_set(). */
	return !c->listener[i].lost &&
	       atomic_load_explicit(&c->pipe->reader[i].state, memory_order_acquire) == READER_OPEN;
}

uint64_t out_limit(const struct tern_chan *c)
{
	uint64_t limit = UINT64_MAX;
	for (unsigned i = 0; i < c->listeners; i++) {
		if (TERN_UNLIKELY(!out_listens(c, i)))
			continue;
		/*
		 * chan.R6, acquire; released in in_move(): what is overwritten from now on has been
		 * read.
		 */
		uint64_t freed =
			atomic_load_explicit(&c->pipe->reader[i].freed, memory_order_acquire);
		limit = freed + PIPE_LEAVES < limit ? freed + PIPE_LEAVES : limit;
	}
	return limit == UINT64_MAX ? 0 : limit;
}

static struct tern_chan_place out_enter(struct tern_chan *c)
{
	struct leaf *leaf = &c->pipe->leaf[c->leaf % PIPE_LEAVES];
	tern_chan_open_line_(&leaf->line[0]);
	tern_chan_open_line_(&leaf->line[1]);
	/* chan.R5, release; acquired in cursor_enter(): the two lines are open. */
	atomic_store_explicit(&leaf->head.number, ++c->leaf, memory_order_release);
	return (struct tern_chan_place){ leaf->line, -TERN_CHAN_FULL };
}

static struct tern_chan_place out_spill(struct tern_chan *c)
{
	return (struct tern_chan_place){ chan_spill(c), -8 };
}

static struct tern_chan_line *out_line(const tern_out *o)
{
	return o->next - 1;
}

static bool out_spilt(const tern_out *o)
{
	return out_line(o) == chan_spill(o->chan);
}

/* -- Opening and closing ------------------------------------------------------------------ */

static int pipe_alloc(struct tern_chan *c)
{
	tern *t = c->chans->e->t;
	int rc = tern_alloc(t, pipe_bytes(c->listeners) + TERN_CHAN_LEAF - TERN_LINE, &c->memory);
	if (rc)
		return rc;
	uintptr_t at =
		((uintptr_t)c->memory + TERN_CHAN_LEAF - 1) / TERN_CHAN_LEAF * TERN_CHAN_LEAF;
	c->pipe = (struct pipe *)at; /* aligned for everybody, as the job's mapping is */
	pipe_init(c->pipe, c->listeners);
	return 0;
}

static struct listener listener_of(const struct tern_chan *c, uint32_t rank)
{
	struct endpoint *e = c->chans->e;
	return (struct listener){ .rank = rank,
				  .offer = OFFER_UNSENT,
				  .lost = e->site.peer[rank].lost,
				  .far = !layer_maps(e, rank),
				  .sent = { .line = pipe_begin(c->pipe), .at = -TERN_CHAN_FULL } };
}

void out_begin(struct tern_chan *c, const uint32_t *rank)
{
	for (unsigned i = 0; i < c->listeners; i++) {
		c->listener[i] = listener_of(c, rank[i]);
		c->far += c->listener[i].far;
	}
	struct tern_chan_place p = out_enter(c);
	c->real = (tern_out){ p.line + 1, p.at, c };
	if (c->far)
		p = out_spill(c);
	tern_chan_stand_(c, p.line, p.at);
}

int out_open(struct chans *s, uint64_t name, const uint32_t *rank, unsigned n,
	     struct tern_chan **out)
{
	chans_sweep(s);
	struct tern_chan *c = chan_new(s, name, n);
	if (!c)
		return -ENOMEM;
	int rc = pipe_alloc(c);
	if (rc) {
		chan_free(c);
		return rc;
	}
	out_begin(c, rank);
	*out = c;
	return 0;
}

void out_expect(struct tern_chan *c, unsigned i, uint64_t mirror)
{
	struct listener *l = &c->listener[i];
	if (!l->far || l->mirror)
		return; /* it has said so itself */
	l->mirror = mirror;
	reader_set(&c->pipe->reader[i], READER_OPEN);
	chan_owes(c, false); /* a handler may have put something already */
}

void out_close(struct tern_chan *c, enum pipe_state state)
{
	c->closed = true;
	/* chan.R9, release; acquired in in_ended(): all that was put is there. */
	atomic_store_explicit(&c->pipe->state, (uint32_t)state, memory_order_release);
	if (c->far)
		feed_push(c, true);
}

/* -- When nobody reads any more ----------------------------------------------------------- */

static int listener_code(const struct tern_chan *c, unsigned i)
{
	uint32_t state = atomic_load_explicit(&c->pipe->reader[i].state, memory_order_relaxed);
	if (state == READER_CLOSED)
		return -EPIPE;
	return state == READER_LEFT ? -ESHUTDOWN : chan_check(c->chans, c->listener[i].rank);
}

/* Of many, the worst fate is told: a rank that died, then one that left, then one that closed. */
int out_gone(const struct tern_chan *c)
{
	int worst = -EPIPE;
	uint32_t who = c->listener[0].rank;
	for (unsigned i = 0; i < c->listeners; i++) {
		int code = listener_code(c, i);
		if (worst == -EOWNERDEAD || code == -EPIPE ||
		    (worst == -ESHUTDOWN && code != -EOWNERDEAD))
			continue;
		worst = code;
		who = c->listener[i].rank;
	}
	return error_set(worst, "nobody reads channel %llu of rank %u any more: rank %u has %s",
			 (unsigned long long)c->name, c->chans->e->t->rank, who,
			 worst == -EPIPE ? "closed its end" : chan_fate(worst));
}

static void out_wake(struct tern_chan *c)
{
	if (c->wake)
		c->wake(c->chans->e, c->wake_arg);
}

/* -- Going on to the next leaf -------------------------------------------------------------- */

static bool out_free(struct endpoint *e, void *arg)
{
	const struct tern_chan *c = arg;
	uint64_t limit = out_limit(c);
	(void)e;
	return !limit || c->leaf < limit;
}

/* Never stops the wait; sends to those that are far, since a block may have filled the channel. */
static int out_push(struct endpoint *e, struct wait *w)
{
	struct tern_chan *c = w->arg;
	(void)e;
	if (c->far)
		feed_push(c, true);
	return 0;
}

/*
 * Waits until the next leaf is free; a reader that is far tells that in a message, which ends a
 * sleep.
 */
static int out_wait(struct tern_chan *c)
{
	struct wait w = { .bounded = c->far < c->listeners,
			  .call = "tern_chan_put",
			  .lack = "channel full",
			  .way = c->listeners == 1 ? "to" : NULL,
			  .whom = c->listeners == 1 ? c->listener[0].rank + 1 : 0,
			  .rule = "a put into a channel without room",
			  .arg = c,
			  .stop = out_push };
	int rc = chan_until(c->chans->e, out_free, c, &w);
	if (!rc && !out_limit(c))
		rc = out_gone(c);
	return rc;
}

bool out_next_leaf(tern_out *o)
{
	struct tern_chan *c = o->chan;
	if (!out_spilt(o))
		return true;
	if (c->leaf >= out_limit(c))
		return false;
	struct tern_chan_place p = out_enter(c);
	o->next = p.line + 1;
	o->at = p.at;
	return true;
}

/* Makes sure that the end stands in its ring. */
static int out_settle(tern_out *o)
{
	int rc = out_spilt(o) ? out_wait(o->chan) : 0;
	if (!rc)
		out_next_leaf(o);
	return rc;
}

/*
 * Where an end really stands. If one of its listeners is far, the program's stands at the spill all
 * the time: so each put comes to the library, which sends what was put, and the inline path is the
 * same for all.
 */
static tern_out *out_real(tern_out *o)
{
	return TERN_UNLIKELY(o->chan->far) ? &o->chan->real : o;
}

/*
 * What was put is sent, unless the call failed: then its sentence stays, and what there is was sent
 * before it waited.
 */
static int out_done(const tern_out *o, int rc)
{
	if (TERN_UNLIKELY(o->chan->far) && (rc >= 0 || rc == -EAGAIN))
		feed_push(o->chan, false);
	return rc;
}

/* The put that ended here wrote its value into the spill. */
__attribute__((noinline)) static struct tern_chan_place spilt_settle(struct tern_chan *c)
{
	tern_out spill = { chan_spill(c) + 1, -8, c };
	tern_out *o = out_real(&spill);
	c->trouble = out_settle(o);
	if (c->trouble)
		return out_spill(c);
	tern_chan_put8_(o, chan_spill(c)->word[LINE_WORDS - 1]);
	out_done(o, 0);
	return c->far ? out_spill(c) : (struct tern_chan_place){ out_line(o), o->at };
}

struct tern_chan_place tern_chan_next_leaf_(tern_chan *c, struct tern_chan_line *line)
{
	INSIDE struct scope scope = chan_scope(&c, "tern_chan_put");
	if (TERN_UNLIKELY(chan_home(c)->own->forked)) {
		c->trouble = rules_forked(chan_home(c)->own);
		return out_spill(c);
	}
	if (TERN_UNLIKELY(line - 1 == chan_spill(c)))
		return spilt_settle(c);
	out_wake(c);
	return c->leaf < out_limit(c) ? out_enter(c) : out_spill(c);
}

/* -- Marks ------------------------------------------------------------------------------------- */

void out_mark(tern_out *o, uint64_t item)
{
	out_line(o)->word[LINE_WORDS - 1] = item; /* free: a line that is full has been left */
	/*
	 * chan.R7, release; acquired in cursor_item(): the item, and the line's last count, come
	 * first.
	 */
	atomic_store_explicit(&out_line(o)->mark, 0, memory_order_release);
	out_wake(o->chan);
	o->at = -TERN_CHAN_FULL;
	if (!line_is_control(o->next)) {
		tern_chan_open_line_(++o->next);
		return;
	}
	struct tern_chan_place p = tern_chan_next_leaf_(o->chan, o->next);
	o->next = p.line + 1;
	o->at = p.at;
}

int(tern_chan_end)(tern_out *o)
{
	INSIDE struct scope scope = chan_scope(&o->chan, __func__);
	o = out_real(o);
	int rc = rules_forked(o->chan->chans->e);
	if (!rc)
		rc = out_settle(o);
	if (!rc)
		out_mark(o, ITEM_END);
	if (!rc && o->chan->far)
		feed_push(o->chan, true);
	return rc;
}

int(tern_chan_call)(tern_out *o, unsigned id)
{
	INSIDE struct scope scope = chan_scope(&o->chan, __func__);
	struct chans *s = o->chan->chans;
	int rc = rules_forked(s->e);
	if (!rc)
		rc = rules_number("procedure", id, TERN_PROCS_MAX);
	if (rc)
		return rc;
	if (!s->proc[id].fn && !s->proc[id].reserved)
		return error_set(-ENXIO,
				 "procedure %u was named, but rank %u has none under that number: "
				 "both sides register it with tern_chan_on()",
				 id, s->e->t->rank);
	o = out_real(o);
	rc = out_settle(o);
	if (!rc)
		out_mark(o, ITEM_CALL | (uint64_t)id << ITEM_BITS);
	return out_done(o, rc);
}

/* -- More than a word -------------------------------------------------------------------------- */

/* Words that can be put into this leaf. */
static size_t leaf_room(const tern_out *o)
{
	size_t lines = (TERN_CHAN_LEAF - (uintptr_t)out_line(o) % TERN_CHAN_LEAF) / TERN_LINE;
	return (lines - 1) * LINE_WORDS + (size_t)-o->at / 8;
}

int(tern_chan_room)(tern_out *o, size_t bytes)
{
	INSIDE struct scope scope = chan_scope(&o->chan, __func__);
	struct tern_chan *c = o->chan;
	if (c->chans->e->forked)
		return rules_forked(c->chans->e);
	size_t words = words_of(bytes);
	o = out_real(o);
	if (words > PIPE_WORDS)
		return error_set(-EMSGSIZE,
				 "room for %zu bytes was asked for; a channel has %d at most",
				 bytes, PIPE_WORDS * 8);
	size_t has = out_next_leaf(o) ? leaf_room(o) : 0;
	if (words <= has)
		return 0;
	uint64_t limit = out_limit(c);
	if (!limit)
		return out_gone(c);
	return words <= has + (limit - c->leaf) * LEAF_WORDS ? 0 : -EAGAIN;
}

size_t out_fill(tern_out *o, const void *data, size_t len)
{
	size_t done = 0;
	while (done < len && out_next_leaf(o)) {
		size_t left = len - done, room = (size_t)-o->at, n = left < room ? left : room;
		uint64_t *word = tern_chan_word_(out_line(o), o->at);
		if (n % 8)
			word[n / 8] = 0; /* what the last bytes leave of their word */
		memcpy(word, (const char *)data + done, n);
		o->at += (intptr_t)words_of(n) * 8;
		done += n;
		tern_chan_publish_(o); /* goes to the spill at most, and does not wait */
	}
	return done;
}

int(tern_chan_put)(tern_out *o, const void *data, size_t len)
{
	INSIDE struct scope scope = chan_scope(&o->chan, __func__);
	const char *from = data;
	struct endpoint *e = o->chan->chans->e;
	o = out_real(o);
	int rc = rules_forked(e);
	if (!rc)
		rc = (tern_chan_room)(o, len);
	if (rc == -EAGAIN || (rc == -EMSGSIZE && !e->turn)) /* if it may not wait, nothing is put */
		rc = chan_may_wait(e, "a block put into a channel without room");
	while (!rc && len) {
		rc = out_settle(o);
		size_t n = rc ? 0 : out_fill(o, from, len);
		from += n;
		len -= n;
	}
	return out_done(o, rc);
}

int(tern_chan_put_some)(tern_out *o, const void *data, size_t len, size_t *done)
{
	INSIDE struct scope scope = chan_scope(&o->chan, __func__);
	size_t most = len - *done < PIPE_WORDS * 8 ? len - *done : PIPE_WORDS * 8;
	o = out_real(o);
	int rc = rules_forked(o->chan->chans->e);
	size_t n = rc ? 0 : out_fill(o, (const char *)data + *done, most);
	*done += n;
	if (!rc && n < most)
		rc = out_limit(o->chan) ? -EAGAIN : out_gone(o->chan);
	return out_done(o, rc ? rc : *done < len);
}
