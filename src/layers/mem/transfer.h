/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers under way. A transfer is a sequence of contiguous runs, each between
 * local memory and an address; polls move a bounded number of bytes of one transfer
 * after another, so that many advance together and messages are served between.
 */
#ifndef TERN_MEM_TRANSFER_H
#define TERN_MEM_TRANSFER_H

#include <stdbool.h>
#include <tern/mem.h>

#include "base/pool.h"
#include "mem/scatter/parts.h"
#include "mem/threshold.h"

struct mem;

/* The longest that a call moves itself; blocking without a handle. */
static inline size_t in_one_go(const tern_op *op)
{
	return op ? START_IN_ONE_GO : IN_ONE_GO;
}

/* Both sides of a transfer, walked together. */
struct runs {
	struct run_walk remote, local;
};

struct transfer {
	struct record record;
	struct transfer *next;
	tern_op *op;          /* NULL if there is none to tell */
	tern_op *local;       /* told with it that the source may be used; NULL if there is none */
	uint32_t asker, slot; /* without `op`: the rank that asked for a copy, and its slot */
	tern_addr source;     /* whence such a copy comes: it may be unregistered meanwhile */
	bool put;
	int error;
	char *through;   /* a word whose local side lies in several runs is moved from or to here */
	char *lists;     /* copies of the program's lists of parts; NULL: it has none */
	uint32_t flying; /* chunks sent as messages and not acknowledged */
	struct runs runs;
};

struct transfers {
	struct transfer *first, *last; /* in turn */
	struct pool_of pool;           /* TERN_OPS_MAX of them */
	bool moving;                   /* in the middle of a slice */
	uint32_t heat;                 /* how much messages are about; 0: not at all */
	uint32_t polls;                /* and messages, since the last slice */
	uint64_t served;               /* messages, as of the last slice, */
	uint64_t answers;              /* without those that were answers to transfers */
};

/* How much can be moved next: at neither side is there a gap in it. */
static inline size_t runs_left(const struct runs *r)
{
	size_t there = parts_left(&r->remote), mine = parts_left(&r->local);
	return there < mine ? there : mine;
}

static inline tern_addr runs_remote(const struct runs *r)
{
	return r->remote.at + r->remote.done;
}

static inline void runs_of_block(struct runs *r, tern_addr remote, const void *mine, size_t len)
{
	parts_block(&r->remote, remote, len);
	parts_block(&r->local, (uintptr_t)mine, len);
}

static inline void runs_advance(struct runs *r, size_t bytes)
{
	parts_pass(&r->remote, bytes);
	parts_pass(&r->local, bytes);
}

/*
 * Begins a transfer whose addresses are checked; moves small ones at once. `op` may be NULL: then
 * it blocks. With it, `local` may be told, too.
 */
int transfer_begin(struct mem *m, const struct runs *r, bool put, tern_op *local, tern_op *op);
/* One of contiguous memory at both sides. */
int transfer_run(struct mem *m, tern_addr remote, const void *mine, size_t len, bool put,
		 tern_op *local, tern_op *op);
/* The same, but nothing is moved before the next poll. */
int transfer_later(struct mem *m, const struct runs *r, bool put, tern_op *op);
unsigned transfer_progress(struct mem *m);
/* Reads memory of another rank at once, by the kernel: false if that could not copy all of it. */
bool transfer_read(struct mem *m, void *to, tern_addr from, size_t len);
size_t
transfer_room(const struct mem *m); /* transfers that can be begun without waiting for one to end */
void transfers_free(struct transfers *ts);

#endif
