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

/*
 * The type and the operation are constants where these are inlined: so an atomic on a heap that is
 * mapped is a few comparisons and the instruction.
 */
#define EACH_TYPE static inline __attribute__((always_inline))

/* On 8 bytes if it is `wide`, else on 4. */
#define FETCH(op, at, wide, v)                                   \
	((wide) ? atomic_fetch_##op((_Atomic uint64_t *)(at), v) \
		: atomic_fetch_##op((_Atomic uint32_t *)(at), (uint32_t)(v)))

EACH_TYPE bool integer_cas(void *at, bool wide, uint64_t *old, uint64_t v)
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
EACH_TYPE uint64_t integer_next(bool wide, unsigned what, uint64_t old, uint64_t v)
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

EACH_TYPE uint64_t amo_loop(void *at, bool wide, unsigned what, uint64_t v, amo_next *value)
{
	uint64_t old = integer_load(at, wide), next;
	do
		next = value(wide, what, old, v);
	while (next != old && !integer_cas(at, wide, &old, next));
	return old;
}

EACH_TYPE uint64_t integer_apply(void *at, bool wide, unsigned what, uint64_t v)
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

static inline double real_of(bool wide, uint64_t bits)
{
	return wide ? (union real){ bits }.value : (union real_small){ (uint32_t)bits }.value;
}

static inline uint64_t real_bits(bool wide, double d)
{
	return wide ? (union real){ .value = d }.bits
		    : (union real_small){ .value = (float)d }.bits;
}

/* Sums and products of floats, rounded to a double first, are those that a float would give. */
EACH_TYPE uint64_t floating_next(bool wide, unsigned what, uint64_t old_bits, uint64_t bits)
{
	double old = real_of(wide, old_bits), v = real_of(wide, bits);
	if (what == TERN_AMO_ADD)
		return real_bits(wide, old + v);
	if (what == TERN_AMO_MUL)
		return real_bits(wide, old * v);
	/* A comparison with a NaN is false: the old value stays. */
	return (what == TERN_AMO_MIN ? v < old : v > old) ? bits : old_bits;
}

static inline bool floating_only_moves(unsigned what)
{
	return what == TERN_AMO_SWAP || what == TERN_AMO_LOAD || what == TERN_AMO_STORE;
}

/* -- All of them --------------------------------------------------------------------------- */

static inline bool amo_floating(enum amo_type type)
{
	return type == AMO_DOUBLE || type == AMO_FLOAT;
}

static inline size_t type_width(enum amo_type type)
{
	return type == AMO_U32 || type == AMO_CAS32 || type == AMO_FLOAT ? 4 : 8;
}

size_t amo_width(unsigned what)
{
	return type_width(what >> 8);
}

EACH_TYPE uint64_t type_apply(void *at, enum amo_type type, unsigned what, uint64_t v,
			      uint64_t expected)
{
	bool wide = type_width(type) == sizeof(uint64_t);
	v = wide ? v : (uint32_t)v;
	expected = wide ? expected : (uint32_t)expected;
	if (type == AMO_CAS64 || type == AMO_CAS32)
		integer_cas(at, wide, &expected, v);
	else if (amo_floating(type) && !floating_only_moves(what))
		expected = amo_loop(at, wide, what, v, floating_next);
	else
		expected = integer_apply(at, wide, what, v);
	return expected;
}

uint64_t amo_apply(void *at, unsigned what, const uint64_t operand[2])
{
	return type_apply(at, what >> 8, what & 0xff, operand[0], operand[1]);
}

static int amo_unaligned(size_t width)
{
	return error_set(
		-EINVAL,
		"an atomic operation on %zu bytes was asked for at an address that is not aligned",
		width);
}

EACH_TYPE bool type_knows(enum amo_type type, unsigned what)
{
	if (amo_floating(type))
		return floating_only_moves(what) || what == TERN_AMO_ADD || what == TERN_AMO_MUL ||
		       what == TERN_AMO_MIN || what == TERN_AMO_MAX;
	return type <= AMO_FLOAT && what <= TERN_AMO_SMAX_;
}

bool amo_known(unsigned what)
{
	return type_knows(what >> 8, what & 0xff);
}

static int amo_unknown(unsigned what)
{
	return error_set(
		-EINVAL, "there is no atomic operation %u%s", what & 0xff,
		amo_floating(what >> 8)
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
static __attribute__((noinline)) int amo(tern *t, tern_addr a, unsigned what, uint64_t operand,
					 uint64_t expected, void *old, tern_op *op)
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

/*
 * On memory of a heap that is known to be there, without a scope; else as all others. The heap
 * begins with a line, so that an address is aligned as its pointer is.
 */
EACH_TYPE int amo_quick(tern *t, tern_addr a, enum amo_type type, unsigned what, uint64_t operand,
			uint64_t expected, void *old, tern_op *op)
{
	bool plain = a % type_width(type) == 0 && type_knows(type, what) && (!op || op_silent(op));
	char *at = plain && t ? span_reach(t, a, SPAN_WORD) : NULL;
	if (TERN_UNLIKELY(!at))
		return amo(t, a, amo_code(type, what), operand, expected, old, op);
	uint64_t before = type_apply(at, type, what, operand, expected);
	if (old && type_width(type) == sizeof(uint64_t))
		*(uint64_t *)old = before;
	else if (old)
		*(uint32_t *)old = (uint32_t)before;
	return 0;
}

/* All but an addition; not inline, so that an addition saves no registers. */
#define OTHER static __attribute__((noinline)) int

OTHER amo64_other(tern *t, tern_addr a, enum tern_amo what, uint64_t operand, uint64_t *old,
		  tern_op *op)
{
	return amo_quick(t, a, AMO_U64, what, operand, 0, old, op);
}

OTHER amo32_other(tern *t, tern_addr a, enum tern_amo what, uint32_t operand, uint32_t *old,
		  tern_op *op)
{
	return amo_quick(t, a, AMO_U32, what, operand, 0, old, op);
}

/* Where an addition without a handle is done at once. */
EACH_TYPE void *sum_at(const tern *t, tern_addr a, size_t width)
{
	return a % width ? NULL : span_reach(t, a, SPAN_WORD);
}

int tern_amo64_(tern *t, tern_addr a, enum tern_amo what, uint64_t operand, uint64_t *old,
		tern_op *op)
{
	if (what != TERN_AMO_ADD || op)
		return amo64_other(t, a, what, operand, old, op);
	_Atomic uint64_t *at = sum_at(t, a, sizeof *at);
	if (TERN_UNLIKELY(!at)) /* constants free two registers */
		return amo64_other(t, a, TERN_AMO_ADD, operand, old, NULL);
	uint64_t before = atomic_fetch_add(at, operand);
	if (old)
		*old = before;
	return 0;
}

int tern_amo32_(tern *t, tern_addr a, enum tern_amo what, uint32_t operand, uint32_t *old,
		tern_op *op)
{
	if (what != TERN_AMO_ADD || op || !t)
		return amo32_other(t, a, what, operand, old, op);
	_Atomic uint32_t *at = sum_at(t, a, sizeof *at);
	if (TERN_UNLIKELY(!at))
		return amo32_other(t, a, TERN_AMO_ADD, operand, old, NULL);
	uint32_t before = atomic_fetch_add(at, operand);
	if (old)
		*old = before;
	return 0;
}

int tern_cas64_(tern *t, tern_addr a, uint64_t expected, uint64_t desired, uint64_t *old,
		tern_op *op)
{
	return amo_quick(t, a, AMO_CAS64, 0, desired, expected, old, op);
}

int tern_cas32_(tern *t, tern_addr a, uint32_t expected, uint32_t desired, uint32_t *old,
		tern_op *op)
{
	return amo_quick(t, a, AMO_CAS32, 0, desired, expected, old, op);
}

int tern_amo_double_(tern *t, tern_addr a, enum tern_amo what, double operand, double *old,
		     tern_op *op)
{
	return amo_quick(t, a, AMO_DOUBLE, what, real_bits(true, operand), 0, old, op);
}

int tern_amo_float_(tern *t, tern_addr a, enum tern_amo what, float operand, float *old,
		    tern_op *op)
{
	return amo_quick(t, a, AMO_FLOAT, what, real_bits(false, operand), 0, old, op);
}
