/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get in their forms. Everything is checked before a byte moves. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/threshold.h"
#include "mem/wide.h"
#include "mem/word.h"

/*
 * A case for each size: 8 bytes or a few lines, a block, anything. What one leaves goes on to a
 * function that is not inline, so that the shorter one saves no registers. None but the last opens
 * a scope. `put` is a constant where they are inlined.
 */
#define EACH_WAY static inline __attribute__((always_inline))
#define LARGER __attribute__((noinline)) static int

/* Words and a few lines, without a scope. */
EACH_WAY bool quick_move(const tern *t, tern_addr remote, void *local, size_t len, bool put)
{
	bool word = len == sizeof(uint64_t);
	char *at = NULL;
	if (TERN_LIKELY(word))
		at = span_reach(t, remote, SPAN_WORD);
	else if (wide_fits(len))
		at = span_reach(t, remote, SPAN_WIDE);
	if (!at)
		return false;
	if (put)
		word_before_put();
	if (word)
		word8_copy(put ? at : local, put ? local : at); /* cost: base write */
	else
		wide_copy(put ? at : local, put ? local : at, len);
	if (!put)
		word_after_get();
	return true;
}

/* -- Blocks and the rest: blocking without a handle ------------------------------------------- */

/* Whether nobody is told of the handle's end: the operation is over when the data is in place. */
static inline bool handle_silent(const tern_op *op)
{
	return !((uintptr_t)op->flag | (uintptr_t)op->done);
}

LARGER bytes_move(tern *t, tern_addr remote, char *local, size_t len, tern_op *op, bool put)
{
	INSIDE struct scope scope = scope_of_op(&t, op, put ? "tern_put_start" : "tern_get_start");
	struct mem *m = mem_of(t);
	char *at = put ? heap_reach(m, remote, len) : heap_read(m, remote, len);
	if (TERN_UNLIKELY(!at || len - 1 >= in_one_go(op))) { /* 0 bytes too */
		int rc = at || !len ? 0 : mem_check(m, remote, len, put ? "a put" : "a get");
		return rc ? rc : transfer_run(m, remote, local, len, put, NULL, op);
	}
	word_before_put();
	word_copy(put ? at : local, put ? local : at, len); /* cost: base write */
	word_after_get();
	if (op)
		op_over(t->own, op);
	return 0;
}

EACH_WAY int block_move(tern *t, tern_addr remote, char *local, size_t len, tern_op *op, bool put)
{
	bool block = len - 1 < in_one_go(op);
	char *at = block && (!op || op_silent(op)) ? span_holds(t, remote, len) : NULL;
	if (TERN_UNLIKELY(!at))
		return bytes_move(t, remote, local, len, op, put);
	char *to = put ? at : local;
	const char *from = put ? local : at;
	if (put)
		word_before_put();
	if (few_fits(len))
		few_copy(to, from, len); /* cost: base write */
	else if (len <= WORD_MOST)
		word_copy(to, from, len); /* cost: base write */
	else
		wide_long(to, from, len); /* cost: base write */
	if (!put)
		word_after_get();
	return 0;
}

LARGER put_block(tern *t, tern_addr dst, char *src, size_t len, tern_op *op)
{
	return block_move(t, dst, src, len, op, true);
}

LARGER get_block(tern *t, char *dst, tern_addr src, size_t len, tern_op *op)
{
	return block_move(t, src, dst, len, op, false);
}

/* -- The calls ------------------------------------------------------------------------------- */

int tern_put(tern *t, tern_addr dst, const void *src, size_t len)
{
	char *from = (char *)(uintptr_t)src;
	return quick_move(t, dst, from, len, true) ? 0 : put_block(t, dst, from, len, NULL);
}

int tern_put_handle_(tern *t, tern_addr dst, const void *src, size_t len, tern_op *op)
{
	char *from = (char *)(uintptr_t)src;
	bool moved = handle_silent(op) && quick_move(t, dst, from, len, true);
	return moved ? 0 : put_block(t, dst, from, len, op);
}

int tern_get(tern *t, void *dst, tern_addr src, size_t len)
{
	return quick_move(t, src, dst, len, false) ? 0 : get_block(t, dst, src, len, NULL);
}

int tern_get_handle_(tern *t, void *dst, tern_addr src, size_t len, tern_op *op)
{
	bool moved = handle_silent(op) && quick_move(t, src, dst, len, false);
	return moved ? 0 : get_block(t, dst, src, len, op);
}

/* -- Scattered memory ---------------------------------------------------------------------- */

static int part_check(struct mem *m, const tern_part *p, const char *what)
{
	int64_t before, beyond;
	if (part_empty(p))
		return 0;
	if (!part_extent(p, &before, &beyond))
		return error_set(-EINVAL, "a part reaches further than addresses do");
	if (before < -(int64_t)addr_offset(p->addr))
		return error_set(-EINVAL,
				 "a part begins before its memory does: its strides are negative");
	return mem_check(m, p->addr + (tern_addr)before, (size_t)(beyond - before), what);
}

static int parts_check(struct mem *m, struct parts remote, struct parts local, const char *what,
		       size_t *bytes)
{
	size_t here;
	int rc = parts_total(remote.part, remote.n, bytes);
	if (!rc)
		rc = parts_total(local.part, local.n, &here);
	if (!rc && *bytes != here)
		rc = error_set(-EMSGSIZE, "%s has %zu bytes there, but %zu here", what, *bytes,
			       here);
	for (size_t i = 0; !rc && i < remote.n; i++)
		rc = part_check(m, &remote.part[i], what);
	return rc;
}

LARGER lists_begin(tern *t, struct parts remote, struct parts local, tern_op *op, bool put)
{
	INSIDE struct scope scope =
		scope_of_op(&t, op, put ? "tern_put_parts_start" : "tern_get_parts_start");
	struct mem *m = mem_of(t);
	struct runs r;
	size_t bytes, most = in_one_go(op);
	bool rows =
		remote.n == 1 && local.n == 1 && rows_move(m, remote.part, local.part, most, put);
	enum lists_are are = rows ? LISTS_MOVED : lists_move(m, remote, local, put, most);
	const char *what = put ? "a put of parts" : "a get of parts";
	int rc = are == LISTS_ODD ? parts_check(m, remote, local, what, &bytes) : 0;
	if (rc)
		return rc;
	if (are != LISTS_MOVED) {
		parts_begin(&r.remote, remote.part, remote.n, false);
		parts_begin(&r.local, local.part, local.n, false);
		return transfer_begin(m, &r, put, NULL, op);
	}
	if (op)
		op_over(t->own, op);
	return 0;
}

/* One run at each side is moved as a put or a get of it. */
EACH_WAY int parts_start(tern *t, struct parts remote, struct parts local, tern_op *op, bool put)
{
	const tern_part *there = remote.part, *here = local.part;
	bool one = t && remote.n == 1 && local.n == 1 && !(there->dims | here->dims) &&
		   there->run == here->run && (!op || op_silent(op));
	if (one && quick_move(t, there->addr, here->base, here->run, put))
		return 0;
	return lists_begin(t, remote, local, op, put);
}

int tern_put_parts_start(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
			 size_t srcs, tern_op *op)
{
	return parts_start(t, (struct parts){ dst, dsts }, (struct parts){ src, srcs }, op, true);
}

int tern_get_parts_start(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
			 size_t srcs, tern_op *op)
{
	return parts_start(t, (struct parts){ src, srcs }, (struct parts){ dst, dsts }, op, false);
}
