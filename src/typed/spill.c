/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spill: where messages go whose type has no buffer free, for all types together. It is two racks like
 * any other, of small cells and of large ones, so that a sender takes a cell as it takes a buffer: without a
 * question, without waiting for an answer, and with the same care for its death. A spilled message
 * stands in the queue of its type; there is no other place where it would have to be looked for.
 */
#include "typed/typed.h"

enum { SMALL_CELL = 512, CELLS_MOST = (1 << LOAN_INDEX_BITS) - 1 };

const size_t spill_cell[SPILL_RACKS] = { SMALL_CELL, SPILL_MOST };

int spill_make(struct typed *y)
{
	size_t large = y->spill_bytes / 2 / SPILL_MOST;
	size_t small = (y->spill_bytes - large * SPILL_MOST) / SMALL_CELL;
	size_t count[SPILL_RACKS] = { small, large };
	for (unsigned i = 0; i < SPILL_RACKS; i++) {
		struct shelf *s;
		uint32_t cells = count[i] < CELLS_MOST ? (uint32_t)count[i] : CELLS_MOST;
		int rc = cells && !y->shelf[KEY_SPILL + i]
				 ? shelf_make(y, KEY_SPILL + i, spill_cell[i], cells, 0, &s)
				 : 0;
		if (rc)
			return rc;
	}
	return 0;
}
