/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a rank that others use, which all ranks have alike. */
#ifndef TERN_CROSSINGS_MEMORY_H
#define TERN_CROSSINGS_MEMORY_H

#include <tern/lock.h>

#include "play.h"

enum {
	AREA = LONGEST + 4096,
	WORDS = 64,
	REGISTERED = 64 << 10,
	REPLIES = 3 * TERN_REQUEST_MAX,
	LOCKS = 4
};

/* One rank's memory. */
struct memory {
	_Atomic uint64_t shared;
	struct guarded { /* by a lock: who has it, and how often ranks have had it */
		_Alignas(64) tern_lock lock;
		uint64_t holder, count;
	} guarded[LOCKS], left;
	unsigned char fixed[AREA], copied[AREA];
	uint64_t ready; /* 1 */
	struct written {
		unsigned char bytes[AREA], stored[AREA], signalled[AREA], replied[REPLIES];
		uint64_t signal;
		uint64_t word[WORDS];
	} of[]; /* a part for each rank */
};
extern struct memory *mine;

static inline tern_addr at(uint32_t rank, const void *p)
{
	return tern_addr_at(t, rank, p);
}

#endif
