/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_POST_THRESHOLD_H
#define TERN_POST_THRESHOLD_H

#include "base/threshold.h"

#define POST_THRESHOLDS(X)                            \
	X(GATHER_BYTES, 2 << 10, "a buffer of posts") \
	X(GATHER_BYTES_MANY, 1 << 10, "the same in a job of many ranks")

enum post_threshold { POST_THRESHOLDS(THRESHOLD_NAME) };

#endif
