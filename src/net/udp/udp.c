/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/udp/udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "job/exchange.h"
#include "net/fault/fault.h"
#include "net/guard/guard.h"
#include "net/udp/card.h"
#include "net/udp/socket.h"
#include "service/service.h"

static bool udp_usable(char *why, size_t len)
{
	struct wire *w;
	struct sockaddr_in6 address;
	int rc = socket_open(&w, NULL, 1, &address);
	if (rc) {
		snprintf(why, len, "%s", tern_strerror(rc));
		return false;
	}
	w->ops->close(w);
	return true;
}

static int udp_open(struct packet_net *n, struct site *site, struct job *job, struct net *local)
{
	struct card card = { 0 };
	int rc = socket_open(&n->wire, job, site->size, &card.address);
	if (!rc)
		rc = fault_wrap(&n->wire, site->rank, site->size);
	if (!rc)
		rc = guard_new(&n->keys, job, site, GUARD_AUTH, card.front.key);
	if (!rc)
		rc = fault_judge(n->wire, guard_mode(n->keys) != GUARD_NONE);
	n->guard = &guard_ops;
	if (rc)
		return rc;
	struct packet_options o = { .local = local,
				    .wire = n->wire,
				    .guard = &guard_ops,
				    .keys = n->keys,
				    .copies = guard_mode(n->keys) == GUARD_ENCRYPT,
				    .services = service_all,
				    .terms.protects = (uint8_t)guard_mode(n->keys) };
	terms_write(&o.terms, local, "udp", "");
	rc = packet_open(n, &udp_ops, site, job, &o);
	if (rc)
		return rc;
	card.front.terms = n->terms;
	card_publish(job, site->rank, &card, sizeof card); /* last: from now on, others may send */
	return 0;
}

static int udp_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
			 const char *how)
{
	(void)how;
	struct packet_net *n = calloc(1, sizeof *n);
	if (!n)
		return error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	int rc = udp_open(n, site, job, local);
	if (rc) {
		packet_dispose(n);
		return rc;
	}
	*out = &n->net;
	return 0;
}

const struct net_ops udp_ops = {
	.name = "udp",
	.reach = "ranks that UDP datagrams reach",
	.span = SPAN_JOB,
	.provides = 0,
	.open = udp_open_rank,
	.usable = udp_usable,
	PACKET_OPERATIONS,
};

/* cost: base setup */
