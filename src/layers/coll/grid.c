/* SPDX-License-Identifier: BSD-3-Clause */
/* Members in a grid: arithmetic alone. */
#include <errno.h>

#include <tern/coll.h>

#include "base/error.h"

/* The product of the sizes that are given, and how many are not; 0 if the grid is none. */
static uint64_t sizes_given(const tern_grid *grid, unsigned *missing)
{
	uint64_t product = 1;
	*missing = 0;
	if (!grid || !grid->dims || grid->dims > TERN_GRID_DIMS)
		return 0;
	for (unsigned d = 0; d < grid->dims; d++) {
		*missing += !grid->size[d];
		product *= grid->size[d] ? grid->size[d] : 1;
		if (product > UINT32_MAX)
			return 0;
	}
	return product;
}

/* The largest divisor of n whose `parts`-th power is not above n; at least 1. */
static uint32_t divisor_even(uint32_t n, unsigned parts)
{
	uint32_t best = 1;
	for (uint32_t d = 2; d <= n; d++) {
		uint64_t power = 1;
		for (unsigned i = 0; i < parts && power <= n; i++)
			power *= d;
		if (power > n)
			break;
		if (n % d == 0)
			best = d;
	}
	return best;
}

int tern_grid_fit(tern_grid *grid, uint32_t n)
{
	unsigned missing;
	uint64_t given = sizes_given(grid, &missing);
	if (!given || !n || n % given || (!missing && n != given))
		return error_set(-EINVAL,
				 "tern_grid_fit() was given %u members for a grid of %u dimensions "
				 "whose sizes have the product %llu; there may be %d dimensions",
				 n, grid ? grid->dims : 0, (unsigned long long)given,
				 TERN_GRID_DIMS);
	uint32_t left = n / (uint32_t)given;
	for (unsigned d = grid->dims; d-- > 0;) { /* the last ones are the smallest */
		if (grid->size[d])
			continue;
		grid->size[d] = missing == 1 ? left : divisor_even(left, missing);
		left /= grid->size[d];
		missing--;
	}
	return 0;
}

void tern_grid_coords(const tern_grid *grid, uint32_t member, int64_t *coords)
{
	for (unsigned d = grid->dims; d-- > 0;) {
		coords[d] = member % grid->size[d];
		member /= grid->size[d];
	}
}

uint32_t tern_grid_member(const tern_grid *grid, const int64_t *coords)
{
	uint64_t member = 0;
	for (unsigned d = 0; d < grid->dims; d++) {
		int64_t size = grid->size[d], at = coords[d];
		if (grid->around >> d & 1)
			at = (at % size + size) % size;
		if (at < 0 || at >= size)
			return TERN_RANK_NONE;
		member = member * (uint64_t)size + (uint64_t)at;
	}
	return (uint32_t)member;
}

uint32_t tern_grid_neighbor(const tern_grid *grid, uint32_t member, unsigned dim, int64_t distance)
{
	int64_t coords[TERN_GRID_DIMS];
	if (dim >= grid->dims || member == TERN_RANK_NONE)
		return TERN_RANK_NONE;
	tern_grid_coords(grid, member, coords);
	coords[dim] += distance;
	return tern_grid_member(grid, coords);
}
