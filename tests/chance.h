/* SPDX-License-Identifier: BSD-3-Clause */
/* Chance that can be repeated: a seed gives the same run again. */
#ifndef TERN_TESTS_CHANCE_H
#define TERN_TESTS_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t chance_next(struct chance *c)
{
	uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint32_t chance_below(struct chance *c, uint32_t n)
{
	return (uint32_t)((chance_next(c) >> 32) * n >> 32);
}

static inline bool chance_one_in(struct chance *c, uint32_t n)
{
	return chance_below(c, n) == 0;
}

/* What the i-th of something derived from a seed is, for whoever has only the seed and i. */
static inline uint64_t chance_of(uint64_t seed, uint64_t i)
{
	struct chance c = { seed ^ i * UINT64_C(0xd1342543de82ef95) };
	return chance_next(&c);
}

/* Fills and checks bytes that follow from a number, so that the receiver can check them alone. */
static inline void chance_fill(unsigned char *to, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(number + i * 7 + (i >> 8));
}

static inline bool chance_filled(const unsigned char *from, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		if (from[i] != (unsigned char)(number + i * 7 + (i >> 8)))
			return false;
	return true;
}

#endif
