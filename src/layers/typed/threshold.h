/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_TYPED_THRESHOLD_H
#define TERN_TYPED_THRESHOLD_H

#include "base/threshold.h"

#define TYPED_THRESHOLDS(X)                             \
	X(SMALL_CELL, 512, "a small cell of the spill") \
	X(LONG_BYTES, 64 << 10, "a typed message in one piece")

enum typed_threshold { TYPED_THRESHOLDS(THRESHOLD_NAME) };

#endif
