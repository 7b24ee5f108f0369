/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sweep concludes from its figures. */
#include "lab/perf/compare/sweep.h"
#include "lib/check.h"

static struct sweep s;

TEST(the_regime_is_what_interrupts_make_of_the_messages)
{
	struct sweep_point *p = &s.at[0][WAY_INTERRUPT];
	*p = (struct sweep_point){ .is[SWEEP_EVENTS] = 1, .is[SWEEP_SLOWDOWN] = 0.01 };
	CHECK_IS(sweep_regime(&s, 0), REGIME_INFREQUENT);
	*p = (struct sweep_point){ .is[SWEEP_EVENTS] = 1, .is[SWEEP_SLOWDOWN] = 0.4 };
	CHECK_IS(sweep_regime(&s, 0), REGIME_MODERATE);
	*p = (struct sweep_point){ .is[SWEEP_EVENTS] = 0.1, .is[SWEEP_SLOWDOWN] = 0.9 };
	CHECK_IS(sweep_regime(&s, 0), REGIME_FREQUENT);
}
