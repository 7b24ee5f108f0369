/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of `tern perf`, by the file that has them. */
#ifndef TERN_TOOLS_PERF_PERF_H
#define TERN_TOOLS_PERF_PERF_H

#include "tools/bench/test.h"

/* Each up to a NULL. */
typedef const struct test *const test_rows[];
extern test_rows message_tests, job_tests, memory_tests, transfer_tests, send_tests, typed_tests;
extern test_rows chan_tests, async_tests, spawn_tests, trace_tests, delivery_tests;
extern test_rows udp_tests, ofi_tests, sequence_tests;

/* message.c: what every round trip inherits whose limit is a raw cache line */
extern const struct test raw_trip;

/* What the hidden options of job.c run; their exit status. */
int start_first_trip(const char *began);
int start_bare(void);

#endif
