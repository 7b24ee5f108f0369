/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message: parts, walked as one sequence of bytes. */
#ifndef TERN_MSG_LAYOUT_H
#define TERN_MSG_LAYOUT_H

#include <stdbool.h>
#include <string.h>
#include <tern/send.h>

#include "base/pool.h"
#include "mem/scatter/parts.h"
#include "mem/wide.h"

/* A copy of a list of parts with its counts and strides. */
struct list_copy {
	struct record record;
	char *far; /* where a long one is */
	char near[232];
};

struct layout {
	const tern_part *list; /* NULL when `one` is all there is */
	size_t parts;
	tern_part one;
	size_t total;           /* bytes */
	char *whole;            /* the memory, if it is one piece; else NULL */
	bool temporary;         /* the caller may change the list, counts and strides on return */
	struct list_copy *kept; /* the copy, if there is one */
};

struct layout layout_block(const void *base, size_t len);
/*
 * -EINVAL with a sentence if there are too many parts, or they have more bytes than can be counted.
 */
int layout_parts(struct layout *l, const tern_part *parts, size_t n, bool temporary);
/* Copies what is temporary, for an operation that outlives its call; -ENOMEM with a sentence. */
int layout_keep(struct layout *l, struct pool_of *copies);
void layout_give(struct layout *l, struct pool_of *copies);
static inline void layout_release(struct layout *l, struct pool_of *copies)
{
	if (TERN_UNLIKELY(l->kept != NULL))
		layout_give(l, copies);
}
void layout_free_copies(struct pool_of *copies); /* the pool, with all that are in use */
const tern_part *layout_list(const struct layout *l);

/* Begins at the first byte; parts_copy() goes on from there. */
void layout_walk(const struct layout *l, struct run_walk *w);
/* All bytes of a message out of a layout. */
void layout_gather(const struct layout *l, char *bytes);
/* The bytes of a message; of the shortest without a call. */
static inline void bytes_copy(void *to, const void *from, size_t len)
{
	if (TERN_LIKELY(len == sizeof(uint64_t)))
		memcpy(to, from, sizeof(uint64_t));
	else if (few_fits(len))
		few_copy(to, from, len);
	else if (len) /* without, `from` may be NULL */
		memcpy(to, from, len);
}

/* All `len` bytes of a message into a layout, from its beginning. */
static inline void layout_fill(const struct layout *l, const char *bytes, size_t len)
{
	struct run_walk w;
	if (l->whole) {
		bytes_copy(l->whole, bytes, len);
	} else {
		layout_walk(l, &w);
		parts_copy(&w, (char *)(uintptr_t)bytes, len, false);
	}
}

#endif
