/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint says of its surroundings. */
#include "base/clock.h"
#include "lib/local.h"

TEST(all_ranks_of_a_process_are_near_unless_a_network_parts_them)
{
	enum { RANKS = 4 };
	local_open(RANKS);
	for (uint32_t r = 0; r < RANKS; r++) {
		tern *t = local[r];
		bool shared = local[r]->own->site.peer[!r].net->ops->provides & PROVIDES_SHARED;
		CHECK_IS(tern_near_is(t, r), 1);
		CHECK_IS(tern_near_is(t, (r + 1) % RANKS), shared);
		CHECK_IS(tern_near_is(t, RANKS), 0);
		CHECK_IS(tern_machines(t), 1);
		CHECK_IS(tern_machine(t, RANKS - 1), 0);
		CHECK_IS(tern_machine(t, RANKS), UINT32_MAX);
	}
	local_close();
}

TEST(time_goes_on_in_nanoseconds)
{
	local_open(1);
	uint64_t began = tern_time(local[0]), clock = clock_ns();
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	uint64_t took = tern_time(local[0]) - began;
	CHECK(took >= 2000000);
	CHECK(took <= clock_ns() - clock + 1000000);
	local_close();
}
