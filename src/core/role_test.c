/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program may do while its progress thread runs a handler. */
#include "../../tests/local.h"
#include "base/clock.h"

enum { ASK, LONG_NS = 20000000, PATIENCE_S = 100 };

static _Atomic uint64_t begun, ended;

static void on_ask_slowly(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_store(&begun, 1);
	for (uint64_t end = clock_ns() + LONG_NS; clock_ns() < end;)
		;
	atomic_store(&ended, 1);
}

TEST(delivery_can_be_changed_while_the_thread_runs_a_handler)
{
	local_open(2);
	local_on(ASK, on_ask_slowly);
	CHECK_IS(tern_set_delivery(local[1], TERN_DELIVERY_THREAD), 0);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
	     !atomic_load(&begun) && clock_ns() < end;)
		;
	CHECK_IS(tern_set_delivery(local[1], TERN_DELIVERY_POLL), 0);
	CHECK_IS(atomic_load(&ended), 1); /* it has waited for the handler */
	CHECK_IS(tern_delivery(local[1]), TERN_DELIVERY_POLL);
	local_close();
}
