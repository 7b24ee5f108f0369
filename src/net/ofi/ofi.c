/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the network over libfabric: see ofi.h. */
#include "net/ofi/ofi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "net/ofi/port.h"
#include "service/stack.h"

static int ofi_open_on(struct ofi *o, struct site *site, struct job *job, struct net *local,
		       const char *provider)
{
	struct ofi_card card = { 0 };
	struct packet_net *n = &o->packet;
	int rc = port_open(&o->port, job, site->size, provider);
	if (rc)
		return rc;
	n->wire = &o->port->wire;
	const struct wire_ops *plain = n->wire->ops;
	rc = port_address(o->port, card.address, sizeof card.address);
	if (!rc)
		rc = stack_open(n, &ofi_ops,
				&(struct stack){ .site = site,
						 .job = job,
						 .local = local,
						 .mode = GUARD_NONE,
						 .provider = fabric_name(&o->port->fabric),
						 .card = &card.front,
						 .card_bytes = sizeof card });
	/* Memory goes past faults and the guard, so it is moved where there is neither. */
	if (!rc && n->wire->ops == plain && n->terms.protects == GUARD_NONE && rma_able(o->port))
		n->net.rma = &ofi_rma;
	return rc;
}

static int ofi_open(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how)
{
	struct ofi *o = calloc(1, sizeof *o);
	if (!o)
		return error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	int rc = ofi_open_on(o, site, job, local, how);
	if (rc)
		packet_dispose(&o->packet); /* which it begins with */
	else
		*out = &o->packet.net;
	return rc;
}

const struct net_ops ofi_ops = {
	.name = "ofi",
	.reach = "ranks that a provider of libfabric reaches",
	.span = SPAN_JOB,
	.device = &ofi_device,
	.variants = "ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN",
	.provides = PROVIDES_ORDER | PROVIDES_RELIABLE,
	.open = ofi_open,
	.usable = ofi_usable,
	PACKET_OPERATIONS,
};
