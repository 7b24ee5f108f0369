/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sweep concludes from its figures. */
#include "lab/perf/compare/sweep.h"
#include "lib/check.h"

static struct sweep s;

static void figures(enum sweep_way way, double slowdown, double latency)
{
	s.at[0][way].is[SWEEP_SLOWDOWN] = slowdown;
	s.at[0][way].is[SWEEP_LATENCY] = latency;
}

TEST(the_ways_that_are_about_as_good_as_the_best_are_named)
{
	figures(WAY_POLLED, 0.030, 5000);
	figures(WAY_THREAD, 0.005, 540);
	figures(WAY_INTERRUPT, 0.012, 500);
	CHECK_IS(sweep_gentlest(&s, 0), 1 << WAY_THREAD | 1 << WAY_INTERRUPT);
	CHECK_IS(sweep_quickest(&s, 0), 1 << WAY_THREAD | 1 << WAY_INTERRUPT);
	figures(WAY_THREAD, 0.001, 551);
	CHECK_IS(sweep_gentlest(&s, 0), 1 << WAY_THREAD);
	CHECK_IS(sweep_quickest(&s, 0), 1 << WAY_INTERRUPT);
}

TEST(a_computation_that_is_faster_by_chance_leaves_one_best_way)
{
	figures(WAY_POLLED, -0.20, 1000);
	figures(WAY_THREAD, -0.10, 1000);
	figures(WAY_INTERRUPT, 0.10, 1000);
	CHECK_IS(sweep_gentlest(&s, 0), 1 << WAY_POLLED);
}

TEST(polling_never_wins_nothing)
{
	figures(WAY_POLLED, 0.5, 1000);
	figures(WAY_THREAD, 0.5, 1000);
	figures(WAY_INTERRUPT, 0.5, 1000);
	figures(WAY_UNPOLLED, 0, 0);
	CHECK_IS(sweep_gentlest(&s, 0) & 1 << WAY_UNPOLLED, 0);
	CHECK_IS(sweep_quickest(&s, 0) & 1 << WAY_UNPOLLED, 0);
}

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
