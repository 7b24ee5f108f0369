/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_MSG_THRESHOLD_H
#define TERN_MSG_THRESHOLD_H

#include "base/threshold.h"

#define MSG_THRESHOLDS(X)                                                    \
	X(WORDS_MOST, 32, "a message in the words of one line")              \
	X(EIGHT_MOST, 48, "a message in eight words")                        \
	X(CELL_BYTES, 248, "a cell for a message that no receive has taken") \
	X(PULL_MOST, 32 << 10, "a rendezvous that the receiver reads alone") \
	X(PULL_SLICE, 128 << 10, "of a rendezvous, read in one poll")

enum msg_threshold { MSG_THRESHOLDS(THRESHOLD_NAME) };

#endif
