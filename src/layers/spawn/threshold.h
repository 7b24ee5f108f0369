/* SPDX-License-Identifier: BSD-3-Clause */
/* The lengths from which on this layer moves data in another way; see base/threshold.h. */
#ifndef TERN_SPAWN_THRESHOLD_H
#define TERN_SPAWN_THRESHOLD_H

#include <tern/thread.h>

#include "base/threshold.h"

#define SPAWN_THRESHOLDS(X) X(SPAWN_BYTES, TERN_SPAWN_DATA_MAX, "data of a new thread")

enum spawn_threshold { SPAWN_THRESHOLDS(THRESHOLD_NAME) };

#endif
