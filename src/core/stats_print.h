/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_CORE_STATS_PRINT_H
#define TERN_CORE_STATS_PRINT_H

#include <stdbool.h>
#include <tern/tern.h>

/*
 * What the rank has counted, on standard error, in one write: a table, or one JSON object in a
 * line.
 */
void stats_print(tern *t, bool json);

#endif
