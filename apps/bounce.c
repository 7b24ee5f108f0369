/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bounce test (Rosing and Saltz, section 4): a number goes back and forth between two ranks,
 * each adds one. The receiver waits for it, or it arrives while the receiver does something else.
 */
#include "frame/app.h"

#include <tern/chan.h>
#include <tern/send.h>

enum { RECEIVE, PROBE, MESSAGE, CHANNEL, INTERRUPT };
enum { ON_NUMBER };
enum { TO_ODD = 1, TO_EVEN };

static uint64_t bounces = 1000;

static const struct app_option options[] = {
	{ "bounces", "there and back, of each pair of ranks", &bounces, 1, 1 << 24, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "receive", "send and receive; the receiver waits" },
	{ "probe", "the same, but the message arrives before it is received" },
	{ "message", "a bare message; the receiver waits" },
	{ "channel", "an open channel; the receiver waits" },
	{ "interrupt", "a bare message, which interrupts a receiver that computes" },
	{ 0 },
};

static uint64_t number;          /* the last one that came here */
static _Atomic uint64_t arrived; /* how many have come */
static tern_chan *to, *from;
static tern_out out;
static tern_in in;

static void on_number(tern *t, const tern_msg *m)
{
	(void)t;
	number = tern_msg_word(m, 0);
	atomic_fetch_add(&arrived, 1);
}

/* Ranks 0 and 1, 2 and 3, ...; the last of an odd number has nobody. */
static uint32_t partner(const struct app_job *j)
{
	return j->rank ^ 1;
}

static int pairs(const struct app_job *j)
{
	return partner(j) < j->size;
}

static int has_arrived(tern *t, void *arg)
{
	(void)t;
	return atomic_load(&arrived) >= *(uint64_t *)arg;
}

/* -- Communication -------------------------------------------------------------------- */

static void give(struct app_job *j, uint64_t value)
{
	if (j->variant <= PROBE)
		app_must(j, tern_send(j->t, partner(j), TO_ODD, &value, sizeof value));
	else if (j->variant == CHANNEL)
		app_must(j, tern_chan_put(&out, &value, sizeof value));
	else
		app_must(j, tern_request(j->t, partner(j), ON_NUMBER, value));
}

/* The k-th number that comes. */
static uint64_t take(struct app_job *j, uint64_t k)
{
	tern_match match = { .rank = partner(j), .id = TO_ODD };
	int rc = 0;
	while (j->variant == PROBE && !rc)
		app_must(j, rc = tern_probe(j->t, &match, NULL));
	switch (j->variant) {
	case PROBE:
	case RECEIVE:
		app_must(j, tern_recv(j->t, partner(j), TO_ODD, &number, sizeof number, NULL));
		break;
	case CHANNEL:
		app_must(j, tern_chan_get(&in, &number, sizeof number));
		break;
	case MESSAGE:
		app_must(j, tern_wait_until(j->t, has_arrived, &k));
		break;
	default: /* it computes, and calls nothing of Tern */
		while (!has_arrived(j->t, &k))
			;
	}
	return number;
}

static void run(struct app_job *j)
{
	double begun = app_seconds(j);
	for (uint64_t k = 1; k <= bounces && pairs(j); k++)
		if (j->rank % 2 == 0) {
			give(j, number + 1);
			take(j, k);
		} else {
			give(j, take(j, k) + 1);
		}
	app_figure(j, "ns one way", (app_seconds(j) - begun) * 1e9 / (2 * (double)bounces));
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	if (j->size < 2)
		app_refuse(j, "a number bounces between two ranks, and there is one");
	app_must(j, tern_on(j->t, ON_NUMBER, on_number));
	app_must(j, tern_barrier(j->t));
	if (pairs(j)) {
		int odd = j->rank % 2;
		app_must(j, tern_chan_to(j->t, partner(j), odd ? TO_EVEN : TO_ODD, &to));
		app_must(j, tern_chan_from(j->t, partner(j), odd ? TO_ODD : TO_EVEN, &from));
		out = tern_chan_out(to);
		in = tern_chan_in(from);
	}
	j->amount = 2e-6 * (double)bounces * (j->size / 2);
}

static void reset(struct app_job *j)
{
	number = 0;
	atomic_store(&arrived, 0);
	app_delivery(j, j->variant == INTERRUPT ? TERN_DELIVERY_INTERRUPT : TERN_DELIVERY_POLL);
}

/* An even rank ends with what both have added, an odd one with one less. */
static uint64_t wrong(struct app_job *j)
{
	app_delivery(j, TERN_DELIVERY_POLL);
	return pairs(j) ? app_differs_word("number", 0, number, 2 * bounces - j->rank % 2) : 0;
}

static double predict(struct app_job *j)
{
	const struct app_logp *p = j->logp;
	return 2 * (double)bounces * (p->overhead_send + p->latency + p->overhead_receive);
}

static void close(struct app_job *j)
{
	if (!pairs(j))
		return;
	tern_chan_out_back(&out);
	tern_chan_in_back(&in);
	app_must(j, tern_chan_close(to));
	app_must(j, tern_chan_close(from));
}

static const char *lacks(struct app_job *j)
{
	return j->variant == INTERRUPT ? app_interrupt_lacks(j) : NULL;
}

const struct app app = {
	.name = "bounce",
	.what = "Bounces a number between pairs of ranks (Rosing and Saltz, section 4),\n"
		"with a receiver that waits and with messages that arrive early.",
	.unit = "Mmessage",
	APP_FUNCTIONS,
	.predict = predict,
	.lacks = lacks,
};
