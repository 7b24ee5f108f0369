/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that only computes is interrupted, whichever call was its last. */
#include <stdlib.h>

#include "../../tests/local.h"
#include "base/clock.h"

enum { ASK, PATIENCE_S = 5 };

static _Atomic uint64_t asked;

static void count_ask(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_fetch_add(&asked, 1);
}

static void pair_open(const char *delivery)
{
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "40", 1);
	local_open(2);
	local_on(ASK, count_ask);
	atomic_store(&asked, 0);
}

/* Rank 1 is asked and calls nothing. The other is polled, or its timer would do for both: they have one thread. */
static void check_interrupted(void)
{
	CHECK_IS(tern_set_delivery(local[0], TERN_DELIVERY_POLL), 0);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
	while (!atomic_load(&asked) && clock_ns() < end)
		;
	CHECK_IS(atomic_load(&asked), 1);
	local_close();
}

TEST(a_program_that_chooses_interrupts_and_then_computes_is_interrupted)
{
	pair_open("poll");
	CHECK_IS(tern_set_delivery(local[1], TERN_DELIVERY_INTERRUPT), 0);
	check_interrupted();
}

TEST(a_program_that_attaches_and_then_computes_is_interrupted)
{
	pair_open("interrupt");
	tern_attach(local[1]);
	check_interrupted();
}

TEST(a_program_that_holds_and_releases_and_then_computes_is_interrupted)
{
	pair_open("interrupt");
	tern_hold(local[1]);
	tern_release(local[1]);
	check_interrupted();
}
