/* SPDX-License-Identifier: BSD-3-Clause */
/* Computation that a program declares, at the prices of the profile. */
#include <errno.h>

#include <tern/sim.h>

#include "base/error.h"
#include "net/sim/sim.h"

static const uint64_t work_most = UINT64_C(1000000000000000000); /* ps */

/* Adds n at a price each. False: that is too much. */
static bool add(uint64_t *sum, uint64_t n, uint64_t price)
{
	uint64_t cost;
	return !__builtin_mul_overflow(n, price, &cost) &&
	       !__builtin_add_overflow(*sum, cost, sum) && *sum <= work_most;
}

int tern_sim_work(tern *t, const tern_work *work)
{
	struct machine *m = sim_machine();
	uint64_t ps = 0;
	(void)t;
	if (!work)
		return error_set(-EINVAL, "tern_sim_work() was called without work");
	if (!m)
		return 0;
	const struct profile *p = &m->profile;
	if (!add(&ps, work->integer, p->integer) || !add(&ps, work->floating, p->floating) ||
	    !add(&ps, work->loads, p->load) || !add(&ps, work->stores, p->store))
		return error_set(-EINVAL, "tern_sim_work() was told of more than ten days of work");
	turn_charge(m, ps);
	return 0;
}
