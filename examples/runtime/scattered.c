/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runtime layer's transfers of scattered memory. Tern reads a description until the transfer is
 * complete, so a note has a copy of it and hangs on the event until then.
 */
#include "runtime.h"

#include <stdlib.h>

struct parts {
	void *next; /* note */
	size_t dsts, srcs;
	tern_part part[]; /* of the destination, then of the source */
};

static struct parts *parts_new(size_t dsts, size_t srcs, size_t more)
{
	struct parts *p = rt_memory(sizeof *p + (dsts + srcs) * sizeof p->part[0] + more);
	p->dsts = dsts;
	p->srcs = srcs;
	return p;
}

static rt_event *parts_move(enum rt_mode mode, enum rt_kind put, uint32_t rank, struct parts *p)
{
	rt_event *e = rt_begin(mode, put);
	tern_part *dst = p->part, *src = p->part + p->dsts;
	for (size_t i = 0; i < (put == RT_PUTS ? p->dsts : p->srcs); i++) {
		tern_part *far = put == RT_PUTS ? &dst[i] : &src[i];
		far->addr = rt_addr(rank, far->base);
	}
	rt_must(put == RT_PUTS ? tern_put_parts_start(rt.t, dst, p->dsts, src, p->srcs, rt_op(e))
			       : tern_get_parts_start(rt.t, dst, p->dsts, src, p->srcs, rt_op(e)));
	if (e && e->op.pending) {
		p->next = e->notes;
		e->notes = p;
	} else {
		free(p);
	}
	return rt_begun(mode, e, 0);
}

rt_event *rt_strided(enum rt_mode mode, enum rt_kind put, uint32_t rank, void *dst, const void *src,
		     const rt_shape *s)
{
	size_t bytes = s->dims * sizeof(size_t);
	struct parts *p = parts_new(1, 1, 3 * bytes);
	size_t *count = memcpy(p->part + 2, s->count, bytes);
	ptrdiff_t *to = memcpy(count + s->dims, s->dst_stride, bytes);
	ptrdiff_t *from = memcpy(to + s->dims, s->src_stride, bytes);
	p->part[0] = (tern_part){ { dst }, s->element, s->dims, count, to };
	p->part[1] = (tern_part){ { (void *)(uintptr_t)src }, s->element, s->dims, count, from };
	return parts_move(mode, put, rank, p);
}

rt_event *rt_indexed(enum rt_mode mode, enum rt_kind put, uint32_t rank, const rt_piece *dst,
		     size_t dsts, const rt_piece *src, size_t srcs)
{
	struct parts *p = parts_new(dsts, srcs, 0);
	for (size_t i = 0; i < dsts + srcs; i++) {
		const rt_piece *piece = i < dsts ? &dst[i] : &src[i - dsts];
		p->part[i] = (tern_part){ .base = piece->at, .run = piece->len };
	}
	return parts_move(mode, put, rank, p);
}
