/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of short messages, by the phases of the papers' micro-benchmarks. */
#include "tools/bench/pair.h"
#include "tools/logp/phase.h"

/* 2 o_s + 2 L + 2 o_r */
static int trips(struct bench_rank *p)
{
	return words_trips(p->t, p->size, p->count);
}

double words_trip(struct bench_rank *p)
{
	return p->rank > 1 ? 0 : each_ns(p, words_acted_after(p, trips, trips));
}

/* g: a stream, at the rate of whoever is slowest. */
static int stream(struct bench_rank *p)
{
	return words_send(p->t, 1, p->size, p->count);
}

double words_gap(struct bench_rank *p)
{
	return p->rank > 1 ? 0 : each_ns(p, words_handled_after(p, trips, stream));
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
