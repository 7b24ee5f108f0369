/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_SEQUENCE_THRESHOLD_H
#define TERN_SEQUENCE_THRESHOLD_H

#include "base/threshold.h"

#define SEQUENCE_THRESHOLDS(X)                                                          \
	X(LINE2_BYTES, 16, "a line of a block, two words of it")                        \
	X(LINE4_BYTES, 32, "the same, four words")                                      \
	X(LINES_MOST, 128, "a block in lines: they cost less than one payload")         \
	X(PACKET, TERN_PAYLOAD_MAX, "a packet of a block")                              \
	X(BURST_BYTES, 8 * PACKET, "of a block that nobody has made room for, at once") \
	X(FEW_BYTES, 64 * PACKET, "packets of which one word says whether they came")

enum sequence_threshold { SEQUENCE_THRESHOLDS(THRESHOLD_NAME) };

#endif
