/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians and intervals of figures whose answer is known. */
#include "lab/bench/series.h"

#include <math.h>

#include "lib/chance.h"
#include "lib/check.h"

static struct series series;

/* 1 .. n, in an order that sorting has to change. */
static void series_count_to(unsigned n)
{
	series.n = 0;
	for (unsigned i = 0; i < n; i++)
		series_add(&series, 1 + (i * 7919u) % n);
}

static void check_interval(unsigned n, double low, double high)
{
	series_count_to(n);
	struct series_estimate e = series_estimate(&series);
	CHECK_IS(e.low, low);
	CHECK_IS(e.high, high);
	CHECK(e.median == (n + 1) / 2.0);
}

TEST(the_interval_is_that_of_the_sign_test)
{
	/* from tables of the binomial distribution with p = 1/2 */
	check_interval(6, 1, 6);
	check_interval(8, 1, 8);
	check_interval(9, 2, 8);
	check_interval(10, 2, 9);
	check_interval(15, 4, 12);
	check_interval(20, 6, 15);
	check_interval(25, 8, 18);
	check_interval(50, 18, 33);
	check_interval(100, 40, 61);
	check_interval(1000, 469, 532);
}

TEST(too_few_figures_give_their_whole_range)
{
	for (unsigned n = 1; n < 6; n++)
		check_interval(n, 1, n);
}

TEST(an_empty_series_has_no_median)
{
	series.n = 0;
	struct series_estimate e = series_estimate(&series);
	CHECK(isnan(e.median) && isnan(e.low) && isnan(e.high));
	CHECK(isnan(series_spread(&series)));
}

TEST(one_wild_figure_moves_neither_median_nor_interval)
{
	series_count_to(51);
	struct series_estimate calm = series_estimate(&series);
	series.at[50] = 1e9;
	struct series_estimate wild = series_estimate(&series);
	CHECK(calm.median == wild.median && calm.low == wild.low && calm.high == wild.high);
}

TEST(the_interval_holds_the_true_median_about_as_often_as_it_says)
{
	enum { TIMES = 2000, FIGURES = 51 };
	struct chance c = { check_seed() };
	unsigned held = 0;
	for (unsigned i = 0; i < TIMES; i++) {
		series.n = 0;
		for (unsigned k = 0; k < FIGURES; k++)
			series_add(&series, chance_below(&c, 1000001));
		struct series_estimate e = series_estimate(&series);
		CHECK(e.low <= e.median && e.median <= e.high);
		held += e.low <= 500000 && 500000 <= e.high;
	}
	CHECK(held > TIMES * 92 / 100); /* nine standard deviations below what it should be */
}

TEST(what_is_too_much_is_dropped)
{
	series.n = 0;
	for (unsigned i = 0; i < SERIES_MOST + 5; i++)
		series_add(&series, i);
	CHECK_IS(series.n, SERIES_MOST);
}
