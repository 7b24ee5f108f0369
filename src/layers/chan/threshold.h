/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_CHAN_THRESHOLD_H
#define TERN_CHAN_THRESHOLD_H

#include <tern/chan.h>

#include "base/threshold.h"

#define CHAN_THRESHOLDS(X)                                              \
	X(CHAN_LINE_BYTES, TERN_CHAN_FULL, "words of a channel's line") \
	X(CHAN_LEAF_BYTES, TERN_CHAN_LEAF, "a leaf of a channel")

enum chan_threshold { CHAN_THRESHOLDS(THRESHOLD_NAME) };

#endif
