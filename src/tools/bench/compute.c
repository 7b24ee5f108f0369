/* SPDX-License-Identifier: BSD-3-Clause */
/* A computation that calls nothing, and a core for the progress thread beside it. */
#include "tools/bench/compute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/setting.h"

void compute(uint64_t steps)
{
	uint64_t x = steps | 1;
	for (uint64_t i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	raw_sink = x; /* not +=: a handler that adds to it may come in between */
}

int compute_spare_core(const struct bench_rank *p)
{
	char core[16];
	if (p->spare_core < 0)
		return 0;
	snprintf(core, sizeof core, "%d", p->spare_core);
	return setenv(setting_table[SETTING_AGENT_CORE].name, core, 0) == 0
		       ? 0
		       : error_system("setting TERN_AGENT_CORE");
}
