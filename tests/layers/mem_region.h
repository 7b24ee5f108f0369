/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of processes that others write to: what ranks tell each other beside the library, and the
 * image of what each rank's memory must be.
 */
#ifndef TERN_TESTS_MEM_REGION_H
#define TERN_TESTS_MEM_REGION_H

#include "lib/handed.h"
#include "lib/mem_model.h"
#include "lib/ranks.h"

enum { RANKS = 4, AREA = 512 << 10, MOST = 128 << 10, ASK = 1, TELL, LOOK };

struct board {
	tern_addr at[RANKS][2]; /* of each rank's memory: heap, registered */
	unsigned char image[RANKS][2][AREA];
	_Atomic uint64_t word[8]; /* what ranks tell each other beside the library */
};

static struct board *board;
static uint64_t seed;
static unsigned rounds;
static const char *way;

static inline void job_run(const char *single_copy, uint32_t n, void (*rank_main)(void))
{
	way = single_copy;
	board = ranks_shared(sizeof *board);
	setenv("TERN_SINGLE_COPY", single_copy, 1);
	ranks_run(n, rank_main);
	munmap(board, sizeof *board);
}

static inline bool names(int rc, const char *word)
{
	if (strstr(tern_strerror(rc), word))
		return true;
	printf("    the sentence lacks '%s': %s\n", word, tern_strerror(rc));
	return false;
}

static unsigned char *area[2];

static inline void areas_make(tern *t)
{
	uint32_t me = tern_rank(t);
	struct chance c = { seed + 100 + me };
	area[0] = handed_alloc(t, AREA);
	area[1] = malloc(AREA);
	REQUIRE(area[0] && area[1]);
	board->at[me][0] = handed_addr(t, area[0]);
	REQUIRE(tern_register(t, area[1], AREA, &board->at[me][1]) == 0);
	for (int k = 0; k < 2; k++) {
		model_scatter(area[k], AREA, &c);
		memcpy(board->image[me][k], area[k], AREA);
	}
	CHECK_IS(tern_barrier(t), 0);
}

/* Everybody looks at its own. */
static inline void areas_check(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	for (int k = 0; k < 2; k++)
		CHECK(model_same(area[k], board->image[tern_rank(t)][k], AREA));
	CHECK_IS(tern_barrier(t), 0);
}

#endif
