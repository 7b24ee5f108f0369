/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parameters are to predict: bursts, an exchange of all with all, a token round a ring. */
#include "base/clock.h"
#include "lab/bench/pair.h"
#include "lab/logp/phase.h"

static uint32_t words;       /* of each message that has no payload */
static uint32_t burst, came; /* messages of a burst, and how many have come */
static uint64_t stamp;       /* when the last one was handled; one clock serves both ranks */
static _Atomic uint64_t stamped, arrivals, tokens;

/* -- A burst ---------------------------------------------------------------------- */

static void burst_come(tern *t, const tern_msg *m)
{
	if (++came < burst)
		return;
	came = 0;
	tern_reply(t, m, LOGP_STAMP, clock_ns());
}

static void block_come(tern *t, const tern_msg *m)
{
	words_read(t, m);
	burst_come(t, m);
}

static void stamp_come(tern *t, const tern_msg *m)
{
	stamp = tern_msg_word(m, 0);
	tern_signal(t, &stamped, 1);
}

typedef int burst_send(struct bench_rank *p);

static int burst_words(struct bench_rank *p)
{
	return words_send_to(p->t, 1, LOGP_BURST, words, burst);
}

static int burst_blocks(struct bench_rank *p)
{
	int rc = 0;
	for (uint32_t i = 0; i < burst && !rc; i++)
		rc = tern_request_data(p->t, 1, LOGP_BLOCK, logp_payload, p->size);
	return rc;
}

static uint64_t burst_once(struct bench_rank *p, burst_send *send)
{
	uint64_t began = clock_ns();
	p->rc = send(p);
	if (!p->rc)
		p->rc = tern_wait(p->t, &stamped, 1);
	return pair_between(began, stamp);
}

static double burst_play(struct bench_rank *p, burst_send *send, uint32_t n)
{
	uint64_t ns = 0;
	burst = n;
	if (p->rank > 1)
		return 0;
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	burst_once(p, send);
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		ns += burst_once(p, send);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (double)ns / (double)p->count;
}

double pattern_burst(struct bench_rank *p)
{
	return burst_play(p, burst_words, p->size);
}

double pattern_block(struct bench_rank *p)
{
	return burst_play(p, burst_blocks, 1);
}

double pattern_blocks(struct bench_rank *p)
{
	return burst_play(p, burst_blocks, LOGP_BLOCKS);
}

/* -- All with all ----------------------------------------------------------------- */

static void arrival(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &arrivals, 1);
}

/* Each begins with its successor, so that nobody is everybody's first. */
static int exchange_once(struct bench_rank *p)
{
	int rc = 0;
	for (uint32_t i = 0; i < p->size; i++)
		for (uint32_t next = 1; next < p->ranks && !rc; next++)
			rc = words_send_to(p->t, (p->rank + next) % p->ranks, LOGP_CAME, words, 1);
	return rc ? rc : tern_wait(p->t, &arrivals, (uint64_t)p->size * (p->ranks - 1));
}

double pattern_exchange(struct bench_rank *p)
{
	return acts_ns(p, exchange_once);
}

/* -- A ring ------------------------------------------------------------------------ */

static void token_come(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &tokens, 1);
}

static uint32_t successor(const struct bench_rank *p)
{
	return (p->rank + 1) % p->ranks;
}

static int token_pass(struct bench_rank *p)
{
	return words_send_to(p->t, successor(p), LOGP_TOKEN, words, 1);
}

static int ring_once(struct bench_rank *p)
{
	int rc = p->rank ? tern_wait(p->t, &tokens, 1) : token_pass(p);
	if (rc)
		return rc;
	return p->rank ? token_pass(p) : tern_wait(p->t, &tokens, 1);
}

double pattern_ring(struct bench_rank *p)
{
	return acts_ns(p, ring_once);
}

/* Who has the token asks its successor `count` times; all others answer while they wait for it. */
double pattern_trips(struct bench_rank *p)
{
	p->rc = p->rank ? tern_wait(p->t, &tokens, 1)
			: words_trips_with(p->t, successor(p), words, 1);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = words_trips_with(p->t, successor(p), words, p->count);
	if (!p->rc)
		p->rc = token_pass(p);
	if (!p->rc && !p->rank)
		p->rc = tern_wait(p->t, &tokens, 1);
	double ns = (double)(clock_ns() - began);
	if (!p->rc)
		p->rc = p->rank ? words_serve(p->t, 1) : 0;
	for (uint32_t r = 1; r < p->ranks && !p->rank && !p->rc; r++)
		p->rc = words_last(p->t, r);
	return ns / (double)(p->count * p->ranks);
}

int logp_pattern_open(struct bench_rank *p)
{
	static tern_handler *const handlers[] = { burst_come, stamp_come, block_come, arrival,
						  token_come };
	words = p->size;
	return handlers_on(p->t, LOGP_BURST, handlers, sizeof handlers / sizeof *handlers);
}
