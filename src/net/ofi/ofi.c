/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the network over libfabric: see ofi.h. */
#include "net/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/ofi/port.h"
#include "service/stack.h"

/* What TERN_NET names behind ofi/; "" if it names nothing, or another network. */
static const char *provider_asked(void)
{
	const char *named = strstr(setting_text(SETTING_NET), "ofi/");
	return named ? named + 4 : "";
}

static bool ofi_usable(char *why, size_t len)
{
	const struct library *l = library_open();
	struct fi_info *info = NULL;
	int rc = l ? provider_find(l, provider_asked(), 0, &info) : -ENOTSUP;
	if (rc) {
		snprintf(why, len, "%s", tern_strerror(rc));
		return false;
	}
	snprintf(why, len, "provider %s on %s", info->fabric_attr->prov_name,
		 info->domain_attr->name);
	l->freeinfo(info);
	return true;
}

static int card_write(struct ofi_card *card, struct port *p)
{
	int len = port_address(p, card->address, sizeof card->address);
	if (len < 0)
		return len;
	card->len = (uint32_t)len;
	return 0;
}

static int ofi_open_on(struct ofi *o, struct site *site, struct job *job, struct net *local,
		       const char *provider)
{
	struct ofi_card card = { 0 };
	struct packet_net *n = &o->packet;
	int rc = port_open(&o->port, job, site->size, provider);
	if (rc)
		return rc;
	n->wire = &o->port->wire;
	rc = card_write(&card, o->port);
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
	if (!rc && n->wire == &o->port->wire && n->terms.protects == GUARD_NONE &&
	    rma_able(o->port))
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

/* Of the kinds of adapter that libfabric is made for. */
static const char *const devices[] = { "/sys/class/infiniband", "/sys/class/cxi", "/sys/class/hfi1",
				       NULL };

const struct net_ops ofi_ops = {
	.name = "ofi",
	.reach = "ranks that a provider of libfabric reaches",
	.span = SPAN_JOB,
	.devices = devices,
	.variants = "ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN",
	.provides = PROVIDES_ORDER | PROVIDES_RELIABLE,
	.open = ofi_open,
	.usable = ofi_usable,
	PACKET_OPERATIONS,
};

/* cost: base setup */
