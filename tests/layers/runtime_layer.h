/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of runtime_layer_test.sh share: areas of segments, bytes, chance; and transfers of
 * scattered memory, against a reference.
 */
#ifndef TERN_TESTS_RUNTIME_LAYER_H
#define TERN_TESTS_RUNTIME_LAYER_H

#include <stdio.h>

#include "runtime.h"

enum {
	HALF = 64 * 1024,
	AREA = 2 * HALF, /* of a segment, that each rank may write: its requests, its replies */
	RANKS_MOST = 16,
};

static uint64_t state; /* of the generator */

static size_t chance(size_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (size_t)(state >> 33) % below;
}

#define CHECK(what)                                                                         \
	((what) ? (void)0                                                                   \
		: (fprintf(stderr, "rank %u: line %d: not " #what "\n", rt.rank, __LINE__), \
		   rt_exit(1)))

/* Where rank `from` writes at rank `at`. */
static char *area(uint32_t at, uint32_t from)
{
	return rt.base[at] + (size_t)from * AREA;
}

static char byte_of(size_t i, unsigned key)
{
	return (char)(i * 7 + key * 13 + (i >> 8));
}

static void fill(char *p, size_t len, unsigned key)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(i, key);
}

static int filled(const char *p, size_t len, unsigned key)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_of(i, key))
			return 0;
	return 1;
}

/* -- Scattered memory against a reference --------------------------------------------------- */

enum { DIMS_MOST = 4, SPACE = 60000 };

struct walk {
	size_t element, count[DIMS_MOST];
	ptrdiff_t dst[DIMS_MOST], src[DIMS_MOST];
	size_t dst_first, src_first; /* offsets of the first element */
	unsigned dims;
};

/* Strides under which elements of one side do not overlap; some are turned around. */
static size_t strides_choose(const struct walk *w, ptrdiff_t *stride)
{
	size_t extent = w->element, first = 0;
	for (unsigned d = 0; d < w->dims; d++) {
		stride[d] = (ptrdiff_t)(extent + chance(9));
		extent = (w->count[d] - 1) * (size_t)stride[d] + extent;
		if (chance(3) == 0) {
			first += (w->count[d] - 1) * (size_t)stride[d];
			stride[d] = -stride[d];
		}
	}
	return first;
}

static struct walk walk_choose(void)
{
	struct walk w = { .element = 1 + chance(17), .dims = (unsigned)chance(DIMS_MOST + 1) };
	for (unsigned d = 0; d < w.dims; d++)
		w.count[d] = 1 + chance(5);
	w.dst_first = strides_choose(&w, w.dst);
	w.src_first = strides_choose(&w, w.src);
	return w;
}

static void walk_copy(const struct walk *w, char *dst, const char *src)
{
	size_t at[DIMS_MOST] = { 0 };
	for (unsigned d = 0; d <= w->dims;) {
		char *to = dst + w->dst_first;
		const char *from = src + w->src_first;
		for (unsigned i = 0; i < w->dims; i++) {
			to += (ptrdiff_t)at[i] * w->dst[i];
			from += (ptrdiff_t)at[i] * w->src[i];
		}
		memcpy(to, from, w->element);
		for (d = 0; d < w->dims && ++at[d] == w->count[d]; d++)
			at[d] = 0;
		d += d == w->dims;
	}
}

static char near_bytes[SPACE], far_bytes[SPACE], wanted[SPACE];

/* Both sides get bytes of their own; the far ones lie at `rank`. */
static void sides_set(uint32_t rank)
{
	for (size_t i = 0; i < SPACE; i++) {
		near_bytes[i] = (char)chance(256);
		far_bytes[i] = (char)chance(256);
	}
	rt_put(RT_BLOCK, rank, area(rank, rt.rank), far_bytes, SPACE, NULL);
}

static void sides_check(uint32_t rank, enum rt_kind put)
{
	if (put == RT_PUTS)
		rt_get(RT_BLOCK, far_bytes, rank, area(rank, rt.rank), SPACE);
	CHECK(memcmp(put == RT_PUTS ? far_bytes : near_bytes, wanted, SPACE) == 0);
}

static void strided_transfers_are_those_of_the_reference(void)
{
	for (unsigned i = 0; i < 60; i++) {
		enum rt_mode mode = (enum rt_mode)(i % 3);
		enum rt_kind put = chance(2) ? RT_PUTS : RT_GETS;
		uint32_t rank = (uint32_t)chance(rt.size);
		char *far = area(rank, rt.rank);
		struct walk w = walk_choose();
		sides_set(rank);
		memcpy(wanted, put == RT_PUTS ? far_bytes : near_bytes, SPACE);
		walk_copy(&w, wanted, put == RT_PUTS ? near_bytes : far_bytes);
		rt_shape shape = { w.element, w.dims, w.count, w.dst, w.src };
		rt_event *e = rt_strided(mode, put, rank,
					 (put == RT_PUTS ? far : near_bytes) + w.dst_first,
					 (put == RT_PUTS ? near_bytes : far) + w.src_first, &shape);
		memset(&w, 0xee, sizeof w); /* the description is free on return */
		rt_wait(e);
		rt_sync(put);
		sides_check(rank, put);
	}
}

/* Pieces that divide `total` bytes by chance, with gaps between them, in a space from `base`. */
static size_t pieces_choose(rt_piece *pieces, char *base, size_t total)
{
	size_t n = 0, at = 0;
	while (total) {
		size_t len = 1 + chance(700);
		len = len < total ? len : total;
		at += chance(40);
		pieces[n++] = (rt_piece){ base + at, len };
		at += len;
		total -= len;
	}
	return n;
}

static void indexed_transfers_are_those_of_the_reference(void)
{
	static rt_piece dst[20000], src[20000];
	for (unsigned i = 0; i < 30; i++) {
		enum rt_mode mode = (enum rt_mode)(i % 3);
		enum rt_kind put = chance(2) ? RT_PUTS : RT_GETS;
		uint32_t rank = (uint32_t)chance(rt.size);
		char *far = area(rank, rt.rank), stream[20000];
		size_t total = 1 + chance(sizeof stream), used = 0;
		char *to = put == RT_PUTS ? far : near_bytes,
		     *from = put == RT_PUTS ? near_bytes : far;
		sides_set(rank);
		size_t srcs = pieces_choose(src, from, total), dsts = pieces_choose(dst, to, total);
		for (size_t k = 0; k < srcs; used += src[k++].len)
			memcpy(stream + used,
			       (put == RT_PUTS ? near_bytes : far_bytes) +
				       ((char *)src[k].at - from),
			       src[k].len);
		memcpy(wanted, put == RT_PUTS ? far_bytes : near_bytes, SPACE);
		used = 0;
		for (size_t k = 0; k < dsts; used += dst[k++].len)
			memcpy(wanted + ((char *)dst[k].at - to), stream + used, dst[k].len);
		rt_event *e = rt_indexed(mode, put, rank, dst, dsts, src, srcs);
		memset(dst, 0xee, sizeof dst); /* the lists are free on return */
		memset(src, 0xee, sizeof src);
		rt_wait(e);
		rt_sync(put);
		sides_check(rank, put);
	}
}

#endif
