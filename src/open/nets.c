/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of networks, and how an endpoint opens those that it uses. */
#include "open/nets.h"

#include "base/error.h"
#include "base/setting.h"
#include "net/ofi/ofi.h"
#include "net/packet/terms.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/udp/udp.h"
#include "open/reach.h"

const struct net_ops *const net_table[] = {
	&self_ops, &shm_ops, &udp_ops, &ofi_ops, /* "auto" looks for one from the left */
	NULL,
};

/* No packet can be lost if shared memory reaches every rank. */
static void fault_warn(const struct endpoint *e)
{
	if (e->site.rank == 0 && *setting_text(SETTING_FAULT))
		error_warn(
			"TERN_FAULT is set, but shared memory has no packets to harm, so nothing goes wrong: "
			"set TERN_NET=udp beside it");
}

/* `near`: the network among the ranks of this machine, or NULL. */
static int net_open(struct endpoint *e, struct group *g, const struct net_ops *ops, struct net *near,
		    const char *how)
{
	int rc = ops->open(&e->net[e->nets], &e->site, &g->job, near, how);
	e->nets += !rc;
	return rc;
}

int nets_open(struct endpoint *e, struct group *g)
{
	struct reach reach;
	struct net *near = NULL;
	int rc = reach_find(&reach, g->job.head, e->world);
	if (!rc)
		rc = net_open(e, g, reach.self, NULL, "");
	if (!rc && reach.near) {
		rc = net_open(e, g, reach.near, NULL, "");
		near = rc ? NULL : e->net[1];
	}
	if (rc)
		return rc;
	if (near && g->job.head->machines == 1)
		fault_warn(e);
	if (reach.far)
		return net_open(e, g, reach.far, near, reach.how);
	terms_publish_local(&g->job, e->site.rank);
	return 0;
}

void nets_close(struct endpoint *e)
{
	for (; e->nets; e->nets--)
		e->net[e->nets - 1]->ops->close(e->net[e->nets - 1]);
}
