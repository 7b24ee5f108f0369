/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP in a build without it: there, and says why it cannot be used. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "net/udp/udp.h"

static bool udp_usable(char *why, size_t len)
{
	snprintf(why, len, "this build has no UDP, because it lacks %s", UDP_LACKS);
	return false;
}

static int udp_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
			 const char *how)
{
	(void)out, (void)site, (void)job, (void)local, (void)how;
	return error_set(-ENOTSUP, "this build has no UDP, because it lacks %s", UDP_LACKS);
}

const struct net_ops udp_ops = {
	.name = "udp",
	.reach = "ranks that UDP datagrams reach",
	.span = SPAN_JOB,
	.open = udp_open_rank,
	.usable = udp_usable,
};
