/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and operations: one table, from which every combination is made. */
#include <errno.h>

#include "base/error.h"
#include "coll/coll.h"
#include "core/scope.h"

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

#define REAL(name, T)                         \
	COMBINE(name##_sum, T, a + b)         \
	COMBINE(name##_product, T, a *b)      \
	COMBINE(name##_min, T, b < a ? b : a) \
	COMBINE(name##_max, T, b > a ? b : a)

/* Two reals each; n counts the complex ones. */
#define COMPLEX(name, T)                                                    \
	static void name##_sum(void *left, const void *right, size_t n)     \
	{                                                                   \
		T *restrict l = left;                                       \
		const T *restrict r = right;                                \
		for (size_t i = 0; i < 2 * n; i++)                          \
			l[i] += r[i];                                       \
	}                                                                   \
	static void name##_product(void *left, const void *right, size_t n) \
	{                                                                   \
		T *restrict l = left;                                       \
		const T *restrict r = right;                                \
		for (size_t i = 0; i < 2 * n; i += 2) {                     \
			T re = l[i] * r[i] - l[i + 1] * r[i + 1];           \
			l[i + 1] = l[i] * r[i + 1] + l[i + 1] * r[i];       \
			l[i] = re;                                          \
		}                                                           \
	}

/* The better value with its location; of equal ones the smaller location. */
#define LOCATED_ONE(name, T, better)                                                \
	static void name(void *left, const void *right, size_t n)                   \
	{                                                                           \
		T *restrict l = left;                                               \
		const T *restrict r = right;                                        \
		for (size_t i = 0; i < n; i++)                                      \
			if (r[i].value better l[i].value ||                         \
			    (!(l[i].value better r[i].value) && r[i].at < l[i].at)) \
				l[i] = r[i];                                        \
	}
#define LOCATED(name, T)              \
	LOCATED_ONE(name##_min, T, <) \
	LOCATED_ONE(name##_max, T, >)

INTEGER(int8, int8_t, uint32_t)
INTEGER(int16, int16_t, uint32_t)
INTEGER(int32, int32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint8, uint8_t, uint32_t)
INTEGER(uint16, uint16_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(uint64, uint64_t, uint64_t)
REAL(float, float)
REAL(double, double)
COMPLEX(complex_float, float)
COMPLEX(complex_double, double)
LOCATED(int64_at, tern_int64_at)
LOCATED(uint64_at, tern_uint64_at)
LOCATED(double_at, tern_double_at)

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

size_t tern_type_size(enum tern_type type)
{
	return (unsigned)type < TERN_TYPES ? types[type].size : 0;
}

static bool type_rounds(enum tern_type type)
{
	return type >= TERN_TYPE_FLOAT && type <= TERN_TYPE_COMPLEX_DOUBLE;
}

static int combine_user(struct coll *c, unsigned which, const char *name, struct combine *out)
{
	if (which >= TERN_REDUCE_USER_MAX || !c->user[which].fn)
		return error_set(-EINVAL,
				 "%s was given operation %u, which is not registered with "
				 "tern_reduce_on()",
				 name, TERN_REDUCE_USER + which);
	out->user = c->user[which].fn;
	out->arg = c->user[which].arg;
	out->ordered = true;
	return 0;
}

int combine_find(struct coll *c, enum tern_type type, unsigned how, const char *name,
		 struct combine *out)
{
	unsigned what = how & ~(unsigned)TERN_REDUCE_EXACT;
	if ((unsigned)type >= TERN_TYPES)
		return error_set(-EINVAL, "%s was given type %u; there are %d", name,
				 (unsigned)type, TERN_TYPES);
	*out = (struct combine){ .type = type, .size = types[type].size };
	if (what >= TERN_REDUCE_USER)
		return combine_user(c, what - TERN_REDUCE_USER, name, out);
	if (what >= TERN_REDUCES)
		return error_set(-EINVAL,
				 "%s was given operation %u; there are %d, and those of "
				 "tern_reduce_on() from %d on",
				 name, what, TERN_REDUCES, TERN_REDUCE_USER);
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
		k->user(left, right, n, k->type, k->arg);
}

int tern_reduce_on(tern *t, unsigned how, tern_reduce_fn *fn, void *arg)
{
	INSIDE struct scope scope = scope_open(t);
	struct coll *c = coll_of(t);
	int rc = rules_outermost(t->own, "tern_reduce_on()");
	if (rc)
		return rc;
	if (how < TERN_REDUCE_USER || how >= TERN_REDUCE_USER + TERN_REDUCE_USER_MAX)
		return error_set(-ERANGE,
				 "operation %u was registered; those of programs are numbered %d "
				 "to %d",
				 how, TERN_REDUCE_USER,
				 TERN_REDUCE_USER + TERN_REDUCE_USER_MAX - 1);
	if (!fn)
		return error_set(-EINVAL, "operation %u was registered without a function", how);
	c->user[how - TERN_REDUCE_USER].fn = fn;
	c->user[how - TERN_REDUCE_USER].arg = arg;
	return 0;
}
