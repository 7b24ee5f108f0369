/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message: parts, walked as one sequence of bytes. */
#ifndef TERN_MSG_LAYOUT_H
#define TERN_MSG_LAYOUT_H

#include <stdbool.h>
#include <tern/send.h>

#include "mem/scatter/parts.h"

struct layout {
	const tern_part *list; /* the program's; NULL when `one` is all there is */
	size_t parts;
	tern_part one;
	size_t rows;      /* of a part that has no program's arrays: its count */
	ptrdiff_t stride; /* and stride */
	size_t total;     /* bytes */
};

struct layout layout_block(const void *base, size_t len);
/* Runs with a stride, which it notes itself: layout_copy() copies such a layout. */
void layout_rows(struct layout *l, const void *base, size_t run, size_t count, ptrdiff_t stride);
void layout_copy(struct layout *to, const struct layout *from);
/*
 * -EINVAL with a sentence if there are too many parts, or they have more bytes than can be counted.
 */
int layout_parts(struct layout *l, const tern_part *parts, size_t n);
const tern_part *layout_list(const struct layout *l);
/* The memory, if it is one piece; else NULL. */
char *layout_whole(const struct layout *l);

/* Begins at the first byte; parts_copy() goes on from there. */
void layout_walk(const struct layout *l, struct run_walk *w);
/* All bytes of a message out of a layout. */
void layout_gather(const struct layout *l, char *bytes);
/* All `len` bytes of a message into a layout, from its beginning. */
void layout_fill(const struct layout *l, const char *bytes, size_t len);

#endif
