/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions from parameters with round numbers, worked out by hand. */
#include "lab/logp/model.h"

#include <math.h>

#include "lib/check.h"

static struct series_estimate estimate(double median)
{
	return (struct series_estimate){ median, median, median };
}

static struct logp_size size_made(bool bytes, uint32_t size, double send, double latency,
				  double receive)
{
	struct logp_size s = { .bytes = bytes, .size = size };
	s.is[LOGP_SEND] = estimate(send);
	s.is[LOGP_LATENCY] = estimate(latency);
	s.is[LOGP_RECEIVE] = estimate(receive);
	return s;
}

/* o_s 4, L 200 (among all ranks 300), o_r 6, every gap 10; payloads: 100 + 0.1 a byte. */
static struct logp_model model_made(uint32_t ranks)
{
	struct logp_model m = { .ranks = ranks, .words = 4, .n = 3, .large_gap = 100 };
	m.size[0] = size_made(false, 4, 4, 200, 6);
	m.size[1] = size_made(true, 1000, 50, 500, 100);
	m.size[2] = size_made(true, 2000, 70, 700, 200);
	m.latency = estimate(300);
	m.per_byte = estimate(0.1);
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		m.burst[i] = estimate(10);
	return m;
}

static bool close_to(double got, double want)
{
	return fabs(got - want) <= 1e-9 * fabs(want);
}

TEST(a_burst_takes_one_message_and_a_gap_for_each_other)
{
	struct logp_model m = model_made(2);
	CHECK(close_to(model_burst(&m, 1), 210));
	CHECK(close_to(model_burst(&m, 2), 220));
	CHECK(close_to(model_burst(&m, 64), 840));
	CHECK(close_to(model_burst(&m, 1001), 10210));
}

TEST(between_two_measured_bursts_time_grows_evenly)
{
	struct logp_model m = model_made(2);
	m.burst[0] = estimate(50); /* of 3: 100 more than one */
	CHECK(close_to(model_burst(&m, 2), 260));
	CHECK(close_to(model_burst(&m, 3), 310));
	CHECK(close_to(model_burst(&m, 4), 280)); /* half way to 5, which takes 40 more than one */
}

TEST(in_an_exchange_what_a_rank_sends_and_receives_counts)
{
	struct logp_model two = model_made(2), four = model_made(4);
	CHECK(close_to(model_exchange(&two, 1), 310 + 10));
	CHECK(close_to(model_exchange(&two, 16), 310 + 31 * 10));
	CHECK(close_to(model_exchange(&four, 2), 310 + 11 * 10));
}

TEST(a_ring_takes_a_message_for_each_rank)
{
	struct logp_model m = model_made(8);
	CHECK(close_to(model_ring(&m, 8), 8 * 310));
}

TEST(payloads_of_other_sizes_lie_between_those_measured)
{
	struct logp_model m = model_made(2);
	CHECK(close_to(model_blocks(&m, 1000, 1), 650));
	CHECK(close_to(model_blocks(&m, 1500, 1), 60 + 600 + 150));
	CHECK(close_to(model_blocks(&m, 1500, 5), 810 + 4 * 250));
}
