/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime layer's transfers of scattered memory. Tern's lists are gone when its call returns.
 */
#include "runtime.h"

#include <stdlib.h>

static rt_event *parts_move(enum rt_mode mode, enum rt_kind put, uint32_t rank, tern_part *dst,
			    size_t dsts, tern_part *src, size_t srcs)
{
	rt_event *e = rt_begin(mode, put);
	tern_part *far = put == RT_PUTS ? dst : src;
	for (size_t i = 0; i < (put == RT_PUTS ? dsts : srcs); i++)
		far[i].addr = rt_addr(rank, far[i].base);
	return rt_begun(mode, e,
			(put == RT_PUTS ? tern_put_parts_start : tern_get_parts_start)(
				rt.t, dst, dsts, src, srcs, rt_op(e)));
}

rt_event *rt_strided(enum rt_mode mode, enum rt_kind put, uint32_t rank, void *dst, const void *src,
		     const rt_shape *s)
{
	tern_part to = { { dst }, s->element, s->dims, s->count, s->dst_stride };
	tern_part from = {
		{ (void *)(uintptr_t)src }, s->element, s->dims, s->count, s->src_stride
	};
	return parts_move(mode, put, rank, &to, 1, &from, 1);
}

rt_event *rt_indexed(enum rt_mode mode, enum rt_kind put, uint32_t rank, const rt_piece *dst,
		     size_t dsts, const rt_piece *src, size_t srcs)
{
	tern_part *part = rt_memory((dsts + srcs) * sizeof *part);
	for (size_t i = 0; i < dsts + srcs; i++) {
		const rt_piece *piece = i < dsts ? &dst[i] : &src[i - dsts];
		part[i] = (tern_part){ .base = piece->at, .run = piece->len };
	}
	rt_event *e = parts_move(mode, put, rank, part, dsts, part + dsts, srcs);
	free(part);
	return e;
}
