/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relays: what comes in one ring goes out in another, whatever the program of this rank
 * gets meanwhile. Both rings have the same shape and a relay copies each line to the
 * same place, so that what was put together stays together.
 */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "chan/chan.h"
#include "core/wait.h"

enum { RELAY_MOST = 2 * LEAF_LINES }; /* lines of one relay in a turn */

struct relay {
	tern_in in;
	tern_out out;
	struct relay *next;
};

int relay_open(struct chans *s, const struct offer *from, const uint32_t *rank, unsigned n,
	       struct tern_chan **made)
{
	struct tern_chan *out = NULL;
	struct relay *r = memory_new(1, sizeof *r);
	struct tern_chan *in = r ? in_open(s, from) : NULL;
	int rc = in ? out_open(s, from->name, rank, n, &out) : -ENOMEM;
	if (rc) {
		if (in)
			chan_free(in);
		memory_free(r);
		return rc;
	}
	*r = (struct relay){ { in->line, in->at, in }, out->real, s->relays };
	s->relays = r;
	reader_set(in->reader, READER_OPEN);
	for (unsigned i = 0; i < n; i++)
		out_expect(out, i, 0); /* who opens the channel offers it to them next */
	chans_work(s);
	*made = out;
	return 0;
}

/* Copies what the line has; both ends stand at the same place of their rings. */
static void relay_data(struct relay *r, struct cursor *k)
{
	memcpy(tern_chan_word_(r->out.next - 1, k->at), tern_chan_word_(k->line, k->at),
	       (size_t)(k->end - k->at));
	k->at = k->end;
	r->out.at = k->end;
	tern_chan_publish_(&r->out); /* turns to the next leaf, or to the spill, but never waits */
}

static void relay_item(struct relay *r, struct cursor *k, uint64_t item)
{
	out_mark(&r->out, item);
	in_pass(k);
}

/*
 * Moves a line, or what there is of it; 0 if nothing can be moved now, negative if nothing ever
 * can.
 */
static int relay_line(struct relay *r)
{
	struct cursor k = in_cursor(&r->in);
	uint64_t item = 0;
	if (!out_next_leaf(&r->out))
		return out_limit(r->out.chan) ? 0 : -EPIPE;
	int sight = in_see(r->in.chan, &k, &item);
	if (sight == SIGHT_NOTHING)
		return 0;
	if (sight == SIGHT_DATA)
		relay_data(r, &k);
	else if (sight == SIGHT_ITEM)
		relay_item(r, &k, item);
	else
		return -EPIPE;
	in_move(&r->in, &k);
	return 1;
}

/* Readers learn from the ring how it ended. */
static void relay_end(struct relay *r)
{
	struct tern_chan *in = r->in.chan;
	uint32_t who;
	int code = in_fate(in, &who);
	out_close(r->out.chan,
		  code == -EPIPE       ? PIPE_CLOSED
		  : code == -ESHUTDOWN ? PIPE_LEFT
				       : PIPE_DEAD,
		  who);
	in_close(in, READER_CLOSED);
	memory_free(r);
}

unsigned relay_progress(struct chans *s)
{
	unsigned moved = 0;
	for (struct relay **p = &s->relays; *p;) {
		struct relay *r = *p;
		int rc = 1, lines = 0;
		for (; lines < RELAY_MOST && rc > 0; lines += rc > 0)
			rc = relay_line(r);
		if (lines && r->out.chan->far)
			feed_push(r->out.chan, true);
		moved += (unsigned)lines;
		if (rc >= 0) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		relay_end(r);
		chans_sweep(s);
	}
	return moved;
}

bool relay_owes(const struct chans *s)
{
	for (const struct relay *r = s->relays; r; r = r->next) {
		struct cursor k = in_cursor(&r->in);
		uint64_t item = 0;
		int sight = in_see(r->in.chan, &k, &item);
		if (sight == SIGHT_DATA || sight == SIGHT_ITEM)
			return true;
	}
	return false;
}

/* The endpoint closes: the rings, and who is told, are those of its channels. */
void relay_close(struct chans *s)
{
	while (s->relays) {
		struct relay *r = s->relays;
		s->relays = r->next;
		memory_free(r);
	}
}
