/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the talks of two members lie.
 *
 * Each rank has its ends of 2 * size talks, in a row and in a column of a table, and a kernel gives
 * it a page of page table, 4 KiB, for each 2 MiB where it touches anything. So the table is laid
 * out in tiles of 2 MiB: a rank of 1,024 then has about 50 such pages for its pairs, where rows
 * behind each other would take one for each peer.
 */
#include "net/talk.h"

#include "job/commit.h"
#include "job/job.h"

enum { PAGE = 4096, TILE = 2 << 20 };

/* Rows and columns of a tile. */
struct tile {
	uint32_t rows, columns;
	size_t unit; /* bytes of a place */
};

/* [the one with the lower number][the other] */
static const struct tile pair_tile = { 16, 32, PAGE };
/* [from][to] */
static const struct tile talk_tile = { 6, 7, sizeof(struct large_talk) };

_Static_assert(16 * 32 * PAGE == TILE, "a tile of pairs is full");
_Static_assert(6 * 7 * sizeof(struct large_talk) <= TILE, "talks fit into a tile");
_Static_assert(2 * SMALL_TALK_BYTES == PAGE, "a page has both talks of a pair");

static size_t tiles_of(uint32_t n, uint32_t in_one)
{
	return (n + in_one - 1) / in_one;
}

static size_t tile_place(const struct tile *t, uint32_t columns, uint32_t row, uint32_t column)
{
	size_t tile = row / t->rows * tiles_of(columns, t->columns) + column / t->columns;
	size_t place = (size_t)(row % t->rows) * t->columns + column % t->columns;
	return tile * TILE + place * t->unit;
}

size_t pair_area(uint32_t members)
{
	return tiles_of(members, pair_tile.rows) * tiles_of(members, pair_tile.columns) * TILE;
}

size_t talk_area(uint32_t members)
{
	return tiles_of(members, talk_tile.rows) * tiles_of(members, talk_tile.columns) * TILE;
}

size_t job_pair_at(const struct job *j, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;
	return j->pair_at + tile_place(&pair_tile, j->size + j->seats, low, high);
}

size_t job_small_at(const struct job *j, uint32_t from, uint32_t to)
{
	return job_pair_at(j, from, to) + (from < to ? 0 : SMALL_TALK_BYTES);
}

size_t job_talk_at(const struct job *j, uint32_t from, uint32_t to)
{
	return j->talk_at + tile_place(&talk_tile, j->size + j->seats, from, to);
}

/* Both sides may come at once. Then both commit the page, and one of them counts it. */
int job_pair_commit(struct job *j, uint32_t a, uint32_t b, const char *what)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;
	_Atomic uint8_t *state = &j->begun[low * j->heed_row + high];
	if (atomic_load(state) & PAIR_COMMITTED)
		return 0;
	int rc = job_commit(j, job_pair_at(j, a, b), PAGE, what);
	if (!rc && atomic_fetch_or(state, PAIR_COMMITTED) & PAIR_COMMITTED)
		atomic_fetch_sub(&j->head->committed, PAGE);
	return rc;
}
