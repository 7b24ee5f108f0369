/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of the machine and what follows from them.
 *
 * LogP: a message takes o_s of its sender's processor, L on its way and o_r of its
 * receiver's; messages of one rank follow each other g apart. LogGP adds G for each
 * byte of a large one. Three things of a cache-coherent machine are not in LogP and
 * are measured besides:
 *
 * - g depends on how many messages there are. A receiver that waits takes the line of
 *   the next message out of the sender's cache by looking at it; in a long stream it
 *   lags behind and does not. So g is that of a stream, and the gaps of
 *   short bursts are a curve.
 * - What a rank sends and what it receives pass through the same cache: gaps count both.
 * - With a payload, o_s, L and o_r grow with its bytes. They are measured at several
 *   sizes, with straight lines between.
 */
#ifndef TERN_LAB_LOGP_MODEL_H
#define TERN_LAB_LOGP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/bench/series.h"

enum { CURVE_MOST = 32 };

/* Points that were measured, in the order of x. */
struct curve {
	unsigned n;
	double x[CURVE_MOST], y[CURVE_MOST];
};

struct line {
	double at_0, slope;
};

void curve_add(struct curve *c, double x, double y); /* in its place; drops what is too much */
/* On the line between its neighbours; beyond the ends, where the end is. NaN for an empty curve. */
double curve_at(const struct curve *c, double x);
/* The straight line with the least squares; NaN for fewer than two different x. */
struct line curve_line(const struct curve *c);

enum logp_name { LOGP_TRIP, LOGP_SEND, LOGP_LATENCY, LOGP_RECEIVE, LOGP_GAP, LOGP_NAMES };

/* The parameters of messages of one size; ns. */
struct logp_size {
	bool bytes; /* a payload of so many; otherwise a number of words */
	uint32_t size;
	struct series_estimate is[LOGP_NAMES];
};

enum {
	LOGP_SIZES_MOST = 24,
	LOGP_BURSTS = 8,
	LOGP_LARGE = 1024, /* bytes from which on a payload counts as large, for G */
};

struct logp_model {
	uint32_t ranks, words; /* P; what patterns send */
	unsigned n;
	struct logp_size size[LOGP_SIZES_MOST];
	struct series_estimate per_byte;           /* G; NaN with fewer than two large payloads */
	double large_gap;                          /* where G's line begins, at 0 bytes */
	struct series_estimate latency;            /* L between neighbours among all ranks */
	struct series_estimate burst[LOGP_BURSTS]; /* gap in a burst of logp_bursts[i] */
};

extern const uint32_t logp_bursts[LOGP_BURSTS];
extern const char *const logp_names[LOGP_NAMES]; /* as keys: trip, o_s, L, o_r, g */

/* NULL if that size was not measured. */
const struct logp_size *model_size(const struct logp_model *m, bool bytes, uint32_t size);

/* Predictions, in ns. */
double model_burst(const struct logp_model *m, uint32_t n);
double model_exchange(const struct logp_model *m, uint32_t each);
double model_ring(const struct logp_model *m, uint32_t ranks);
double model_blocks(const struct logp_model *m, uint32_t bytes, uint32_t n);

#endif
