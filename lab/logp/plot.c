/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Left, a point for each prediction: measured across, predicted upwards, with a band of 15 % around
 * the diagonal; what lies outside is hollow. Right, the parameters of one message as bars.
 */
#include "lab/logp/run.h"

#include <math.h>
#include <string.h>

#include "tools/common/chart.h"

enum { CLOSE = 15 }; /* per cent */

/* What has a colour of its own; everything else has the last. */
static const char *const kinds[] = { "burst", "all-to-all", "ring", "payload" };

enum { KINDS = sizeof kinds / sizeof *kinds, PARAMETERS = 4 };

struct forecasts {
	struct chart_series series[KINDS];
	struct chart_point at[KINDS][LOGP_PATTERNS];
	char name[LOGP_PATTERNS][CHART_LABEL];
};

static unsigned pattern_kind(const struct logp_pattern *p)
{
	unsigned kind = 0;
	while (kind + 1 < KINDS && strcmp(kinds[kind], p->name) != 0)
		kind++;
	return kind;
}

static struct chart forecasts_chart(const struct logp_outcome *o, struct forecasts *c)
{
	for (unsigned k = 0; k < KINDS; k++)
		c->series[k] = (struct chart_series){
			.name = kinds[k], .colour = k, .style = CHART_POINTS, .at = c->at[k]
		};
	for (unsigned i = 0; i < LOGP_PATTERNS; i++) {
		const struct logp_forecast *f = &o->forecast[i];
		struct chart_series *s = &c->series[pattern_kind(f->pattern)];
		double error = forecast_error(f);
		if (!isfinite(error))
			continue;
		snprintf(c->name[i], CHART_LABEL, "%s, %u %s (%+.1f %%)", f->pattern->name, f->size,
			 f->pattern->unit, error);
		c->at[s - c->series][s->n++] =
			(struct chart_point){ .x = f->measured.median,
					      .y = f->predicted,
					      .name = c->name[i],
					      .hollow = fabs(error) > CLOSE };
	}
	return (struct chart){ .title = "Predicted against measured",
			       .remark = "the band is 15 % to either side",
			       .x = { "measured", "ns", true },
			       .y = { "predicted", "ns", true },
			       .band = CLOSE / 100.0,
			       .series = c->series,
			       .n = KINDS };
}

int logp_plot_write(const void *outcome, FILE *to)
{
	static const enum logp_name shown[PARAMETERS] = { LOGP_SEND, LOGP_LATENCY, LOGP_RECEIVE,
							  LOGP_GAP };
	const struct logp_outcome *o = outcome;
	const struct logp_model *m = &o->model;
	const struct logp_size *size = model_size(m, false, m->words);
	static struct forecasts c;
	struct chart_point at[PARAMETERS];
	const struct chart_series parameters = { .name = "a message", .at = at, .n = PARAMETERS };
	const char *names[PARAMETERS];
	char remark[128];
	int used = snprintf(remark, sizeof remark, "%u words; P = %u", m->words, m->ranks);
	if (isfinite(m->per_byte.median))
		snprintf(remark + used, sizeof remark - (size_t)used,
			 "; G = %.3f ns for each byte of a large payload", m->per_byte.median);
	for (unsigned i = 0; i < PARAMETERS; i++) {
		names[i] = logp_names[shown[i]];
		at[i] = (struct chart_point){ .x = i, .y = size->is[shown[i]].median };
	}
	const struct chart chart[] = { forecasts_chart(o, &c),
				       { .title = "Parameters of a message",
					 .remark = remark,
					 .kind = CHART_BARS,
					 .y = { .unit = "ns" },
					 .place = names,
					 .places = PARAMETERS,
					 .series = &parameters,
					 .n = 1 } };
	return chart_write(
		&(struct chart_sheet){
			.label = "LogP parameters, and predictions against measurements",
			.chart = chart,
			.charts = 2,
			.columns = 2,
			.wide = 450,
			.high = 430 },
		to);
}
