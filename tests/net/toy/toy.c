/* SPDX-License-Identifier: BSD-3-Clause */
#include "toy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "service/service.h"

enum { RANKS = 16, PLACES = 8, MOST = 1400 };

struct mailbox {
	struct wire wire;
	uint32_t rank;
	unsigned came, gone; /* packets */
	struct {
		size_t len;
		unsigned char bytes[MOST];
	} place[PLACES];
};

static struct mailbox *mailboxes[RANKS];
unsigned toy_sent[CLASSES];
uint64_t toy_context[CLASSES];

/* -- The wire ---------------------------------------------------------------------------- */

static size_t toy_most(struct wire *w, uint32_t rank)
{
	(void)w;
	return mailboxes[rank] ? MOST : 0;
}

static void mailbox_put(struct mailbox *to, const struct outgoing *o)
{
	if (!to || to->came - to->gone == PLACES)
		return;
	unsigned i = to->came++ % PLACES;
	to->place[i].len = 0;
	for (int k = 0; k < o->parts; k++) {
		memcpy(to->place[i].bytes + to->place[i].len, o->part[k].iov_base,
		       o->part[k].iov_len);
		to->place[i].len += o->part[k].iov_len;
	}
}

static void toy_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	(void)w;
	for (; n; n--, o++) {
		toy_sent[o->class]++;
		toy_context[o->class] = o->context;
		mailbox_put(mailboxes[o->rank], o);
	}
}

static unsigned toy_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct mailbox *m = (struct mailbox *)(void *)w;
	unsigned got = 0;
	for (; got < n && m->gone != m->came; got++, m->gone++)
		d[got] = (struct datagram){ .bytes = m->place[m->gone % PLACES].bytes,
					    .len = m->place[m->gone % PLACES].len };
	return got;
}

static int toy_descriptor(struct wire *w)
{
	(void)w;
	return -1;
}

static uint64_t toy_due(struct wire *w)
{
	(void)w;
	return DUE_NEVER;
}

static void toy_close(struct wire *w)
{
	struct mailbox *m = (struct mailbox *)(void *)w;
	mailboxes[m->rank] = NULL;
	free(m);
}

static const struct wire_ops wire_ops = { .most = toy_most,
					  .send = toy_send,
					  .receive = toy_receive,
					  .descriptor = toy_descriptor,
					  .due = toy_due,
					  .close = toy_close };

/* -- Nobody else can write into a mailbox, so a packet says who sent it and that is believed -- */

static bool open_open(struct packet_net *n, uint32_t rank)
{
	(void)n, (void)rank;
	return true;
}

static void open_seal(struct packet_net *n, struct packet *k)
{
	memset(k->at, 0, DATAGRAM_HEAD);
	memcpy(k->at, &n->net.site->rank, sizeof n->net.site->rank);
}

static enum seal open_unseal(struct packet_net *n, struct datagram *d, uint32_t *rank,
			     struct arrival *a)
{
	(void)n;
	memcpy(rank, d->bytes, sizeof *rank);
	*a = (struct arrival){ .at = d->bytes + DATAGRAM_HEAD, .len = d->len - DATAGRAM_HEAD };
	return SEAL_GOOD;
}

static const struct guard_ops open_guard = { .open = open_open,
					     .seal = open_seal,
					     .unseal = open_unseal };

/* -- The network ---------------------------------------------------------------------------- */

static int toy_open(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how)
{
	(void)how;
	if (site->size > RANKS)
		return error_set(-ERANGE, "the toy network has %d ranks at most", RANKS);
	struct packet_net *n = calloc(1, sizeof *n);
	struct mailbox *m = calloc(1, sizeof *m);
	if (!n || !m) {
		free(n);
		free(m);
		return error_set(-ENOMEM, "opening the toy network: no memory");
	}
	m->wire.ops = &wire_ops;
	m->rank = site->rank;
	mailboxes[site->rank] = m;
	n->wire = &m->wire;
	n->guard = &open_guard;
	n->service_table = service_all;
	int rc = packet_open(n, &toy_ops, site, job, local);
	if (rc) {
		packet_dispose(n);
		return rc;
	}
	*out = &n->net;
	return 0;
}

static bool toy_usable(char *why, size_t len)
{
	(void)why, (void)len;
	return true;
}

const struct net_ops toy_ops = { .name = "toy",
				 .reach = "ranks of this process",
				 .span = SPAN_JOB,
				 .open = toy_open,
				 .usable = toy_usable,
				 PACKET_OPERATIONS };
