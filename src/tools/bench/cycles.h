/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the processor counts its cycles. */
#ifndef TERN_TOOLS_BENCH_CYCLES_H
#define TERN_TOOLS_BENCH_CYCLES_H

/*
 * Ticks of the processor's counter in a nanosecond, where it has one of constant rate that
 * is known to go on in every state; otherwise NaN. The rate is the processor's nominal
 * one, at which it need not run. Takes some milliseconds.
 */
double cycles_rate(void);

#endif
