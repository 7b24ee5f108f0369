/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Feeding: a reader that cannot map our ring has a mirror of it (mirror.c), a ring of the same
 * shape in its own memory, and gets in messages what was put. It tells in messages how far it is,
 * and that is written where other readers write it themselves; so limits, waiting and ends are the
 * same for both.
 *
 * The layout of a ring follows from what is put. So what has room in ours has room in the mirror,
 * and a message can say what was put and not where: it is a sequence of runs of data, each behind a
 * word that counts it, of items, and at last of how the ring ended. Messages between two ranks keep
 * their order.
 *
 * When it leaves: at once, up to BURST times in BURST_NS; what is put beyond that leaves when a
 * leaf is full, a message ends, or the program polls or waits.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "chan/chan.h"

enum { BURST = 2, BURST_NS = 20000 };

/* -- A message --------------------------------------------------------------------------------- */

struct stream {
	unsigned n;
	uint64_t *run; /* the word that counts the data being written; NULL: none */
	bool over;     /* the ring's end is in it */
	uint64_t word[STREAM_WORDS];
};

static void stream_data(struct stream *x, struct cursor *k)
{
	size_t words = (size_t)(k->end - k->at) / 8;
	if (!x->run) {
		x->run = &x->word[x->n++];
		*x->run = STREAM_DATA;
	}
	memcpy(x->word + x->n, tern_chan_word_(k->line, k->at), words * 8);
	x->n += (unsigned)words;
	*x->run += (uint64_t)words << ITEM_BITS;
	k->at = k->end;
}

static void stream_item(struct stream *x, uint64_t item)
{
	x->word[x->n++] = item;
	x->run = NULL;
}

static uint64_t stream_end(const struct pipe *r)
{
	uint64_t state = atomic_load_explicit(&r->state, memory_order_relaxed);
	return STREAM_OVER | state << ITEM_BITS;
}

/* What the next line has; false if that is nothing, or no room is left for another. */
static bool stream_line(struct stream *x, struct tern_chan *c, struct cursor *k)
{
	switch (in_see(c, k)) {
	case TERN_CHAN_DATA:
		stream_data(x, k);
		break;
	case TERN_CHAN_END:
	case TERN_CHAN_PROCEDURE:
		stream_item(x, k->item);
		in_pass(k);
		break;
	case TERN_CHAN_CLOSED:
		stream_item(x, stream_end(c->pipe));
		x->over = true;
		return false;
	default:
		return false;
	}
	return x->n + 1 + LINE_WORDS <= STREAM_WORDS;
}

static int stream_send(struct endpoint *e, const struct listener *l, const struct stream *x)
{
	uint64_t words[TERN_LINE_WORDS] = { l->mirror };
	if (x->n >= TERN_LINE_WORDS)
		return layer_request(e, l->rank, CHAN_STREAM, x->word, x->n * sizeof *x->word, 1,
				     words);
	memcpy(words + 1, x->word, x->n * sizeof *x->word);
	return layer_request(e, l->rank, CHAN_STREAM, NULL, 0, x->n + 1, words);
}

/* -- Listeners --------------------------------------------------------------------------------- */

/* 1 if something was sent, 0 if there was nothing, or why it could not be. */
static int listener_feed(struct tern_chan *c, struct listener *l)
{
	struct stream x;
	struct cursor k = l->sent;
	x.n = 0;
	x.run = NULL;
	x.over = false;
	while (stream_line(&x, c, &k))
		;
	if (!x.n)
		return 0;
	int rc = stream_send(c->chans->e, l, &x);
	if (rc)
		return rc;
	l->sent = k;
	l->ended = x.over;
	return 1;
}

bool feed_send(struct tern_chan *c)
{
	struct endpoint *e = c->chans->e;
	for (unsigned i = 0; i < c->listeners; i++) {
		struct listener *l = &c->listener[i];
		int rc = 0;
		while (l->mirror && !l->ended && out_listens(c, i) &&
		       (rc = listener_feed(c, l)) > 0)
			c->chans->moved++;
		c->owes |= rc < 0 && !e->site.peer[l->rank].lost;
	}
	return c->owes;
}

/* -- When -------------------------------------------------------------------------------------- */

static bool feed_due(struct tern_chan *c)
{
	uint64_t now = c->chans->e->world->now();
	if (c->leaf != c->pressed) {
		c->pressed = c->leaf;
		return true;
	}
	if (now >= c->since + BURST_NS) {
		c->since = now;
		c->burst = 0;
	}
	return c->burst < BURST && ++c->burst;
}

void feed_push(struct tern_chan *c, bool at_once)
{
	chan_owes(c, !in_handler(c->chans->e) && (at_once || feed_due(c)));
}

/* -- What mirrors tell ------------------------------------------------------------------------- */

/* The listener that the message is from; NULL if it makes no sense, or comes too late. */
static struct listener *feed_teller(struct tern_chan *c, const tern_msg *m)
{
	uint64_t i = tern_msg_word(m, 1);
	struct listener *l = c && i < c->listeners ? &c->listener[i] : NULL;
	if (!l || !l->far || l->rank != tern_msg_src(m))
		return NULL;
	return !l->mirror || l->mirror == tern_msg_word(m, 4) ? l : NULL;
}

void on_mirror_status(tern *t, const tern_msg *m)
{
	struct chans *s = chans_of(t);
	struct tern_chan *c = chan_named(s, tern_msg_word(m, 0));
	struct listener *l = feed_teller(c, m);
	uint64_t freed = tern_msg_word(m, 2), state = tern_msg_word(m, 3);
	if (!l || freed >= c->leaf || state < READER_OPEN || state > READER_LEFT)
		return;
	struct reader *r = &c->pipe->reader[l - c->listener];
	if (freed > atomic_load_explicit(&r->freed, memory_order_relaxed))
		atomic_store_explicit(&r->freed, freed, memory_order_release);
	reader_set(r, (enum reader_state)state);
	l->mirror = tern_msg_word(m, 4);
}
