/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two processes: how long one takes, how many a second, how many bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

enum {
	HANDLER_READ = WORDS_FREE,
	HANDLER_SIGNAL,
};

/* -- Round trip ----------------------------------------------------------------- */

static int message_open(struct player *p)
{
	return words_register(p->t);
}

static double trip_raw(struct player *p, enum raw_manner manner)
{
	uint64_t began = clock_ns();
	raw_trips(&p->raw, p->rank, p->count, manner);
	return (double)(clock_ns() - began) / (double)p->count;
}

double trip_raw_pause(struct player *p)
{
	return trip_raw(p, RAW_PAUSE);
}

double trip_raw_bare(struct player *p)
{
	return trip_raw(p, RAW_BARE);
}

const struct test test_round_trip = {
	.name = "round-trip",
	.purpose = "a request and its reply, with as many words",
	.size_name = "words",
	.size_most = TERN_WORDS_MAX,
	.sizes = { 5, { 0, 1, 2, 4, 6 } },
	.quick = { 1, { 4 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 4000,
	.rounds = 51,
	.warm = 2,
	.open = message_open,
	.measure = words_trip_time,
	.limit = { trip_raw_pause, trip_raw_bare },
	.limit_name = "a raw cache line there and back, 512 lines in turn, the better of two ways to spin",
	.bar = { { 4, "at most 1.10" } },
};

/* -- Rate ----------------------------------------------------------------------- */

static double per_microsecond(uint64_t count, uint64_t ns)
{
	return (double)count * 1000 / (double)ns;
}

static double rate_measure(struct player *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	uint64_t began = clock_ns();
	p->rc = words_send(p->t, 1, p->size, p->count);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return per_microsecond(p->count, clock_ns() - began);
}

static double rate_raw(struct player *p, enum raw_manner manner)
{
	uint64_t began = clock_ns();
	raw_stream(&p->raw, p->rank, p->count, manner);
	return per_microsecond(p->count, clock_ns() - began);
}

static double rate_raw_pause(struct player *p)
{
	return rate_raw(p, RAW_PAUSE);
}

static double rate_raw_bare(struct player *p)
{
	return rate_raw(p, RAW_BARE);
}

const struct test test_rate = {
	.name = "rate",
	.purpose = "requests one way, a handler called for each",
	.size_name = "words",
	.size_most = TERN_WORDS_MAX,
	.sizes = { 5, { 0, 1, 2, 4, 6 } },
	.quick = { 2, { 1, 4 } },
	.unit = "M/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 200000,
	.rounds = 51,
	.warm = 2,
	.open = message_open,
	.measure = rate_measure,
	.limit = { rate_raw_pause, rate_raw_bare },
	.limit_name = "a bare ring, one cache line with 4 words for each message (0 and 1 word share lines)",
	.bar = { { 1, "at least 150 M/s" }, { 4, "at least 0.70, 80 M/s" } },
};

/* -- Payload -------------------------------------------------------------------- */

static char *payload; /* of the sender: its own memory, as a program's would be */

static void handler_read(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	(void)t;
	raw_sink += raw_sum(data, len);
}

static void handler_signal(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	raw_sink++;
}

static int payload_fill(struct player *p)
{
	size_t all = (size_t)p->size * (1 + TERN_POOL_BLOCKS); /* the rest is what copy_ns() copies to */
	payload = aligned_alloc(64, (all + 63) / 64 * 64);
	if (!payload)
		return error_set(-ENOMEM, "no memory for %zu bytes to copy", all);
	memset(payload, 1, all);
	return 0;
}

static int payload_open(struct player *p)
{
	int rc = payload_fill(p);
	if (!rc)
		rc = words_register(p->t);
	if (!rc)
		rc = tern_on(p->t, HANDLER_READ, handler_read);
	return rc ? rc : tern_on(p->t, HANDLER_SIGNAL, handler_signal);
}

/* Nanoseconds for all of them, the last one's handler included. */
static uint64_t payload_send(struct player *p, unsigned handler)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_request_data(p->t, 1, handler, payload, p->size);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return clock_ns() - began;
}

static double payload_measure(struct player *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	return (double)(p->count * p->size) / (double)payload_send(p, HANDLER_READ);
}

static double payload_raw(struct player *p, enum raw_manner manner)
{
	uint64_t began = clock_ns();
	raw_copies(&p->raw, p->rank, p->count, payload, p->size, manner);
	return (double)(p->count * p->size) / (double)(clock_ns() - began);
}

static double payload_raw_pause(struct player *p)
{
	return payload_raw(p, RAW_PAUSE);
}

static double payload_raw_bare(struct player *p)
{
	return payload_raw(p, RAW_BARE);
}

const struct test test_payload = {
	.name = "payload",
	.purpose = "requests with a payload that the handler reads",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = TERN_PAYLOAD_MAX,
	.sizes = { 6, { 64, 256, 1024, 2048, 4096, 8192 } },
	.quick = { 1, { 4096 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 8 << 20,
	.rounds = 51,
	.warm = 2,
	.open = payload_open,
	.measure = payload_measure,
	.limit = { payload_raw_pause, payload_raw_bare },
	.limit_name = "a bare pipelined copy of that size through as many blocks, read with the same loop",
	.bar = { { 4096, "at least 0.80" } },
};

/* -- Injection and memcpy --------------------------------------------------------- */

static double injection_measure(struct player *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	return (double)payload_send(p, HANDLER_SIGNAL) / (double)(p->count * p->size);
}

/* The compiler must not see that nobody reads the copy. */
static __attribute__((noinline)) void copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/* Copies to `places` in turn: a pool has more of them than the nearest cache holds. */
static uint64_t copy_ns(const struct player *p, unsigned places)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count; i++)
		copy(payload + p->size * (1 + i % places), payload, p->size);
	return clock_ns() - began;
}

static double injection_copy(struct player *p)
{
	return p->rank ? 0 : (double)copy_ns(p, TERN_POOL_BLOCKS) / (double)(p->count * p->size);
}

const struct test test_injection = {
	.name = "injection",
	.purpose = "the time that each byte of a large message takes, which the handler does not read",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = TERN_PAYLOAD_MAX,
	.sizes = { 1, { TERN_PAYLOAD_MAX } },
	.unit = "ns/B",
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 8 << 20,
	.rounds = 51,
	.warm = 2,
	.open = payload_open,
	.measure = injection_measure,
	.limit = { injection_copy },
	.limit_name = "memcpy from private memory to as much private memory as the pool has",
};

static double memcpy_measure(struct player *p)
{
	return (double)(p->count * p->size) / (double)copy_ns(p, 1);
}

const struct test test_memcpy = {
	.name = "memcpy",
	.purpose = "memcpy between two private buffers of one process",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = 1 << 26,
	.sizes = { 3, { 1024, 4096, 65536 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 1,
	.cores = 1,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 51,
	.warm = 2,
	.open = payload_fill,
	.measure = memcpy_measure,
};
