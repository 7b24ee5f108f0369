/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_TOOLS_TRACE_CLOCK_H
#define TERN_TOOLS_TRACE_CLOCK_H

#include "tools/trace/merge.h"

/* Fills the offsets of the tracks from the delays of the matched messages. 0 or -ENOMEM. */
int clocks_compare(struct merged *m);

#endif
