/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of memory that transfers go to and come from, each with an image of what it should have. */
#ifndef TERN_TESTS_MEM_AREAS_H
#define TERN_TESTS_MEM_AREAS_H

#include "handed.h"
#include "local.h"
#include "mem/mem.h"
#include "mem_model.h"

enum { RANKS = 3, AREA = 1 << 20, MOST = 256 << 10 };

/*
 * Memory of rank 1 that transfers go to and come from, in its heap and registered, and its image.
 */
static unsigned char *area[2], *image[2], private[AREA];
static tern_addr at[2];
/* The local side. */
static unsigned char here[AREA], here_image[AREA];
static struct chance chance;

static inline void areas_open(uint64_t seed)
{
	chance.state = seed;
	local_open(RANKS);
	area[0] = handed_alloc(local[1], AREA);
	REQUIRE(area[0]);
	area[1] = private;
	at[0] = handed_addr(local[1], area[0]);
	REQUIRE(tern_register(local[1], private, AREA, &at[1]) == 0);
	model_scatter(here, AREA, &chance);
	memcpy(here_image, here, AREA);
	for (int k = 0; k < 2; k++) {
		image[k] = malloc(AREA);
		REQUIRE(image[k]);
		model_scatter(image[k], AREA, &chance);
		memcpy(area[k], image[k], AREA);
	}
}

static inline void areas_check(void)
{
	CHECK(model_same(area[0], image[0], AREA));
	CHECK(model_same(area[1], image[1], AREA));
	CHECK(model_same(here, here_image, AREA));
}

static inline void areas_close(void)
{
	areas_check();
	free(image[0]);
	free(image[1]);
	local_close();
}

/* A place for `len` bytes, at any byte, away from both ends. */
static inline size_t somewhere(size_t len)
{
	return 64 + chance_below(&chance, (uint32_t)(AREA - len - 128));
}

#endif
