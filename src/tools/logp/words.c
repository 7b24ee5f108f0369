/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of short messages, by the phases of the papers' micro-benchmarks. */
#include "base/clock.h"
#include "tools/bench/pair.h"
#include "tools/logp/phase.h"

int logp_words_open(struct bench_rank *p)
{
	return words_register(p->t);
}

/* 2 o_s + 2 L + 2 o_r */
double words_trip(struct bench_rank *p)
{
	if (p->rank > 1)
		return 0;
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	p->rc = words_trips(p->t, p->size, 1);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = words_trips(p->t, p->size, p->count);
	uint64_t ended = clock_ns();
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (double)(ended - began) / (double)p->count;
}

/* g: a stream, at the rate of whoever is slowest. */
double words_gap(struct bench_rank *p)
{
	if (p->rank > 1)
		return 0;
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	p->rc = words_trips(p->t, p->size, 1);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = words_send(p->t, 1, p->size, p->count);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (double)(clock_ns() - began) / (double)p->count;
}

static int batch_send(uint32_t words, unsigned n)
{
	return words_send(pair[0], 1, words, n);
}

static struct pair_cost batch_cost(struct bench_rank *p, uint64_t *sent)
{
	static const struct pair_batch batch = { .send = batch_send, .n = PAIR_BATCH };
	struct pair_cost c;
	p->rc = pair_play(&batch, p->size, p->count, &c, sent);
	return c;
}

double words_sending(struct bench_rank *p)
{
	uint64_t sent;
	return p->rank ? 0 : (double)batch_cost(p, &sent).send / (double)sent;
}

double words_handling(struct bench_rank *p)
{
	uint64_t sent;
	return p->rank ? 0 : (double)batch_cost(p, &sent).handle / (double)sent;
}
