/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sending costs the sender and handling the receiver.
 *
 * The papers measure it with three nodes: one that sends to two is the bottleneck,
 * and so is one that receives from two. That needs three cores. Everywhere else,
 * two endpoints of one thread give the processor's part: a batch is sent while
 * nobody polls, then handled, and every line stays in this core's cache.
 */
#include "base/clock.h"
#include "tools/bench/pair.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

static struct raw_line own[RAW_LINES];

static int overhead_open(struct player *p)
{
	(void)p;
	return pair_open();
}

static int overhead_send(uint32_t words, unsigned n)
{
	return words_send(pair[0], 1, words, n);
}

static struct pair_cost overhead_measure(struct player *p)
{
	static const struct pair_batch batch = { .send = overhead_send, .n = PAIR_BATCH };
	struct pair_cost c;
	uint64_t sent;
	p->rc = pair_play(&batch, p->size, p->count, &c, &sent);
	return c;
}

static uint64_t batches(const struct player *p)
{
	return (p->count + PAIR_BATCH - 1) / PAIR_BATCH;
}

static double each(const struct player *p, uint64_t ns)
{
	return (double)ns / (double)(batches(p) * PAIR_BATCH);
}

static double send_measure(struct player *p)
{
	return each(p, overhead_measure(p).send);
}

static double handling_measure(struct player *p)
{
	return each(p, overhead_measure(p).handle);
}

static struct pair_cost own_measure(const struct player *p)
{
	struct pair_cost c = { 0 };
	for (uint64_t i = 0; i < batches(p); i++) {
		uint64_t began = clock_ns();
		raw_write_own(own, i * PAIR_BATCH, PAIR_BATCH);
		c.send += pair_since(began);
		began = clock_ns();
		raw_sink += raw_read_own(own, i * PAIR_BATCH, PAIR_BATCH);
		c.handle += pair_since(began);
	}
	return c;
}

static double send_raw(struct player *p)
{
	return each(p, own_measure(p).send);
}

static double handling_raw(struct player *p)
{
	return each(p, own_measure(p).handle);
}

const struct test test_send_overhead = {
	.name = "send-overhead",
	.purpose = "what a request costs its sender",
	.size_name = "words",
	.size_most = TERN_WORDS_MAX,
	.sizes = { 2, { 1, 4 } },
	.unit = "ns",
	.ranks = 1,
	.cores = 1,
	.count = 40 * PAIR_BATCH,
	.rounds = 51,
	.warm = 2,
	.open = overhead_open,
	.measure = send_measure,
	.limit = { send_raw },
	.limit_name = "writing one line with 4 words, in this core's cache",
	.note = "two endpoints of one thread, so that no line travels: the instructions alone",
};

const struct test test_handling_overhead = {
	.name = "handling-overhead",
	.purpose = "what a request costs its receiver, up to and including a small handler",
	.size_name = "words",
	.size_most = TERN_WORDS_MAX,
	.sizes = { 2, { 1, 4 } },
	.unit = "ns",
	.ranks = 1,
	.cores = 1,
	.count = 40 * PAIR_BATCH,
	.rounds = 51,
	.warm = 2,
	.open = overhead_open,
	.measure = handling_measure,
	.limit = { handling_raw },
	.limit_name = "reading one line with 4 words, in this core's cache",
	.note = "two endpoints of one thread, so that no line travels: the instructions alone",
};

/* -- An empty poll ---------------------------------------------------------------- */

enum { PEERS_MOST = 255, POLLS_TO_SILENCE = 20000 };

/* Rank 0 and its peers, all of which this thread plays; each has sent once, and is silent since. */
static tern *circle[PEERS_MOST + 1];

static double poll_time(struct player *p, tern *t)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && p->rc >= 0; i++)
		p->rc = tern_poll(t);
	return (double)(clock_ns() - began) / (double)p->count;
}

static double poll_measure(struct player *p)
{
	return poll_time(p, circle[0]);
}

/* One peer, which has sent lately. */
static double poll_one(struct player *p)
{
	p->rc = words_send(pair[0], 1, 1, 1);
	if (!p->rc)
		p->rc = tern_poll(pair[1]);
	return p->rc < 0 ? 0 : poll_time(p, pair[1]);
}

static int poll_open(struct player *p)
{
	int rc = pair_open();
	if (!rc)
		rc = tern_open_local(p->size + 1, circle);
	for (uint32_t r = 0; !rc && r <= p->size; r++)
		rc = words_register(circle[r]);
	for (uint32_t r = 1; !rc && r <= p->size; r++)
		rc = words_send(circle[r], 0, 1, 1);
	for (int i = 0; rc >= 0 && i < POLLS_TO_SILENCE; i++)
		rc = tern_poll(circle[0]);
	return rc < 0 ? rc : 0;
}

const struct test test_poll = {
	.name = "poll",
	.purpose = "a poll that finds nothing, with as many peers that have fallen silent",
	.size_name = "peers",
	.size_least = 1,
	.size_most = PEERS_MOST,
	.sizes = { 2, { 1, PEERS_MOST } },
	.unit = "ns",
	.ranks = 1,
	.cores = 1,
	.count = 100000,
	.rounds = 51,
	.warm = 2,
	.open = poll_open,
	.measure = poll_measure,
	.limit = { poll_one },
	.limit_name = "the same with one peer that has sent lately",
};

/* -- The papers' way: three ranks ------------------------------------------------- */

static int three_open(struct player *p)
{
	return words_register(p->t);
}

static int fan_out(struct player *p)
{
	int rc = 0;
	for (uint64_t i = 0; i < p->count && !rc; i++)
		rc = tern_request(p->t, 1 + i % 2, WORDS_TAKE + 4, i, i, i, i);
	if (!rc)
		rc = words_last(p->t, 1);
	return rc ? rc : words_last(p->t, 2);
}

static double two_receivers_measure(struct player *p)
{
	uint64_t began = clock_ns();
	p->rc = p->rank ? words_serve(p->t, 1) : fan_out(p);
	return (double)(clock_ns() - began) / (double)p->count;
}

const struct test test_two_receivers = {
	.name = "two-receivers",
	.purpose = "one rank sends to two in turn, so that the sender is the bottleneck",
	.size_name = "words",
	.size_least = 4,
	.size_most = 4,
	.sizes = { 1, { 4 } },
	.unit = "ns",
	.ranks = 3,
	.cores = 3,
	.count = 200000,
	.rounds = 51,
	.warm = 2,
	.open = three_open,
	.measure = two_receivers_measure,
};

static int fan_in(struct player *p)
{
	int rc = words_send(p->t, 0, 4, p->count / 2);
	return rc ? rc : words_last(p->t, 0);
}

static double two_senders_measure(struct player *p)
{
	uint64_t began = clock_ns();
	p->rc = p->rank ? fan_in(p) : words_serve(p->t, 2);
	return (double)(clock_ns() - began) / (double)(p->count / 2 * 2);
}

const struct test test_two_senders = {
	.name = "two-senders",
	.purpose = "two ranks send to one, so that the receiver is the bottleneck",
	.size_name = "words",
	.size_least = 4,
	.size_most = 4,
	.sizes = { 1, { 4 } },
	.unit = "ns",
	.ranks = 3,
	.cores = 3,
	.count = 200000,
	.rounds = 51,
	.warm = 2,
	.open = three_open,
	.measure = two_senders_measure,
};
