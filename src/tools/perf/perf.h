/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of `tern perf`, by the file that has them. */
#ifndef TERN_TOOLS_PERF_PERF_H
#define TERN_TOOLS_PERF_PERF_H

#include "tools/bench/test.h"

/* Each up to a NULL. */
extern const struct test *const message_tests[],
	*const job_tests[],
		*const memory_tests[],
			*const transfer_tests[],
				*const send_tests[],
					*const typed_tests[],
						*const chan_tests[],
							*const async_tests[],
								*const spawn_tests[],
									*const trace_tests[],
										*const delivery_tests[],
											*const udp_tests[],
												*const ofi_tests[],
													*const sequence_tests
														[];

/* message.c */
perf_phase trip_raw;     /* the limit of every round trip; its way is a raw_manner */
perf_phase rate_measure; /* requests one way, of as many words as the size: millions a second */
#define TRIP_RAW "a raw cache line there and back, 512 lines in turn, the better of two ways to spin"

/* What the hidden options of job.c run; their exit status. */
int start_first_trip(const char *began);
int start_bare(void);

#endif
