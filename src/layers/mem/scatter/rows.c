/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs with gaps between them, moved in a loop: where this process can touch both sides, and both
 * are cut alike, or one of them is a single piece. What else there is walks run by run, as parts.
 */
#include "mem/mem.h"
#include "mem/scatter/parts.h"
#include "mem/threshold.h"
#include "mem/wide.h"
#include "mem/word.h"

/* One side: where the next run begins, and the way to the run after it in each dimension. */
struct side {
	char *at;
	ptrdiff_t stride[TERN_DIMS_MAX];
};

static void side_of(struct side *s, const tern_part *p, const tern_part *shape, char *at)
{
	ptrdiff_t whole = (ptrdiff_t)shape->run;
	s->at = at;
	for (unsigned d = 0; d < shape->dims; d++) {
		s->stride[d] = p->dims ? p->stride[d] : whole;
		whole *= (ptrdiff_t)shape->count[d];
	}
}

/* Whether `p` has the runs of `shape`, or is one piece that is cut into them. */
static bool part_alike(const tern_part *p, const tern_part *shape)
{
	bool alike = !p->dims || (p->dims == shape->dims && p->run == shape->run);
	for (unsigned d = 0; alike && d < p->dims; d++)
		alike = p->count[d] == shape->count[d];
	return alike;
}

/* Runs of a word's length, which are words at both sides. */
#define ROW_OF(type)                                                                          \
	for (; n; n--, to += there, from += here)                                             \
	__atomic_store_n((type *)(void *)to,                                                  \
			 __atomic_load_n((const type *)(const void *)from, __ATOMIC_RELAXED), \
			 __ATOMIC_RELAXED)

void row_move(char *to, ptrdiff_t there, const char *from, ptrdiff_t here, size_t run, size_t n)
{
	uintptr_t all = (uintptr_t)to | (uintptr_t)there | (uintptr_t)from | (uintptr_t)here;
	if (run == sizeof(uint64_t) && !(all & 7))
		ROW_OF(uint64_t);
	else if (run == sizeof(uint32_t) && !(all & 3))
		ROW_OF(uint32_t);
	else if (few_fits(run))
		for (; n; n--, to += there, from += here)
			few_copy(to, from, run);
	else if (wide_fits(run))
		for (; n; n--, to += there, from += here)
			wide_copy(to, from, run);
	else
		for (; n; n--, to += there, from += here)
			word_copy(to, from, run);
}

/* All rows: counts the dimensions above the innermost like an odometer. */
static void rows_copy(struct side *to, struct side *from, const tern_part *shape)
{
	size_t index[TERN_DIMS_MAX] = { 0 };
	for (unsigned d = 0; d < shape->dims;) {
		row_move(to->at, to->stride[0], from->at, from->stride[0], shape->run,
			 shape->count[0]);
		for (d = 1; d < shape->dims; d++) {
			to->at += to->stride[d];
			from->at += from->stride[d];
			if (++index[d] < shape->count[d])
				break;
			index[d] = 0;
			to->at -= to->stride[d] * (ptrdiff_t)shape->count[d];
			from->at -= from->stride[d] * (ptrdiff_t)shape->count[d];
		}
	}
}

bool runs_move(struct mem *m, const tern_part *remote, const tern_part *local, size_t n,
	       size_t most, bool put)
{
	for (size_t i = 0; i < n; i++) {
		size_t run = remote[i].run;
		if (remote[i].dims | local[i].dims || run != local[i].run || run > most ||
		    !addr_in_heap(remote[i].addr) || !heap_reach(m, remote[i].addr, run))
			return false;
		most -= run;
	}
	word_before_put();
	for (size_t i = 0; i < n; i++) {
		size_t run = remote[i].run;
		char *there = heap_reach(m, remote[i].addr, run);
		if (!there) /* its rank has died meanwhile */
			return false;
		row_move(put ? there : local[i].base, 0, put ? local[i].base : there, 0, run, 1);
	}
	word_after_get();
	return n > 0;
}

bool rows_move(struct mem *m, const tern_part *remote, const tern_part *local, bool put)
{
	const tern_part *shape = remote->dims ? remote : local;
	struct side there, here;
	int64_t before, beyond;
	if (!shape->dims || !addr_in_heap(remote->addr) || !part_alike(remote, shape) ||
	    !part_alike(local, shape) || !part_extent(remote, &before, &beyond))
		return false;
	char *reached = heap_reach(m, remote->addr + (tern_addr)before, (size_t)(beyond - before));
	if (!reached)
		return false;
	side_of(&there, remote, shape, reached - before);
	side_of(&here, local, shape, local->base);
	word_before_put();
	rows_copy(put ? &there : &here, put ? &here : &there, shape);
	word_after_get();
	return true;
}

/*
 * How many runs of `len` bytes a side has from here on, and how far apart; one run is a row, too.
 */
static size_t side_row(const struct run_walk *w, size_t len, size_t most, ptrdiff_t *stride)
{
	size_t runs = w->len == len ? parts_row(w, most) : 0;
	*stride = runs ? w->part->stride[w->low] : (ptrdiff_t)len;
	return runs ? runs : parts_left(w) / len;
}

size_t rows_next(struct mem *m, const struct runs *r, bool put, size_t most)
{
	ptrdiff_t there, here;
	size_t len = runs_left(r), fit = most / len;
	if (len > LONG_RUN || (r->remote.len <= WORD_MOST && len < parts_left(&r->remote)))
		return 0; /* which gains nothing; or a word there that lies apart here */
	size_t runs = side_row(&r->remote, len, most, &there);
	size_t also = side_row(&r->local, len, most, &here);
	runs = runs < also ? runs : also;
	runs = runs < fit ? runs : fit;
	if (runs < 2 || !addr_in_heap(r->remote.at))
		return 0;
	tern_addr at = runs_remote(r);
	ptrdiff_t last = there * (ptrdiff_t)(runs - 1), before = last < 0 ? last : 0;
	char *reached = heap_reach(m, at + (tern_addr)before, len + (size_t)(last - 2 * before));
	char *own = (char *)(uintptr_t)r->local.at + r->local.done;
	if (!reached)
		return 0;
	word_before_put();
	if (put)
		row_move(reached - before, there, own, here, len, runs);
	else
		row_move(own, here, reached - before, there, len, runs);
	word_after_get();
	return runs * len;
}
