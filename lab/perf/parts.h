/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rows of scattered memory have in common; a size counts runs of 64 bytes. */
#ifndef TERN_LAB_PERF_PARTS_H
#define TERN_LAB_PERF_PARTS_H

#include "lab/perf/perf.h"

enum parts_way { PARTS_PUT, PARTS_GET };

phase_act parts_open, parts_move, parts_pack; /* measured by its way, and packed by hand */

extern const struct test net_parts; /* a put over a network: what the rows of each inherit */

#endif
