/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get in their forms. Everything is checked before a byte moves. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/word.h"

static int begin_run(struct mem *m, tern_addr remote, char *local, size_t len, bool put,
		     tern_op *op)
{
	INSIDE struct scope scope = scope_open(m->e->t);
	const tern_shape run = { .run = len };
	struct runs r;
	int rc = len ? mem_check(m, remote, len, put ? "a put" : "a get") : 0;
	if (rc)
		return rc;
	runs_of_shape(&r, remote, local, &run, put);
	return transfer_begin(m, &r, put, op);
}

/*
 * What is moved with one memcpy, and no longer than serving messages can wait; a split-phase call
 * returns sooner.
 */
enum { IN_ONE_GO = 256 << 10, START_IN_ONE_GO = 64 << 10 };

/* More than a word, which is copied as it comes, up to `most` bytes. No scope, as for a word. */
static inline char *block_reach(const struct mem *m, tern_addr a, size_t len, size_t most)
{
	return len - WORD_MOST - 1 < most - WORD_MOST ? span_holds(m, a, len) : NULL;
}

/*
 * Everything but a word and a line. Neither is inline, so that a word's path saves no registers,
 * nor a line's.
 */
static __attribute__((noinline)) int put_bytes(tern *t, tern_addr dst, const void *src, size_t len)
{
	INSIDE struct scope scope = scope_open(t);
	char *to = heap_reach(mem_of(t), dst, len);
	if (TERN_UNLIKELY(!to || len - 1 >= IN_ONE_GO)) /* 0 bytes too */
		return begin_run(mem_of(t), dst, (char *)(uintptr_t)src, len, true, NULL);
	word_before_put();
	word_copy(to, src, len); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int put_block(tern *t, tern_addr dst, const void *src, size_t len)
{
	char *to = block_reach(mem_of(t), dst, len, IN_ONE_GO);
	if (TERN_UNLIKELY(!to))
		return put_bytes(t, dst, src, len);
	word_before_put();
	memcpy(to, src, len); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int put_line(tern *t, tern_addr dst, const void *src, size_t len)
{
	char *to = len == TERN_LINE ? span_reach(mem_of(t), dst, true) : NULL;
	if (!to)
		return put_block(t, dst, src, len);
	word_before_put();
	memcpy(to, src, TERN_LINE); /* cost: base write */
	return 0;
}

int tern_put(tern *t, tern_addr dst, const void *src, size_t len)
{
	char *to = len == sizeof(uint64_t) ? span_reach(mem_of(t), dst, false) : NULL;
	if (!to)
		return put_line(t, dst, src, len);
	word_before_put();
	word8_copy(to, src); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int get_bytes(tern *t, void *dst, tern_addr src, size_t len)
{
	INSIDE struct scope scope = scope_open(t);
	char *from = heap_reach(mem_of(t), src, len);
	if (TERN_UNLIKELY(!from || len - 1 >= IN_ONE_GO))
		return begin_run(mem_of(t), src, dst, len, false, NULL);
	word_copy(dst, from, len);
	word_after_get();
	return 0;
}

static __attribute__((noinline)) int get_block(tern *t, void *dst, tern_addr src, size_t len)
{
	const char *from = block_reach(mem_of(t), src, len, IN_ONE_GO);
	if (TERN_UNLIKELY(!from))
		return get_bytes(t, dst, src, len);
	memcpy(dst, from, len);
	word_after_get();
	return 0;
}

int tern_get(tern *t, void *dst, tern_addr src, size_t len)
{
	char *from = len == sizeof(uint64_t) ? span_reach(mem_of(t), src, false) : NULL;
	if (!from)
		return get_block(t, dst, src, len);
	word8_copy(dst, from);
	word_after_get();
	return 0;
}

/* -- Split-phase: complete on return where this process can touch the memory ------------- */

static __attribute__((noinline)) int put_start_bytes(tern *t, tern_addr dst, const void *src,
						     size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	char *to = op ? heap_reach(mem_of(t), dst, len) : NULL;
	if (TERN_UNLIKELY(!to || len - 1 >= START_IN_ONE_GO))
		return begin_run(mem_of(t), dst, (char *)(uintptr_t)src, len, true, op);
	word_before_put();
	word_copy(to, src, len); /* cost: base write */
	op_over(t->own, op);
	return 0;
}

static __attribute__((noinline)) int put_start_block(tern *t, tern_addr dst, const void *src,
						     size_t len, tern_op *op)
{
	char *to = op_silent(op) ? block_reach(mem_of(t), dst, len, START_IN_ONE_GO) : NULL;
	if (TERN_UNLIKELY(!to))
		return put_start_bytes(t, dst, src, len, op);
	word_before_put();
	memcpy(to, src, len); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int put_start_line(tern *t, tern_addr dst, const void *src,
						    size_t len, tern_op *op)
{
	char *to = len == TERN_LINE && op_silent(op) ? span_reach(mem_of(t), dst, true) : NULL;
	if (!to)
		return put_start_block(t, dst, src, len, op);
	word_before_put();
	memcpy(to, src, TERN_LINE); /* cost: base write */
	return 0;
}

int tern_put_start(tern *t, tern_addr dst, const void *src, size_t len, tern_op *op)
{
	char *to = len == sizeof(uint64_t) ? span_reach(mem_of(t), dst, false) : NULL;
	if (!to || !op_silent(op))
		return put_start_line(t, dst, src, len, op);
	word_before_put();
	word8_copy(to, src); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int get_start_bytes(tern *t, void *dst, tern_addr src, size_t len,
						     tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	char *from = op ? heap_reach(mem_of(t), src, len) : NULL;
	if (TERN_UNLIKELY(!from || len - 1 >= START_IN_ONE_GO))
		return begin_run(mem_of(t), src, dst, len, false, op);
	word_copy(dst, from, len);
	word_after_get();
	op_over(t->own, op);
	return 0;
}

static __attribute__((noinline)) int get_start_block(tern *t, void *dst, tern_addr src, size_t len,
						     tern_op *op)
{
	const char *from = op_silent(op) ? block_reach(mem_of(t), src, len, START_IN_ONE_GO) : NULL;
	if (TERN_UNLIKELY(!from))
		return get_start_bytes(t, dst, src, len, op);
	memcpy(dst, from, len);
	word_after_get();
	return 0;
}

int tern_get_start(tern *t, void *dst, tern_addr src, size_t len, tern_op *op)
{
	char *from = len == sizeof(uint64_t) ? span_reach(mem_of(t), src, false) : NULL;
	if (!from || !op_silent(op))
		return get_start_block(t, dst, src, len, op);
	word8_copy(dst, from);
	word_after_get();
	return 0;
}

/* -- Strided blocks ---------------------------------------------------------------------- */

/* How far before and beyond its address a block reaches, by one side's strides. */
struct extent_of {
	int64_t before, beyond;
};

static int shape_refused(const char *what)
{
	return error_set(-EINVAL, "a strided block %s", what);
}

static int shape_reach(const tern_shape *s, const ptrdiff_t *stride, struct extent_of *x)
{
	*x = (struct extent_of){ 0, 0 };
	if (__builtin_add_overflow((int64_t)0, s->run, &x->beyond))
		return shape_refused("has a run that is too long");
	for (unsigned d = 0; d < s->dims; d++) {
		int64_t span;
		if (__builtin_mul_overflow((int64_t)stride[d], s->count[d] - 1, &span) ||
		    __builtin_add_overflow(span < 0 ? x->before : x->beyond, span,
					   span < 0 ? &x->before : &x->beyond))
			return shape_refused("reaches further than addresses do");
	}
	return 0;
}

static bool shape_empty(const tern_shape *s)
{
	bool empty = s->run == 0;
	for (unsigned d = 0; d < s->dims; d++)
		empty |= s->count[d] == 0;
	return empty;
}

static int shape_check(struct mem *m, tern_addr remote, const tern_shape *s, bool put)
{
	struct extent_of x;
	int rc = shape_reach(s, put ? s->dst_stride : s->src_stride, &x);
	if (rc)
		return rc;
	if (x.before < -(int64_t)addr_offset(remote))
		return shape_refused("begins before its memory does: its strides are negative");
	return mem_check(m, remote + (tern_addr)x.before, (size_t)(x.beyond - x.before),
			 put ? "a strided put" : "a strided get");
}

static int begin_shape(struct mem *m, tern_addr remote, char *local, const tern_shape *s, bool put,
		       tern_op *op)
{
	struct runs r;
	if (s->dims > TERN_DIMS_MAX)
		return error_set(-EINVAL, "a strided block has %u dimensions; it may have %d",
				 s->dims, TERN_DIMS_MAX);
	int rc = shape_empty(s) ? 0 : shape_check(m, remote, s, put);
	if (rc)
		return rc;
	runs_of_shape(&r, remote, local, s, put);
	return transfer_begin(m, &r, put, op);
}

int tern_put_shape_start(tern *t, tern_addr dst, const void *src, const tern_shape *shape,
			 tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	return begin_shape(mem_of(t), dst, (char *)(uintptr_t)src, shape, true, op);
}

int tern_get_shape_start(tern *t, void *dst, tern_addr src, const tern_shape *shape, tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	return begin_shape(mem_of(t), src, dst, shape, false, op);
}

/* -- Lists ---------------------------------------------------------------------------------- */

static int begin_pieces(struct mem *m, const tern_piece *pieces, size_t n, bool put, tern_op *op)
{
	struct runs r;
	for (size_t i = 0; i < n; i++) {
		int rc = pieces[i].len ? mem_check(m, pieces[i].remote, pieces[i].len,
						   put ? "a put" : "a get")
				       : 0;
		if (rc)
			return rc;
	}
	runs_of_pieces(&r, pieces, n);
	return transfer_begin(m, &r, put, op);
}

int tern_put_pieces_start(tern *t, const tern_piece *pieces, size_t n, tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	return begin_pieces(mem_of(t), pieces, n, true, op);
}

int tern_get_pieces_start(tern *t, const tern_piece *pieces, size_t n, tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	return begin_pieces(mem_of(t), pieces, n, false, op);
}

/* cost: base control */
