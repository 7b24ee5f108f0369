/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the runs of scattered memory, and what it reaches. */
#include "mem/scatter/parts.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/word.h"

/* -- What a list has ---------------------------------------------------------------------- */

bool part_empty(const tern_part *p)
{
	bool empty = p->run == 0;
	for (unsigned d = 0; d < p->dims; d++)
		empty |= p->count[d] == 0;
	return empty;
}

bool part_bytes(const tern_part *p, size_t *bytes)
{
	*bytes = 0;
	if (p->dims > TERN_DIMS_MAX)
		return false;
	if (part_empty(p))
		return true;
	*bytes = p->run;
	for (unsigned d = 0; d < p->dims; d++)
		if (__builtin_mul_overflow(*bytes, p->count[d], bytes))
			return false;
	return *bytes <= PTRDIFF_MAX;
}

int parts_total(const tern_part *list, size_t n, size_t *total)
{
	*total = 0;
	for (size_t i = 0; i < n; i++) {
		size_t bytes;
		if (list[i].dims > TERN_DIMS_MAX)
			return error_set(-EINVAL, "a part has %u dimensions; it may have %d",
					 list[i].dims, TERN_DIMS_MAX);
		if (!part_bytes(&list[i], &bytes) || __builtin_add_overflow(*total, bytes, total) ||
		    *total > PTRDIFF_MAX)
			return error_set(-EINVAL, "parts have more bytes than memory can");
	}
	return 0;
}

bool part_extent(const tern_part *p, int64_t *before, int64_t *beyond)
{
	*before = 0;
	if (__builtin_add_overflow((int64_t)0, p->run, beyond))
		return false;
	for (unsigned d = 0; d < p->dims; d++) {
		int64_t span;
		if (__builtin_mul_overflow((int64_t)p->stride[d], p->count[d] - 1, &span) ||
		    __builtin_add_overflow(span < 0 ? *before : *beyond, span,
					   span < 0 ? before : beyond))
			return false;
	}
	return true;
}

/* -- Walking --------------------------------------------------------------------------------- */

/* A byte is always moved as one, wherever it lies. */
static bool word_length(size_t len)
{
	return len == 2 || len == 4 || len == 8;
}

/* The first run of the current part, or of the next that has one. */
static void part_enter(struct run_walk *w)
{
	while (w->parts && part_empty(w->part)) {
		w->part++;
		w->parts--;
	}
	w->len = w->done = 0;
	w->low = 0;
	if (!w->parts)
		return;
	const tern_part *p = w->part;
	w->at = p->addr;
	w->len = p->run;
	for (unsigned d = 0; d < p->dims; d++) {
		bool beside =
			p->stride[d] == (ptrdiff_t)w->len && (w->bytes || !word_length(w->len));
		if (w->low == d && (beside || p->count[d] == 1)) {
			w->len *= p->count[d];
			w->low++;
		}
		w->index[d] = 0;
	}
}

void parts_block(struct run_walk *w, uint64_t at, size_t len)
{
	w->part = NULL;
	w->parts = 0;
	w->at = at;
	w->len = len;
	w->done = 0;
	w->low = 0;
	w->bytes = false;
}

void parts_begin(struct run_walk *w, const tern_part *list, size_t n, bool bytes)
{
	w->part = list;
	w->parts = n;
	w->bytes = bytes;
	part_enter(w);
}

/* The next run: counts like an odometer, innermost dimension first. */
static void parts_step(struct run_walk *w)
{
	const tern_part *p = w->part;
	w->done = 0;
	w->len = p ? w->len : 0;
	for (unsigned d = w->low; p && d < p->dims; d++) {
		if (++w->index[d] < p->count[d]) {
			w->at += (uint64_t)(int64_t)p->stride[d];
			return;
		}
		w->index[d] = 0;
		w->at -= (uint64_t)(int64_t)p->stride[d] * (p->count[d] - 1);
	}
	if (!p)
		return;
	w->part++;
	w->parts--;
	part_enter(w);
}

size_t parts_row(const struct run_walk *w, size_t len)
{
	if (w->done || !w->part || w->low == w->part->dims || len < w->len)
		return 0;
	size_t row = w->part->count[w->low] - w->index[w->low], most = len / w->len;
	return row < most ? row : most;
}

static void row_pass(struct run_walk *w, size_t runs)
{
	w->index[w->low] += runs - 1;
	w->at += (uint64_t)(int64_t)w->part->stride[w->low] * (runs - 1);
	parts_step(w);
}

static void run_pass(struct run_walk *w, size_t bytes)
{
	w->done += bytes;
	if (w->done == w->len)
		parts_step(w);
}

/* Goes on by so many bytes, which are copied to or from `bytes` unless that is NULL. */
static inline void parts_go(struct run_walk *w, char *bytes, size_t len, bool gather)
{
	while (len) {
		size_t runs = parts_row(w, len), n = runs ? runs * w->len : parts_left(w);
		char *at = (char *)(uintptr_t)w->at + w->done;
		n = n < len ? n : len;
		size_t run = runs ? w->len : n;
		ptrdiff_t stride = runs ? w->part->stride[w->low] : 0, beside = (ptrdiff_t)run;
		if (bytes && gather)
			row_move(bytes, beside, at, stride, run, runs ? runs : 1);
		else if (bytes)
			row_move(at, stride, bytes, beside, run, runs ? runs : 1);
		if (runs)
			row_pass(w, runs);
		else
			run_pass(w, n);
		bytes = bytes ? bytes + n : NULL;
		len -= n;
	}
}

void parts_pass(struct run_walk *w, size_t bytes)
{
	if (bytes == w->len && !w->done && bytes) /* one run, without parts_row()'s division */
		parts_step(w);
	else
		parts_go(w, NULL, bytes, false);
}

void parts_copy(struct run_walk *w, char *bytes, size_t len, bool gather)
{
	parts_go(w, bytes, len, gather);
}

/* -- Copies of lists ------------------------------------------------------------------------- */

size_t parts_copy_list(struct run_walk *w, char *to)
{
	size_t n = w->part ? w->parts : 0, bytes = n * sizeof *w->part;
	tern_part *copy = (tern_part *)(void *)to;
	if (to && n)
		w->part = memcpy(copy, w->part, bytes);
	for (size_t i = 0; i < n; i++) {
		const tern_part *p = &w->part[i];
		size_t counts = p->dims * sizeof *p->count, strides = p->dims * sizeof *p->stride;
		if (to && p->dims) {
			copy[i].count = memcpy(to + bytes, p->count, counts);
			copy[i].stride = memcpy(to + bytes + counts, p->stride, strides);
		}
		bytes += counts + strides;
	}
	return bytes;
}
