/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of `tern perf`, by the file that defines them. */
#ifndef TERN_TOOLS_PERF_PERF_H
#define TERN_TOOLS_PERF_PERF_H

#include "tools/bench/test.h"

/* message.c */
perf_phase trip_raw_pause, trip_raw_bare; /* the limit of every round trip */
extern const struct test test_round_trip, test_rate, test_payload, test_injection, test_memcpy;
/* overhead.c */
extern const struct test test_send_overhead, test_handling_overhead, test_poll;
extern const struct test test_two_receivers, test_two_senders;
/* job.c */
extern const struct test test_barrier, test_idle, test_memory;
/* start.c */
extern const struct test test_start;

/* memory.c */
extern const struct test test_put, test_get, test_put_read, test_r_infinity, test_n_half;
/* private.c */
extern const struct test test_private_put, test_private_get, test_fallback_put, test_fallback_get;
/* beside.c */
extern const struct test test_during, test_during_private, test_chunk, test_chunk_trip;
/* copy.c */
extern const struct test test_copy_clean, test_copy_dirty, test_atomic;

/* send.c */
extern const struct test test_ready_trip, test_auto_trip, test_rendezvous;

/* trace.c */
extern const struct test test_trace;

/* typed.c */
extern const struct test test_typed;
/* chan.c */
extern const struct test test_chan_trip, test_chan_rate, test_multicast;
/* spawn.c */
extern const struct test test_spawn_trip, test_spawn_rate, test_yield;

/* async.c */
extern const struct test test_async_trip, test_turn, test_overlap, test_no_overlap;
/* served.c */
extern const struct test test_served_thread, test_served_interrupt;
/* delivery.c */
extern const struct test test_slow_thread, test_slow_interrupt, test_barrier_thread;
extern const struct test test_hold_poll, test_hold_thread, test_hold_interrupt;

/* udp.c */
extern const struct test test_udp_trip, test_udp_auth_trip, test_udp_rate, test_udp_bulk, test_udp_claim,
	test_udp_lossy;

/* ofi.c */
extern const struct test test_ofi_trip, test_ofi_wait_trip, test_ofi_nap_trip, test_ofi_shm_trip,
	test_ofi_bulk, test_ofi_shm_bulk;

/* sequence.c */
extern const struct test test_block, test_stream, test_stream_group;

/* What the hidden options of start.c run; their exit status. */
int start_first_trip(const char *began);
int start_bare(void);

#endif
