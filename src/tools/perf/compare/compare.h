/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern perf` runs instead of its tests; each returns the exit status. */
#ifndef TERN_TOOLS_PERF_COMPARE_COMPARE_H
#define TERN_TOOLS_PERF_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

struct perf_options;

/*
 * --paper: the rows of tables 4-1, 4-7 and 4-8 of von Eicken's thesis, measured here, beside what
 * it gives for the nCUBE/2 and the CM-5.
 */
int paper_main(bool json, bool plain, unsigned rounds, uint64_t count);

/*
 * --flow: the strategies by which a receiver is not overrun, over UDP on this machine: short
 * messages one way, payloads one way, and several senders to one receiver that is slow. How fast,
 * with how many packets, and how many of those were sent again.
 */
int flow_main(const struct perf_options *o);

/* --delivery: how the ways of delivery compare. */
int sweep_main(const struct perf_options *o);

#endif
