/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the network over UDP: see udp.h. */
#include "net/udp/udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "net/udp/socket.h"
#include "service/stack.h"

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

static int udp_open(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how)
{
	(void)how;
	struct card card = { 0 };
	struct packet_net *n = calloc(1, sizeof *n);
	if (!n)
		return error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	int rc = socket_open(&n->wire, job, site->size, &card.address);
	if (!rc)
		rc = stack_open(n, &udp_ops,
				&(struct stack){ .site = site,
						 .job = job,
						 .local = local,
						 .mode = GUARD_AUTH,
						 .provider = "",
						 .card = &card.front,
						 .card_bytes = sizeof card });
	if (rc)
		packet_dispose(n);
	else
		*out = &n->net;
	return rc;
}

const struct net_ops udp_ops = {
	.name = "udp",
	.reach = "ranks that UDP datagrams reach",
	.span = SPAN_JOB,
	.provides = 0,
	.open = udp_open,
	.usable = udp_usable,
	PACKET_OPERATIONS,
};
