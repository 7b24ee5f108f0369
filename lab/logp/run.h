/* SPDX-License-Identifier: BSD-3-Clause */
/* One measurement: all that is played, what is made of it, and how that is shown. */
#ifndef TERN_LAB_LOGP_RUN_H
#define TERN_LAB_LOGP_RUN_H

#include "lab/bench/test.h"
#include "lab/logp/model.h"
#include "lab/logp/overhead.h"

/* What is predicted from the parameters and measured beside them. */
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

/* What is asked for; together at most LOGP_SIZES_MOST sizes, and at least one number of words. */
struct logp_wish {
	struct sizes words, bytes;
	uint32_t ranks;
	uint64_t count; /* messages in a stream; other phases follow it */
	unsigned rounds;
};

struct logp_outcome {
	struct logp_model model;
	struct logp_forecast forecast[LOGP_PATTERNS];
	struct overhead phases; /* of LOGP_LARGE bytes; not in a profile */
	unsigned rounds, disturbed;
};

/* 0, or a code whose sentence tern_strerror() has. */
int logp_run(const struct logp_wish *w, struct logp_outcome *o);

void logp_report_tables(const struct logp_outcome *o);
void logp_report_json(const struct logp_outcome *o);

#endif
