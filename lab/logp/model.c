/* SPDX-License-Identifier: BSD-3-Clause */
/* Curves through what was measured, and predictions from the parameters. */
#include "lab/logp/model.h"

#include <math.h>
#include <stddef.h>

#include "lab/logp/phase.h"
#include "lab/logp/run.h"

void curve_add(struct curve *c, double x, double y)
{
	unsigned at = c->n;
	if (c->n == CURVE_MOST)
		return;
	for (; at && c->x[at - 1] > x; at--) {
		c->x[at] = c->x[at - 1];
		c->y[at] = c->y[at - 1];
	}
	c->x[at] = x;
	c->y[at] = y;
	c->n++;
}

double curve_at(const struct curve *c, double x)
{
	unsigned i = 0;
	while (i < c->n && c->x[i] < x)
		i++;
	if (!c->n)
		return NAN;
	if (i == 0 || i == c->n)
		return c->y[i ? i - 1 : 0];
	double part = (x - c->x[i - 1]) / (c->x[i] - c->x[i - 1]);
	return c->y[i - 1] + part * (c->y[i] - c->y[i - 1]);
}

/* Around the means, so that large x lose no digits. */
struct line curve_line(const struct curve *c)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
	for (unsigned i = 0; i < c->n; i++) {
		mean_x += c->x[i] / c->n;
		mean_y += c->y[i] / c->n;
	}
	for (unsigned i = 0; i < c->n; i++) {
		xx += (c->x[i] - mean_x) * (c->x[i] - mean_x);
		xy += (c->x[i] - mean_x) * (c->y[i] - mean_y);
	}
	if (!(xx > 0))
		return (struct line){ NAN, NAN };
	return (struct line){ mean_y - xy / xx * mean_x, xy / xx };
}

/* None of them is a length that is predicted. */
const uint32_t logp_bursts[LOGP_BURSTS] = { 3, 5, 7, 10, 14, 24, 48, 96 };
const char *const logp_names[LOGP_NAMES] = { "trip", "o_s", "L", "o_r", "g" };

const struct logp_size *model_size(const struct logp_model *m, bool bytes, uint32_t size)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->size[i].bytes == bytes && m->size[i].size == size)
			return &m->size[i];
	return NULL;
}

static double model_words(const struct logp_model *m, enum logp_name name)
{
	const struct logp_size *s = model_size(m, false, m->words);
	return s ? s->is[name].median : NAN;
}

/* A parameter of payloads of any size. */
static double model_bytes_at(const struct logp_model *m, enum logp_name name, double bytes)
{
	struct curve c = { 0 };
	for (unsigned i = 0; i < m->n; i++)
		if (m->size[i].bytes)
			curve_add(&c, m->size[i].size, m->size[i].is[name].median);
	return curve_at(&c, bytes);
}

/*
 * What all messages of a burst but the first add: straight between the bursts that were
 * measured. Beyond the longest, its gap stays.
 */
static double model_more(const struct logp_model *m, uint32_t n)
{
	const uint32_t longest = logp_bursts[LOGP_BURSTS - 1];
	struct curve c = { 0 };
	curve_add(&c, 1, 0);
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		curve_add(&c, logp_bursts[i], (logp_bursts[i] - 1) * m->burst[i].median);
	if (n > longest)
		return (n - 1) * m->burst[LOGP_BURSTS - 1].median;
	return curve_at(&c, n);
}

double model_burst(const struct logp_model *m, uint32_t n)
{
	return model_words(m, LOGP_SEND) + model_words(m, LOGP_LATENCY) +
	       model_words(m, LOGP_RECEIVE) + model_more(m, n);
}

static double model_step(const struct logp_model *m)
{
	return model_words(m, LOGP_SEND) + m->latency.median + model_words(m, LOGP_RECEIVE);
}

/* g among `n` messages; of one, that between it and the one that comes the other way. */
static double model_gap(const struct logp_model *m, uint32_t n)
{
	n = n < 2 ? 2 : n;
	return model_more(m, n) / (n - 1);
}

/* A rank sends as many as it receives, and its cache passes both. */
double model_exchange(const struct logp_model *m, uint32_t each)
{
	uint32_t sent = each * (m->ranks - 1);
	return model_step(m) + (2 * sent - 1) * model_gap(m, sent);
}

double model_ring(const struct logp_model *m, uint32_t ranks)
{
	return ranks * model_step(m);
}

double model_blocks(const struct logp_model *m, uint32_t bytes, uint32_t n)
{
	double gap = m->large_gap + bytes * m->per_byte.median;
	return model_bytes_at(m, LOGP_SEND, bytes) + model_bytes_at(m, LOGP_LATENCY, bytes) +
	       model_bytes_at(m, LOGP_RECEIVE, bytes) + (n > 1 ? (n - 1) * gap : 0);
}

enum { BLOCK_BYTES = 3000 }; /* none of the sizes that are usually measured */

static double foresee_block(const struct logp_model *m, uint32_t bytes)
{
	return model_blocks(m, bytes, 1);
}

static double foresee_blocks(const struct logp_model *m, uint32_t bytes)
{
	return model_blocks(m, bytes, LOGP_BLOCKS);
}

const struct logp_pattern logp_patterns[LOGP_PATTERNS] = {
	{ "burst", 1, "message", pattern_burst, model_burst, 100 },
	{ "burst", 2, "messages", pattern_burst, model_burst, 100 },
	{ "burst", 4, "messages", pattern_burst, model_burst, 100 },
	{ "burst", 8, "messages", pattern_burst, model_burst, 100 },
	{ "burst", 16, "messages", pattern_burst, model_burst, 200 },
	{ "burst", 32, "messages", pattern_burst, model_burst, 400 },
	{ "burst", 64, "messages", pattern_burst, model_burst, 800 },
	{ "all-to-all", 1, "to each", pattern_exchange, model_exchange, 50 },
	{ "all-to-all", 4, "to each", pattern_exchange, model_exchange, 100 },
	{ "all-to-all", 16, "to each", pattern_exchange, model_exchange, 200 },
	{ "ring", 0, "ranks", pattern_ring, model_ring, 100 },
	{ "payload", BLOCK_BYTES, "bytes", pattern_block, foresee_block, 200 },
	{ "16 payloads", BLOCK_BYTES, "bytes", pattern_blocks, foresee_blocks, 800 },
};

void forecasts_make(const struct logp_model *m, struct logp_forecast forecast[LOGP_PATTERNS])
{
	for (unsigned i = 0; i < LOGP_PATTERNS; i++) {
		const struct logp_pattern *p = &logp_patterns[i];
		uint32_t size = p->size ? p->size : m->ranks;
		forecast[i] =
			(struct logp_forecast){ p, size, p->foresee(m, size), { NAN, NAN, NAN } };
	}
}

double forecast_error(const struct logp_forecast *f)
{
	return 100 * (f->predicted / f->measured.median - 1);
}
