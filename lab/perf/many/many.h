/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of many ranks that --scale shows, too. */
#ifndef TERN_LAB_PERF_MANY_MANY_H
#define TERN_LAB_PERF_MANY_MANY_H

#include "lab/perf/perf.h"

phase_act many_open;

extern const struct test test_all_to_all, test_random, test_fan_in, test_fan_out;
extern const struct test test_flooding, test_flooding_99, test_flooded, test_flooded_99;
extern const struct test test_among, test_among_99, test_burst;

#endif
