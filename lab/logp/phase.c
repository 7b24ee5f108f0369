/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of messages, by the phases of the papers' micro-benchmarks: of short messages,
 * and with a payload, which every handler reads. Bytes that nobody reads need not travel between
 * two cores.
 */
#include <string.h>

#include "lab/bench/pair.h"
#include "lab/logp/phase.h"

char logp_payload[TERN_PAYLOAD_MAX];
static _Atomic uint64_t answers;

/*
 * Answers from memory of its own: in the request's block it would not be a message like the
 * other.
 */
static void ask(tern *t, const tern_msg *m)
{
	size_t len;
	tern_msg_data(m, &len);
	words_read(t, m);
	tern_reply_data(t, m, LOGP_ANSWER, logp_payload, len);
}

static void answer(tern *t, const tern_msg *m)
{
	words_read(t, m);
	tern_signal(t, &answers, 1);
}

int logp_payload_fill(struct bench_rank *p)
{
	(void)p;
	memset(logp_payload, 1, sizeof logp_payload);
	return 0;
}

int logp_bytes_open(struct bench_rank *p)
{
	static tern_handler *const handlers[] = { ask, answer };
	int rc = pair_open(p);
	logp_payload_fill(p);
	return rc ? rc : handlers_on(p->t, LOGP_ASK, handlers, 2);
}

/* 2 o_s + 2 L + 2 o_r */
static int bytes_trip(struct bench_rank *p)
{
	int rc = tern_request_data(p->t, 1, LOGP_ASK, logp_payload, p->size);
	return rc ? rc : tern_wait(p->t, &answers, 1);
}

static REPEATS(bytes_trips, bytes_trip(p));

static phase_act *trips_of(const struct bench_rank *p)
{
	return p->way == LOGP_BYTES ? bytes_trips : words_trips_of;
}

double logp_trip(struct bench_rank *p)
{
	return p->rank > 1 ? 0 : each_ns(p, words_acted_after(p, trips_of(p), trips_of(p)));
}

static int bytes_stream(tern *t, uint32_t to, uint32_t size, uint64_t count)
{
	int rc = 0;
	for (uint64_t i = 0; i < count && !rc; i++)
		rc = tern_request_data(t, to, WORDS_READ, logp_payload, size);
	return rc;
}

static int bytes_sends_of(struct bench_rank *p)
{
	return bytes_stream(p->t, 1, p->size, p->count);
}

/* g: a stream, at the rate of whoever is slowest. */
double logp_gap(struct bench_rank *p)
{
	phase_act *sends = p->way == LOGP_BYTES ? bytes_sends_of : words_sends_of;
	return p->rank > 1 ? 0 : each_ns(p, words_handled_after(p, trips_of(p), sends));
}

static int batch_bytes(uint32_t bytes, unsigned n)
{
	return bytes_stream(pair[0], pair_to, bytes, n);
}

static const struct pair_batch batch = { .send = batch_bytes, .n = PAIR_PAYLOADS };

double bytes_sending(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).send;
}

double bytes_handling(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).handle;
}
