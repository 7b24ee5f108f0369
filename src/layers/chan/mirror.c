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

struct mirror {
	struct chans *s;
	struct mirror *next; /* in its bucket */
	uint64_t number;
	uint32_t feeder;
	struct ring ring; /* what it shows */
	tern_out out;     /* where the next goes */
	uint64_t freed;   /* as told last, */
	uint32_t state;   /* READER_NONE: nothing was */
};

static struct mirror **mirror_bucket(struct chans *s, uint64_t number)
{
	return &s->mirror[number % MIRROR_BUCKETS];
}

struct pipe *mirror_pipe(const struct mirror *m)
{
	return m->out.chan->pipe;
}

uint64_t mirror_number(const struct mirror *m)
{
	return m->number;
}

static struct reader *mirror_reader(const struct mirror *m)
{
	return &mirror_pipe(m)->reader[0];
}

static uint32_t mirror_state(const struct mirror *m)
{
	return atomic_load_explicit(&mirror_reader(m)->state, memory_order_relaxed);
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static struct tern_chan *mirror_fill(struct chans *s, uint64_t name)
{
	struct tern_chan *c = chan_new(s, name);
	if (!c)
		return NULL;
	c->pipe = memory_aligned(TERN_CHAN_LEAF, sizeof *c->pipe);
	if (!c->pipe) {
		chan_free(c);
		return NULL;
	}
	c->fills = true;
	pipe_init(c->pipe);
	out_begin(c, &s->e->t->rank, 1);
	return c;
}

struct mirror *mirror_open(struct chans *s, uint32_t feeder, const struct ring *ring, uint64_t name)
{
	struct mirror *m = memory_new(1, sizeof *m);
	struct tern_chan *c = m ? mirror_fill(s, name) : NULL;
	if (!c) {
		memory_free(m);
		return NULL;
	}
	struct mirror **bucket = mirror_bucket(s, c->serial);
	*m = (struct mirror){ .s = s,
			      .next = *bucket,
			      .number = c->serial,
			      .feeder = feeder,
			      .ring = *ring,
			      .out = c->real };
	*bucket = m;
	reader_set(mirror_reader(m), READER_OPEN);
	s->tells = true;
	chans_work(s);
	return m;
}

void mirror_drop(struct mirror *m)
{
	struct mirror **p = mirror_bucket(m->s, m->number);
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	chan_free(m->out.chan);
	memory_free(m);
}

void mirror_on_arrival(struct mirror *m, void (*wake)(struct endpoint *e, void *arg), void *arg)
{
	m->out.chan->wake = wake;
	m->out.chan->wake_arg = arg;
}

/* The endpoint closes: the sending ends are gone already. */
void mirror_close(struct chans *s)
{
	for (int i = 0; i < MIRROR_BUCKETS; i++)
		for (struct mirror *m = s->mirror[i], *next; m; m = next) {
			next = m->next;
			memory_free(m);
		}
}

/* -- Telling how far the reader is ------------------------------------------------------------- */

/*
 * 0 when all is told; the mirror may be gone then. Under a hold, so that nothing is served
 * meanwhile.
 */
static int mirror_say(struct mirror *m)
{
	struct endpoint *e = m->s->e;
	uint64_t freed = atomic_load_explicit(&mirror_reader(m)->freed, memory_order_relaxed);
	uint32_t state = mirror_state(m);
	uint64_t words[] = { m->ring.serial, m->ring.reader, freed, state, m->number };
	bool news = freed != m->freed || state != m->state;
	int rc = 0;
	if (news && !e->site.peer[m->feeder].lost)
		rc = layer_request(e, m->feeder, CHAN_TELL, NULL, 0, 5, words);
	if (rc)
		return rc;
	m->freed = freed;
	m->state = state;
	if (state != READER_OPEN)
		mirror_drop(m);
	return 0;
}

void mirror_tell(struct mirror *m)
{
	struct chans *s = m->s;
	if (s->closing)
		return;
	int rc = -EAGAIN;
	if (!in_handler(s->e)) {
		library_hold(s->e);
		rc = mirror_say(m);
		library_release(s->e);
	}
	s->tells |= rc != 0;
	chans_work(s);
}

unsigned mirror_progress(struct chans *s)
{
	unsigned left = 0;
	if (!s->tells)
		return 0;
	library_hold(s->e);
	for (int i = 0; i < MIRROR_BUCKETS; i++)
		for (struct mirror *m = s->mirror[i], *next; m; m = next) {
			next = m->next;
			left += mirror_say(m) != 0;
		}
	library_release(s->e);
	s->tells = left;
	return !left;
}

/* -- What comes -------------------------------------------------------------------------------- */

static struct mirror *mirror_named(struct chans *s, uint64_t number, uint32_t src)
{
	struct mirror *m = *mirror_bucket(s, number);
	while (m && m->number != number)
		m = m->next;
	return m && m->feeder == src && mirror_state(m) == READER_OPEN ? m : NULL;
}

/* A run of data; false if there is no room for it, which there always is. */
static bool mirror_data(struct mirror *m, const uint64_t *word, size_t words)
{
	tern_out *o = &m->out;
	while (words) {
		if (!out_next_leaf(o))
			return false;
		size_t n = words < (size_t)-o->at / 8 ? words : (size_t)-o->at / 8;
		memcpy(tern_chan_word_(o->next - 1, o->at), word, n * sizeof *word);
		o->at += (intptr_t)n * 8;
		tern_chan_publish_(o); /* goes to the spill at most, and does not wait */
		word += n;
		words -= n;
	}
	return true;
}

static bool mirror_item(struct mirror *m, uint64_t item)
{
	if (!out_next_leaf(&m->out))
		return false;
	out_mark(&m->out, item);
	return true;
}

static bool mirror_over(struct mirror *m, uint64_t word)
{
	uint64_t state = word >> ITEM_BITS & 0xff, who = word >> STREAM_WHO_SHIFT;
	if (state < PIPE_CLOSED || state > PIPE_DEAD || who >= m->s->e->t->size)
		return false;
	out_close(m->out.chan, (enum pipe_state)state, (uint32_t)who);
	return true;
}

/* The next thing in a message of `n` words; how many it took, 0 if it makes no sense. */
static size_t mirror_take(struct mirror *m, const uint64_t *word, size_t n)
{
	uint64_t count = *word >> ITEM_BITS;
	switch (*word & ((1u << ITEM_BITS) - 1)) {
	case STREAM_DATA:
		return count && count < n && mirror_data(m, word + 1, count) ? count + 1 : 0;
	case STREAM_OVER:
		return n == 1 && mirror_over(m, *word);
	case ITEM_END:
	case ITEM_CALL:
		return mirror_item(m, *word);
	default:
		return 0;
	}
}

static void mirror_feed(struct mirror *m, const uint64_t *word, size_t n)
{
	struct tern_chan *c = m->out.chan;
	size_t took = 1;
	for (; n && took && !c->closed; n -= took, word += took)
		took = mirror_take(m, word, n);
	if (n)
		poll_trouble(
			m->s->e,
			error_set(
				-EBADMSG,
				"rank %u sent what is no channel's data to rank %u; it was dropped",
				m->feeder, m->s->e->t->rank));
	if (c->wake)
		c->wake(m->s->e, c->wake_arg);
}

static void on_mirror_data(tern *t, const tern_msg *m)
{
	struct mirror *mirror = mirror_named(chans_of(t), tern_msg_word(m, 0), tern_msg_src(m));
	uint64_t args[TERN_WORDS_MAX];
	size_t len, n = 0;
	const uint64_t *word = tern_msg_data(m, &len);
	if (!mirror)
		return; /* its reader has ended */
	if (word) {
		mirror_feed(mirror, word, len / sizeof *word);
		return;
	}
	for (; n + 1 < tern_msg_count(m); n++)
		args[n] = tern_msg_word(m, (unsigned)n + 1);
	mirror_feed(mirror, args, n);
}

void mirror_register(struct endpoint *e)
{
	layer_on(e, CHAN_STREAM, on_mirror_data);
}
