/* SPDX-License-Identifier: BSD-3-Clause */
/* First fit: before, between and behind the extents that are used, a sorted array. */
#include "mem/heap/heap.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

void heap_init(struct heap *h, uint64_t start, uint64_t limit)
{
	*h = (struct heap){ .start = start, .limit = limit };
}

void heap_fini(struct heap *h)
{
	memory_free(h->extent);
}

static int extent_insert(struct heap *h, size_t i, struct extent x)
{
	if (h->extents == h->room) {
		size_t room = h->room ? 2 * h->room : 64;
		struct extent *grown = memory_new(room, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		if (h->extents)
			memcpy(grown, h->extent, h->extents * sizeof *grown);
		memory_free(h->extent);
		h->extent = grown;
		h->room = room;
	}
	memmove(&h->extent[i + 1], &h->extent[i], (h->extents - i) * sizeof x);
	h->extent[i] = x;
	h->extents++;
	return 0;
}

int heap_take_aligned(struct heap *h, uint64_t base, uint64_t align, uint64_t bytes, uint64_t *at)
{
	if (bytes > h->limit - h->start)
		return -ENOMEM;
	align = align < HEAP_ALIGN ? HEAP_ALIGN : align;
	bytes = (bytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
	bytes += bytes ? 0 : HEAP_ALIGN; /* every allocation has a place of its own */
	uint64_t free = h->start;
	for (size_t i = 0; i <= h->extents; i++) {
		uint64_t end = i < h->extents ? h->extent[i].at : h->limit;
		free += (align - (base + free)) & (align - 1);
		if (free <= end && bytes <= end - free) {
			*at = free;
			return extent_insert(h, i, (struct extent){ free, bytes });
		}
		free = i < h->extents ? end + h->extent[i].bytes : end;
	}
	return -ENOMEM;
}

int heap_take(struct heap *h, uint64_t bytes, uint64_t *at)
{
	return heap_take_aligned(h, 0, HEAP_ALIGN, bytes, at);
}

/* The extent that begins at `at`; h->extents if there is none. */
static size_t extent_find(const struct heap *h, uint64_t at)
{
	size_t i = 0;
	while (i < h->extents && h->extent[i].at != at)
		i++;
	return i;
}

uint64_t heap_size(const struct heap *h, uint64_t at)
{
	size_t i = extent_find(h, at);
	return i < h->extents ? h->extent[i].bytes : 0;
}

int heap_give(struct heap *h, uint64_t at)
{
	size_t i = extent_find(h, at);
	if (i == h->extents)
		return -EINVAL;
	h->extents--;
	memmove(&h->extent[i], &h->extent[i + 1], (h->extents - i) * sizeof h->extent[0]);
	return 0;
}
