/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a transfer moves: run by run, through memory that this process can touch, by the kernel, by
 * the network itself, or in messages; and the queue of those under way, which polls serve in turn.
 */
#include "mem/transfer.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

enum {
	/* Bytes of one transfer before the next moves, when no messages come. */
	LONG_SLICE = 256 << 10,
	HEAT = 8,            /* polls that one message counts for, */
	HEAT_MOST = 64,      /* and many together */
	SLICE = 2 << 10,     /* while they come: so little, */
	SLICE_EVERY = 4,     /* and not at every poll or message */
	VM_SLICE = 16 << 10, /* a system call costs a round trip, so larger slices, */
	VM_SLICE_EVERY = 64, /* and fewer */
	VAST = 32 << 20, /* a run of at least this does not stay in any cache: copied past them */
};

/* -- Copies past the caches ------------------------------------------------------------------- */

/*
 * For a piece of a transfer that is larger than the caches: memcpy goes past them only when it
 * sees the whole length, and a transfer moves in pieces.
 */
#if defined(__x86_64__)
/*
 * Four pages at a time, a line of each in turn: measured best, as memory serves them from four
 * rows.
 */
enum { LINE = 64, PAGE = 4096, PAGES = 4, AHEAD = 256 };

static inline void stream_line(char *to, const char *from)
{
	_mm_prefetch(from + AHEAD, _MM_HINT_T0);
	for (int i = 0; i < LINE; i += 16)
		_mm_stream_si128((__m128i *)(void *)(to + i),
				 _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
}

static void stream_pages(char *to, const char *from)
{
	for (size_t line = 0; line < PAGE; line += LINE)
		for (size_t page = 0; page < PAGES * PAGE; page += PAGE)
			stream_line(to + page + line, from + page + line);
}

static void stream_copy(void *to, const void *from, size_t len)
{
	char *d = to;
	const char *s = from;
	size_t front = -(uintptr_t)d % LINE;
	if (len < front + PAGES * PAGE) {
		memcpy(d, s, len);
		return;
	}
	memcpy(d, s, front);
	for (d += front, s += front, len -= front; len >= PAGES * PAGE; len -= PAGES * PAGE) {
		stream_pages(d, s);
		d += PAGES * PAGE;
		s += PAGES * PAGE;
	}
	memcpy(d, s, len);
	/* Streamed stores are not ordered with later ones, such as a message's header. */
	_mm_sfence();
}
#else
static void stream_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

/* -- Single copy: the kernel moves bytes between this process and another --------------------- */

static ptrdiff_t vm_refused(struct mem *m, tern_addr remote, size_t len, bool put, int why)
{
	uint32_t rank = tern_addr_rank(remote);
	int gone = why == ESRCH ? job_rank_check(m->job, rank) : 0; /* it may have left in order */
	if (gone)
		return gone;
	if (why == ESRCH)
		return error_set(-EOWNERDEAD, "rank %u is dead: its memory is gone", rank);
	return error_set(-why, "%s %zu bytes of rank %u's registered memory: %s",
			 put ? "writing" : "reading", len, rank,
			 why == EFAULT
				 ? "it is not mapped there (any more), or without the right to that"
				 : strerror(why));
}

static ptrdiff_t vm_move(struct mem *m, tern_addr remote, char *local, size_t len, bool put)
{
	char *at = (char *)(uintptr_t)region_enter(m, remote);
	if (!at)
		return mem_gone(remote);
	if (len > 1 && word_is(at, len)) {
		region_leave(m, remote);
		/* The kernel copies bytes one by one: the word's owner loads or stores it. */
		return -EAGAIN;
	}
	struct job_rank *r = &m->job->rank[tern_addr_rank(remote)];
	struct iovec here = { local, len }, there = { at, len };
	/* The pid is written at open, and the kernel is asked next: its order costs nothing. */
	ssize_t moved = put ? process_vm_writev(atomic_load(&r->pid), &here, 1, &there, 1, 0)
			    : process_vm_readv(atomic_load(&r->pid), &here, 1, &there, 1, 0);
	int why = errno;
	region_leave(m, remote);
	if (moved > 0)
		return moved;
	if (why == EPERM || why == ENOSYS) {
		/* Containers often refuse; from now on, messages carry the data. */
		m->single_copy = false;
		return -EAGAIN;
	}
	return vm_refused(m, remote, len, put, moved < 0 ? why : EFAULT);
}

bool transfer_read(struct mem *m, void *to, tern_addr from, size_t len)
{
	return m->single_copy && !addr_in_heap(from) &&
	       vm_move(m, from, to, len, false) == (ptrdiff_t)len;
}

/* -- One step of a transfer ------------------------------------------------------------------- */

char *transfer_local(struct mem *m, const struct transfer *x, size_t len)
{
	if (x->source)
		return mem_reach(m, x->source + x->runs.local.done, len);
	if (x->through)
		return x->through;
	return (char *)(uintptr_t)x->runs.local.at + x->runs.local.done;
}

static int move_copy(const struct transfer *x, char *to, const char *from, size_t len, bool guarded)
{
	if (guarded)
		return mem_copy_guarded(to, from, len);
	if (x->runs.remote.len >= VAST && len > WORD_MOST)
		stream_copy(to, from, len);
	else
		word_copy(to, from, len);
	return 0;
}

/*
 * Moves bytes of the run that this process can touch: how many, 0 if it cannot, or a negative code.
 */
static ptrdiff_t move_direct(struct mem *m, struct transfer *x, size_t len)
{
	tern_addr remote = runs_remote(&x->runs);
	char *local = transfer_local(m, x, len);
	char *reached = mem_reach(m, remote, len);
	if (!reached && m->guarded && !x->put)
		reached = grant_read(m, remote, len);
	if (!local)
		return mem_gone(x->source);
	if (!reached)
		return mem_dead(m, tern_addr_rank(remote)) ? mem_check(m, remote, len, "a transfer")
							   : 0;
	int rc = region_hold(m, remote);
	if (rc)
		return rc;
	word_before_put(); /* whichever way the bytes go, one side may be another rank's */
	bool private = region_others(m, remote) && mem_same_process(m, tern_addr_rank(remote));
	rc = move_copy(x, x->put ? reached : local, x->put ? local : reached, len,
		       private || x->source);
	word_after_get();
	region_release(m, remote);
	return rc ? error_set(rc, "the memory of rank %u is not mapped (any more)",
			      tern_addr_rank(remote))
		  : (ptrdiff_t)len;
}

/* By what a transfer may move now. */
enum reach { BY_COPY, BY_KERNEL, BY_ANY };

/* Moves bytes of the run; also 0 when it must wait, or when the kernel would not move a word as
 * one. */
static ptrdiff_t move_run(struct mem *m, struct transfer *x, size_t len, enum reach by)
{
	ptrdiff_t moved = move_direct(m, x, len);
	if (!moved && by >= BY_KERNEL && m->single_copy &&
	    layer_maps(m->e, tern_addr_rank(x->runs.remote.at)))
		moved = vm_move(m, runs_remote(&x->runs), transfer_local(m, x, len), len, x->put);
	moved = moved == -EAGAIN ? 0 : moved;
	if (moved || by < BY_ANY)
		return moved;
	return window_has(m, x) ? window_move(m, x) : message_move(m, x);
}

/* A remote word whose bytes lie apart here is gathered first, or laid down afterwards. */
static ptrdiff_t move_word(struct mem *m, struct transfer *x, enum reach by)
{
	char word[WORD_MOST] __attribute__((aligned(WORD_MOST))) = { 0 };
	struct run_walk local = x->runs.local;
	size_t len = parts_left(&x->runs.remote);
	if (x->put)
		parts_copy(&local, word, len, true);
	x->through = word;
	ptrdiff_t moved = move_direct(m, x, len);
	x->through = NULL;
	if (moved == 0 && by == BY_ANY)
		return message_move(m, x);
	if (moved > 0 && !x->put)
		parts_copy(&local, word, (size_t)moved, false);
	return moved;
}

/* Moves the next bytes, at most `most` unless that would cut a word. */
static ptrdiff_t move_next(struct mem *m, struct transfer *x, size_t most, enum reach by)
{
	const struct runs *r = &x->runs;
	size_t left = runs_left(r);
	if (r->remote.len <= WORD_MOST && left < parts_left(&r->remote))
		return move_word(m, x, by);
	bool whole = left <= most || r->remote.len <= WORD_MOST || r->local.len <= WORD_MOST;
	return move_run(m, x, whole ? left : most, by);
}

/*
 * A slice of a transfer: moves up to `most` bytes one way or another. What it moved, 0 if it must
 * wait.
 */
static size_t transfer_step(struct mem *m, struct transfer *x, size_t most, enum reach by)
{
	size_t moved = 0;
	while (moved < most && x->runs.remote.len && !x->error) {
		ptrdiff_t n = x->runs.remote.part && !x->source
				      ? (ptrdiff_t)rows_next(m, &x->runs, x->put, most - moved)
				      : 0;
		if (n == 0 && (n = move_next(m, x, most - moved, by)) > 0)
			runs_advance(&x->runs, (size_t)n);
		if (n == 0)
			break;
		if (n < 0) {
			x->error = (int)n;
			break;
		}
		/* Messages fill their window, whatever the slice. */
		moved += x->flying ? 0 : (size_t)n;
	}
	return moved;
}

static bool transfer_over(const struct transfer *x)
{
	return (!x->runs.remote.len || x->error) && !x->flying;
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

/*
 * The lists of a transfer may be the caller's stack. Those of a blocking call need no copy, nor do
 * those that are used up by the call that starts the transfer.
 */
static int lists_copy(struct transfer *x)
{
	struct runs *r = &x->runs;
	size_t need = parts_copy_list(&r->remote, NULL) + parts_copy_list(&r->local, NULL);
	if (!need)
		return 0;
	x->lists = memory_new(1, need);
	if (!x->lists)
		return error_set(-ENOMEM, "starting a transfer: no memory for its list of parts");
	parts_copy_list(&r->local, x->lists + parts_copy_list(&r->remote, x->lists));
	return 0;
}

static void transfer_count(const struct transfer *x)
{
	if (x->op)
		x->op->pending++;
	if (x->local)
		x->local->pending++;
}

static void transfer_tell(struct mem *m, const struct transfer *x)
{
	if (x->local)
		op_end(m->e, x->local, 0);
	if (x->op)
		op_end(m->e, x->op, x->error);
}

static void transfer_end(struct mem *m, struct transfer *x)
{
	struct transfer over = *x;
	memory_free(x->lists);
	record_give(&m->transfers.pool, x);
	mem_busy(m);
	transfer_tell(m, &over);
	if (!over.op)
		copy_done(m, &over);
}

/* Messages handled that were no answers to transfers. */
static uint64_t slice_served(const struct mem *m)
{
	return endpoint_served(m->e) - m->transfers.answers;
}

/*
 * How much `x` may move in this poll: little, or nothing, while messages are about, since they wait
 * for it. A message counts as a poll does: a flood, of which each poll handles many, leaves a
 * transfer its share.
 */
static size_t slice_bytes(struct mem *m, const struct transfer *x)
{
	struct transfers *ts = &m->transfers;
	if (!layer_maps(m->e, tern_addr_rank(x->runs.remote.at)))
		return LONG_SLICE; /* a network takes it: sending keeps no message waiting */
	bool touched = mem_reach(m, x->runs.remote.at, x->runs.remote.len) != NULL;
	uint64_t served = slice_served(m);
	uint64_t handled = served - ts->served;
	if (handled)
		ts->heat = ts->heat + HEAT < HEAT_MOST ? ts->heat + HEAT : HEAT_MOST;
	else if (ts->heat)
		ts->heat--;
	ts->served = served;
	if (!ts->heat)
		return LONG_SLICE;
	uint64_t polls = ts->polls + (handled ? handled : 1);
	uint64_t slices = polls / (touched ? SLICE_EVERY : VM_SLICE_EVERY);
	ts->polls = (uint32_t)(polls % (touched ? SLICE_EVERY : VM_SLICE_EVERY));
	size_t most = slices * (touched ? SLICE : VM_SLICE);
	return most < LONG_SLICE ? most : LONG_SLICE;
}

unsigned transfer_progress(struct mem *m)
{
	struct transfers *ts = &m->transfers;
	struct transfer *x = ts->first;
	if (!x || ts->moving) /* a message that waits for room polls, and so comes back here */
		return 0;
	size_t most = slice_bytes(m, x);
	if (!most && !transfer_over(x))
		return 1; /* its share comes with polls, so a wait must not rest before that */
	ts->moving = true;
	/* A message without room is tried again: a poll does not wait until another rank polls. */
	library_hold(m->e);
	uint32_t flying = x->flying;
	size_t moved = transfer_step(m, x, most, BY_ANY);
	bool sent = x->flying > flying;
	library_release(m->e);
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
	return TERN_OPS_MAX - m->transfers.pool.used;
}

void transfers_free(struct transfers *ts)
{
	for (struct transfer *x = ts->first; x; x = x->next)
		memory_free(x->lists);
	pool_free(&ts->pool);
}

static int transfer_stop(struct endpoint *e, struct wait *w)
{
	(void)w;
	/* Nor in a slice, which must end first. */
	if (!in_handler(e) && !held(e) && !mem_of(e->t)->transfers.moving)
		return 0;
	return error_set(-EAGAIN, "%d transfers are under way already", TERN_OPS_MAX);
}

/* When all are under way, helps them along until one is free. */
static int transfer_queue(struct mem *m, const struct transfer *x)
{
	struct transfer *queued;
	struct wait w = { .call = "a transfer", .stop = transfer_stop };
	int rc = mem_record(m, &m->transfers.pool, &w, &queued);
	if (rc)
		return rc;
	struct record record = queued->record;
	*queued = *x;
	queued->record = record;
	transfer_count(queued);
	if (m->transfers.pool.used == 1 && m->transfers.served != slice_served(m))
		/* Messages are about; those from before give no share. */
		m->transfers.served = slice_served(m) - 1;
	transfer_append(&m->transfers, queued);
	mem_busy(m);
	return 0;
}

int transfer_for(struct mem *m, const struct runs *r, tern_addr source, uint32_t asker,
		 uint32_t slot)
{
	struct transfer x = {
		.asker = asker, .slot = slot, .source = source, .put = true, .runs = *r
	};
	return transfer_queue(m, &x);
}

/* Where nothing can be waited for, this process must be able to touch all of it. */
static int runs_touchable(struct mem *m, struct run_walk w)
{
	for (; w.len; parts_pass(&w, w.len))
		if (!mem_reach(m, w.at, w.len))
			return error_set(
				-EPERM,
				"a transfer with rank %u's private memory "
				"was asked for in a handler or under a hold, where it cannot wait",
				tern_addr_rank(w.at));
	return 0;
}

static int transfer_block(struct mem *m, struct transfer *x)
{
	tern_op own = TERN_OP;
	struct wait w = { .call = "tern_op_wait" };
	int rc = rules_wait(m->e, "tern_op_wait()"); /* from here on, nothing ends the wait early */
	x->op = &own;
	if (!rc)
		rc = transfer_queue(m, x);
	if (!rc)
		wait_through(m->e, op_ended, &own, &w);
	x->op = NULL;
	return rc ? rc : own.error;
}

int transfer_later(struct mem *m, const struct runs *r, bool put, tern_op *op)
{
	struct transfer x = { .op = op, .put = put, .runs = *r };
	if (!transfer_over(&x))
		return transfer_queue(m, &x);
	op->pending++;
	op_end(m->e, op, 0);
	return 0;
}

/* Of a call that returns before the transfer is over. */
static int transfer_keep(struct mem *m, struct transfer *x)
{
	int rc = lists_copy(x);
	if (!rc && (rc = transfer_queue(m, x)))
		memory_free(x->lists);
	return rc;
}

int transfer_begin(struct mem *m, const struct runs *r, bool put, tern_op *local, tern_op *op)
{
	struct transfer x = { .op = op, .local = local, .put = put, .runs = *r };
	bool cannot_wait = in_handler(m->e) || held(m->e);
	int rc = cannot_wait ? runs_touchable(m, r->remote) : 0;
	if (rc)
		return rc;
	bool one_run = !r->remote.part; /* many would be a system call each */
	transfer_step(m, &x, cannot_wait ? SIZE_MAX : in_one_go(op),
		      one_run && !cannot_wait ? BY_KERNEL : BY_COPY);
	if (!transfer_over(&x))
		return op ? transfer_keep(m, &x) : transfer_block(m, &x);
	if (!op)
		return x.error;
	transfer_count(&x);
	transfer_tell(m, &x);
	return 0;
}

int transfer_run(struct mem *m, tern_addr remote, const void *mine, size_t len, bool put,
		 tern_op *local, tern_op *op)
{
	struct runs r;
	runs_of_block(&r, remote, mine, len);
	return transfer_begin(m, &r, put, local, op);
}
