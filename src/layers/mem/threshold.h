/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_MEM_THRESHOLD_H
#define TERN_MEM_THRESHOLD_H

#include "base/threshold.h"

#define MEM_THRESHOLDS(X)                                                     \
	X(WORD_MOST, 8, "copied as a word")                                   \
	X(FEW_LEAST, 16, "copied 16 at a time")                               \
	X(WIDE_LEAST, 64, "copied in wide registers")                         \
	X(WIDE_MOST, 1024, "copied in wide registers without a loop")         \
	X(WIDE_LONG, 4096, "copied in wide registers at all")                 \
	X(SEGMENT_WORDS, 32, "into a segment in the words of a message")      \
	X(GRANT_PAGE, 4096, "granted as a whole")                             \
	X(LONG_RUN, 4096, "runs that are packed in rows")                     \
	X(START_IN_ONE_GO, 64 << 10, "a split-phase copy in the call itself") \
	X(IN_ONE_GO, 256 << 10, "a blocking copy without a look at messages")

enum mem_threshold { MEM_THRESHOLDS(THRESHOLD_NAME) };

#endif
