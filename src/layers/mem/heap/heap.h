/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allocator over a range of offsets. Its records are private to the rank, so
 * whatever others write into the heap cannot break it, and it is deterministic, so
 * ranks that make the same calls get the same offsets.
 */
#ifndef TERN_MEM_HEAP_H
#define TERN_MEM_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum { HEAP_ALIGN = 64 };

/* What is used: in order, between `start` and `limit`. */
struct extent {
	uint64_t at;
	uint64_t bytes;
};

struct heap {
	uint64_t start, limit;
	struct extent *extent;
	size_t extents, room;
};

void heap_init(struct heap *h, uint64_t start, uint64_t limit);
void heap_fini(struct heap *h);

/* 0 and the offset, or -ENOMEM (no sentence). First fit. */
int heap_take(struct heap *h, uint64_t bytes, uint64_t *at);
/* The same, so that `base` and the offset make a multiple of `align`, a power of two. */
int heap_take_aligned(struct heap *h, uint64_t base, uint64_t align, uint64_t bytes, uint64_t *at);
/* 0, or -EINVAL if `at` is not the beginning of something taken (no sentence). */
int heap_give(struct heap *h, uint64_t at);
/* The bytes taken at `at`; 0 if that is not the beginning of something taken. */
uint64_t heap_size(const struct heap *h, uint64_t at);

#endif
