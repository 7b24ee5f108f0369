/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where numbers start that wrap. A build with TERN_WRAP_START (presets debug and sanitize) reads
 * TERN_WRAP: each such number then starts so many before its wrap, so that tests cross it.
 * docs/design.md, Numbers that wrap, lists them. In all other builds they start with `usual`, which
 * is a constant there.
 */
#ifndef TERN_BASE_WRAP_H
#define TERN_BASE_WRAP_H

#include <stdint.h>

#ifdef TERN_WRAP_START
/* The start of a number of `bits` bits. */
uint64_t wrap_first(unsigned bits, uint64_t usual);
/* How far before its wrap that is; 0: TERN_WRAP is not set. */
uint64_t wrap_distance(void);
/*
 * What is added to a clock of which 32 bits travel, so that they wrap some time after the first
 * call.
 */
uint64_t wrap_clock(uint64_t now);
#else
static inline uint64_t wrap_first(unsigned bits, uint64_t usual)
{
	(void)bits;
	return usual;
}

static inline uint64_t wrap_distance(void)
{
	return 0;
}

static inline uint64_t wrap_clock(uint64_t now)
{
	(void)now;
	return 0;
}
#endif

/* Whether TERN_WRAP can be followed: 0, or -EINVAL with a sentence. */
int wrap_judge(void);

#endif
