/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/logp/forecast.h"

#include <math.h>

#include "tools/logp/phase.h"

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
		forecast[i] = (struct logp_forecast){ p, size, p->foresee(m, size), { NAN, NAN, NAN } };
	}
}

double forecast_error(const struct logp_forecast *f)
{
	return 100 * (f->predicted / f->measured.median - 1);
}
