/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands on the core: a layer has state in every endpoint, handlers of its own numbers, and
 * work that the endpoint's polls carry on. It is a folder with a `const struct layer NAME_layer`,
 * and a line in src/layers/layers.cmake, which allots LAYER_NAME and NAME_HANDLERS.
 */
#ifndef TERN_CORE_LAYER_H
#define TERN_CORE_LAYER_H

#include <errno.h>

#include "core/op.h"

/* The functions of a layer; all but the first three may be NULL. */
struct layer {
	/* Bytes of its state in an endpoint, and behind them for each rank; zero at first. */
	size_t bytes, bytes_a_rank;
	/* Before the endpoint's first message: handlers are registered here. */
	int (*open)(struct endpoint *e, void *state);
	void (*close)(void *state); /* also of one whose open() has failed */
	/*
	 * Called by polls while the layer has work (layer_work): a bounded turn. What was done, or
	 * 1 if a later poll will do something whatever happens; 0 lets a wait rest.
	 */
	unsigned (*progress)(void *state);
	/*
	 * `rank` has left, and what it had sent has been handled: nothing comes from it any more.
	 * Once for each, in a poll, but not in a handler, under a hold, or in a layer's progress.
	 */
	void (*lost)(void *state, uint32_t rank);
	/* Whether something of the handle waits for whoever comes: any death may end it. */
	bool (*needs_anyone)(const void *state, const tern_op *op);
	/*
	 * Whether something is under way, other than messages and the layer's work, that may still
	 * run code of the program's here: tern_team_quiet() asks.
	 */
	bool (*busy)(const void *state);
	/* 0, or why the endpoint cannot be closed, and then it stays open; may wait. */
	int (*closing)(void *state);
	/* The endpoint is about to leave: finish what others count on, within the grace time. */
	void (*leave)(void *state);
	/* In a forked child: refuse what the layer would do without asking the core. */
	void (*disown)(void *state);
	/* Answers the item of a batch of its own whose handler runs. */
	int (*reply)(void *state, const struct parcel *p);
	/* Before a barrier: send what the program has handed over to be sent; may wait. */
	int (*flush)(void *state);
	/* Writes what is under way to `fd`, for a job that is stuck. */
	void (*report)(const void *state, int fd);
	/* Sets the bits of whom its handles wait for; what they are, in words, or NULL. */
	const char *(*awaits)(void *state, uint64_t *set);
};

/* The refusing endpoint has room for its state, and its last handler is below the end it has. */
#define LAYER_FITS(state, last, end) \
	_Static_assert(sizeof(state) <= MISUSE_STATE && (int)(last) < (int)(end), #state)

/* Tells polls whether the layer wants to be called. */
static inline void layer_work(struct endpoint *e, unsigned layer, bool has)
{
	if (has)
		e->work |= 1u << layer;
	else
		e->work &= ~(1u << layer);
}

/* Whether `rank` has left, and the layers have been told: what it had sent is handled. */
static inline bool layer_lost(const struct endpoint *e, uint32_t rank)
{
	return e->site.peer[rank].lost && !e->site.peer[rank].draining;
}

/* Whether memory of `rank` is mapped here to be written; not under TERN_GRANT. */
static inline bool layer_maps(const struct endpoint *e, uint32_t rank)
{
	return e->site.peer[rank].net->provides & PROVIDES_SHARED;
}

/*
 * The error that a word of a message stands for, as a code: layers send it with either sign. A word
 * that no good peer sends is -EBADMSG.
 */
static inline int layer_error(uint64_t word)
{
	uint64_t size = word > INT64_MAX ? -word : word;
	return size < 4096 ? -(int)size : -EBADMSG;
}

/* Registers a handler of Tern's own: `id` is one of the layer's numbers. */
void layer_on_named(struct endpoint *e, unsigned id, tern_handler *fn, const char *name);
#define layer_on(e, id, fn) layer_on_named(e, id, fn, #fn)

/*
 * The handler `id` may run on a thread of the library while the program computes (endpoint.serves),
 * for messages of which `may` is true, if that is not NULL; others stay where they lie. It touches
 * memory that others may touch at any time, replies, and does nothing else. It sends no request,
 * because lanes for those are written by the program without a scope; it sets no work, for the same
 * reason; it opens no scope. One handler at most has a `may`.
 */
void layer_serve(struct endpoint *e, unsigned id, bool (*may)(tern *t, const tern_msg *m));

/*
 * A request or a reply of Tern's own, under the rules of tern_request_data() and
 * tern_reply_data(); without a payload if `data` is NULL.
 */
int layer_request(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		  unsigned n, const uint64_t *words);
/* The same under a hold: -EAGAIN instead of a wait for room. */
int layer_request_now(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		      unsigned n, const uint64_t *words);
int layer_reply(struct endpoint *e, unsigned id, const void *data, size_t len, unsigned n,
		const uint64_t *words); /* to the request whose handler runs */

/* The same to `dst`, in the program, or behind a reply to it. -EAGAIN, and no sentence: no room. */
int layer_reply_more(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		     unsigned n, const uint64_t *words);

#endif
