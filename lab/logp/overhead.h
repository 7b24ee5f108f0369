/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Overheads by the papers' phases (thesis 4.2.4, 4.3.4), between processes: a rank that sends to
 * two in turn is the bottleneck, and so is one that two send to. They contain what the processor's
 * part alone leaves out: the way of cache lines, or over a network the work of the kernel. Three
 * ranks play them, in rounds of their own.
 */
#ifndef TERN_LAB_LOGP_OVERHEAD_H
#define TERN_LAB_LOGP_OVERHEAD_H

#include "lab/bench/series.h"
#include "lab/bench/test.h"

enum { OVERHEAD_RANKS = 3 };

/* Payloads of as many bytes as the size, as requests and as sends that are received. */
perf_phase bytes_two_receivers, bytes_two_senders;
perf_phase sends_two_receivers, sends_two_senders, sends_trip, sends_stream;

/* What is found: o_s and o_r of each kind of message, and a round trip and g of the last. */
enum overhead_kind { OVERHEAD_WORDS, OVERHEAD_BYTES, OVERHEAD_SENDS, OVERHEAD_KINDS };
enum { OVERHEAD_TRIP = 2 * OVERHEAD_KINDS, OVERHEAD_GAP, OVERHEAD_PHASES };

extern const struct overhead_phase {
	const char *name, *unit; /* of the size: words, bytes; or how they are sent */
	perf_phase *play;
} overhead_phases[OVERHEAD_PHASES];

struct overhead {
	struct series_estimate is[OVERHEAD_PHASES]; /* ns */
	bool played;                                /* false: none of it was */
};

/*
 * Requests of `words`, payloads and sends of `bytes`, `count` of the short ones in a round. 0 or a
 * code whose sentence tern_strerror() has. Nothing is played on a simulated machine, whose nodes
 * are those that TERN_SIM says.
 */
int overhead_run(uint32_t words, uint32_t bytes, uint64_t count, unsigned rounds,
		 struct overhead *o);

#endif
