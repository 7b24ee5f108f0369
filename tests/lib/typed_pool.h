/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of a pool of typed messages. */
#ifndef TERN_TESTS_TYPED_POOL_H
#define TERN_TESTS_TYPED_POOL_H

#include "typed/bufpool.h"

/* How many buffers are free. */
static inline uint32_t bufpool_count_free(const struct bufpool *k)
{
	uint32_t n = 0;
	for (uint32_t at = 0; at < k->words; at++)
		n += bufpool_is(k, bufpool_read(k, at), BUFPOOL_FREE);
	return n;
}

#endif
