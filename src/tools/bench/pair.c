/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches between two endpoints of one thread, timed without the cost of the clock. */
#include "tools/bench/pair.h"

#include "base/clock.h"
#include "tools/bench/words.h"

tern *pair[2];
static uint64_t clock_cost;

/* The least time that two looks at the clock lie apart. */
static uint64_t clock_measure(void)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 1000; i++) {
		uint64_t first = clock_ns();
		uint64_t apart = clock_ns() - first;
		if (apart < least)
			least = apart;
	}
	return least;
}

int pair_open_at(tern *ends[2])
{
	int rc = tern_open_local(2, ends);
	if (!rc)
		rc = words_register(ends[0]);
	return rc ? rc : words_register(ends[1]);
}

int pair_open(void)
{
	clock_cost = clock_measure();
	return pair_open_at(pair);
}

uint64_t pair_between(uint64_t began, uint64_t ended)
{
	return ended > began + clock_cost ? ended - began - clock_cost : 0;
}

uint64_t pair_since(uint64_t began)
{
	return pair_between(began, clock_ns());
}

static int pair_handle(tern *t, unsigned n, uint64_t *ns)
{
	unsigned handled = 0;
	int rc = 0;
	uint64_t began = clock_ns();
	while (handled < n && rc >= 0) {
		rc = tern_poll(t);
		handled += rc > 0 ? (unsigned)rc : 0;
	}
	*ns += pair_since(began);
	return rc < 0 ? rc : 0;
}

/* Nanoseconds of all batches; see struct pair_each. */
struct pair_cost {
	uint64_t send, handle, answer;
};

static int pair_once(const struct pair_batch *b, uint32_t size, struct pair_cost *c)
{
	uint64_t began = clock_ns();
	int rc = b->send(size, b->n);
	c->send += pair_since(began);
	if (!rc)
		rc = pair_handle(pair[1], b->n, &c->handle);
	if (!rc && b->answered)
		rc = pair_handle(pair[0], b->n, &c->answer);
	return rc;
}

struct pair_each pair_each(struct bench_rank *p, const struct pair_batch *b, uint32_t size)
{
	struct pair_cost c = { 0 };
	uint64_t sent = 0;
	for (; !p->rank && sent < p->count && !p->rc; sent += b->n)
		p->rc = pair_once(b, size, &c);
	double n = sent ? (double)sent : 1;
	return (struct pair_each){ (double)c.send / n, (double)c.handle / n, (double)c.answer / n };
}

static int batch_words(uint32_t words, unsigned n)
{
	return words_send(pair[0], 1, words, n);
}

static const struct pair_batch batch = { .send = batch_words, .n = PAIR_BATCH };

double words_sending(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).send;
}

double words_handling(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).handle;
}
