/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scattered memory: a list of parts, walked run by run as one sequence of bytes. Transfers and
 * messages both walk it so.
 */
#ifndef TERN_MEM_PARTS_H
#define TERN_MEM_PARTS_H

#include <stdbool.h>
#include <tern/mem.h>

_Static_assert(sizeof(void *) == sizeof(tern_addr), "a part's base and its address share a word");

/* Where a walk stands. */
struct run_walk {
	const tern_part *part; /* the current one; NULL for a block, which needs no list */
	size_t parts;          /* from it on */
	uint64_t at;           /* where the current run begins: an address, or a pointer */
	size_t len;            /* of the current run; 0 at the end of the list */
	size_t done;           /* of it */
	unsigned low;          /* the dimensions below lie side by side, and are of the run */
	bool bytes;            /* words too are taken together where they lie side by side */
	size_t index[TERN_DIMS_MAX];
};

void parts_block(struct run_walk *w, uint64_t at, size_t len);
void parts_begin(struct run_walk *w, const tern_part *list, size_t n, bool bytes);
/*
 * How many bytes a copy takes of what is still to come of a list, with counts and strides. It is
 * made at `to`, if that is not NULL, and the walk goes on in it.
 */
size_t parts_copy_list(struct run_walk *w, char *to);
void parts_pass(struct run_walk *w, size_t bytes); /* goes on by that many: the list has them */
/*
 * Copies the next `len` bytes of memory that this process can touch to `bytes`, or from there. A
 * run of a word's length is one access.
 */
void parts_copy(struct run_walk *w, char *bytes, size_t len, bool gather);

/*
 * Copies `n` runs, `there` and `here` bytes apart; one of a word's length is one access. In rows.c.
 */
void row_move(char *to, ptrdiff_t there, const char *from, ptrdiff_t here, size_t run, size_t n);

/* What is still to come of the current run. */
static inline size_t parts_left(const struct run_walk *w)
{
	return w->len - w->done;
}

/* Whole runs along the innermost dimension, in at most `len` bytes; 0 if there are none. */
size_t parts_row(const struct run_walk *w, size_t len);

/* The bytes of a part; false if memory cannot have as many, or it has too many dimensions. */
bool part_bytes(const tern_part *p, size_t *bytes);
bool part_empty(const tern_part *p); /* it has no bytes */
/* The bytes of a list, or -EINVAL with a sentence. */
int parts_total(const tern_part *list, size_t n, size_t *total);
/*
 * How far before and beyond its base a part that has bytes reaches; false if further than addresses
 * do.
 */
bool part_extent(const tern_part *p, int64_t *before, int64_t *beyond);

#endif
