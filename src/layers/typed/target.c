/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sender knows of other ranks' pools: asked for once, and again when a pool is used no more.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "mem/mem.h"
#include "typed/typed.h"

enum { FOUND_WORDS = 6 };

/* -- At the owner ------------------------------------------------------------------------------ */

void on_pool_lookup(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint64_t key = tern_msg_count(m) ? tern_msg_word(m, 0) : KEYS;
	struct type_queue *s = key < KEYS ? y->queue[key] : NULL;
	uint64_t words[FOUND_WORDS] = { key };
	if (s) {
		words[1] = mem_addr(mem_of(t), s->words);
		words[2] = mem_addr(mem_of(t), s->pool.buffer);
		words[3] = (uint64_t)s->pool.generation << 32 | s->pool.count;
		words[4] = s->pool.bytes;
		words[5] = s->flags | (y->check ? POOL_CHECKED : 0);
	}
	layer_reply(y->e, TYPED_FOUND, NULL, 0, s ? FOUND_WORDS : 1, words);
}

/* -- At the sender ----------------------------------------------------------------------------- */

/* What is known of a pool, or the place for it; NULL if there is no memory. */
static struct target *target_of(struct typed *y, uint32_t rank, unsigned key)
{
	struct target **of = &y->target[rank];
	if (!*of)
		*of = memory_new(KEYS, sizeof **of);
	return *of ? &(*of)[key] : NULL;
}

/* A place of the rank's heap that its own answer names. */
static char *found_place(struct typed *y, uint32_t rank, tern_addr a, size_t len)
{
	bool good = tern_addr_rank(a) == rank && a % BUFPOOL_ALIGN == 0;
	return good ? heap_reach(mem_of(y->e->t), a, len) : NULL;
}

/* Takes the answer, if everything it names is there and the rank's own. */
static bool found_take(struct typed *y, uint32_t rank, struct target *to, const uint64_t *words)
{
	struct bufpool k = { .generation = (uint32_t)(words[3] >> 32),
			     .count = (uint32_t)words[3],
			     .bytes = words[4] };
	size_t all;
	if (!k.generation || (!k.count && !(words[5] & TERN_BUF_SPILL)) ||
	    !bufpool_sizes(k.bytes, k.count, &k.stride, &all))
		return false;
	char *at = found_place(y, rank, words[1], bufpool_words_bytes(k.count));
	char *buffers = found_place(y, rank, words[2], all ? all : 1);
	if (!at || !buffers)
		return false;
	bufpool_see(&k, at, buffers);
	k.next = (uint32_t)((uint64_t)y->e->t->rank * WORDS_OF_LINE %
			    (k.words ? k.words : 1)); /* not all at one end */
	to->pool = k;
	to->buffers = words[2];
	to->flags = (uint32_t)words[5];
	size_t most = k.bytes < LONG_BYTES ? k.bytes : LONG_BYTES;
	to->quick = !(to->flags & POOL_CHECKED) && k.count ? most : 0;
	return true;
}

void on_pool_found(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t rank = tern_msg_src(m);
	uint64_t key = tern_msg_count(m) ? tern_msg_word(m, 0) : KEYS;
	struct target *to = key < KEYS && y->target[rank] ? &y->target[rank][key] : NULL;
	if (!to || !to->asked) {
		typed_refuse(y, rank, "that answers what was not asked");
		return;
	}
	to->asked = false;
	to->none = true;
	/* There is none, or its heap is out of reach. */
	if (tern_msg_count(m) != FOUND_WORDS || y->e->site.peer[rank].lost)
		return;
	to->none = !found_take(y, rank, to, m->word);
	if (to->none)
		typed_refuse(y, rank, "that names memory which is not its own");
}

static int target_ask(struct typed *y, uint32_t rank, unsigned key, struct target *to)
{
	uint64_t word = key;
	if (!lane_ready(&y->e->t->lane[rank]))
		return -EAGAIN;
	to->asked = true; /* before: the answer of this very rank may come while it sends */
	int rc = layer_request(y->e, rank, TYPED_LOOKUP, NULL, 0, 1, &word);
	if (rc)
		to->asked = false;
	return rc ? rc : -EAGAIN;
}

int target_find(struct typed *y, uint32_t rank, unsigned key, struct target **out)
{
	struct target *to = target_of(y, rank, key);
	if (!to)
		return error_set(-ENOMEM, "sending to rank %u: no memory", rank);
	if (to->asked)
		return -EAGAIN;
	if (to->none) {
		to->none = false; /* whoever sends next may be luckier */
		return -ENXIO;
	}
	if (!to->pool.generation || !bufpool_open(&to->pool))
		return target_ask(y, rank, key, to);
	*out = to;
	return 0;
}
