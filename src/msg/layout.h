/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message: parts, each of elements with a stride, walked as one sequence of bytes. */
#ifndef TERN_MSG_LAYOUT_H
#define TERN_MSG_LAYOUT_H

#include <stdbool.h>
#include <tern/msg.h>

struct layout {
	const tern_part *list; /* the program's; NULL when `one` is all there is */
	size_t parts;
	tern_part one;
	size_t total; /* bytes */
};

/* Where a walk stands: in the `part`-th part, at byte `done` of its elements. */
struct walk {
	const struct layout *layout;
	size_t part, done;
};

struct layout layout_block(const void *base, size_t len);
/*
 * -EINVAL with a sentence if there are too many parts, or they have more bytes than can be counted.
 */
int layout_parts(struct layout *l, const tern_part *parts, size_t n);
const tern_part *layout_part(const struct layout *l, size_t i);
/* The memory, if it is one piece; else NULL. */
char *layout_whole(const struct layout *l);

/* Copies the next `len` bytes of the walk to or from `bytes`; there are that many. */
void walk_gather(struct walk *w, char *bytes, size_t len);
void walk_scatter(struct walk *w, const char *bytes, size_t len);

/* All `len` bytes of a message into a layout, from its beginning. */
void layout_fill(const struct layout *l, const char *bytes, size_t len);

#endif
