/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --paper`: the rows of tables 4-1, 4-7 and 4-8 of von Eicken's thesis, measured
 * here, beside what it gives for the nCUBE/2 and the CM-5.
 */
#ifndef TERN_TOOLS_PERF_COMPARE_PAPER_H
#define TERN_TOOLS_PERF_COMPARE_PAPER_H

#include "tools/bench/test.h"

/* The exit status. */
int paper_main(bool json, bool plain, unsigned rounds, uint64_t count);

/*
 * paper_cost.c: ns for one operation, of rank 0; overheads are measured between two
 * endpoints of one thread. The size is a number of words where it matters.
 */
int paper_open(struct bench_rank *p);
perf_phase paper_reply, paper_handle_reply;
perf_phase paper_segment, paper_xfer4, paper_xfer4_reply, paper_xfer, paper_xfer_reply;
perf_phase paper_handle_one, paper_handle_two;
perf_phase paper_poll, paper_poll_requests, paper_poll_replies;
perf_phase paper_fetch_ask, paper_fetch_serve, paper_fetch_trip;
perf_phase paper_injection;

#endif
