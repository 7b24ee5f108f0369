/* SPDX-License-Identifier: BSD-3-Clause */
/* How elements of reductions are combined: see reduce.c. */
#ifndef TERN_COLL_COMBINE_H
#define TERN_COLL_COMBINE_H

#include <stdbool.h>

#include <tern/coll.h>

struct combine {
	size_t size, n; /* bytes of one element, and how many in the whole */
	void (*fn)(void *left, const void *right, size_t n); /* NULL: */
	tern_reduce_op user;
	bool ordered; /* members in their order, wherever they are */
};

/* How `how` combines elements of `type`; -EINVAL with a sentence. */
int combine_find(enum tern_type type, uintptr_t how, const char *name, struct combine *out);
void combine_apply(const struct combine *k, void *left, const void *right, size_t n);
/* "double, SUM | EXACT" */
enum { COMBINE_WORDS = 64 };
void combine_words(enum tern_type type, uintptr_t how, char words[COMBINE_WORDS]);

#endif
