/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_COLL_THRESHOLD_H
#define TERN_COLL_THRESHOLD_H

#include "base/threshold.h"

#define COLL_THRESHOLDS(X)                                                                \
	X(CELL_LINE, 48, "data beside their number in one line")                          \
	X(CELL_SHORT, CELL_LINE + 512, "data in the cell")                                \
	X(FAR_FEW, 4 << 10, "between machines: as few messages in a row as there can be") \
	X(MOVING_FEW, 4 << 10, "the same, of gathering and scattering")                   \
	X(REDUCE_SHORT, 8 << 10, "the root combines alone")                               \
	X(PIECE_LEAST, 8 << 10, "in one piece")                                           \
	X(SLICED_LEAST, 32 << 10, "sliced, in one piece")                                 \
	X(DIRECT_LEAST, 32 << 10, "the kernel moves it")                                  \
	X(DIRECT_FEW, 64 << 10, "the kernel moves it between few members")                \
	X(CELL_LONG, 64 << 10, "a place of the outbox")                                   \
	X(DIRECT_TURN, 256 << 10, "moved by the kernel in one turn")

enum coll_threshold { COLL_THRESHOLDS(THRESHOLD_NAME) };

#endif
