/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/transfer.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/stream.h"
#include "mem/word.h"

enum {
	AT_ONCE = 256 << 10,      /* a blocking transfer moves this much before it is queued, */
	START_AT_ONCE = 64 << 10, /* a split-phase one this much */
	LONG_TURN = 256 << 10, /* bytes of one transfer before the next has its turn, when no messages come */
	HEAT = 8,              /* polls that one message counts for, */
	HEAT_MOST = 64,        /* and many together */
	TURN = 2 << 10,        /* while they come: so little, */
	TURN_EVERY = 4,        /* and not at every poll or message */
	VM_TURN = 16 << 10,    /* a system call costs a round trip, so larger turns, */
	VM_TURN_EVERY = 64,    /* and fewer */
	VAST = 32 << 20,       /* a run of at least this does not stay in any cache */
	BATCH = 64,            /* transfers made at a time */
};

char *transfer_local(struct mem *m, const struct transfer *x, size_t len)
{
	if (x->source)
		return mem_reach(m, x->source + x->runs.done, len);
	return x->runs.local + x->runs.done;
}

static int move_copy(const struct transfer *x, char *to, const char *from, size_t len, bool guarded)
{
	if (guarded)
		return mem_copy_guarded(to, from, len);
	if (x->vast && len > WORD_MOST)
		stream_copy(to, from, len);
	else
		word_copy(to, from, len);
	return 0;
}

/* Moves bytes of the run that this process can touch: how many, 0 if it cannot, or a negative code. */
static ptrdiff_t move_direct(struct mem *m, struct transfer *x, size_t len)
{
	tern_addr remote = x->runs.remote + x->runs.done;
	char *local = transfer_local(m, x, len);
	char *reached = mem_reach(m, remote, len);
	bool others = addr_segment(remote) != SEGMENT_HEAP && tern_addr_rank(remote) != m->rank;
	if (!local)
		return mem_gone(x->source);
	if (!reached)
		return m->span[tern_addr_rank(remote)].lost ? mem_check(m, remote, len, "a transfer") : 0;
	if (others && !region_enter(m, remote)) /* of another thread, which may unregister it meanwhile */
		return mem_gone(remote);
	int rc = move_copy(x, x->put ? reached : local, x->put ? local : reached, len, others || x->source);
	if (others)
		region_leave(m, remote);
	return rc ? error_set(rc, "the memory of rank %u is not mapped (any more)", tern_addr_rank(remote))
		  : (ptrdiff_t)len;
}

/* The same, also by the kernel; 0 if neither can, or the kernel would not move a word as one. */
static ptrdiff_t move_now(struct mem *m, struct transfer *x, size_t len)
{
	ptrdiff_t moved = move_direct(m, x, len);
	if (moved || !m->single_copy || !layer_maps(m->e, tern_addr_rank(x->runs.remote)))
		return moved;
	moved = vm_move(m, x->runs.remote + x->runs.done, transfer_local(m, x, len), len, x->put);
	return moved == -EAGAIN ? 0 : moved;
}

/* Moves bytes of the run by whatever way there is; also 0 when it must wait. */
static ptrdiff_t move_any(struct mem *m, struct transfer *x, size_t len)
{
	ptrdiff_t moved = move_now(m, x, len);
	if (moved)
		return moved;
	return window_has(m, x) ? window_move(m, x) : message_move(m, x);
}

/* A turn of a transfer: moves up to `most` bytes one way or another. What it moved, 0 if it must wait. */
static size_t transfer_turn(struct mem *m, struct transfer *x, size_t most,
			    ptrdiff_t (*move)(struct mem *m, struct transfer *x, size_t len))
{
	size_t moved = 0;
	while (moved < most && x->runs.len && !x->error) {
		size_t left = runs_left(&x->runs);
		bool whole = left <= most - moved || x->runs.len <= WORD_MOST; /* a word is never cut */
		ptrdiff_t n = move(m, x, whole ? left : most - moved);
		if (n == 0)
			break;
		if (n < 0) {
			x->error = (int)n;
			break;
		}
		runs_advance(&x->runs, (size_t)n);
		moved += x->flying ? 0 : (size_t)n; /* messages fill their window, whatever the turn */
	}
	return moved;
}

static bool transfer_over(const struct transfer *x)
{
	return (!x->runs.len || x->error) && !x->flying;
}

void transfer_landed(struct transfer *x, int error)
{
	x->flying--;
	if (error && !x->error)
		x->error = error; /* and the rest is not even tried */
}

/* `x` is the first. */
static void transfer_unlink(struct transfers *ts, struct transfer *x)
{
	ts->first = x->next;
	if (ts->last == x)
		ts->last = NULL;
}

static void transfer_append(struct transfers *ts, struct transfer *x)
{
	x->next = NULL;
	*(ts->last ? &ts->last->next : &ts->first) = x;
	ts->last = x;
}

static void transfer_end(struct mem *m, struct transfer *x)
{
	struct transfers *ts = &m->transfers;
	struct transfer over = *x;
	x->next = ts->free;
	ts->free = x;
	ts->active--;
	mem_busy(m);
	if (over.op)
		op_end(m->e, over.op, over.error);
	else
		copy_done(m, &over);
}

/* Messages handled that were no answers to transfers. */
static uint64_t turn_served(const struct mem *m)
{
	return m->e->served - m->transfers.answers;
}

/*
 * How much `x` may move in this poll: little, or nothing, while messages are about, since they wait for it. A message
 * counts as a poll does: a flood, of which each poll handles many, leaves a transfer its share.
 */
static size_t turn_bytes(struct mem *m, const struct transfer *x)
{
	struct transfers *ts = &m->transfers;
	bool touched = mem_reach(m, x->runs.remote, x->runs.len) != NULL;
	uint64_t served = turn_served(m);
	uint64_t handled = served - ts->served;
	if (handled)
		ts->heat = ts->heat + HEAT < HEAT_MOST ? ts->heat + HEAT : HEAT_MOST;
	else if (ts->heat)
		ts->heat--;
	ts->served = served;
	if (!ts->heat)
		return LONG_TURN;
	uint64_t polls = ts->polls + (handled ? handled : 1);
	uint64_t turns = polls / (touched ? TURN_EVERY : VM_TURN_EVERY);
	ts->polls = (uint32_t)(polls % (touched ? TURN_EVERY : VM_TURN_EVERY));
	size_t most = turns * (touched ? TURN : VM_TURN);
	return most < LONG_TURN ? most : LONG_TURN;
}

unsigned transfer_progress(struct mem *m)
{
	struct transfers *ts = &m->transfers;
	struct transfer *x = ts->first;
	if (!x || ts->moving) /* a message that waits for room polls, and so comes back here */
		return 0;
	size_t most = turn_bytes(m, x);
	if (!most && !transfer_over(x))
		return 0;
	ts->moving = true;
	/* A message without room is tried again: a poll does not wait until another rank polls. */
	door_hold(m->e);
	uint32_t flying = x->flying;
	size_t moved = transfer_turn(m, x, most, move_any);
	bool sent = x->flying > flying;
	door_release(m->e);
	transfer_unlink(ts, x);
	if (transfer_over(x))
		transfer_end(m, x);
	else
		transfer_append(ts, x);
	ts->moving = false;
	return moved > 0 || sent;
}

size_t transfer_room(const struct mem *m)
{
	return TERN_OPS_MAX - m->transfers.active;
}

static int transfers_make(struct transfers *ts)
{
	struct transfer *batch = memory_new(BATCH, sizeof *batch);
	if (!batch)
		return error_set(-ENOMEM, "starting a transfer: no memory");
	ts->batch[ts->batches++] = batch;
	for (int i = 0; i < BATCH; i++) {
		batch[i].next = ts->free;
		ts->free = &batch[i];
	}
	return 0;
}

void transfers_free(struct transfers *ts)
{
	while (ts->batches)
		memory_free(ts->batch[--ts->batches]);
}

static bool transfer_is_free(struct endpoint *e, void *arg)
{
	(void)e;
	return ((struct mem *)arg)->transfers.free != NULL;
}

static int transfer_stop(struct endpoint *e, struct wait *w)
{
	const struct mem *m = w->arg;
	if (!in_handler(e) && !held(e) && !m->transfers.moving) /* or in a turn, which must end first */
		return 0;
	return error_set(-EAGAIN, "%d transfers are under way already", TERN_OPS_MAX);
}

/* A free transfer; when all are under way, helps them along until one is. */
static int transfer_new(struct mem *m, struct transfer **out)
{
	struct transfers *ts = &m->transfers;
	struct wait w = {
		.bounded = true, .call = "a transfer", .lack = "too many under way", .stop = transfer_stop
	};
	int rc = 0;
	if (!ts->free && ts->batches < TRANSFER_BATCHES)
		rc = transfers_make(ts);
	if (!rc)
		rc = wait_until(m->e, transfer_is_free, m, &w);
	if (rc)
		return rc;
	*out = ts->free;
	ts->free = (*out)->next;
	return 0;
}

static int transfer_queue(struct mem *m, const struct transfer *x)
{
	struct transfer *queued = NULL;
	int rc = transfer_new(m, &queued);
	if (rc)
		return rc;
	*queued = *x;
	if (queued->op)
		queued->op->pending++;
	if (!m->transfers.active++ && m->transfers.served != turn_served(m))
		m->transfers.served =
			turn_served(m) - 1; /* messages are about; those from before give no share */
	transfer_append(&m->transfers, queued);
	mem_busy(m);
	return 0;
}

int transfer_for(struct mem *m, const struct runs *r, tern_addr source, uint32_t asker, uint32_t slot)
{
	struct transfer x = { .asker = asker, .slot = slot, .source = source, .put = true, .runs = *r };
	return transfer_queue(m, &x);
}

/* Where nothing can be waited for, this process must be able to touch all of it. */
static int runs_touchable(struct mem *m, struct runs r)
{
	for (; r.len; runs_advance(&r, r.len))
		if (!mem_reach(m, r.remote, r.len))
			return error_set(
				-EPERM,
				"a transfer with rank %u's private memory was asked for in a handler "
				"or under a hold, where it cannot wait",
				tern_addr_rank(r.remote));
	return 0;
}

static int transfer_block(struct mem *m, struct transfer *x)
{
	tern_op op = TERN_OP;
	x->op = &op;
	int rc = transfer_queue(m, x);
	return rc ? rc : tern_op_wait(m->e->t, &op);
}

int transfer_later(struct mem *m, const struct runs *r, bool put, tern_op *op)
{
	struct transfer x = { .op = op, .put = put, .vast = r->len >= VAST, .runs = *r };
	if (!transfer_over(&x))
		return transfer_queue(m, &x);
	op->pending++;
	op_end(m->e, op, 0);
	return 0;
}

int transfer_begin(struct mem *m, const struct runs *r, bool put, tern_op *op)
{
	struct transfer x = { .op = op, .put = put, .vast = r->len >= VAST, .runs = *r };
	bool cannot_wait = in_handler(m->e) || held(m->e);
	int rc = cannot_wait ? runs_touchable(m, *r) : 0;
	if (rc)
		return rc;
	bool one_run = !r->piece && r->shape.dims == 0; /* many would be a system call each */
	transfer_turn(m, &x,
		      cannot_wait ? SIZE_MAX
		      : op        ? START_AT_ONCE
				  : AT_ONCE,
		      one_run && !cannot_wait ? move_now : move_direct);
	if (!transfer_over(&x))
		return op ? transfer_queue(m, &x) : transfer_block(m, &x);
	if (!op)
		return x.error;
	op->pending++;
	op_end(m->e, op, x.error);
	return 0;
}
