/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operations: one table, from which every combination is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coll/combine.h"

/*
 * Reals. Every operation commutes bit by bit, so members that combine the same values get the same
 * bits. For that every NaN that comes out is the same one: which of two NaNs a processor passes on
 * depends on the order in which the compiler names them. MIN and MAX give it as soon as one value
 * is a NaN, and -0 is less than +0. The loops have no branches, so that they are vectorised.
 */
#define BITS_OF(T, bits_t)                                                        \
	static inline bits_t T##_bits(T x)                                        \
	{                                                                         \
		bits_t bits;                                                      \
		memcpy(&bits, &x, sizeof bits);                                   \
		return bits;                                                      \
	}                                                                         \
	static inline T T##_of_bits(bits_t bits)                                  \
	{                                                                         \
		T x;                                                              \
		memcpy(&x, &bits, sizeof x);                                      \
		return x;                                                         \
	}                                                                         \
	static inline T T##_canonical(T x)                                        \
	{                                                                         \
		return x != x ? (T)__builtin_nan("") : x;                         \
	}                                                                         \
	/* x and y differ where the values are zeros, or one is a NaN. */         \
	static inline T T##_least(T a, T b)                                       \
	{                                                                         \
		T x = b < a ? b : a, y = a < b ? a : b;                           \
		T both = T##_of_bits(T##_bits(x) | T##_bits(y));                  \
		return __builtin_isunordered(a, b) ? (T)__builtin_nan("") : both; \
	}                                                                         \
	static inline T T##_most(T a, T b)                                        \
	{                                                                         \
		T x = b > a ? b : a, y = a > b ? a : b;                           \
		T both = T##_of_bits(T##_bits(x) & T##_bits(y));                  \
		return __builtin_isunordered(a, b) ? (T)__builtin_nan("") : both; \
	}

BITS_OF(float, uint32_t)
BITS_OF(double, uint64_t)

/* left[i] = the expression of a and b */
#define COMBINE(name, T, expr)                                    \
	static void name(void *left, const void *right, size_t n) \
	{                                                         \
		T *restrict l = left;                             \
		const T *restrict r = right;                      \
		for (size_t i = 0; i < n; i++) {                  \
			T a = l[i], b = r[i];                     \
			l[i] = (T)(expr);                         \
		}                                                 \
	}

/* W is unsigned and at least an int: sums and products wrap, and nothing overflows. */
#define INTEGER(name, T, W)                    \
	COMBINE(name##_sum, T, (W)a + (W)b)    \
	COMBINE(name##_product, T, (W)a *(W)b) \
	COMBINE(name##_min, T, b < a ? b : a)  \
	COMBINE(name##_max, T, b > a ? b : a)  \
	COMBINE(name##_and, T, a &b)           \
	COMBINE(name##_or, T, a | b)           \
	COMBINE(name##_xor, T, a ^ b)          \
	COMBINE(name##_all, T, a &&b)          \
	COMBINE(name##_any, T, a || b)

#define REAL(T)                                      \
	COMBINE(T##_sum, T, T##_canonical(a + b))    \
	COMBINE(T##_product, T, T##_canonical(a *b)) \
	COMBINE(T##_min, T, T##_least(a, b))         \
	COMBINE(T##_max, T, T##_most(a, b))

/* Two reals each; n counts the complex ones. */
#define COMPLEX(T)                                                                 \
	static void complex_##T##_sum(void *left, const void *right, size_t n)     \
	{                                                                          \
		T##_sum(left, right, 2 * n);                                       \
	}                                                                          \
	static void complex_##T##_product(void *left, const void *right, size_t n) \
	{                                                                          \
		T *restrict l = left;                                              \
		const T *restrict r = right;                                       \
		for (size_t i = 0; i < 2 * n; i += 2) {                            \
			T re = l[i] * r[i] - l[i + 1] * r[i + 1];                  \
			T im = l[i] * r[i + 1] + l[i + 1] * r[i];                  \
			l[i] = T##_canonical(re);                                  \
			l[i + 1] = T##_canonical(im);                              \
		}                                                                  \
	}

/*
 * Integers that are ordered as the values are: -0 before +0, and a NaN before all, or behind all.
 */
static inline int64_t double_key(double x, int64_t nan)
{
	int64_t bits = (int64_t)double_bits(x);
	return x != x ? nan : bits < 0 ? bits ^ INT64_MAX : bits;
}

#define VALUE_ITSELF(x) (x)
#define VALUE_LEAST(x) double_key(x, INT64_MIN)
#define VALUE_MOST(x) double_key(x, INT64_MAX)

/* The better value with its location; of equal ones the smaller location. */
#define LOCATED(name, T, better, key, kept)                                            \
	static void name(void *left, const void *right, size_t n)                      \
	{                                                                              \
		T *restrict l = left;                                                  \
		const T *restrict r = right;                                           \
		for (size_t i = 0; i < n; i++) {                                       \
			if (key(r[i].value) better key(l[i].value) ||                  \
			    (key(l[i].value) == key(r[i].value) && r[i].at < l[i].at)) \
				l[i] = r[i];                                           \
			l[i].value = kept(l[i].value);                                 \
		}                                                                      \
	}

INTEGER(int8, int8_t, uint32_t)
INTEGER(int16, int16_t, uint32_t)
INTEGER(int32, int32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint8, uint8_t, uint32_t)
INTEGER(uint16, uint16_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(uint64, uint64_t, uint64_t)
REAL(float)
REAL(double)
COMPLEX(float)
COMPLEX(double)
LOCATED(int64_at_min, tern_int64_at, <, VALUE_ITSELF, VALUE_ITSELF)
LOCATED(int64_at_max, tern_int64_at, >, VALUE_ITSELF, VALUE_ITSELF)
LOCATED(uint64_at_min, tern_uint64_at, <, VALUE_ITSELF, VALUE_ITSELF)
LOCATED(uint64_at_max, tern_uint64_at, >, VALUE_ITSELF, VALUE_ITSELF)
LOCATED(double_at_min, tern_double_at, <, VALUE_LEAST, double_canonical)
LOCATED(double_at_max, tern_double_at, >, VALUE_MOST, double_canonical)

#define SUMS(name) [TERN_REDUCE_SUM] = name##_sum, [TERN_REDUCE_PRODUCT] = name##_product
#define ENDS(name) [TERN_REDUCE_MIN] = name##_min, [TERN_REDUCE_MAX] = name##_max
#define BITS(name)                                                      \
	[TERN_REDUCE_AND] = name##_and, [TERN_REDUCE_OR] = name##_or,   \
	[TERN_REDUCE_XOR] = name##_xor, [TERN_REDUCE_ALL] = name##_all, \
	[TERN_REDUCE_ANY] = name##_any
#define INTEGERS(name)                             \
	{                                          \
		SUMS(name), ENDS(name), BITS(name) \
	}

static const struct {
	const char *name;
	size_t size;
	void (*fn[TERN_REDUCES])(void *left, const void *right, size_t n);
} types[TERN_TYPES] = {
	[TERN_TYPE_INT8] = { "int8", 1, INTEGERS(int8) },
	[TERN_TYPE_INT16] = { "int16", 2, INTEGERS(int16) },
	[TERN_TYPE_INT32] = { "int32", 4, INTEGERS(int32) },
	[TERN_TYPE_INT64] = { "int64", 8, INTEGERS(int64) },
	[TERN_TYPE_UINT8] = { "uint8", 1, INTEGERS(uint8) },
	[TERN_TYPE_UINT16] = { "uint16", 2, INTEGERS(uint16) },
	[TERN_TYPE_UINT32] = { "uint32", 4, INTEGERS(uint32) },
	[TERN_TYPE_UINT64] = { "uint64", 8, INTEGERS(uint64) },
	[TERN_TYPE_FLOAT] = { "float", 4, { SUMS(float), ENDS(float) } },
	[TERN_TYPE_DOUBLE] = { "double", 8, { SUMS(double), ENDS(double) } },
	[TERN_TYPE_COMPLEX_FLOAT] = { "complex float", 8, { SUMS(complex_float) } },
	[TERN_TYPE_COMPLEX_DOUBLE] = { "complex double", 16, { SUMS(complex_double) } },
	[TERN_TYPE_INT64_AT] = { "int64 with location", 16, { ENDS(int64_at) } },
	[TERN_TYPE_UINT64_AT] = { "uint64 with location", 16, { ENDS(uint64_at) } },
	[TERN_TYPE_DOUBLE_AT] = { "double with location", 16, { ENDS(double_at) } },
};

static const char *const operations[TERN_REDUCES] = { "SUM", "PRODUCT", "MIN", "MAX", "AND",
						      "OR",  "XOR",     "ALL", "ANY" };

/* Operations are small numbers; where a pointer is, there is no number. */
static bool how_is_user(uintptr_t how)
{
	return how >= 4096;
}

static const tern_reduce_op *how_user(uintptr_t how)
{
	return (const tern_reduce_op *)how; /* NOLINT(performance-no-int-to-ptr) */
}

void combine_words(enum tern_type type, uintptr_t how, char words[COMBINE_WORDS])
{
	unsigned what = (unsigned)how & ~(unsigned)TERN_REDUCE_EXACT;
	if (how_is_user(how))
		snprintf(words, COMBINE_WORDS, "%zu bytes, combined by the program",
			 how_user(how)->size);
	else
		snprintf(words, COMBINE_WORDS, "%s, %s%s", types[type].name, operations[what],
			 how & TERN_REDUCE_EXACT ? " | EXACT" : "");
}

static bool type_rounds(enum tern_type type)
{
	return type >= TERN_TYPE_FLOAT && type <= TERN_TYPE_COMPLEX_DOUBLE;
}

static int combine_user(enum tern_type type, const tern_reduce_op *op, const char *name,
			struct combine *out)
{
	if (type != TERN_TYPE_USER || !op->fn || !op->size)
		return error_set(-EINVAL,
				 "%s was given %s: TERN_REDUCE_BY() goes with TERN_TYPE_USER, a "
				 "function and the size of an element",
				 name,
				 type != TERN_TYPE_USER ? "another type than TERN_TYPE_USER"
				 : !op->fn              ? "an operation without a function"
							: "elements of 0 bytes");
	*out = (struct combine){ .size = op->size, .user = *op, .ordered = true };
	return 0;
}

int combine_find(enum tern_type type, uintptr_t how, const char *name, struct combine *out)
{
	uintptr_t what = how & ~(uintptr_t)TERN_REDUCE_EXACT;
	if (how_is_user(how))
		return combine_user(type, how_user(how), name, out);
	if ((unsigned)type >= TERN_TYPES)
		return error_set(-EINVAL, "%s was given type %u; there are %d", name,
				 (unsigned)type, TERN_TYPES);
	*out = (struct combine){ .size = types[type].size };
	if (what >= TERN_REDUCES)
		return error_set(-EINVAL,
				 "%s was given operation %u; there are %d, and functions with "
				 "TERN_REDUCE_BY()",
				 name, (unsigned)what, TERN_REDUCES);
	out->fn = types[type].fn[what];
	out->ordered = how & TERN_REDUCE_EXACT && type_rounds(type) && what < TERN_REDUCE_MIN;
	if (out->fn)
		return 0;
	return error_set(-EINVAL, "%s: TERN_REDUCE_%s is not defined for the type %s", name,
			 operations[what], types[type].name);
}

void combine_apply(const struct combine *k, void *left, const void *right, size_t n)
{
	if (k->fn)
		k->fn(left, right, n);
	else
		k->user.fn(left, right, n, k->user.arg);
}
