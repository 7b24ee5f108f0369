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

/* Whether `p` has the runs of `shape`, or is one piece of its bytes that may be cut into them. */
static bool part_alike(const tern_part *p, const tern_part *shape, size_t bytes)
{
	bool alike = p->dims ? p->dims == shape->dims && p->run == shape->run
			     : p->run == bytes && bytes > WORD_MOST;
	for (unsigned d = 0; alike && d < p->dims; d++)
		alike = p->count[d] == shape->count[d];
	return alike;
}

#define EACH_WAY static inline __attribute__((always_inline)) /* flags are constants */

EACH_WAY void run_copy(char *to, const char *from, size_t run)
{
	if (run == sizeof(uint64_t))
		word8_copy(to, from);
	else if (few_fits(run))
		few_copy(to, from, run);
	else if (wide_fits(run))
		wide_copy(to, from, run);
	else
		word_copy(to, from, run);
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
	else
		for (; n; n--, to += there, from += here)
			run_copy(to, from, run);
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

/* -- Lists of single runs ---------------------------------------------------------------------- */

/* Heap memory within reach: most runs of a list lie in the same. */
struct reach {
	tern_addr first;
	uint64_t bytes;
	char *at;
};

/* What a run lies in; of no bytes if it is out of reach. */
static struct reach reach_of(struct mem *m, tern_addr a, size_t len)
{
	char *at = addr_in_heap(a) ? heap_reach(m, a, len) : NULL;
	if (!at)
		return (struct reach){ 0 };
	const struct job_span *s = &m->span[tern_addr_rank(a)];
	uint64_t half = a - s->first < s->middle ? 0 : s->middle;
	uint64_t bytes = half ? s->common : s->own;
	return bytes ? (struct reach){ s->first + half, bytes, s->base + half }
		     : (struct reach){ a, len, at };
}

/* Two lists that are cut alike; or one, and a single run that has all of the other side. */
enum cut { ALIKE, ONE_THERE, ONE_HERE };
struct pairs {
	const tern_part *there, *here;
	size_t n, room; /* pairs to come, and the bytes that they may have */
	size_t at;      /* where the single run goes on */
	enum cut cut;
};

/* False if they are neither. A word is not cut: it is moved as one. */
static bool pairs_of(struct pairs *p, struct parts remote, struct parts local, size_t most)
{
	enum cut cut = remote.n == local.n ? ALIKE : remote.n == 1 ? ONE_THERE : ONE_HERE;
	*p = (struct pairs){ remote.part, local.part, cut == ONE_THERE ? local.n : remote.n,
			     most,        0,          cut };
	return remote.n && local.n && (cut == ALIKE || local.n == 1 || remote.n == 1) &&
	       (cut != ONE_THERE || remote.part->run > WORD_MOST);
}

/* Passes over those that lie in `r`. What is put or got has been checked before. */
enum pass { CHECK, PUT, GET };
EACH_WAY void pairs_pass(struct pairs *p, struct reach r, enum cut cut, enum pass pass)
{
	const tern_part *there = p->there, *here = p->here;
	size_t n = p->n, room = p->room, at = p->at;
	for (; n; n--) {
		size_t run = (cut == ONE_THERE ? here : there)->run;
		uint64_t far = there->addr + (cut == ONE_THERE ? at : 0) - r.first;
		char *own = (char *)here->base + (cut == ONE_HERE ? at : 0);
		bool odd = pass == CHECK &&
			   (there->dims | here->dims || run > room || run > r.bytes - far ||
			    (cut == ALIKE && run != here->run));
		if (far >= r.bytes || odd)
			break;
		if (pass == PUT)
			run_copy(r.at + far, own, run);
		else if (pass == GET)
			run_copy(own, r.at + far, run);
		room -= run;
		at += run;
		there += cut != ONE_THERE;
		here += cut != ONE_HERE;
	}
	*p = (struct pairs){ there, here, n, room, at, cut };
}

EACH_WAY void pairs_each(struct pairs *p, struct reach r, enum cut cut, enum pass pass)
{
	if (pass == CHECK)
		pairs_pass(p, r, cut, CHECK);
	else if (pass == PUT)
		pairs_pass(p, r, cut, PUT);
	else
		pairs_pass(p, r, cut, GET);
}

/* Passes over pairs until one is out of reach, or otherwise not as the others; see pairs_pass(). */
static void pairs_go(struct mem *m, struct pairs *p, enum pass pass)
{
	word_before_put();
	for (size_t n = 0; p->n && p->n != n;) {
		bool one = p->cut == ONE_THERE;
		struct reach r = reach_of(m, p->there->addr + (one ? p->at : 0),
					  (one ? p->here : p->there)->run);
		n = p->n;
		if (p->cut == ALIKE)
			pairs_each(p, r, ALIKE, pass);
		else if (one)
			pairs_each(p, r, ONE_THERE, pass);
		else
			pairs_each(p, r, ONE_HERE, pass);
	}
	word_after_get();
}

enum lists_are lists_move(struct mem *m, struct parts remote, struct parts local, bool put,
			  size_t most)
{
	struct pairs p;
	if (!pairs_of(&p, remote, local, PTRDIFF_MAX))
		return LISTS_ODD;
	pairs_go(m, &p, CHECK);
	if (p.n || (p.cut == ONE_THERE && p.at != remote.part->run) ||
	    (p.cut == ONE_HERE && p.at != local.part->run))
		return LISTS_ODD;
	if (p.at > most)
		return LISTS_CHECKED;
	pairs_of(&p, remote, local, most); /* a copy of it would wait for what was written last */
	pairs_go(m, &p, put ? PUT : GET);
	return p.n ? LISTS_ODD : LISTS_MOVED; /* its rank has died meanwhile */
}

static void walk_pass(struct run_walk *w, bool one, size_t runs, size_t bytes)
{
	if (one)
		parts_pass(w, bytes);
	else
		parts_begin(w, w->part + runs, w->parts - runs, w->bytes);
}

/* As rows_next(), of single runs. */
static size_t runs_next(struct mem *m, struct runs *r, bool put, size_t most)
{
	struct run_walk *there = &r->remote, *here = &r->local;
	struct pairs p, all;
	if (!there->part || !here->part ||
	    !pairs_of(&p, (struct parts){ there->part, there->parts },
		      (struct parts){ here->part, here->parts }, most) ||
	    (p.cut != ONE_THERE && there->done) || (p.cut != ONE_HERE && here->done))
		return 0;
	p.at = there->done + here->done;
	all = p;
	pairs_go(m, &all, CHECK);
	size_t runs = p.n = p.n - all.n;
	pairs_go(m, &p, put ? PUT : GET);
	runs -= p.n;
	if (runs) {
		walk_pass(there, p.cut == ONE_THERE, runs, most - p.room);
		walk_pass(here, p.cut == ONE_HERE, runs, most - p.room);
	}
	return most - p.room;
}

/* -- Runs with gaps ------------------------------------------------------------------------------
 */

bool rows_move(struct mem *m, const tern_part *remote, const tern_part *local, size_t most,
	       bool put)
{
	const tern_part *shape = remote->dims ? remote : local;
	struct side there, here;
	int64_t before, beyond;
	size_t bytes;
	if (!shape->dims || !addr_in_heap(remote->addr) || !part_bytes(shape, &bytes) ||
	    bytes - 1 >= most || !part_alike(remote, shape, bytes) ||
	    !part_alike(local, shape, bytes) || !part_extent(remote, &before, &beyond))
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

size_t rows_next(struct mem *m, struct runs *r, bool put, size_t most)
{
	ptrdiff_t there, here;
	size_t bytes = runs_next(m, r, put, most), len = runs_left(r);
	if (bytes)
		return bytes;
	size_t fit = most / len;
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
	runs_advance(r, runs * len);
	return runs * len;
}
