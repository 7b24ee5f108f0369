/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of one dimension, for tests. */
#ifndef TERN_TESTS_ROWS_H
#define TERN_TESTS_ROWS_H

#include <tern/mem.h>

/* An initializer; its arrays live as long as the block that it is written in. */
#define ROWS(at, len, n, apart)                                                        \
	{                                                                              \
		.base = (at), .run = (len), .dims = 1, .count = (const size_t[]){ n }, \
		.stride = (const ptrdiff_t[])                                          \
		{                                                                      \
			(ptrdiff_t)(apart)                                             \
		}                                                                      \
	}

/* A part with its arrays: they live as long as it does, and it is not copied. */
struct rows {
	size_t count;
	ptrdiff_t stride;
};

static inline tern_part rows_part(struct rows *r, void *at, size_t len, size_t n, ptrdiff_t apart)
{
	*r = (struct rows){ n, apart };
	return (tern_part){
		.base = at, .run = len, .dims = 1, .count = &r->count, .stride = &r->stride
	};
}

#endif
