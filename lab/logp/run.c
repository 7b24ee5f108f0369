/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All phases of a run are parts of one job's rounds: first those that give parameters,
 * size by size, then the bursts that give gaps, then what is predicted. A parameter that is
 * made of several figures is made round by round, so that its median and its
 * interval come about like those of any other.
 */
#include "lab/logp/run.h"

#include <string.h>

#include "lab/bench/pair.h"
#include "lab/bench/ranks.h"
#include "lab/logp/phase.h"

enum { PHASE_TRIP, PHASE_GAP, PHASE_SENDING, PHASE_HANDLING, PHASES };

struct plan {
	const struct logp_wish *wish;
	unsigned n;
	struct part part[PERF_PARTS_MOST];
	unsigned bursts, trips, patterns; /* the first part of each kind */
};

/* -- What is played --------------------------------------------------------------- */

static uint64_t fraction(uint64_t count, uint64_t of)
{
	return count > of ? count / of : 1;
}

static struct phase *plan_add(struct plan *plan, perf_phase *play, uint32_t size, uint64_t count)
{
	struct part *part = &plan->part[plan->n++];
	*part = (struct part){ { .figure = play }, size, count, 0 };
	return &part->phase;
}

static void plan_words(struct plan *plan, uint32_t words)
{
	uint64_t count = plan->wish->count;
	plan_add(plan, logp_trip, words, fraction(count, 40));
	plan_add(plan, logp_gap, words, count);
	plan_add(plan, words_sending, words, fraction(count, 2));
	plan_add(plan, words_handling, words, fraction(count, 2));
}

/* Fewer of the large ones: the longer a phase, the more often it is disturbed. */
static void plan_bytes(struct plan *plan, uint32_t bytes)
{
	uint64_t many = fraction(plan->wish->count, 40 + bytes / 64);
	plan_add(plan, logp_trip, bytes, fraction(many, 4))->way = LOGP_BYTES;
	plan_add(plan, logp_gap, bytes, many)->way = LOGP_BYTES;
	plan_add(plan, bytes_sending, bytes, many);
	plan_add(plan, bytes_handling, bytes, many);
}

static void plan_make(struct plan *plan, const struct logp_wish *w)
{
	*plan = (struct plan){ .wish = w };
	for (unsigned i = 0; i < w->words.n; i++)
		plan_words(plan, w->words.at[i]);
	for (unsigned i = 0; i < w->bytes.n; i++)
		plan_bytes(plan, w->bytes.at[i]);
	plan->bursts = plan->n;
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		plan_add(plan, pattern_burst, logp_bursts[i],
			 fraction(w->count, 100 + 8 * logp_bursts[i]));
	plan->trips = plan->n;
	plan_add(plan, pattern_trips, 0, fraction(w->count, 40 * w->ranks));
	plan->patterns = plan->n;
	for (unsigned i = 0; i < LOGP_PATTERNS; i++)
		plan_add(plan, logp_patterns[i].play, logp_patterns[i].size,
			 fraction(w->count, logp_patterns[i].share));
}

/* -- What comes of it -------------------------------------------------------------- */

static struct series_estimate phase_estimate(const struct series *s)
{
	struct series copy = *s; /* sorted by this */
	return series_estimate(&copy);
}

static struct series_estimate latency_estimate(const struct series *trip,
					       const struct series *sending,
					       const struct series *handling)
{
	struct series latency = { .n = trip->n };
	for (unsigned i = 0; i < trip->n; i++)
		latency.at[i] = trip->at[i] / 2 - sending->at[i] - handling->at[i];
	return series_estimate(&latency);
}

static void size_fill(struct logp_size *size, const struct series *phase)
{
	size->is[LOGP_TRIP] = phase_estimate(&phase[PHASE_TRIP]);
	size->is[LOGP_SEND] = phase_estimate(&phase[PHASE_SENDING]);
	size->is[LOGP_RECEIVE] = phase_estimate(&phase[PHASE_HANDLING]);
	size->is[LOGP_GAP] = phase_estimate(&phase[PHASE_GAP]);
	size->is[LOGP_LATENCY] =
		latency_estimate(&phase[PHASE_TRIP], &phase[PHASE_SENDING], &phase[PHASE_HANDLING]);
}

/* Which of the planned sizes patterns use. */
static unsigned pattern_size(const struct logp_wish *w)
{
	for (unsigned i = 0; i < w->words.n; i++)
		if (w->words.at[i] == 4)
			return i;
	return 0;
}

static void sizes_fill(struct logp_model *m, const struct plan *plan, const struct ranks_result *r)
{
	const struct logp_wish *w = plan->wish;
	m->n = w->words.n + w->bytes.n;
	for (unsigned i = 0; i < m->n; i++) {
		bool bytes = i >= w->words.n;
		m->size[i].bytes = bytes;
		m->size[i].size = bytes ? w->bytes.at[i - w->words.n] : w->words.at[i];
		size_fill(&m->size[i], &r->part[i * PHASES]);
	}
}

/* G: round by round, the slope of g over the large payloads. */
static void per_byte_fill(struct logp_model *m, const struct ranks_result *r, unsigned rounds)
{
	struct series slope = { .n = rounds }, start = { .n = rounds };
	for (unsigned k = 0; k < rounds; k++) {
		struct curve c = { 0 };
		for (unsigned i = 0; i < m->n; i++)
			if (m->size[i].bytes && m->size[i].size >= LOGP_LARGE)
				curve_add(&c, m->size[i].size,
					  r->part[i * PHASES + PHASE_GAP].at[k]);
		struct line l = curve_line(&c);
		slope.at[k] = l.slope;
		start.at[k] = l.at_0;
	}
	m->per_byte = series_estimate(&slope);
	m->large_gap = series_median(&start);
}

/* What each message after the first adds to a burst. */
static void bursts_fill(struct logp_model *m, const struct plan *plan, const struct ranks_result *r,
			const struct series *trip)
{
	for (unsigned i = 0; i < LOGP_BURSTS; i++) {
		struct series gap = { .n = trip->n };
		for (unsigned k = 0; k < trip->n; k++)
			gap.at[k] = (r->part[plan->bursts + i].at[k] - trip->at[k] / 2) /
				    (logp_bursts[i] - 1);
		m->burst[i] = series_estimate(&gap);
	}
}

static void model_fill(struct logp_model *m, const struct plan *plan, const struct ranks_result *r)
{
	unsigned at = pattern_size(plan->wish);
	const struct series *words = &r->part[at * PHASES];
	m->ranks = plan->wish->ranks;
	m->words = plan->wish->words.at[at];
	sizes_fill(m, plan, r);
	per_byte_fill(m, r, plan->wish->rounds);
	bursts_fill(m, plan, r, &words[PHASE_TRIP]);
	m->latency = latency_estimate(&r->part[plan->trips], &words[PHASE_SENDING],
				      &words[PHASE_HANDLING]);
}

static int outcome_open(struct bench_rank *p)
{
	int rc = logp_bytes_open(p);
	return rc ? rc : logp_pattern_open(p);
}

int logp_run(const struct logp_wish *w, struct logp_outcome *o)
{
	static struct ranks_result result; /* both are large */
	static struct plan plan;
	struct test test = { .name = "logp",
			     .ranks = w->ranks,
			     .cores = w->ranks,
			     .warm = 2,
			     .open = outcome_open };
	memset(&result, 0, sizeof result);
	plan_make(&plan, w);
	int rc = ranks_play(&test, w->words.at[pattern_size(w)], plan.part, plan.n, w->rounds,
			    &result);
	if (rc)
		return rc;
	*o = (struct logp_outcome){ .rounds = w->rounds, .disturbed = result.disturbed };
	model_fill(&o->model, &plan, &result);
	forecasts_make(&o->model, o->forecast);
	for (unsigned i = 0; i < LOGP_PATTERNS; i++)
		o->forecast[i].measured = series_estimate(&result.part[plan.patterns + i]);
	return overhead_run(o->model.words, LOGP_LARGE, w->count, w->rounds, &o->phases);
}
