/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated machine in a build without what its packets need: it says why it cannot be used. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "net/sim/sim.h"

static bool sim_usable(char *why, size_t len)
{
	snprintf(why, len, "this build has no simulated machine, because it lacks %s", UDP_LACKS);
	return false;
}

static int sim_open(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how)
{
	(void)out, (void)site, (void)job, (void)local, (void)how;
	return error_set(-ENOTSUP, "this build has no simulated machine, because it lacks %s",
			 UDP_LACKS);
}

const struct net_ops sim_ops = {
	.name = "sim",
	.reach = "ranks on a simulated machine (tern sim)",
	.span = SPAN_JOB,
	.open = sim_open,
	.usable = sim_usable,
};
