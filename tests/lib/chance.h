/* SPDX-License-Identifier: BSD-3-Clause */
/* Chance for tests: what the n-th of something is, so that both sides know it. */
#ifndef TERN_TESTS_CHANCE_H
#define TERN_TESTS_CHANCE_H

#include <stddef.h>

#include "base/chance.h"

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
