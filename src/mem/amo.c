/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics. On memory that this process can touch they are C11 atomics of that
 * width, so they are atomic against the program's own; elsewhere the home rank
 * does the same on request. They are sequentially consistent, as a program expects of
 * an atomic operation that takes no order.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/word.h"

/* On 8 bytes if it is `wide`, else on 4: constant where this is inlined. */
#define FETCH(op, at, wide, v)                                   \
	((wide) ? atomic_fetch_##op((_Atomic uint64_t *)(at), v) \
		: atomic_fetch_##op((_Atomic uint32_t *)(at), (uint32_t)(v)))

static inline bool integer_cas(void *at, bool wide, uint64_t *old, uint64_t v)
{
	if (wide)
		return atomic_compare_exchange_strong((_Atomic uint64_t *)at, old, v);
	uint32_t expected = (uint32_t)*old;
	bool done = atomic_compare_exchange_strong((_Atomic uint32_t *)at, &expected, (uint32_t)v);
	*old = expected;
	return done;
}

/* The least, or the greatest, of the two stays. */
static inline uint64_t integer_bound(void *at, bool wide, bool least, uint64_t v)
{
	uint64_t old =
		wide ? atomic_load((_Atomic uint64_t *)at) : atomic_load((_Atomic uint32_t *)at);
	while ((least ? v < old : v > old) && !integer_cas(at, wide, &old, v))
		;
	return old;
}

static inline uint64_t integer_apply(void *at, bool wide, unsigned what, uint64_t v)
{
	switch ((enum tern_amo)what) {
	case TERN_AMO_ADD:
		return FETCH(add, at, wide, v);
	case TERN_AMO_AND:
		return FETCH(and, at, wide, v);
	case TERN_AMO_OR:
		return FETCH(or, at, wide, v);
	case TERN_AMO_XOR:
		return FETCH(xor, at, wide, v);
	case TERN_AMO_SWAP:
		return wide ? atomic_exchange((_Atomic uint64_t *)at, v)
			    : atomic_exchange((_Atomic uint32_t *)at, (uint32_t)v);
	case TERN_AMO_MIN:
	case TERN_AMO_MAX:
		return integer_bound(at, wide, what == TERN_AMO_MIN, v);
	}
	return 0;
}

static double as_double(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof d);
	return d;
}

static uint64_t as_bits(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	return bits;
}

static double double_next(unsigned what, double old, double v)
{
	if (what == TERN_AMO_ADD)
		return old + v;
	return (what == TERN_AMO_MIN ? v < old : v > old) ? v : old;
}

static uint64_t double_apply(_Atomic uint64_t *at, unsigned what, double v)
{
	uint64_t old = atomic_load(at);
	while (!atomic_compare_exchange_weak(at, &old,
					     as_bits(double_next(what, as_double(old), v))))
		;
	return old;
}

static uint64_t cas_apply(void *at, bool wide, const uint64_t operand[2])
{
	uint64_t expected = wide ? operand[1] : (uint32_t)operand[1];
	integer_cas(at, wide, &expected, operand[0]);
	return expected;
}

uint64_t amo_apply(void *at, unsigned what, const uint64_t operand[2])
{
	switch ((enum amo_type)(what >> 8)) {
	case AMO_U64:
		return integer_apply(at, true, what & 0xff, operand[0]);
	case AMO_U32:
		return integer_apply(at, false, what & 0xff, (uint32_t)operand[0]);
	case AMO_DOUBLE:
		return double_apply(at, what & 0xff, as_double(operand[0]));
	default:
		return cas_apply(at, what >> 8 == AMO_CAS64, operand);
	}
}

size_t amo_width(unsigned what)
{
	return what >> 8 == AMO_U32 || what >> 8 == AMO_CAS32 ? 4 : 8;
}

static int amo_unaligned(size_t width)
{
	return error_set(
		-EINVAL,
		"an atomic operation on %zu bytes was asked for at an address that is not aligned",
		width);
}

bool amo_known(unsigned what)
{
	unsigned type = what >> 8, operation = what & 0xff;
	if (type == AMO_DOUBLE)
		return operation == TERN_AMO_ADD || operation == TERN_AMO_MIN || operation == TERN_AMO_MAX;
	return type <= AMO_CAS32 && operation <= TERN_AMO_SWAP;
}

/* On registered memory of another thread of this process, which may unregister it meanwhile. */
static int amo_held(struct mem *m, tern_addr a, char *at, unsigned what, const uint64_t operand[2],
		    uint64_t *before)
{
	bool others = addr_segment(a) != SEGMENT_HEAP && tern_addr_rank(a) != m->rank;
	if (others && !region_enter(m, a))
		return mem_gone(a);
	*before = amo_apply(at, what, operand);
	if (others)
		region_leave(m, a);
	return 0;
}

/* Starts an operation: at once where this process can touch the memory, else at its home. */
static int amo_start(struct mem *m, tern_addr a, unsigned what, const uint64_t operand[2],
		     void *old, tern_op *op, bool blocks)
{
	size_t width = amo_width(what);
	char *at = mem_reach(m, a, width);
	uint64_t before;
	int rc = mem_check(m, a, width, "an atomic operation");
	if (rc)
		return rc;
	if (!at)
		return message_amo(m, a, what, operand, old, op, blocks);
	rc = (uintptr_t)at % width ? amo_unaligned(width)
				   : amo_held(m, a, at, what, operand, &before);
	if (rc)
		return rc;
	if (old)
		word_copy(old, &before, width); /* the low bytes */
	op->pending++;
	op_end(m->e, op, 0);
	return 0;
}

static int amo(tern *t, tern_addr a, unsigned what, uint64_t operand, uint64_t expected, void *old,
	       tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	tern_op own = TERN_OP;
	const uint64_t operands[2] = { operand, expected };
	if (!amo_known(what))
		return error_set(
			-EINVAL,
			"there is no such atomic operation; on a double there are TERN_AMO_ADD, TERN_AMO_MIN "
			"and TERN_AMO_MAX");
	int rc = amo_start(mem_of(t), a, what, operands, old, op ? op : &own, !op);
	return op_finish(t, op, &own, rc);
}

int tern_amo64_start(tern *t, enum tern_amo what, tern_addr a, uint64_t operand, uint64_t *old,
		     tern_op *op)
{
	INSIDE struct scope scope = scope_open(t);
	char *at = heap_reach(mem_of(t), a, sizeof operand);
	if (TERN_LIKELY(!op && at && (uintptr_t)at % sizeof operand == 0 && what <= TERN_AMO_SWAP)) {
		uint64_t before = integer_apply(at, true, what, operand);
		if (old)
			*old = before;
		return 0;
	}
	return amo(t, a, amo_code(AMO_U64, what), operand, 0, old, op);
}

int tern_amo32_start(tern *t, enum tern_amo what, tern_addr a, uint32_t operand, uint32_t *old,
		     tern_op *op)
{
	return amo(t, a, amo_code(AMO_U32, what), operand, 0, old, op);
}

int tern_cas64_start(tern *t, tern_addr a, uint64_t expected, uint64_t desired, uint64_t *old,
		     tern_op *op)
{
	return amo(t, a, amo_code(AMO_CAS64, 0), desired, expected, old, op);
}

int tern_cas32_start(tern *t, tern_addr a, uint32_t expected, uint32_t desired, uint32_t *old,
		     tern_op *op)
{
	return amo(t, a, amo_code(AMO_CAS32, 0), desired, expected, old, op);
}

int tern_amo_double_start(tern *t, enum tern_amo what, tern_addr a, double operand, double *old,
			  tern_op *op)
{
	return amo(t, a, amo_code(AMO_DOUBLE, what), as_bits(operand), 0, old, op);
}
