/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed messages beside memory copy: the receiver chooses the place, or the sender knows it. */
#include <errno.h>
#include <tern/buf.h>

#include "base/clock.h"
#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { TYPE = 1, BUFFERS_LEAST = 16, BUFFERS_MOST = 1024, BUFFERS_BYTES = 64 << 10 };

/* As many as a ring has lines, for the requests of memory copy, while they fit a near cache. */
static unsigned typed_buffers(size_t bytes)
{
	size_t n = bytes ? BUFFERS_BYTES / bytes : BUFFERS_MOST;
	return n < BUFFERS_LEAST ? BUFFERS_LEAST : n > BUFFERS_MOST ? BUFFERS_MOST : (unsigned)n;
}

static int typed_open(struct bench_rank *p)
{
	int rc = place_open(p);
	if (!rc)
		rc = tern_buf_alloc(p->t, TYPE, p->size, typed_buffers(p->size), TERN_BUF_WAIT);
	return rc ? rc : tern_barrier(p->t);
}

static int typed_take(struct bench_rank *p)
{
	tern_buf got;
	int rc = tern_buf_recv(p->t, TYPE, 0, &got);
	return rc ? rc : tern_buf_free(p->t, got.data);
}

static double typed_measure(struct bench_rank *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->rank ? typed_take(p) : tern_buf_send(p->t, 1, TYPE, place.own, p->size);
	uint64_t ended = clock_ns();
	if (p->rank)
		p->rc = p->rc ? p->rc : words_serve(p->t, 1);
	else
		p->rc = p->rc ? p->rc : words_last(p->t, 1);
	return each_byte(p, ended - began);
}

/* The sender knows the place, and tells the receiver with a request when the data is there. */
static REPEATS(puts_with_request,
	       tern_put_request(p->t, place.addr, WORDS_TAKE + 1, place.own, p->size, i));

/* -- The rows --------------------------------------------------------------------------------- */

const struct test typed_tests[] = {
	{ "typed", "typed messages that land in buffers of their receiver", "GB/s", "bytes", 1,
	  4 << 20, .sizes = { 5, { 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20 } }, .count = 4000,
	  .bytes = 8 << 20, .rounds = 31, .open = typed_open, .measure.figure = typed_measure,
	  .limit = { { puts_with_request, PHASE_ACTED } },
	  .limit_name = "memory copy: the sender puts the data where it knows, and sends a request",
	  .note = "the receiver does not read the data; it has buffers of 64 KiB, 16 to 1,024" },
	{ .like = NULL },
};
