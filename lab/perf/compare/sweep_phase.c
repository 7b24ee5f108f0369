/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The phases of the sweep. Rank 1 computes for a while and then says how far it got. Until
 * it does, rank 0 asks at the interval, whether or not the answers have come, but for a bounded
 * number of them: so messages come in bursts where the other rank is slow to look, as they
 * do in a program, and a burst costs one interrupt.
 */
#include "base/clock.h"
#include "endpoint/endpoint.h"
#include "lab/bench/ranks.h"
#include "lab/bench/series.h"
#include "lab/bench/words.h"
#include "lab/perf/compare/sweep.h"

enum { HANDLER_ASK = WORDS_FREE, HANDLER_ANSWER, HANDLER_REPORT };
enum {
	WINDOW = 32,       /* questions without an answer */
	LEAD_NS = 5000000, /* first, so that thread and timer have noticed that the rank computes */
	POLL_NS = 10000,   /* between two polls of a rank that polls */
};

/* -- The rank that computes ------------------------------------------------------------------ */

static void on_ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, HANDLER_ANSWER, tern_msg_word(m, 0));
}

/*
 * Until the clock says `end`; how many pieces that were, 1 at least. A poll that finds nothing is
 * part of the work.
 */
static uint64_t compute_until(struct bench_rank *p, uint64_t end, bool polls)
{
	uint64_t pieces = 0, now, next = 0;
	do {
		compute(COMPUTE_PIECE);
		pieces++;
		now = clock_ns();
		if (polls && now >= next) {
			tern_poll(p->t);
			next = now + POLL_NS;
		}
	} while (now < end);
	return pieces;
}

static uint64_t events_now(struct bench_rank *p)
{
	const struct endpoint *e = p->t->own;
	return stats_get(&e->pulse->count[PULSE_INTERRUPTS]) +
	       stats_get(&e->pulse->count[PULSE_CLAIMS]);
}

/*
 * What the core that computes has spent on this rank. A progress thread without a core of its
 * own takes from it; other programs may, too, but are none of the rank's business.
 */
static uint64_t core_ns(const struct bench_rank *p)
{
	struct timespec used;
	clock_gettime(p->spare_core < 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID,
		      &used);
	return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

static void sweep_compute(struct bench_rank *p, enum tern_delivery d, bool polls)
{
	p->rc = tern_delivery_set(p->t, d);
	compute_until(p, clock_ns() + LEAD_NS, polls);
	uint64_t events = events_now(p), began = clock_ns(), core = core_ns(p);
	uint64_t pieces = compute_until(p, began + p->count * 1000000, polls);
	core = core_ns(p) - core;
	uint64_t ns = clock_ns() - began;
	events = events_now(p) - events;
	if (!p->rc)
		p->rc = tern_request(p->t, 0, HANDLER_REPORT, pieces, core, ns, events);
	if (!p->rc)
		p->rc = words_serve(p->t, 1);
}

/* -- The rank that asks ----------------------------------------------------------------------- */

static struct times times;
static uint64_t asked, answered;

static struct {
	_Atomic uint64_t come;
	uint64_t answered; /* by then */
	uint64_t pieces, core, ns, events;
} report;

static void on_answer(tern *t, const tern_msg *m)
{
	(void)t;
	times_add(&times, clock_ns() - tern_msg_word(m, 0));
	answered++;
}

static void on_report(tern *t, const tern_msg *m)
{
	report.answered = answered;
	report.pieces = tern_msg_word(m, 0);
	report.core = tern_msg_word(m, 1);
	report.ns = tern_msg_word(m, 2);
	report.events = tern_msg_word(m, 3);
	tern_signal(t, &report.come, 1);
}

static bool report_come(void)
{
	return atomic_load_explicit(&report.come, memory_order_relaxed) > 0;
}

static void poll_some(struct bench_rank *p)
{
	int rc = tern_poll(p->t);
	if (rc < 0)
		p->rc = rc;
}

/* One behind its time is asked as soon as it can be, and the next one an interval later. */
static void ask_at_interval(struct bench_rank *p, uint64_t interval, uint64_t window)
{
	for (uint64_t next = clock_ns() + LEAD_NS; !p->rc && !report_come();) {
		uint64_t now = clock_ns();
		if (now < next || asked - answered == window) {
			poll_some(p);
			continue;
		}
		p->rc = tern_request(p->t, 1, HANDLER_ASK, now);
		asked++;
		next = next + interval > now ? next + interval : now;
	}
}

/* What rank 1 said; it serves what is left until it gets the last. */
static void ask_end(struct bench_rank *p)
{
	while (!p->rc && answered < asked)
		poll_some(p);
	if (!p->rc)
		p->rc = tern_wait(p->t, &report.come, 1);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	p->also[SWEEP_P99 - 1] = times_quantile(&times, 0.99);
	p->also[SWEEP_SLOWDOWN - 1] = (double)report.pieces * 1e6 / (double)report.core;
	p->also[SWEEP_EVENTS - 1] =
		report.answered ? (double)report.events / (double)report.answered : 0;
	p->also[SWEEP_RATE - 1] = (double)report.answered * 1e9 / (double)report.ns;
}

static void sweep_ask(struct bench_rank *p, uint64_t interval, uint64_t window)
{
	times.n = 0;
	asked = answered = 0;
	ask_at_interval(p, interval, window);
	ask_end(p);
}

/* -- The phases ---------------------------------------------------------------------------- */

double sweep_by_way(struct bench_rank *p)
{
	static const enum tern_delivery delivery[WAYS] = { TERN_DELIVERY_POLL, TERN_DELIVERY_POLL,
							   TERN_DELIVERY_THREAD,
							   TERN_DELIVERY_INTERRUPT };
	if (p->rank)
		sweep_compute(p, delivery[p->way], p->way == WAY_POLLED);
	else
		sweep_ask(p, p->size, WINDOW);
	return p->rank ? 0 : times_quantile(&times, 0.5);
}

double sweep_alone(struct bench_rank *p)
{
	if (p->rank)
		sweep_compute(p, TERN_DELIVERY_POLL, false);
	else
		sweep_ask(p, 0, 0); /* it looks all the time, as it always does */
	return p->also[SWEEP_SLOWDOWN - 1];
}

int sweep_open(struct bench_rank *p)
{
	static tern_handler *const handlers[] = { on_ask, on_answer, on_report };
	int rc = tern_delivery_set(p->t, TERN_DELIVERY_POLL);
	if (!rc)
		rc = compute_spare_core(p);
	return rc ? rc : handlers_on(p->t, HANDLER_ASK, handlers, 3);
}
