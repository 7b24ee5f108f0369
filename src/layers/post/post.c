/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls, and the layer itself. */
#include "post/post.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "endpoint/count.h"

/* -- Posting ----------------------------------------------------------------------------------- */

/* Whether the program may go on posting to the rank. */
static bool post_may(const struct post *p, const struct outbox *o)
{
	return !o->first && !o->overloaded && p->queued < QUEUED_LONG;
}

/*
 * The program's: sends what is full, and serves what arrives until it has left. It waits for no
 * other rank's queue but where so much waits that handlers of this rank are the reason.
 */
static int post_room(struct post *p, uint32_t rank)
{
	struct endpoint *e = p->e;
	struct outbox *o = &p->out[rank];
	struct wait w = { .bounded = true,
			  .what = WAIT_ROOM,
			  .call = "a post",
			  .way = "to",
			  .whom = rank + 1,
			  .lack = "ring full" };
	struct stall stall = { 0 };
	int rc;
	if (gather_send(p, o))
		tern_look_(e->t);
	p->rooms++;
	while ((rc = send_reachable(e, rank)) == 0 && !post_may(p, o) && !held(e)) {
		lost_look(e);
		stall_begin(e, &stall);
		wait_step(e, &w);
		gather_send(p, o);
	}
	p->rooms--;
	stall_end(e, &stall, PULSE_ROOM_STALLS);
	if (!rc && !post_may(p, o))
		rc = error_set(-EAGAIN,
			       "a post to rank %u has no room, and under a hold nothing is served",
			       rank);
	return rc;
}

/* A handler's: never waits. */
static int post_spill(const struct post *p, uint32_t rank)
{
	if (p->queued < QUEUED_MOST)
		return send_reachable(p->e, rank);
	return error_set(-ENOBUFS,
			 "a post to rank %u in a handler: %u buffers of items wait to leave rank "
			 "%u; let handlers post no more items than they handle",
			 rank, p->queued, p->e->t->rank);
}

/*
 * After this the open buffer has room for an item of that kind, unless a handler has filled it
 * meanwhile.
 */
static int post_prepare(struct post *p, uint32_t rank, uint32_t kind)
{
	struct outbox *o = &p->out[rank];
	if (gather_run(p, rank, kind))
		return 0;
	if (o->open)
		gather_close(p, rank);
	bool handler = in_handler(p->e);
	int rc = handler ? post_spill(p, rank) : post_room(p, rank);
	if (rc || o->open)
		return rc;
	if (p->opened >= p->most) {
		uint32_t oldest = p->oldest->rank;
		gather_close(p, oldest);
		if (!handler)
			gather_send(p, &p->out[oldest]);
	}
	rc = gather_open(p, rank);
	return rc ? rc : (gather_run(p, rank, kind), 0);
}

static int post_item(struct post *p, uint32_t rank, uint32_t kind, TERN_SIX_)
{
	struct tern_post_lane *lane = tern_post_lane_(&p->e->t->lane[rank]);
	unsigned n = kind & TERN_HEAD_WORDS;
	while (lane->kind != kind || tern_post_full_(lane)) {
		int rc = post_prepare(p, rank, kind);
		if (rc)
			return rc;
	}
	lane->next = tern_post_write_(lane->next, n, TERN_SIX_VALUES_);
	return 0;
}

static __attribute__((noinline)) int post_rare(tern *t, uint32_t dst, unsigned id, unsigned n,
					       TERN_SIX_)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	int rc = rules_rank(e, "tern_post()");
	if (!rc)
		rc = rules_post(e, dst, id, n);
	return rc ? rc
		  : post_item(post_of(t), dst, (uint32_t)tern_post_kind_(id, n), TERN_SIX_VALUES_);
}

/*
 * Whether the handler and the number of words were checked when the kind was begun; no other ones,
 * of at most TERN_WORDS_MAX words, give the same kind.
 */
static bool post_is_open(tern *t, uint32_t dst, unsigned id, unsigned n)
{
	return dst < t->size && tern_post_lane_(&t->lane[dst])->kind == tern_post_kind_(id, n);
}

/*
 * Whether this is a handler, and nobody but the program's thread runs handlers. Else another thread
 * may be changing what is open.
 */
static bool post_in_handler(const struct endpoint *e)
{
	return !e->owner.guarded && e->inlet && !e->forked;
}

/* `reach` says that this is the program, outside handlers, and that nobody else delivers. */
int tern_post_rare_(tern *t, uint32_t dst, unsigned id, unsigned n, TERN_SIX_)
{
	struct tern_post_lane *lane = tern_post_lane_(&t->lane[dst]);
	bool program = dst < t->reach;
	int rc = 0;
	if (TERN_UNLIKELY(!(program || post_in_handler(t->own)) || !post_is_open(t, dst, id, n) ||
			  (program && !post_quick(post_of(t), dst))))
		return post_rare(t, dst, id, n, TERN_SIX_VALUES_);
	/* Handlers of this rank's own items may have posted to it. */
	if (TERN_UNLIKELY(lane->kind != tern_post_kind_(id, n) || tern_post_full_(lane)))
		rc = post_rare(t, dst, id, n, TERN_SIX_VALUES_);
	else
		lane->next = tern_post_write_(lane->next, n, TERN_SIX_VALUES_);
	if (program && ++post_of(t)->looks % LOOK_EVERY == 0)
		tern_look_(t);
	return rc;
}

int tern_post_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words)
{
	t = given(t);
	uint64_t w[TERN_LINE_WORDS] = { 0 };
	if (n > TERN_LINE_WORDS) /* such a kind may look like another one */
		return post_rare(t, dst, id, n, 0, 0, 0, 0, 0, 0);
	for (unsigned i = 0; i < n; i++)
		w[i] = words[i];
	return tern_post_inline_(t, n, dst, id, w[0], w[1], w[2], w[3], w[4], w[5]);
}

/* The answer to an item goes back as an item. */
static int post_reply(void *state, const struct parcel *q)
{
	struct post *p = state;
	uint64_t id = q->bits >> TERN_ID_SHIFT;
	uint32_t src = tern_msg_src(p->e->item);
	if (q->len || q->n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX)
		return error_set(-ENOTSUP,
				 "a posted item from rank %u is answered with up to %d words, and "
				 "nothing else",
				 src, TERN_LINE_WORDS);
	const uint64_t *w = q->word;
	int rc = post_item(p, src, (uint32_t)tern_post_kind_((unsigned)id, q->n), w[0], w[1], w[2],
			   w[3], w[4], w[5]);
	if (!rc)
		p->e->t->current = tern_answered_(p->e->t);
	return rc;
}

/* -- Handlers of many ------------------------------------------------------------------------- */

int tern_post_on(tern *t, unsigned id, tern_post_handler *fn, void *arg)
{
	t = given(t);
	int rc = rules_rank(t->own, "tern_post_on()");
	if (rc)
		return rc;
	if (!fn)
		return error_set(-EINVAL, "tern_post_on() was given no function");
	if (id < TERN_HANDLER_MAX) /* before a message can be for it */
		atomic_store_explicit(&post_of(t)->many[id], fn, memory_order_release);
	return tern_on_with(t, id, batch_one, arg, NULL);
}

/* -- How much is kept back -------------------------------------------------------------------- */

/*
 * Buffers get smaller until those of all ranks have no more words together, and if they cannot get
 * that small, fewer of them are open. A post waits until the buffer before it has left, so nothing
 * else counts. The header of a run is a word, too.
 */
static void post_limit(struct post *p, uint32_t words)
{
	uint32_t each = words / p->e->t->size;
	each = each < ROOM_LEAST ? ROOM_LEAST : each;
	p->most = words / each < GATHERS_OPEN ? words / each : GATHERS_OPEN;
	p->room = each < p->words ? each + 1 : p->words;
}

int tern_post_limit(tern *t, uint32_t words)
{
	INSIDE struct scope scope = scope_given(t);
	struct post *p = post_of(t);
	int rc = rules_rank(t->own, "tern_post_limit()");
	if (!rc)
		rc = rules_program(t->own, "tern_post_limit()");
	if (rc)
		return rc;
	if (words && words < ROOM_LEAST)
		return error_set(-EINVAL, "tern_post_limit() was given %u words; %d are the least",
				 words, ROOM_LEAST);
	gather_close_all(p); /* they may have more already */
	p->room = p->words;
	p->most = GATHERS_OPEN;
	if (words)
		post_limit(p, words);
	return 0;
}

/* -- Flushing ---------------------------------------------------------------------------------- */

static bool post_is_empty(struct endpoint *e, void *arg)
{
	const struct post *p = arg;
	(void)e;
	return !p->opened && !p->queued;
}

/* Handlers that run meanwhile may post; that is sent, too. */
static int post_stop(struct endpoint *e, struct wait *w)
{
	struct post *p = w->arg;
	lost_look(e);
	gather_close_all(p);
	gather_send_all(p);
	return 0;
}

/* Tells of a rank whose items were dropped. */
static int post_dropped(struct post *p)
{
	if (!p->dropped)
		return 0;
	uint32_t rank = p->dropped - 1;
	p->dropped = 0;
	return send_reachable(p->e, rank);
}

static int post_flush(void *state)
{
	struct post *p = state;
	struct wait w = { .bounded = true,
			  .call = "tern_post_flush",
			  .lack = "rings full",
			  .rule = "tern_post_flush()",
			  .stop = post_stop };
	gather_close_all(p);
	gather_send_all(p);
	int rc = wait_until(p->e, post_is_empty, p, &w);
	gather_work(p);
	return rc ? rc : post_dropped(p);
}

int tern_post_flush(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_rank_waits(t->own, "tern_post_flush()");
	if (rc)
		return rc;
	/* Whoever flushes often would else take in only what stands in the way of its items. */
	poll_once(t->own, KINDS_BOTH);
	return post_flush(post_of(t));
}

/* -- The layer --------------------------------------------------------------------------------- */

static int post_open(struct endpoint *e, void *state)
{
	struct post *p = state;
	p->out = memory_new(e->t->size, sizeof *p->out);
	if (!p->out)
		return error_set(-ENOMEM, "opening the posts of rank %u: no memory", e->t->rank);
	p->e = e;
	p->room = p->words = e->t->size > GATHER_MANY ? GATHER_WORDS_MANY : GATHER_WORDS;
	p->most = GATHERS_OPEN;
	p->slots_most = SLOTS_MOST;
	batch_register(e);
	return 0;
}

static void post_close(void *state)
{
	struct post *p = state;
	gather_free(p);
	post_slots_free(p);
	memory_free(p->out);
}

/*
 * Everything leaves when nothing has arrived since the last poll, or after some polls; but not in
 * the looks of sends, nor while posts wait for room: then the program is about to post more.
 */
static unsigned post_progress(void *state)
{
	struct post *p = state;
	bool idle = p->served == endpoint_served(p->e);
	p->served = endpoint_served(p->e);
	if (p->opened && !p->rooms && !p->e->site.passing && (idle || ++p->busy >= FLUSH_EVERY)) {
		gather_close_all(p);
		p->busy = 0;
	}
	unsigned done = p->waiting ? gather_send_all(p) : 0;
	done += pace_tell(p);
	gather_work(p);
	return done;
}

static void post_lost(void *state, uint32_t rank)
{
	struct post *p = state;
	struct outbox *o = &p->out[rank];
	gather_drop(p, rank);
	post_slots_lost(p, o);
	o->overloaded = o->source = false;
	gather_work(p);
}

static int leave_stop(struct endpoint *e, struct wait *w)
{
	struct post *p = w->arg;
	post_stop(e, w);
	return wait_stalled(e, w, p->left);
}

/* What was posted leaves, as long as those it goes to take it. */
static void post_leave(void *state)
{
	struct post *p = state;
	struct wait w = { .bounded = true,
			  .call = "tern_close",
			  .lack = "gathered items",
			  .rule = "tern_close()",
			  .stop = leave_stop };
	wait_until(p->e, post_is_empty, p, &w);
}

static void post_report(const void *state, int fd)
{
	const struct post *p = state;
	if (p->opened || p->queued)
		dprintf(fd, "rank %u: gathered items in %u open buffers and %u full ones\n",
			p->e->t->rank, p->opened, p->queued);
}

LAYER_FITS(struct post, POST_PACE, POST_HANDLERS_END);
const struct layer post_layer = { .bytes = sizeof(struct post),
				  .open = post_open,
				  .close = post_close,
				  .progress = post_progress,
				  .lost = post_lost,
				  .leave = post_leave,
				  .reply = post_reply,
				  .flush = post_flush,
				  .report = post_report };
