/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric in a build without it: there, and says why it cannot be used. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "net/ofi/ofi.h"

bool ofi_usable(char *why, size_t len)
{
	snprintf(why, len, "this build has no libfabric, because it lacks %s", OFI_LACKS);
	return false;
}

static int ofi_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
			 const char *how)
{
	(void)out, (void)site, (void)job, (void)local, (void)how;
	return error_set(-ENOTSUP, "this build has no libfabric, because it lacks %s", OFI_LACKS);
}

const struct net_device ofi_device = { "ofi", (const char *const[]){ NULL }, ofi_usable };

const struct net_ops ofi_ops = {
	.name = "ofi",
	.reach = "ranks that a provider of libfabric reaches",
	.span = SPAN_JOB,
	.device = &ofi_device,
	.variants = "ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN",
	.open = ofi_open_rank,
	.usable = ofi_usable,
};
