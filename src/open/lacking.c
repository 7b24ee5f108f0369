/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks that this build lacks something for: they are there, and say why they cannot be used. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "net/ofi/ofi.h"
#include "net/sim/sim.h"
#include "net/udp/udp.h"

/* The table of a network, `what` in words, which `need` is missing for; and more of its fields. */
#define LACKING(it, what, need, ...)                                                            \
	static bool it##_unusable(char *why, size_t len)                                        \
	{                                                                                       \
		snprintf(why, len, "%s", "this build has no " what ", because it lacks " need); \
		return false;                                                                   \
	}                                                                                       \
	static int it##_refuse(struct net **out, struct site *site, struct job *job,            \
			       struct net *local, const char *how)                              \
	{                                                                                       \
		(void)out, (void)site, (void)job, (void)local, (void)how;                       \
		return error_set(-ENOTSUP, "this build has no " what ", because it lacks %s",   \
				 need);                                                         \
	}                                                                                       \
	const struct net_ops it##_ops = { .name = #it,                                          \
					  .span = SPAN_JOB,                                     \
					  .open = it##_refuse,                                  \
					  .usable = it##_unusable,                              \
					  __VA_ARGS__ }

#ifdef UDP_LACKS
LACKING(udp, "UDP", UDP_LACKS, .reach = "ranks that UDP datagrams reach");
LACKING(sim, "simulated machine", UDP_LACKS, .reach = "ranks on a simulated machine (tern sim)");
#endif

#ifdef OFI_LACKS
LACKING(ofi, "libfabric", OFI_LACKS, .reach = "ranks that a provider of libfabric reaches",
	.device = &ofi_device, .variants = "ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN");

const struct net_device ofi_device = { "ofi", (const char *const[]){ NULL }, ofi_unusable };
#endif
