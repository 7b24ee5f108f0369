/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric in a build without it: there, and says why it cannot be used. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "net/ofi/ofi.h"

static bool ofi_usable(char *why, size_t len)
{
	snprintf(why, len, "this build has no libfabric, because it lacks %s", OFI_LACKS);
	return false;
}

const struct net_ops ofi_ops = {
	.name = "ofi",
	.reach = "ranks that a provider of libfabric reaches",
	.usable = ofi_usable,
};

int ofi_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
		  const char *provider)
{
	(void)out, (void)site, (void)job, (void)local, (void)provider;
	return error_set(-ENOTSUP, "this build has no libfabric, because it lacks %s", OFI_LACKS);
}
