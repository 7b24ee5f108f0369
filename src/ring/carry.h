/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a message with its payload behind it: ring.h, I8. */
#ifndef TERN_RING_CARRY_H
#define TERN_RING_CARRY_H

#include "ring/copy.h"
#include "ring/ring.h"

/*
 * Writes a message of at most six words with its payload behind it, where the leaf has room and no
 * line is open. In a stream it fetches the lines of a later message, else its own.
 */
static inline void lane_carry(struct tern_lane *lane, uint64_t bits, const void *data, size_t len,
			      TERN_SIX_)
{
	size_t bytes = carry_lines(len) * TERN_LINE;
	char *line = lane->tail, *next = line + bytes;
	const char *fetch = /* in a stream, about four messages ahead */
		line + ((lane->ahead * bytes / (2 * TERN_LINE)) & ~(size_t)(TERN_LINE - 1));
	tern_prefetch_write_(fetch);
	copy_lines(line + TERN_LINE, data, len, fetch + TERN_LINE);
	((tern_msg *)(void *)line)->payload = (uint64_t)TERN_LINE << TERN_LEN_BITS | len;
	lane->pieces -= bytes / TERN_LINE - 1;
	tern_line_write_(line, lane->head | TERN_HEAD_PAYLOAD | bits, TERN_LINE_WORDS,
			 TERN_SIX_VALUES_);
	lane->tail = next;
}

#endif
