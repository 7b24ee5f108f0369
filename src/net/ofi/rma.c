/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of peers, read and written by the provider. */
#include <errno.h>

#include "net/ofi/port.h"

static struct port *port_under(struct net *net)
{
	return ((struct ofi *)(void *)net)->port;
}

bool rma_able(const struct port *p)
{
	return p->fabric.info->caps & FI_RMA;
}

static int rma_expose(struct net *net, void *base, size_t bytes, struct window *w)
{
	struct port *p = port_under(net);
	struct fid_mr *mr;
	if (p->exposures == EXPOSED)
		return -ENOSPC;
	int rc = fabric_register(&p->fabric, base, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, &mr);
	if (rc)
		return rc;
	p->exposed[p->exposures++] = mr;
	w->base = fabric_asks(&p->fabric, FI_MR_VIRT_ADDR) ? (uint64_t)(uintptr_t)base : 0;
	w->key = fi_mr_key(mr);
	return 0;
}

/* A put is over when it is in the peer's memory, so that a message sent then finds it there. */
static ssize_t move_post(struct port *p, struct move *v, const struct ofi_peer *c,
			 struct iovec *local, struct fi_rma_iov *remote, bool put)
{
	void *desc = v->mr ? fi_mr_desc(v->mr) : NULL;
	struct fi_msg_rma m = { .msg_iov = local,
				.desc = &desc,
				.iov_count = 1,
				.addr = c->address,
				.rma_iov = remote,
				.rma_iov_count = 1,
				.context = &v->work.context };
	return put ? fi_writemsg(p->fabric.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE)
		   : fi_readmsg(p->fabric.ep, &m, FI_COMPLETION);
}

static void move_end(struct port *p, struct move *v)
{
	if (v->mr)
		fi_close(&v->mr->fid);
	v->mr = NULL;
	p->moves &= ~(UINT64_C(1) << v->work.of);
	p->moved &= p->moves;
}

static int rma_move(struct net *net, uint32_t rank, const struct window *w, uint64_t offset,
		    void *local, size_t len, bool put, uint64_t tag)
{
	struct port *p = port_under(net);
	struct iovec here = { local, len };
	struct fi_rma_iov there = { .addr = w->base + offset, .len = len, .key = w->key };
	if (p->moves == UINT64_MAX || !p->wire.ops->most(&p->wire, rank))
		return -EAGAIN;
	struct move *v = &p->move[__builtin_ctzll(~p->moves)];
	if (own_register(&p->fabric, local, len, put ? FI_WRITE : FI_READ, &v->mr))
		return -EIO;
	ssize_t rc = move_post(p, v, &p->to[rank], &here, &there, put);
	if (rc) {
		move_end(p, v);
		return rc == -FI_EAGAIN ? -EAGAIN : -EIO;
	}
	p->moves |= UINT64_C(1) << v->work.of;
	v->tag = tag;
	struct path *path = path_to(packet_of(net), rank);
	if (path) /* an answer is owed for it */
		path->confirm.moves++;
	return 0;
}

static unsigned rma_ended(struct net *net, struct moved *m, unsigned n)
{
	struct port *p = port_under(net);
	unsigned ended = 0;
	for (; p->moved && ended < n; ended++) {
		struct move *v = &p->move[__builtin_ctzll(p->moved)];
		m[ended] = (struct moved){ v->tag, v->error ? -EIO : 0 };
		move_end(p, v);
	}
	return ended;
}

const struct net_rma ofi_rma = { .expose = rma_expose, .move = rma_move, .ended = rma_ended };
