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

struct mem;

/* Where the next run comes from: a strided block, or a list of pieces. */
struct runs {
	const tern_piece *piece; /* NULL for a strided block */
	size_t pieces;
	/* With the strides of the remote side in dst_stride, whichever way data goes. */
	tern_shape shape;
	size_t index[TERN_DIMS_MAX];
	tern_addr remote; /* of the current run */
	char *local;
	size_t len;  /* of the current run; 0 when all are done */
	size_t done; /* of the current run */
};

struct transfer {
	struct transfer *next;
	tern_op *op;          /* NULL if there is none to tell */
	tern_op *local;       /* told with it that the source may be used; NULL if there is none */
	struct blocked *here; /* the call that waits for it; NULL if none does */
	uint32_t asker, slot; /* with neither: the rank that asked for a copy, and its slot */
	tern_addr source;     /* whence such a copy comes: it may be unregistered meanwhile */
	bool put;
	bool vast; /* larger than the caches: copied past them */
	int error;
	uint32_t flying; /* chunks sent as messages and not acknowledged */
	struct runs runs;
};

enum { TRANSFER_BATCHES = 16 };

struct transfers {
	struct transfer *first, *last; /* in turn */
	struct transfer *free;
	uint32_t active;
	bool moving;      /* in the middle of a slice */
	uint32_t heat;    /* how much messages are about; 0: not at all */
	uint32_t polls;   /* and messages, since the last slice */
	uint64_t served;  /* messages, as of the last slice, */
	uint64_t answers; /* without those that were answers to transfers */
	struct transfer *batch[TRANSFER_BATCHES];
	unsigned batches;
};

/* What is still to be moved of the current run. */
static inline size_t runs_left(const struct runs *r)
{
	return r->len - r->done;
}

void runs_of_shape(struct runs *r, tern_addr remote, char *local, const tern_shape *shape,
		   bool put);
void runs_of_pieces(struct runs *r, const tern_piece *pieces, size_t n);
void runs_advance(struct runs *r, size_t bytes); /* at most runs_left() */

/*
 * Begins a transfer whose addresses are checked; moves small ones at once. `op` may be NULL: then
 * it blocks.
 */
int transfer_begin(struct mem *m, const struct runs *r, bool put, tern_op *op);
/* The same, but nothing is moved before the next poll. */
int transfer_later(struct mem *m, const struct runs *r, bool put, tern_op *op);
unsigned transfer_progress(struct mem *m);
size_t
transfer_room(const struct mem *m); /* transfers that can be begun without waiting for one to end */
void transfers_free(struct transfers *ts);

#endif
