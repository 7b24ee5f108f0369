/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics. On memory that this process can touch they are C11 atomics of that
 * width, so they are atomic against the program's own; elsewhere the home rank
 * does the same on request. They are sequentially consistent, as a program expects of
 * an atomic operation that takes no order.
 */
#include <errno.h>

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

static inline bool integer_less(bool wide, bool is_signed, uint64_t a, uint64_t b)
{
	if (!is_signed)
		return a < b;
	return wide ? (int64_t)a < (int64_t)b : (int32_t)a < (int32_t)b;
}

/* What no instruction does. */
static inline uint64_t integer_next(bool wide, unsigned what, uint64_t old, uint64_t v)
{
	bool is_signed = what == TERN_AMO_SMIN_ || what == TERN_AMO_SMAX_;
	bool least = what == TERN_AMO_MIN || what == TERN_AMO_SMIN_;
	if (what == TERN_AMO_MUL)
		return wide ? old * v : (uint32_t)(old * v);
	return (least ? integer_less(wide, is_signed, v, old)
		      : integer_less(wide, is_signed, old, v))
		       ? v
		       : old;
}

static inline uint64_t integer_load(void *at, bool wide)
{
	return wide ? atomic_load((_Atomic uint64_t *)at) : atomic_load((_Atomic uint32_t *)at);
}

typedef uint64_t amo_next(bool wide, unsigned what, uint64_t old, uint64_t v);

static inline uint64_t amo_loop(void *at, bool wide, unsigned what, uint64_t v, amo_next *value)
{
	uint64_t old = integer_load(at, wide), next;
	do
		next = value(wide, what, old, v);
	while (next != old && !integer_cas(at, wide, &old, next));
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
	case TERN_AMO_STORE: /* the value before is told, too */
		return wide ? atomic_exchange((_Atomic uint64_t *)at, v)
			    : atomic_exchange((_Atomic uint32_t *)at, (uint32_t)v);
	case TERN_AMO_LOAD:
		return integer_load(at, wide);
	case TERN_AMO_MIN:
	case TERN_AMO_MAX:
	case TERN_AMO_MUL:
	case TERN_AMO_SMIN_:
	case TERN_AMO_SMAX_:
		return amo_loop(at, wide, what, v, integer_next);
	}
	return 0;
}

/* -- Floating point: by compare and swap of the bits --------------------------------------- */

union real {
	uint64_t bits;
	double value;
};
union real_small {
	uint32_t bits;
	float value;
};

static double real_of(bool wide, uint64_t bits)
{
	return wide ? (union real){ bits }.value : (union real_small){ (uint32_t)bits }.value;
}

static uint64_t real_bits(bool wide, double d)
{
	return wide ? (union real){ .value = d }.bits
		    : (union real_small){ .value = (float)d }.bits;
}

/* Sums and products of floats, rounded to a double first, are those that a float would give. */
static uint64_t floating_next(bool wide, unsigned what, uint64_t old_bits, uint64_t bits)
{
	double old = real_of(wide, old_bits), v = real_of(wide, bits);
	if (what == TERN_AMO_ADD)
		return real_bits(wide, old + v);
	if (what == TERN_AMO_MUL)
		return real_bits(wide, old * v);
	/* A comparison with a NaN is false: the old value stays. */
	return (what == TERN_AMO_MIN ? v < old : v > old) ? bits : old_bits;
}

static bool floating_only_moves(unsigned what)
{
	return what == TERN_AMO_SWAP || what == TERN_AMO_LOAD || what == TERN_AMO_STORE;
}

static uint64_t floating_apply(void *at, bool wide, unsigned what, uint64_t bits)
{
	if (floating_only_moves(what))
		return integer_apply(at, wide, what, bits);
	return amo_loop(at, wide, what, bits, floating_next);
}

/* -- All of them --------------------------------------------------------------------------- */

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
	case AMO_FLOAT:
		return floating_apply(at, what >> 8 == AMO_DOUBLE, what & 0xff, operand[0]);
	default:
		return cas_apply(at, what >> 8 == AMO_CAS64, operand);
	}
}

size_t amo_width(unsigned what)
{
	enum amo_type type = what >> 8;
	return type == AMO_U32 || type == AMO_CAS32 || type == AMO_FLOAT ? 4 : 8;
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
	if (type == AMO_DOUBLE || type == AMO_FLOAT)
		return floating_only_moves(operation) || operation == TERN_AMO_ADD ||
		       operation == TERN_AMO_MUL || operation == TERN_AMO_MIN ||
		       operation == TERN_AMO_MAX;
	return type <= AMO_CAS32 && operation <= TERN_AMO_SMAX_;
}

static int amo_unknown(unsigned what)
{
	unsigned type = what >> 8;
	return error_set(
		-EINVAL, "there is no atomic operation %u%s", what & 0xff,
		type == AMO_DOUBLE || type == AMO_FLOAT
			? " on floating point: it has ADD, MUL, MIN, MAX, SWAP, LOAD and STORE"
			: " on integers");
}

/* On memory that this process can touch. */
static int amo_here(struct mem *m, tern_addr a, char *at, unsigned what, const uint64_t operand[2],
		    void *old)
{
	size_t width = amo_width(what);
	int rc = (uintptr_t)at % width ? amo_unaligned(width) : region_hold(m, a);
	if (rc)
		return rc;
	uint64_t before = amo_apply(at, what, operand);
	region_release(m, a);
	if (old)
		word_copy(old, &before, width); /* the low bytes */
	return 0;
}

/* At once where this process can touch the memory, else at its home; blocking without `op`. */
static int amo(tern *t, tern_addr a, unsigned what, uint64_t operand, uint64_t expected, void *old,
	       tern_op *op)
{
	INSIDE struct scope scope = scope_of_op(&t, op, "an atomic operation");
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	const uint64_t operands[2] = { operand, expected };
	int rc = amo_known(what) ? mem_check(m, a, amo_width(what), "an atomic operation")
				 : amo_unknown(what);
	char *at = rc ? NULL : mem_reach(m, a, amo_width(what));
	if (rc)
		return rc;
	if (!at) {
		rc = message_amo(m, a, what, operands, old, op ? op : &own, !op);
		return op_finish(t, op, &own, rc);
	}
	rc = amo_here(m, a, at, what, operands, old);
	if (!rc && op)
		op_over(t->own, op);
	return rc;
}

/* On memory of a heap that is known to be there, without a scope; else as all others. */
static inline int amo_integer(tern *t, tern_addr a, bool wide, unsigned what, uint64_t operand,
			      void *old, tern_op *op)
{
	char *at = span_reach(t, a, SPAN_WORD);
	bool aligned = (uintptr_t)at % (wide ? sizeof(uint64_t) : sizeof(uint32_t)) == 0;
	bool plain = at && aligned && what <= TERN_AMO_SMAX_ && (!op || op_silent(op));
	if (TERN_UNLIKELY(!plain))
		return amo(t, a, amo_code(wide ? AMO_U64 : AMO_U32, what), operand, 0, old, op);
	uint64_t before = integer_apply(at, wide, what, operand);
	if (old && wide)
		*(uint64_t *)old = before;
	else if (old)
		*(uint32_t *)old = (uint32_t)before;
	return 0;
}

/* All but an addition; not inline, so that an addition saves no registers. */
static __attribute__((noinline)) int amo64_other(tern *t, tern_addr a, enum tern_amo what,
						 uint64_t operand, uint64_t *old, tern_op *op)
{
	return amo_integer(t, a, true, what, operand, old, op);
}

int tern_amo64_(tern *t, tern_addr a, enum tern_amo what, uint64_t operand, uint64_t *old,
		tern_op *op)
{
	if (what != TERN_AMO_ADD || op)
		return amo64_other(t, a, what, operand, old, op);
	char *at = span_reach(t, a, SPAN_WORD);
	if (TERN_UNLIKELY(!at || (uintptr_t)at % sizeof(uint64_t)))
		return amo64_other(t, a, TERN_AMO_ADD, operand, old,
				   NULL); /* frees two registers */
	uint64_t before = atomic_fetch_add((_Atomic uint64_t *)(void *)at, operand);
	if (old)
		*old = before;
	return 0;
}

int tern_amo32_(tern *t, tern_addr a, enum tern_amo what, uint32_t operand, uint32_t *old,
		tern_op *op)
{
	return amo_integer(given(t), a, false, what, operand, old, op);
}

int tern_cas64_(tern *t, tern_addr a, uint64_t expected, uint64_t desired, uint64_t *old,
		tern_op *op)
{
	return amo(given(t), a, amo_code(AMO_CAS64, 0), desired, expected, old, op);
}

int tern_cas32_(tern *t, tern_addr a, uint32_t expected, uint32_t desired, uint32_t *old,
		tern_op *op)
{
	return amo(given(t), a, amo_code(AMO_CAS32, 0), desired, expected, old, op);
}

int tern_amo_double_(tern *t, tern_addr a, enum tern_amo what, double operand, double *old,
		     tern_op *op)
{
	return amo(given(t), a, amo_code(AMO_DOUBLE, what), real_bits(true, operand), 0, old, op);
}

int tern_amo_float_(tern *t, tern_addr a, enum tern_amo what, float operand, float *old,
		    tern_op *op)
{
	return amo(given(t), a, amo_code(AMO_FLOAT, what), real_bits(false, operand), 0, old, op);
}
