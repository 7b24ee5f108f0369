/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_TOOLS_TRACE_MATCH_H
#define TERN_TOOLS_TRACE_MATCH_H

#include "tools/trace/merge.h"

/* Fills the messages from the records of sends and from the spans of handlers. 0 or -ENOMEM. */
int messages_match(struct merged *m);

#endif
