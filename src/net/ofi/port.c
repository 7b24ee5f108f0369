/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens an endpoint of libfabric, posts its buffers, and takes in what it has done. */
#include "net/ofi/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/setting.h"
#include "job/exchange.h"
#include "net/packet/service.h"

enum {
	NAP_NS = 500000,  /* between two looks, where nothing wakes us */
	ERRORS_MOST = 64, /* that are taken at one look */
	LOOKS = 16, /* that bring something, between two searches for ranks that have opened */
};

/* -- Letters ------------------------------------------------------------------------------- */

static void *desc_of(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

/*
 * The provider is done with a send buffer. One that failed is lost, and those behind it are sent
 * all the same: the provider may have connected again. Where nothing is sent again, who gets them
 * sees the gap, see silence_missed().
 */
static void send_buf_over(struct port *p, struct buf *l, int error)
{
	struct ofi_peer *c = &p->to[l->work.of];
	l->over = true;
	p->posted--;
	if (error)
		failure_note(&c->failure, -error, clock_ns());
	while (c->first != c->posted && c->send_buf[c->first % SEND_BUFS].over)
		c->first++;
	/* The same send buffers again: their bytes are in the cache. */
	if (c->first == c->next)
		c->first = c->posted = c->next = 0;
}

/* False if the provider has no room now. */
static bool send_buf_post(struct port *p, struct ofi_peer *c, struct buf *l)
{
	ssize_t rc = fi_send(p->fabric.ep, l->bytes, l->len, desc_of(c->mr), c->address,
			     &l->work.context);
	if (rc == -FI_EAGAIN)
		return false;
	c->posted++;
	p->posted++;
	if (rc)
		send_buf_over(p, l, (int)rc);
	return true;
}

static void send_bufs_post(struct port *p, struct ofi_peer *c)
{
	while (c->posted != c->next && send_buf_post(p, c, &c->send_buf[c->posted % SEND_BUFS]))
		;
	p->waits |= c->posted != c->next;
}

/* Those that found no room. */
static void port_push(struct port *p)
{
	p->waits = false;
	for (uint32_t r = 0; r < p->size; r++)
		send_bufs_post(p, &p->to[r]);
}

/* Small ones the provider takes at once, and copies. */
static bool port_inject(struct port *p, struct ofi_peer *c, const struct outgoing *o)
{
	return o->parts == 1 && o->part->iov_len <= p->fabric.info->tx_attr->inject_size &&
	       c->posted == c->next &&
	       fi_inject(p->fabric.ep, o->part->iov_base, o->part->iov_len, c->address) == 0;
}

/*
 * Some providers write to memory of their peers, which is not there any more when those have left.
 */
static bool port_gone(const struct port *p, uint32_t rank)
{
	return job_rank_state(p->job, rank) > RANK_OPEN;
}

static void send_one(struct port *p, const struct outgoing *o)
{
	struct ofi_peer *c = &p->to[o->rank];
	if (port_gone(p, o->rank) || c->next - c->first == SEND_BUFS || port_inject(p, c, o))
		return;
	struct buf *l = &c->send_buf[c->next++ % SEND_BUFS];
	l->len = outgoing_copy(l->bytes, o);
	l->over = false;
	send_bufs_post(p, c);
}

static void port_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_one(port_of(w), &o[i]);
}

static bool port_room(struct wire *w, uint32_t rank)
{
	const struct ofi_peer *c = &port_of(w)->to[rank];
	return c->next - c->first < SEND_BUFS;
}

/* Whether its address means anything to our provider. */
static bool card_ours(const struct port *p, const struct ofi_card *card)
{
	char net[TERMS_NET_MOST];
	snprintf(net, sizeof net, "%.*s", TERMS_NET_MOST - 1, card->front.terms.net);
	const char *of = strstr(net, "ofi/");
	return of && strncmp(of + 4, fabric_name(&p->fabric), strlen(of + 4)) == 0;
}

/* Puts a rank into the provider's table of addresses; false if its card is not there yet. */
static bool peer_meet(struct port *p, uint32_t rank)
{
	struct ofi_peer *c = &p->to[rank];
	struct ofi_card card;
	if (c->address != FI_ADDR_NOTAVAIL)
		return true;
	if (!card_read(p->job, rank, &card, sizeof card) || !card_ours(p, &card))
		return false;
	if (fi_av_insert(p->fabric.av, card.address, 1, &c->address, 0, NULL) != 1) {
		c->address = FI_ADDR_NOTAVAIL;
		return false;
	}
	if (c->address < p->size)
		p->rank_at[c->address] = rank + 1;
	p->known++;
	return true;
}

/* -- What has come --------------------------------------------------------------------------- */

static void recv_bufs_post(struct port *p)
{
	for (struct buf *b; (b = p->spent); p->spent = b->next)
		if (fi_recv(p->fabric.ep, b->bytes, p->most, desc_of(p->mr), FI_ADDR_UNSPEC,
			    &b->work.context) != 0)
			return;
}

static void recv_buf_over(struct port *p, struct buf *b)
{
	b->next = p->spent;
	p->spent = b;
}

static void port_ended(struct port *p, struct work *w, int error)
{
	switch (w->kind) {
	case WORK_SEND:
		send_buf_over(p, (struct buf *)(void *)w, error);
		break;
	case WORK_RECV:
		recv_buf_over(p, (struct buf *)(void *)w);
		break;
	case WORK_MOVE:
		p->move[w->of].error = error;
		p->moved |= UINT64_C(1) << w->of;
		break;
	}
}

static bool port_error(struct port *p)
{
	struct fi_cq_err_entry e = { .err_data_size = 0 };
	if (fi_cq_readerr(p->fabric.cq, &e, 0) != 1)
		return false;
	if (e.op_context)
		port_ended(p, e.op_context, e.err ? -e.err : -EIO);
	return true;
}

static ssize_t port_read(struct port *p, struct fi_cq_data_entry *e, unsigned n, fi_addr_t *from)
{
	ssize_t got;
	for (int i = 0; i < ERRORS_MOST; i++) {
		got = p->sources ? fi_cq_readfrom(p->fabric.cq, e, n, from)
				 : fi_cq_read(p->fabric.cq, e, n);
		if (got != -FI_EAVAIL || !port_error(p))
			break;
	}
	return got;
}

static struct datagram datagram_of(const struct port *p, const struct fi_cq_data_entry *e,
				   fi_addr_t from)
{
	const struct buf *b = e->op_context;
	return (struct datagram){ .bytes = b->bytes,
				  .len = e->len,
				  .from = from < p->size ? p->rank_at[from] : 0 };
}

/* Makes the provider know all who can send by now. */
static void port_meet(struct port *p)
{
	if (p->looks++ % LOOKS != 0)
		return;
	for (uint32_t r = 0; r < p->size; r++)
		peer_meet(p, r);
}

static unsigned port_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct port *p = port_of(w);
	struct fi_cq_data_entry e[PACKET_BATCH];
	fi_addr_t from[PACKET_BATCH];
	unsigned came = 0;
	bool all = p->known == p->size;
	recv_bufs_post(p);
	if (p->waits)
		port_push(p);
	ssize_t got = port_read(p, e, n < PACKET_BATCH ? n : PACKET_BATCH, from);
	if (got == -FI_EAGAIN)
		p->believed = p->sources && all;
	for (ssize_t i = 0; i < got; i++) {
		struct work *work = e[i].op_context;
		if (!work)
			continue;
		if (work->kind == WORK_RECV)
			d[came++] = datagram_of(p, &e[i], p->believed ? from[i] : FI_ADDR_NOTAVAIL);
		port_ended(p, work, 0);
	}
	if (came && p->sources && !all)
		port_meet(p);
	return came;
}

/* -- Sleeping -------------------------------------------------------------------------------- */

static int port_descriptor(struct wire *w)
{
	struct port *p = port_of(w);
	struct fid *fids[] = { &p->fabric.cq->fid };
	if (p->fabric.wait_fd < 0)
		return WIRE_NAPS;
	return fi_trywait(p->fabric.fabric, fids, 1) == 0 ? p->fabric.wait_fd : -1;
}

static uint64_t port_due(struct wire *w)
{
	const struct port *p = port_of(w);
	bool asks = p->fabric.wait_fd < 0 || p->waits || p->posted || p->moves != p->moved;
	return asks ? clock_ns() + NAP_NS : DUE_NEVER;
}

/* -- Opening and closing ------------------------------------------------------------------- */

static int bufs_make(struct port *p, struct buf **out, unsigned n, struct work work,
		     uint64_t access, struct fid_mr **mr)
{
	unsigned char *bytes = memory_new(n, p->most);
	struct buf *b = calloc(n, sizeof *b);
	int rc = b && bytes ? own_register(&p->fabric, bytes, n * p->most, access, mr) : -ENOMEM;
	if (rc) {
		memory_free(bytes);
		free(b);
		return rc;
	}
	for (unsigned i = 0; i < n; i++)
		b[i] = (struct buf){ .work = work, .over = true, .bytes = bytes + i * p->most };
	*out = b;
	return 0;
}

static void bufs_free(struct buf *b, struct fid_mr *mr)
{
	if (mr)
		fi_close(&mr->fid);
	if (b)
		memory_free(b[0].bytes);
	free(b);
}

static size_t port_most(struct wire *w, uint32_t rank)
{
	struct port *p = port_of(w);
	struct ofi_peer *c = &p->to[rank];
	struct work work = { .kind = WORK_SEND, .of = rank };
	bool able = c->send_buf || (peer_meet(p, rank) && bufs_make(p, &c->send_buf, SEND_BUFS,
								    work, FI_SEND, &c->mr) == 0);
	return able ? p->most : 0;
}

static int recv_bufs_make(struct port *p)
{
	struct work work = { .kind = WORK_RECV };
	int rc = bufs_make(p, &p->recv_buf, RECV_BUFS, work, FI_RECV, &p->mr);
	if (rc == -ENOMEM)
		return error_set(rc, "opening an endpoint of libfabric: no memory");
	if (rc)
		return error_set(-EIO, "the provider %s of libfabric does not register %zu bytes",
				 fabric_name(&p->fabric), RECV_BUFS * p->most);
	for (unsigned i = 0; i < RECV_BUFS; i++)
		recv_buf_over(p, &p->recv_buf[i]);
	recv_bufs_post(p);
	return 0;
}

static void port_close(struct wire *w)
{
	struct port *p = port_of(w);
	for (unsigned i = 0; i < p->exposures; i++)
		fi_close(&p->exposed[i]->fid);
	if (p->fabric.ep) /* before what it uses */
		fi_close(&p->fabric.ep->fid);
	p->fabric.ep = NULL;
	for (unsigned i = 0; i < MOVES; i++)
		if (p->move[i].mr)
			fi_close(&p->move[i].mr->fid);
	for (uint32_t r = 0; p->to && r < p->size; r++)
		bufs_free(p->to[r].send_buf, p->to[r].mr);
	bufs_free(p->recv_buf, p->mr);
	fabric_close(&p->fabric);
	free(p->to);
	free(p->rank_at);
	free(p);
}

static void port_failed(struct wire *w, uint32_t rank, struct failure *f)
{
	const struct port *p = port_of(w);
	*f = p->to[rank].failure;
	snprintf(f->where, sizeof f->where, "it by libfabric's %.30s on %.30s",
		 fabric_name(&p->fabric), p->fabric.info->domain_attr->name);
}

static const struct wire_ops port_ops = {
	.most = port_most,
	.room = port_room,
	.send = port_send,
	.receive = port_receive,
	.descriptor = port_descriptor,
	.due = port_due,
	.failed = port_failed,
	.close = port_close,
};

static int port_settle(struct port *p)
{
	const struct fi_info *i = p->fabric.info;
	p->most = i->ep_attr->max_msg_size < PORT_MOST ? i->ep_attr->max_msg_size : PORT_MOST;
	p->sources = i->caps & FI_SOURCE;
	/*
	 * Without it order must be added, which drops what comes much too early, and so must retry.
	 */
	if (i->tx_attr->msg_order & i->rx_attr->msg_order & FI_ORDER_SAS)
		p->wire.provides = PROVIDES_ORDER | PROVIDES_RELIABLE;
	p->to = calloc(p->size, sizeof *p->to);
	p->rank_at = calloc(p->size, sizeof *p->rank_at);
	if (!p->to || !p->rank_at)
		return error_set(-ENOMEM, "opening an endpoint of libfabric: no memory");
	for (uint32_t r = 0; r < p->size; r++)
		p->to[r].address = FI_ADDR_NOTAVAIL;
	for (uint32_t k = 0; k < MOVES; k++)
		p->move[k].work = (struct work){ .kind = WORK_MOVE, .of = k };
	return recv_bufs_make(p);
}

/*
 * libfabric's reliable messages over UDP (ofi_rxd, as of 1.17) deliver nothing any more once three
 * endpoints talk. A job over them would hang at one of its first barriers.
 */
static int provider_refuse(const struct port *p)
{
	if (p->size <= 2 || !strstr(fabric_name(&p->fabric), "ofi_rxd"))
		return 0;
	return error_set(
		-ENOTSUP,
		"TERN_NET asks for libfabric's provider %s, "
		"which carries nothing any more as soon as three ranks talk, and this job has %u: "
		"use TERN_NET=udp, Tern's own, or another provider, such as ofi/tcp",
		fabric_name(&p->fabric), p->size);
}

int port_open(struct port **out, struct job *job, uint32_t size, const char *name)
{
	struct port *p = calloc(1, sizeof *p);
	if (!p)
		return error_set(-ENOMEM, "opening an endpoint of libfabric: no memory");
	*p = (struct port){ .wire = { .ops = &port_ops }, .job = job, .size = size };
	uint64_t waits = 1;
	int rc = setting_number(SETTING_OFI_WAIT, &waits);
	if (!rc)
		rc = fabric_open(&p->fabric, name, size, waits);
	if (!rc)
		rc = provider_refuse(p);
	if (!rc)
		rc = port_settle(p);
	if (rc) {
		port_close(&p->wire);
		return rc;
	}
	*out = p;
	return 0;
}

int port_address(struct port *p, unsigned char *address, size_t most)
{
	size_t len = most;
	int rc = fi_getname(&p->fabric.ep->fid, address, &len);
	return rc ? error_set(
			    -EIO,
			    "the provider %s of libfabric has an address of %zu bytes, and %zu fit",
			    fabric_name(&p->fabric), len, most)
		  : 0;
}
