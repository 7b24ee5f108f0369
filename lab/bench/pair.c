/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches between two endpoints of one thread, timed without the cost of the clock. */
#include "lab/bench/pair.h"

#include <string.h>
#include <tern/sim.h>
#include <tern/stats.h>

#include "base/clock.h"
#include "base/setting.h"
#include "base/world.h"
#include "lab/bench/words.h"

tern *pair[2];
uint32_t pair_to = 1;
static uint64_t clock_cost;

enum { SIMULATED_NS = 1000000000 }; /* longer than batches travel */

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

bool pair_simulated(void)
{
	return world_used() != &world_real;
}

bool pair_networked(void)
{
	const char *net = setting_text(SETTING_NET);
	return strcmp(net, "auto") != 0 && strncmp(net, "shm", 3) != 0 && strcmp(net, "sim") != 0;
}

int pair_open(struct bench_rank *p)
{
	clock_cost = clock_measure();
	if (pair_simulated()) {
		pair[0] = pair[1] = p->t;
		pair_to = p->rank ? 0 : 1;
		return 0;
	}
	int rc = tern_open_local(2, pair);
	if (!rc)
		rc = words_register(pair[0]);
	return rc ? rc : words_register(pair[1]);
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
		if (!rc && pair_simulated())
			break; /* a controller has handled the others */
	}
	*ns += pair_since(began);
	return rc < 0 ? rc : 0;
}

/* Nanoseconds of all batches, see struct pair_each, and their messages. */
struct pair_cost {
	uint64_t send, handle, answer;
	uint64_t n;
};

/* A poll whose time goes to `found` if it handles something, and to `vain` if it does not. */
static int pair_poll(tern *t, uint64_t *found, uint64_t *vain)
{
	uint64_t began = clock_ns();
	int rc = tern_poll(t);
	*(rc > 0 ? found : vain) += pair_since(began);
	return rc;
}

/* Messages from the other end that pair[end] has ever handled. */
static uint64_t pair_handled(int end)
{
	tern_stats_peer_data d = { 0 };
	tern_stats_peer(pair[end], 1 - (uint32_t)end, &d);
	return d.handled;
}

/*
 * Over a network the last messages of a burst leave when their sender polls, once the first have
 * been acknowledged; so both ends poll in turn until all messages, and all replies, have been
 * handled. The sender's polls are a part of sending. A receiver that finds nothing waits, and that
 * counts nowhere. What polls return does not say when that is: a send that waits for room handles
 * messages of the other end, too, since this thread has opened both (tern_open_local()).
 */
static int pair_exchange(const struct pair_batch *b, uint32_t size, struct pair_cost *c)
{
	unsigned n = b->n < PAIR_PACKETS ? b->n : PAIR_PACKETS;
	uint64_t came = pair_handled(1) + n, answers = pair_handled(0) + (b->answered ? n : 0);
	uint64_t waited = 0, began = clock_ns();
	int rc = b->send(size, n);
	c->send += pair_since(began);
	while (rc >= 0 && (pair_handled(1) < came || pair_handled(0) < answers)) {
		rc = pair_poll(pair[1], &c->handle, &waited);
		if (rc >= 0)
			rc = pair_poll(pair[0], &c->answer, &c->send);
	}
	c->n += n;
	return rc < 0 ? rc : 0;
}

static int pair_once(const struct pair_batch *b, uint32_t size, struct pair_cost *c)
{
	if (pair_networked())
		return pair_exchange(b, size, c);
	uint64_t began = clock_ns();
	int rc = b->send(size, b->n);
	c->send += pair_since(began);
	c->n += b->n;
	if (!rc)
		rc = pair_handle(pair[1], b->n, &c->handle);
	if (!rc && b->answered)
		rc = pair_handle(pair[0], b->n, &c->answer);
	return rc;
}

/* Computes until all that is under way has come, however slow the machine is. */
static int pair_compute(tern *t)
{
	uint64_t until = tern_time(t) + SIMULATED_NS;
	int rc = 0;
	while (!rc && tern_time(t) < until)
		rc = tern_sim_work(t, &(tern_work){ .integer = 1000000 });
	return rc;
}

/*
 * On a simulated machine a process is a node: rank 0 sends to rank 1, and handles what that sends
 * once all has come.
 */
static int pair_far(struct bench_rank *p, const struct pair_batch *b, uint32_t size,
		    struct pair_cost *c)
{
	int rc = p->rank ? 0 : pair_compute(p->t);
	for (int some = 1; !p->rank && !rc && some; rc = some < 0 ? some : 0)
		some = tern_poll(p->t); /* what the last barrier has left */
	uint64_t began = clock_ns();
	if (!rc && !p->rank)
		rc = b->send(size, b->n);
	c->send += clock_ns() - began;
	c->n += b->n;
	if (!rc)
		rc = tern_barrier(p->t);
	if (!rc && p->rank == 1)
		rc = b->send(size, b->n);
	if (!rc && !p->rank)
		rc = pair_compute(p->t);
	if (!rc && !p->rank)
		rc = pair_handle(p->t, b->n, &c->handle);
	return rc ? rc : tern_barrier(p->t);
}

struct pair_each pair_each(struct bench_rank *p, const struct pair_batch *b, uint32_t size)
{
	struct pair_cost c = { 0 };
	bool far = pair_simulated();
	while ((far || !p->rank) && c.n < p->count && !p->rc)
		p->rc = far ? pair_far(p, b, size, &c) : pair_once(b, size, &c);
	double n = c.n ? (double)c.n : 1;
	return (struct pair_each){ (double)c.send / n, (double)c.handle / n, (double)c.answer / n };
}

static int batch_words(uint32_t words, unsigned n)
{
	return words_send(pair[0], pair_to, words, n);
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
