/* SPDX-License-Identifier: BSD-3-Clause */
/* First fit over a sorted array of extents, used and free. */
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

static void extent_remove(struct heap *h, size_t i)
{
	h->extents--;
	memmove(&h->extent[i], &h->extent[i + 1], (h->extents - i) * sizeof h->extent[0]);
}

/* Cuts a free extent in two, the first of which has so many bytes. */
static int extent_cut(struct heap *h, size_t i, uint64_t bytes)
{
	struct extent rest = h->extent[i];
	rest.at += bytes;
	rest.bytes -= bytes;
	if (extent_insert(h, i + 1, rest))
		return -ENOMEM;
	h->extent[i].bytes = bytes;
	return 0;
}

/* Takes so many bytes of a free extent, behind a gap; what is left of it stays free. */
static int extent_take(struct heap *h, size_t i, uint64_t gap, uint64_t bytes, uint64_t *at)
{
	if (gap && extent_cut(h, i++, gap))
		return -ENOMEM;
	if (h->extent[i].bytes > bytes && extent_cut(h, i, bytes))
		return -ENOMEM;
	h->extent[i].used = true;
	*at = h->extent[i].at;
	return 0;
}

/* Bytes from `at` on to the next place that is aligned. */
static uint64_t heap_gap(uint64_t base, uint64_t align, uint64_t at)
{
	return (align - (base + at)) & (align - 1);
}

int heap_take_aligned(struct heap *h, uint64_t base, uint64_t align, uint64_t bytes, uint64_t *at)
{
	if (bytes > h->limit - h->start)
		return -ENOMEM;
	align = align < HEAP_ALIGN ? HEAP_ALIGN : align;
	bytes = (bytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
	bytes += bytes ? 0 : HEAP_ALIGN; /* every allocation has a place of its own */
	if (!h->extents &&
	    extent_insert(h, 0, (struct extent){ h->start, h->limit - h->start, false }))
		return -ENOMEM;
	for (size_t i = 0; i < h->extents; i++) {
		uint64_t gap = heap_gap(base, align, h->extent[i].at), has = h->extent[i].bytes;
		if (!h->extent[i].used && gap < has && bytes <= has - gap)
			return extent_take(h, i, gap, bytes, at);
	}
	return -ENOMEM;
}

int heap_take(struct heap *h, uint64_t bytes, uint64_t *at)
{
	return heap_take_aligned(h, 0, HEAP_ALIGN, bytes, at);
}

/* The extent that begins at `at` and is used, or -1. */
static ptrdiff_t extent_find(const struct heap *h, uint64_t at)
{
	size_t low = 0, high = h->extents;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (h->extent[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->extents && h->extent[low].at == at && h->extent[low].used ? (ptrdiff_t)low
										  : -1;
}

uint64_t heap_size(const struct heap *h, uint64_t at)
{
	ptrdiff_t i = extent_find(h, at);
	return i < 0 ? 0 : h->extent[i].bytes;
}

int heap_give(struct heap *h, uint64_t at)
{
	ptrdiff_t found = extent_find(h, at);
	if (found < 0)
		return -EINVAL;
	size_t i = (size_t)found;
	h->extent[i].used = false;
	if (i + 1 < h->extents && !h->extent[i + 1].used) {
		h->extent[i].bytes += h->extent[i + 1].bytes;
		extent_remove(h, i + 1);
	}
	if (i > 0 && !h->extent[i - 1].used) {
		h->extent[i - 1].bytes += h->extent[i].bytes;
		extent_remove(h, i);
	}
	if (h->extents == 1) /* all is free, as in the beginning */
		h->extents = 0;
	return 0;
}
