/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --flow`: the strategies by which a receiver is not overrun, over UDP on this machine: short messages one
 * way, payloads one way, and several senders to one receiver that is slow. How fast, with how many
 * packets, and how many of those were sent again.
 */
#ifndef TERN_TOOLS_PERF_COMPARE_FLOW_H
#define TERN_TOOLS_PERF_COMPARE_FLOW_H

struct perf_options;
int perf_flow_main(const struct perf_options *o); /* the exit status */

#endif
