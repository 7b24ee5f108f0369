/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers find what they need: whoever has returned from tern_alloc_all(), or has opened its end
 * of a channel, tells the others at once, and their handlers use what their own calls have yet to
 * return. Before each round the ranks owe each other more messages than rings hold, in requests,
 * replies and deferred functions, so a call that stopped serving too early would wait for ever.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tern/chan.h>
#include <tern/mem.h>

#include "lib/handed.h"

enum {
	USE,
	PLAIN,
	ASK,
	ANSWER,
	DEFER,
	GOT,
	READY,
	ROUNDS = 40,
	MANY = 1500,
	FEW = 50,
	PLAINLY = 2,
	SLOWLY = 20000
};

static tern *t;
static uint32_t me, n;
static uint64_t *volatile given[ROUNDS];
static tern_chan *volatile from[ROUNDS], *volatile to[ROUNDS];
static _Atomic uint64_t used, answered, deferred, ready, early;

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "handout: rank %u: %s\n", me, tern_strerror(rc));
	exit(1);
}

static void on_use(tern *e, const tern_msg *m)
{
	if (!given[tern_msg_word(m, 0)])
		early++;
	else
		*given[tern_msg_word(m, 0)] += 1;
	tern_signal(e, &used, 1);
}

static void on_got(tern *e, const tern_msg *m)
{
	early += !(tern_msg_word(m, 1) ? from : to)[tern_msg_word(m, 0)];
	tern_signal(e, &used, 1);
}

static void on_plain(tern *e, const tern_msg *m)
{
	(void)e;
	for (volatile uint64_t i = tern_msg_word(m, 1); i > PLAINLY; i--)
		;
}

static void on_ask(tern *e, const tern_msg *m)
{
	must(tern_reply(e, m, ANSWER, 1));
}

static void on_answer(tern *e, const tern_msg *m)
{
	(void)m;
	tern_signal(e, &answered, 1);
}

static void on_ready(tern *e, const tern_msg *m)
{
	(void)m;
	tern_signal(e, &ready, 1);
}

static void send_many(tern *e, void *arg)
{
	for (int i = 0; i < MANY; i++)
		must(tern_request(e, (me + 1) % n, PLAIN, 1, PLAINLY));
	(void)arg;
	tern_signal(e, &deferred, 1);
}

/* They keep the receiver of the offer before them busy until more has come. */
static void send_slow(tern *e, void *arg)
{
	(void)arg;
	for (int i = 0; i < FEW; i++)
		must(tern_request(e, 1, PLAIN, 1, SLOWLY));
}

static void on_defer(tern *e, const tern_msg *m)
{
	(void)m;
	must(tern_defer(e, send_many, NULL));
}

/* Leaves much to be handled behind. */
static void owe(int round)
{
	uint32_t next = (me + 1) % n;
	for (int i = 0; i < MANY && (round + (int)me) % 2; i++)
		must(tern_request(t, next, i % 2 ? PLAIN : ASK, 1, PLAINLY));
	must(tern_request(t, next, DEFER));
}

static void memory_round(int round)
{
	owe(round);
	given[round] = handed_alloc_all(t, sizeof **given);
	must(given[round] ? 0 : -errno);
	for (uint32_t r = 0; r < n; r++)
		if (r != me)
			must(tern_request(t, r, USE, round));
	must(tern_wait(t, &used, n - 1));
	must(tern_barrier(t));
}

/*
 * Rank 0 opens a channel to 1, which is about to wait for it; either tells the other as soon as it
 * has its end. Where handlers run between calls, too, they may run before rank 1 has called.
 */
static void channel_round(int round)
{
	tern_chan *c = NULL;
	if (me > 1 || tern_delivery_get(t) != TERN_DELIVERY_POLL)
		return;
	if (me == 1)
		must(tern_request(t, 0, READY));
	else
		must(tern_wait(t, &ready, 1));
	if (me == 0)
		must(tern_defer(t, send_slow, NULL)); /* which the call's wait will run */
	if (me == 0)
		must(tern_chan_to(t, 1, (uint64_t)round, (tern_chan **)&to[round]));
	else
		must(tern_chan_from(t, 0, (uint64_t)round, (tern_chan **)&from[round]));
	c = me ? from[round] : to[round];
	must(c ? 0 : -ENXIO);
	must(tern_request(t, 1 - me, GOT, round, me == 0));
	must(tern_wait(t, &used, 1));
}

int main(void)
{
	must(tern_open(&t, NULL));
	must(tern_on(t, USE, on_use));
	must(tern_on(t, PLAIN, on_plain));
	must(tern_on(t, ASK, on_ask));
	must(tern_on(t, ANSWER, on_answer));
	must(tern_on(t, DEFER, on_defer));
	must(tern_on(t, GOT, on_got));
	must(tern_on(t, READY, on_ready));
	me = tern_rank(t);
	n = tern_size(t);
	for (int round = 0; round < ROUNDS; round++) {
		memory_round(round);
		channel_round(round);
	}
	must(tern_wait(t, &deferred, ROUNDS)); /* what was put off has been done */
	must(tern_barrier(t));
	must(tern_close(t));
	if (early)
		printf("rank %u: %llu handlers ran before their data was there\n", me,
		       (unsigned long long)early);
	return early != 0;
}
