/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrors: a ring in this rank's own memory that shows what another rank puts into one that cannot
 * be mapped here (feed.c has the other side). It has a sending end, on which a handler puts what
 * comes in messages, and one reader, who reads as if the ring were the other rank's.
 *
 * A mirror has a number that is never used again: what comes for one that is gone finds nothing. It
 * tells the other side how far its reader is when that has given back a leaf, and when it has
 * ended; then it goes.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "chan/chan.h"

static struct reader *mirror_reader(const struct tern_chan *m)
{
	return &m->pipe->reader[0];
}

static uint32_t mirror_state(const struct tern_chan *m)
{
	return atomic_load_explicit(&mirror_reader(m)->state, memory_order_relaxed);
}

/* The owner of the ring learns with the answer to its offer that the mirror is open. */
struct tern_chan *mirror_open(struct chans *s, uint32_t from, uint64_t name, struct ring ring)
{
	struct tern_chan *m = chan_new(s, name, 1);
	if (!m)
		return NULL;
	m->pipe = memory_aligned(TERN_CHAN_LEAF, pipe_bytes(1));
	if (!m->pipe) {
		chan_free(m);
		return NULL;
	}
	m->fills = m->fixed = true;
	m->from = from;
	m->ring = ring;
	pipe_init(m->pipe, 1);
	out_begin(m, &s->e->t->rank);
	reader_set(mirror_reader(m), READER_OPEN);
	return m;
}

/* -- Telling how far the reader is ------------------------------------------------------------- */

bool mirror_tell(struct tern_chan *m)
{
	struct endpoint *e = m->chans->e;
	uint64_t freed = atomic_load_explicit(&mirror_reader(m)->freed, memory_order_relaxed);
	uint32_t state = mirror_state(m);
	uint64_t words[] = { m->ring.serial, m->ring.reader, freed, state, m->serial };
	if (!e->site.peer[m->from].lost) {
		m->owes = layer_request(e, m->from, CHAN_TELL, NULL, 0, 5, words) != 0;
		if (m->owes)
			return true;
		m->chans->moved++;
	}
	if (state != READER_OPEN)
		chan_free(m);
	return false;
}

/* -- What comes -------------------------------------------------------------------------------- */

static bool mirror_item(struct tern_chan *m, uint64_t item)
{
	if (!out_next_leaf(&m->real))
		return false;
	out_mark(&m->real, item);
	return true;
}

static bool mirror_over(struct tern_chan *m, uint64_t state)
{
	if (state != PIPE_CLOSED && state != PIPE_LEFT)
		return false;
	out_close(m, (enum pipe_state)state);
	return true;
}

/* The next thing in a message of `n` words; how many it took, 0 if it makes no sense. */
static size_t mirror_take(struct tern_chan *m, const uint64_t *word, size_t n)
{
	uint64_t count = *word >> ITEM_BITS;
	switch (*word & ((1u << ITEM_BITS) - 1)) {
	case STREAM_DATA:
		return count && count < n && out_fill(&m->real, word + 1, count * 8) == count * 8
			       ? count + 1
			       : 0;
	case STREAM_OVER:
		return n == 1 && mirror_over(m, count);
	case ITEM_END:
	case ITEM_CALL:
		return mirror_item(m, *word);
	default:
		return 0;
	}
}

static void mirror_feed(struct tern_chan *m, const uint64_t *word, size_t n)
{
	struct endpoint *e = m->chans->e;
	size_t took = 1;
	for (; n && took && !m->closed; n -= took, word += took)
		took = mirror_take(m, word, n);
	if (n)
		poll_trouble(
			e,
			error_set(
				-EBADMSG,
				"rank %u sent what is no channel's data to rank %u; it was dropped",
				m->from, e->t->rank));
	if (m->wake)
		m->wake(e, m->wake_arg);
}

void on_mirror_data(tern *t, const tern_msg *m)
{
	struct tern_chan *mirror = chan_named(chans_of(t), tern_msg_word(m, 0));
	uint64_t args[TERN_WORDS_MAX];
	size_t len, n = 0;
	const uint64_t *word = tern_msg_data(m, &len);
	if (!mirror || !mirror->fills || mirror->from != tern_msg_src(m) ||
	    mirror_state(mirror) != READER_OPEN)
		return; /* its reader has ended */
	if (word) {
		mirror_feed(mirror, word, len / sizeof *word);
		return;
	}
	for (; n + 1 < tern_msg_count(m); n++)
		args[n] = tern_msg_word(m, (unsigned)n + 1);
	mirror_feed(mirror, args, n);
}
