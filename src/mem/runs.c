/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the contiguous runs of strided blocks and of lists. */
#include "mem/transfer.h"

/* Sets the current piece of a list, passing those without bytes. */
static void runs_piece(struct runs *r)
{
	while (r->pieces && r->piece->len == 0) {
		r->piece++;
		r->pieces--;
	}
	r->done = 0;
	r->len = r->pieces ? r->piece->len : 0;
	if (!r->pieces)
		return;
	r->remote = r->piece->remote;
	r->local = r->piece->local;
}

void runs_of_pieces(struct runs *r, const tern_piece *pieces, size_t n)
{
	*r = (struct runs){ .piece = pieces, .pieces = n };
	runs_piece(r);
}

void runs_of_shape(struct runs *r, tern_addr remote, char *local, const tern_shape *shape, bool put)
{
	*r = (struct runs){ .remote = remote, .local = local, .len = shape->run, .shape = *shape };
	for (unsigned d = 0; d < shape->dims; d++) {
		r->shape.dst_stride[d] = put ? shape->dst_stride[d] : shape->src_stride[d];
		r->shape.src_stride[d] = put ? shape->src_stride[d] : shape->dst_stride[d];
		if (!shape->count[d])
			r->len = 0;
	}
}

/* The next run of a strided block: counts like an odometer, innermost dimension first. */
static void runs_step(struct runs *r)
{
	r->done = 0;
	for (unsigned d = 0; d < r->shape.dims; d++) {
		ptrdiff_t remote = r->shape.dst_stride[d], local = r->shape.src_stride[d];
		if (++r->index[d] < r->shape.count[d]) {
			r->remote += (tern_addr)(int64_t)remote;
			r->local += local;
			return;
		}
		ptrdiff_t back = (ptrdiff_t)(r->shape.count[d] - 1);
		r->index[d] = 0;
		r->remote -= (tern_addr)(int64_t)(remote * back);
		r->local -= local * back;
	}
	r->len = 0;
}

void runs_advance(struct runs *r, size_t bytes)
{
	r->done += bytes;
	if (r->done < r->len)
		return;
	if (!r->piece) {
		runs_step(r);
		return;
	}
	r->piece++;
	r->pieces--;
	runs_piece(r);
}
