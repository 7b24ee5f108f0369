/* SPDX-License-Identifier: BSD-3-Clause */
/* Interpolation and straight lines through points whose answer is known. */
#include "lab/logp/model.h"

#include <math.h>

#include "lib/check.h"

static bool close_to(double got, double want)
{
	return fabs(got - want) <= 1e-9 * (1 + fabs(want));
}

TEST(points_on_a_line_give_that_line)
{
	struct curve c = { 0 };
	for (int i = 1; i <= 8; i++)
		curve_add(&c, 1024 * i, 250 + 0.125 * 1024 * i);
	struct line l = curve_line(&c);
	CHECK(close_to(l.at_0, 250));
	CHECK(close_to(l.slope, 0.125));
}

TEST(the_line_has_the_least_squares)
{
	/* worked out by hand: means 2.5 and 5.5, sums of products 5 and 9 */
	struct curve c = { 4, { 1, 2, 3, 4 }, { 3, 4, 7, 8 } };
	struct line l = curve_line(&c);
	CHECK(close_to(l.slope, 1.8));
	CHECK(close_to(l.at_0, 1));
}

TEST(one_point_has_no_slope)
{
	struct curve c = { 0 };
	CHECK(isnan(curve_line(&c).slope));
	curve_add(&c, 5, 5);
	CHECK(isnan(curve_line(&c).slope));
	curve_add(&c, 5, 6);
	CHECK(isnan(curve_line(&c).slope));
}

TEST(points_are_kept_in_order_and_what_lies_between_is_on_their_line)
{
	struct curve c = { 0 };
	curve_add(&c, 30, 3);
	curve_add(&c, 10, 1);
	curve_add(&c, 20, 5);
	CHECK(c.x[0] == 10 && c.x[1] == 20 && c.x[2] == 30);
	CHECK(close_to(curve_at(&c, 10), 1));
	CHECK(close_to(curve_at(&c, 15), 3));
	CHECK(close_to(curve_at(&c, 20), 5));
	CHECK(close_to(curve_at(&c, 29), 3.2));
}

TEST(beyond_its_ends_a_curve_is_flat)
{
	struct curve c = { 2, { 10, 20 }, { 1, 5 } };
	CHECK(close_to(curve_at(&c, -7), 1));
	CHECK(close_to(curve_at(&c, 1e9), 5));
	c.n = 0;
	CHECK(isnan(curve_at(&c, 1)));
}

TEST(too_many_points_are_dropped)
{
	struct curve c = { 0 };
	for (int i = 0; i < CURVE_MOST + 5; i++)
		curve_add(&c, i, i);
	CHECK_IS(c.n, CURVE_MOST);
}
