/* SPDX-License-Identifier: BSD-3-Clause */
/* What is predicted from the parameters and measured beside them. */
#ifndef TERN_TOOLS_LOGP_FORECAST_H
#define TERN_TOOLS_LOGP_FORECAST_H

#include "tools/bench/test.h"
#include "tools/logp/model.h"

enum { LOGP_PATTERNS = 13 };

extern const struct logp_pattern {
	const char *name;
	uint32_t size; /* 0: as many as there are ranks */
	const char *unit;
	perf_phase *play;
	double (*foresee)(const struct logp_model *m, uint32_t size);
	unsigned share; /* a round plays the count over this */
} logp_patterns[LOGP_PATTERNS];

struct logp_forecast {
	const struct logp_pattern *pattern;
	uint32_t size;
	double predicted;                /* ns; NaN where the model lacks what it takes */
	struct series_estimate measured; /* NaN until somebody measures */
};

void forecasts_make(const struct logp_model *m, struct logp_forecast forecast[LOGP_PATTERNS]);
/* By how much a prediction is off, in per cent of what was measured. */
double forecast_error(const struct logp_forecast *f);

#endif
