/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern why` says of a job that has been found. */
#ifndef TERN_TOOLS_WATCH_WHY_H
#define TERN_TOOLS_WATCH_WHY_H

#include "tools/watch/watch.h"

/* Looks at it for half a second and explains, on standard output; false, with a sentence, if there is no memory. */
bool why_explain(const struct watch *watch, bool json);

#endif
