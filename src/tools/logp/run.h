/* SPDX-License-Identifier: BSD-3-Clause */
/* One measurement: everything that is played, and the parameters and comparisons made of it. */
#ifndef TERN_TOOLS_LOGP_RUN_H
#define TERN_TOOLS_LOGP_RUN_H

#include "tools/logp/forecast.h"
#include "tools/logp/model.h"

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
	unsigned rounds, disturbed; /* 0 rounds: the model was read, and nothing measured */
};

/* 0, or a code whose sentence tern_strerror() has. */
int logp_run(const struct logp_wish *w, struct logp_outcome *o);

#endif
