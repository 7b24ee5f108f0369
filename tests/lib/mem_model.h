/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What memory must look like after a transfer. A test keeps an image of the whole
 * target, guard bytes included, does to it byte by byte what the transfer should do,
 * and compares all of it: a byte too many or beside its place cannot hide.
 */
#ifndef TERN_TESTS_MEM_MODEL_H
#define TERN_TESTS_MEM_MODEL_H

#include <tern/mem.h>

#include "chance.h"
#include "check.h"

static inline void model_scatter(unsigned char *to, size_t len, struct chance *c)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(chance_next(c) >> 56);
}

/* Whether both are the same; says where the first difference is. */
static inline bool model_same(const unsigned char *got, const unsigned char *want, size_t len)
{
	if (memcmp(got, want, len) == 0)
		return true;
	size_t at = 0, last = len - 1;
	while (got[at] == want[at])
		at++;
	while (got[last] == want[last])
		last--;
	printf("    bytes differ between %zu and %zu of %zu; the first is %02x, not %02x\n", at,
	       last, len, got[at], want[at]);
	return false;
}

/* A length: mostly short, often at a limit of some layer, rarely up to `most`. */
static inline size_t model_length(struct chance *c, size_t most)
{
	static const size_t limits[] = {
		0, 1, 8, 64, 4096, TERN_PAYLOAD_MAX, 16384, 65536, 262144
	};
	size_t len;
	switch (chance_below(c, 4)) {
	case 0:
		len = limits[chance_below(c, sizeof limits / sizeof *limits)] + chance_below(c, 3);
		len -= len > 0;
		break;
	case 1:
		len = chance_below(c, (uint32_t)most + 1);
		break;
	default:
		len = chance_below(c, 200);
	}
	return len < most ? len : most;
}

/* What both sides of a block have: runs, and how many along each dimension. */
struct model_shape {
	size_t run;
	unsigned dims;
	size_t count[TERN_DIMS_MAX];
};

/*
 * One side of a block: its strides, the bytes it covers, and how far before its address it begins.
 */
struct model_side {
	ptrdiff_t stride[TERN_DIMS_MAX];
	size_t covers, before;
};

/* Strides at which no two runs touch the same byte, in any order of dimensions and direction. */
static inline void model_strides(const struct model_shape *s, struct model_side *x,
				 struct chance *c)
{
	unsigned order[TERN_DIMS_MAX];
	for (unsigned d = 0; d < s->dims; d++) {
		unsigned other = chance_below(c, d + 1);
		order[d] = order[other];
		order[other] = d;
	}
	*x = (struct model_side){ .covers = s->run };
	for (unsigned i = 0; i < s->dims; i++) {
		unsigned d = order[i];
		size_t apart = x->covers + (chance_one_in(c, 3) ? 0 : chance_below(c, 20));
		size_t span = apart * (s->count[d] - 1);
		bool backwards = chance_one_in(c, 3);
		x->stride[d] = backwards ? -(ptrdiff_t)apart : (ptrdiff_t)apart;
		x->before += backwards ? span : 0;
		x->covers += span;
	}
}

/* A random block of which both sides cover at most `most` bytes, 4096 or more. */
static inline void model_shape(struct chance *c, size_t most, struct model_shape *s,
			       struct model_side *dst, struct model_side *src)
{
	do {
		size_t run = chance_one_in(c, 3)
				     ? (size_t)1 << chance_below(c, 4)
				     : 1 + model_length(c, chance_one_in(c, 8) ? most / 2 : 300);
		*s = (struct model_shape){ .run = run, .dims = chance_below(c, 5) };
		if (chance_one_in(c, 20))
			s->dims = chance_below(c, TERN_DIMS_MAX + 1);
		for (unsigned d = 0; d < s->dims; d++)
			s->count[d] = 1 + chance_below(c, s->dims > 4 ? 2 : 6);
		model_strides(s, dst, c);
		model_strides(s, src, c);
	} while (dst->covers > most || src->covers > most);
}

/* One side of the block as a part; the other side may have other runs. */
static inline tern_part model_part(const struct model_shape *s, const struct model_side *x)
{
	return (tern_part){
		.run = s->run, .dims = s->dims, .count = s->count, .stride = x->stride
	};
}

/* Where the bytes of a list are, one after another, in the plainest way there is. */
static inline size_t model_places(const tern_part *list, size_t n, uint64_t *place)
{
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		size_t runs = 1;
		for (unsigned d = 0; d < list[i].dims; d++)
			runs *= list[i].count[d];
		for (size_t k = 0; k < runs; k++) {
			uint64_t at = list[i].addr;
			size_t rest = k;
			for (unsigned d = 0; d < list[i].dims; d++) {
				at += (uint64_t)(int64_t)list[i].stride[d] *
				      (rest % list[i].count[d]);
				rest /= list[i].count[d];
			}
			for (size_t b = 0; b < list[i].run; b++)
				place[len++] = at + b;
		}
	}
	return len;
}

/* What the block does. */
static inline void model_apply(unsigned char *dst, const struct model_side *to,
			       const unsigned char *src, const struct model_side *from,
			       const struct model_shape *s)
{
	enum { MOST_BYTES = 1 << 20 };
	static uint64_t there[MOST_BYTES], here[MOST_BYTES];
	tern_part d = model_part(s, to), f = model_part(s, from);
	d.base = dst;
	f.base = (void *)(uintptr_t)src;
	size_t len = model_places(&d, 1, there);
	REQUIRE(len <= MOST_BYTES && model_places(&f, 1, here) == len);
	for (size_t i = 0; i < len; i++)
		*(unsigned char *)(uintptr_t)there[i] = *(unsigned char *)(uintptr_t)here[i];
}

#endif
