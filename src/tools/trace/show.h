/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms in which a merged trace is shown. */
#ifndef TERN_TOOLS_TRACE_SHOW_H
#define TERN_TOOLS_TRACE_SHOW_H

#include <stdio.h>

#include "tools/trace/merge.h"

void show_json(const struct merged *m, FILE *to); /* what Perfetto and chrome://tracing open */
/* The same; the page needs no arrows from sends to handlers, which the numbers of messages tell. */
void show_events(const struct merged *m, bool flows, FILE *to);
void show_html(const struct merged *m, FILE *to);    /* one page that needs nothing else */
void show_summary(const struct merged *m, FILE *to); /* text */

/*
 * What somebody who looks at the trace must know: ranks without an end, dropped events, corrected
 * clocks.
 */
void show_remarks(const struct merged *m, FILE *to);

#endif
