/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heaps of ranks that are reached over a network which moves memory by itself. What a rank may move
 * there it learns by asking: how much of the heap is committed, and its window. What lies beyond
 * that goes by messages, whose owner checks it, and is asked about meanwhile; so nobody waits for
 * an answer, and an address that is wrong is refused as it is elsewhere.
 */
#include <errno.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"

enum {
	/* Bytes: shorter ones take as long by message, and a word is then moved as one. */
	LEAST = 512,
	CHUNK = 1 << 20,         /* at a time */
	BESIDE = 4,              /* chunks of one transfer under way */
	PATIENCE_NS = 200000000, /* with a provider, when the peer has died */
};

static struct net *net_of(const struct mem *m, uint32_t rank)
{
	return m->e->site.peer[rank].net;
}

static void pane_ask(struct mem *m, uint32_t rank)
{
	struct mem_peer *p = &m->peer[rank];
	const uint64_t none = 0;
	if (!p->asked && layer_request(m->e, rank, MEM_WINDOW, NULL, 0, 0, &none) == 0)
		p->asked = true;
}

/* The half of `rank`'s heap that has it, and where in it that is; NULL if it is not known to. */
static const struct half *pane_find(const struct mem *m, tern_addr a, size_t len, uint64_t *at)
{
	uint64_t middle = m->job->heap_bytes / 2;
	bool common = addr_offset(a) >= middle;
	const struct half *h = &m->peer[tern_addr_rank(a)].half[common];
	*at = addr_offset(a) - (common ? middle : 0);
	return *at < h->bytes && len <= h->bytes - *at ? h : NULL;
}

bool window_has(struct mem *m, const struct transfer *x)
{
	tern_addr remote = runs_remote(&x->runs);
	uint32_t rank = tern_addr_rank(remote);
	uint64_t at;
	if (!m->moves || x->source || runs_left(&x->runs) < LEAST || !addr_in_heap(remote) ||
	    !net_of(m, rank)->rma || m->peer[rank].lost)
		return false;
	if (pane_find(m, remote, runs_left(&x->runs), &at))
		return true;
	pane_ask(m, rank);
	return false;
}

ptrdiff_t window_move(struct mem *m, struct transfer *x)
{
	tern_addr remote = runs_remote(&x->runs);
	uint32_t rank = tern_addr_rank(remote);
	size_t len = runs_left(&x->runs) < CHUNK ? runs_left(&x->runs) : CHUNK;
	struct slot *s = x->flying < BESIDE ? slot_take(m, rank, SLOTS_QUICK) : NULL;
	if (!s)
		return 0;
	s->x = x;
	s->moving = true;
	uint64_t at;
	const struct half *h = pane_find(m, remote, len, &at);
	struct net *net = net_of(m, rank);
	int rc = net->rma->move(net, rank, &h->window, at, transfer_local(m, x, len), len, x->put,
				slot_name(m, s));
	if (rc) {
		slot_give(s);
		/* By message, as when our memory cannot be registered. */
		return rc == -EAGAIN ? 0 : message_move(m, x);
	}
	x->flying++;
	m->moving++;
	return (ptrdiff_t)len;
}

unsigned window_progress(struct mem *m)
{
	struct moved ended[16];
	unsigned all = 0;
	for (unsigned i = 0; m->moving && i < m->e->nets; i++) {
		struct net *net = m->e->net[i];
		unsigned n = net->rma ? net->rma->ended(net, ended, 16) : 0;
		all += n;
		for (unsigned k = 0; k < n; k++) {
			m->moving--;
			slot_moved(m, ended[k].tag, ended[k].error);
		}
	}
	return all;
}

/*
 * The provider may still write to memory of an operation that ends, so it is given time to say that
 * it will not.
 */
bool window_owed(const struct mem *m, struct slot *s)
{
	uint64_t now = m->e->world->now();
	if (!s->moving)
		return false;
	if (!s->until)
		s->until = now + PATIENCE_NS;
	return now < s->until;
}

/* -- At the owner, and back -------------------------------------------------------------------- */

/*
 * Lets others reach what is committed by now; again only if that is a good deal more, since all of
 * it is registered anew.
 */
static void half_expose(const struct mem *m, struct net *net, struct half *h, uint64_t start,
			uint64_t committed)
{
	struct window w;
	if (committed < h->bytes + h->bytes / 4 + 1)
		return;
	if (net->rma->expose(net, heap_base(m, m->rank) + start, committed, &w) == 0)
		*h = (struct half){ committed, w };
}

void on_window_query(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	struct net *net = net_of(m, tern_msg_src(msg));
	const struct job_rank *r = &m->job->rank[m->rank];
	static const struct half none[HALVES];
	const struct half *h = net->rma ? m->mine : none;
	const _Atomic uint64_t *committed[] = { &r->heap, &r->common };
	/* The default order: only this rank writes what is committed, and a peer asks once. */
	for (unsigned i = 0; net->rma && i < HALVES; i++)
		half_expose(m, net, &m->mine[i], i * (m->job->heap_bytes / 2),
			    atomic_load(committed[i]));
	uint64_t words[] = { h[0].bytes, h[0].window.base, h[0].window.key,
			     h[1].bytes, h[1].window.base, h[1].window.key };
	layer_reply(m->e, MEM_WINDOW_IS, NULL, 0, 6, words);
}

void on_window_reply(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	struct mem_peer *p = &m->peer[tern_msg_src(msg)];
	if (!p->asked)
		return;
	p->asked = false;
	for (unsigned i = 0; i < HALVES; i++)
		p->half[i] = (struct half){ tern_msg_word(msg, 3 * i),
					    { tern_msg_word(msg, 3 * i + 1),
					      tern_msg_word(msg, 3 * i + 2) } };
}
