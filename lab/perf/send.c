/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives between two processes, beside the messages and the puts that they are made
 * of.
 */
#include <tern/send.h>

#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"
#include "tools/common/single_copy.h"

enum { PING = 1, PONG, BULK };

/* -- Round trips ------------------------------------------------------------------------- */

static char sent[TERN_PAYLOAD_MAX], got[TERN_PAYLOAD_MAX];

static int ready_post(struct bench_rank *p, tern_op *op)
{
	return tern_recv_start(p->t,
			       &(tern_match){ .rank = 1 - p->rank, .id = p->rank ? PING : PONG },
			       got, p->size, NULL, op);
}

/*
 * Rank 0 sends first, rank 1 answers. Each has its next receive posted before it sends, and posts
 * another when it has sent: the messages that these wait for are answers to later ones.
 */
static int trips_ready(struct bench_rank *p)
{
	tern_op in[2] = { TERN_OP, TERN_OP }, out = TERN_OP;
	int rc = ready_post(p, &in[0]);
	if (!rc && p->count > 1)
		rc = ready_post(p, &in[1]);
	if (!rc)
		rc = tern_barrier(p->t);
	for (uint64_t i = 0; i < p->count && !rc; i++) {
		uint64_t free =
			p->rank ? i
				: i - 1; /* the last receive that is over once this has been sent */
		if (p->rank)
			rc = tern_op_wait(p->t, &in[i % 2]);
		if (!rc)
			rc = tern_send_start(p->t, 1 - p->rank, p->rank ? PONG : PING, sent,
					     p->size, TERN_SEND_READY, &out);
		if (!rc && free < p->count && free + 2 < p->count)
			rc = ready_post(p, &in[free % 2]);
		if (!rc && !p->rank)
			rc = tern_op_wait(p->t, &in[i % 2]);
	}
	return rc;
}

static int trips_auto(struct bench_rank *p)
{
	uint32_t other = 1 - p->rank;
	int rc = tern_barrier(p->t);
	for (uint64_t i = 0; i < p->count && !rc; i++) {
		if (p->rank)
			rc = tern_recv(p->t, other, PING, got, p->size, NULL);
		if (!rc)
			rc = tern_send(p->t, other, p->rank ? PONG : PING, sent, p->size);
		if (!rc && !p->rank)
			rc = tern_recv(p->t, other, PONG, got, p->size, NULL);
	}
	return rc;
}

/* An active message there and back, with as many words as the message has. */
static int words_trips_of_bytes(struct bench_rank *p)
{
	return words_trips(p->t, p->size / sizeof(uint64_t), p->count);
}

/* -- Rendezvous ---------------------------------------------------------------------------- */

static int rendezvous(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		tern_op op = TERN_OP;
		if (p->rank)
			p->rc = tern_recv(p->t, 0, BULK, private.own, p->size, NULL);
		else
			p->rc = tern_send_start(p->t, 1, BULK, private.own, p->size,
						TERN_SEND_RENDEZVOUS, &op);
		if (!p->rc && !p->rank)
			p->rc = tern_op_wait(p->t, &op);
	}
	return p->rc;
}

/*
 * The memory layer's put between the same bytes; its target serves messages meanwhile, as a
 * receiver does.
 */
static REPEATS(put_all, tern_put(p->t, private.addr, private.own, p->size));

/* -- The rows --------------------------------------------------------------------------------- */

const struct test send_tests[] = {
	{ "ready-trip", "a message there and back in ready mode, both receives posted before", "ns",
	  "bytes", 8, 48, .sizes = { 3, { 8, 32, 48 } }, .quick = { 1, { 8 } }, .count = 4000,
	  .measure = { trips_ready, PHASE_ALL }, .limit = { { words_trips_of_bytes, PHASE_ACTED } },
	  .limit_name = "an active message with as many words and its reply, no matching",
	  .bar = { { 8, "at most 1.40" } } },
	{ "auto-trip", "a message there and back with tern_send() and tern_recv()", "ns",
	  .quick = { 1, { 8 } }, .like = "ready-trip", .measure = { trips_auto, PHASE_ALL },
	  .bar = { { 8, "at most 1.50" } } },
	{ "rendezvous",
	  "a message between private memory, its receive posted when the one before has come",
	  "GB/s", "bytes", 1, 64 << 20, .sizes = { 4, { 16 << 10, 64 << 10, 1 << 20, 16 << 20 } },
	  .quick = { 1, { 1 << 20 } }, .bytes = 16 << 20, .rounds = 31, .open = private_open,
	  .measure = { rendezvous, PHASE_ALL }, .limit = { { put_all, PHASE_ACTED } },
	  .limit_name =
		  "puts of the memory layer between the same bytes, copied once by the kernel",
	  .bar = { { 16 << 10, "at least 0.75" },
		   { 64 << 10, "at least 0.90" },
		   { 1 << 20, "at least 0.90" },
		   { 16 << 20, "at least 0.90" } },
	  .note = "the receiver does not read the data", .usable = single_copy_usable },
	{ .like = NULL },
};
