/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"
#include "job/exchange.h"
#include "net/fault/fault.h"
#include "net/guard/guard.h"
#include "net/ofi/card.h"
#include "net/ofi/port.h"
#include "net/ofi/provider.h"
#include "service/service.h"

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

static int ofi_open(struct ofi *o, struct site *site, struct job *job, struct net *local,
		    const char *provider)
{
	struct ofi_card card = { 0 };
	struct packet_net *n = &o->packet;
	int rc = port_open(&o->port, job, site->size, provider);
	if (rc)
		return rc;
	struct port *port = o->port;
	n->wire = &port->wire;
	rc = card_write(&card, port);
	if (!rc)
		rc = fault_wrap(&n->wire, site->rank, site->size);
	bool faulty =
		n->wire != &port->wire; /* damage must be noticed then, by whom it is made for */
	if (!rc)
		rc = guard_new(&n->keys, job, site, faulty ? GUARD_AUTH : GUARD_NONE,
			       card.front.key);
	if (!rc)
		rc = fault_judge(n->wire, guard_mode(n->keys) != GUARD_NONE);
	n->guard = &guard_ops;
	if (rc)
		return rc;
	struct packet_options options = { .local = local,
					  .wire = n->wire,
					  .guard = &guard_ops,
					  .keys = n->keys,
					  .copies = guard_mode(n->keys) == GUARD_ENCRYPT,
					  .services = service_all,
					  .terms.protects = (uint8_t)guard_mode(n->keys) };
	terms_write(&options.terms, local, "ofi", fabric_name(&port->fabric));
	rc = packet_open(n, &ofi_ops, site, job, &options);
	if (rc)
		return rc;
	if (!faulty && guard_mode(n->keys) == GUARD_NONE && rma_able(port))
		n->net.rma = &ofi_rma; /* it knows of neither */
	card.front.terms = n->terms;
	card_publish(job, site->rank, &card, sizeof card); /* last: from now on, others may send */
	return 0;
}

static int ofi_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
			 const char *how)
{
	struct ofi *o = calloc(1, sizeof *o);
	if (!o)
		return error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	int rc = ofi_open(o, site, job, local, how);
	if (rc) {
		packet_dispose(&o->packet) /* which it begins with */;
		return rc;
	}
	*out = &o->packet.net;
	return 0;
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
	.open = ofi_open_rank,
	.usable = ofi_usable,
	PACKET_OPERATIONS,
};

/* cost: base setup */
