/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a test of `tern perf` is.
 *
 * A test is a few phases that its ranks run in turn, round after round: what is
 * measured, then the hardware's limit, then again. So both see the same machine,
 * whatever that does meanwhile, and their medians can be compared. A phase is
 * called on every rank at the same time; what rank 0 returns is the figure.
 */
#ifndef TERN_TOOLS_PERF_H
#define TERN_TOOLS_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tern/tern.h>

#include "tools/perf_raw.h"

struct sizes {
	unsigned n;
	uint32_t at[32];
};

enum { PERF_LIMITS = 2, PERF_RANKS_MOST = 256, PERF_PARTS_MOST = 128, PERF_ALSO_MOST = 4 };

/* One rank's view of the test it takes part in. */
struct player {
	tern *t; /* NULL in a test of one process */
	uint32_t rank, ranks, size;
	uint64_t count;
	struct raw raw;
	double also[PERF_ALSO_MOST]; /* further figures of the phase; see struct part */
	int spare_core;              /* a core that no rank has; -1: there is none */
	int rc;                      /* a phase that fails leaves its code here */
};

typedef double perf_phase(struct player *p);

struct test {
	const char *name, *purpose;
	const char *size_name; /* what a size counts: words, bytes, ranks */
	uint32_t size_least, size_most;
	struct sizes sizes, quick; /* usually, and for --quick */
	const char *unit;
	bool rate;      /* more is better */
	uint32_t ranks; /* processes; 0: as many as the size says */
	uint32_t cores; /* that it wants for itself: a round is played again when it had fewer */
	uint64_t count; /* messages a round, */
	uint64_t bytes; /* unless that is more bytes, or whatever a size counts, than this */
	unsigned rounds, warm;
	int (*open)(struct player *p); /* registers handlers; may be NULL */
	perf_phase *measure;
	perf_phase *limit[PERF_LIMITS]; /* the better one counts */
	const char *limit_name;
	struct {
		uint32_t size;
		const char *text;
	} bar[8]; /* what the project wants of some sizes */
	const char *note;
	struct {
		const char *name, *value;
	} set[2]; /* in the environment of its ranks */
	/* Whether it can run here, and if not, why; NULL if it always can. */
	bool (*usable)(char *why, size_t len);
};

/* perf_message.c */
perf_phase trip_raw_pause, trip_raw_bare; /* the limit of every round trip */
extern const struct test test_round_trip, test_rate, test_payload, test_injection, test_memcpy;
/* perf_overhead.c */
extern const struct test test_send_overhead, test_handling_overhead, test_poll;
extern const struct test test_two_receivers, test_two_senders;
/* perf_job.c */
extern const struct test test_barrier, test_idle, test_memory;
/* perf_start.c */
extern const struct test test_start;

/* perf_memory.c */
extern const struct test test_put, test_get, test_put_read, test_r_infinity, test_n_half;
/* perf_private.c */
extern const struct test test_private_put, test_private_get, test_fallback_put, test_fallback_get;
/* perf_beside.c */
extern const struct test test_during, test_during_private, test_chunk, test_chunk_trip;
/* perf_copy.c */
extern const struct test test_copy_clean, test_copy_dirty, test_atomic;

/* perf_send.c */
extern const struct test test_ready_trip, test_auto_trip, test_rendezvous;

/* perf_trace.c */
extern const struct test test_trace;

/* perf_typed.c */
extern const struct test test_typed;
/* perf_chan.c */
extern const struct test test_chan_trip, test_chan_rate, test_multicast;
/* perf_spawn.c */
extern const struct test test_spawn_trip, test_spawn_rate, test_yield;

/* perf_async.c */
extern const struct test test_async_trip, test_turn, test_overlap, test_no_overlap;
/* perf_served.c */
extern const struct test test_served_thread, test_served_interrupt;
/* perf_delivery.c */
extern const struct test test_slow_thread, test_slow_interrupt, test_barrier_thread;
extern const struct test test_hold_poll, test_hold_thread, test_hold_interrupt;

/* perf_udp.c */
extern const struct test test_udp_trip, test_udp_auth_trip, test_udp_rate, test_udp_bulk, test_udp_claim,
	test_udp_lossy;

/* perf_ofi.c */
extern const struct test test_ofi_trip, test_ofi_wait_trip, test_ofi_nap_trip, test_ofi_shm_trip,
	test_ofi_bulk, test_ofi_shm_bulk;

/* perf_sequence.c */
extern const struct test test_block, test_stream, test_stream_group;

/* What the hidden options of perf_start.c run; their exit status. */
int start_first_trip(const char *began);
int start_bare(void);

#endif
