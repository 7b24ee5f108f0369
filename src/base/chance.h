/* SPDX-License-Identifier: BSD-3-Clause */
/* Chance that can be repeated: a seed gives the same run again. */
#ifndef TERN_BASE_CHANCE_H
#define TERN_BASE_CHANCE_H

#include <stdbool.h>
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

#endif
