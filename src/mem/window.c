/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base control */
/*
 * Heaps of ranks that are reached over a network which moves memory by itself. What a rank may move there it learns by
 * asking: how much of the heap is committed, and its window. What lies beyond that goes by messages, whose owner checks it,
 * and is asked about meanwhile; so nobody waits for an answer, and an address that is wrong is refused as it is elsewhere.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "mem/mem.h"

enum {
	LEAST = 512,     /* bytes: shorter ones take as long by message, and a word is then moved as one */
	CHUNK = 1 << 20, /* at a time */
	BESIDE = 4,      /* chunks of one transfer under way */
	PATIENCE_NS = 200000000, /* with a provider, when the peer has died */
};

/* What this rank knows of another's heap. */
struct pane {
	bool asked, open;
	uint64_t own, common; /* bytes committed, from the beginning and from the middle */
	struct window window;
};

static struct net *net_of(const struct mem *m, uint32_t rank)
{
	return m->e->site.peer[rank].net;
}

static void pane_ask(struct mem *m, uint32_t rank)
{
	struct pane *p = &m->panes[rank];
	if (!p->asked && layer_request(m->e, rank, MEM_WINDOW, NULL, 0, 0, NULL) == 0)
		p->asked = true;
}

/* cost: protection control */
static bool pane_covers(const struct mem *m, const struct pane *p, uint64_t at, size_t len)
{
	uint64_t beyond = at - m->job->heap_bytes / 2;
	return p->open &&
	       ((at < p->own && len <= p->own - at) || (beyond < p->common && len <= p->common - beyond));
}

bool window_has(struct mem *m, const struct transfer *x)
{
	tern_addr remote = x->runs.remote + x->runs.done;
	uint32_t rank = tern_addr_rank(remote);
	if (!m->windows || x->source || runs_left(&x->runs) < LEAST || addr_segment(remote) != SEGMENT_HEAP ||
	    !net_of(m, rank)->rma || m->span[rank].lost)
		return false;
	if (!m->panes)
		m->panes = memory_new(m->size, sizeof *m->panes);
	if (!m->panes)
		return false;
	if (pane_covers(m, &m->panes[rank], addr_offset(remote), runs_left(&x->runs)))
		return true;
	pane_ask(m, rank);
	return false;
}

ptrdiff_t window_move(struct mem *m, struct transfer *x)
{
	tern_addr remote = x->runs.remote + x->runs.done;
	uint32_t rank = tern_addr_rank(remote);
	size_t len = runs_left(&x->runs) < CHUNK ? runs_left(&x->runs) : CHUNK;
	struct slot *s = x->flying < BESIDE ? slot_take(m, rank, SLOTS_QUICK) : NULL;
	if (!s)
		return 0;
	s->x = x;
	s->moving = true;
	struct net *net = net_of(m, rank);
	int rc = net->rma->move(net, rank, &m->panes[rank].window, addr_offset(remote),
				x->runs.local + x->runs.done, len, x->put, slot_name(m, s));
	if (rc) {
		slot_give(s);
		return rc == -EAGAIN ? 0
				     : error_set(rc, "%s %zu bytes of rank %u's heap: its network refuses",
						 x->put ? "writing" : "reading", len, rank);
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

/* The provider may still write to memory of an operation that ends, so it is given time to say that it will not. */
/* cost: fault control */
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

static void window_asked(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	struct net *net = net_of(m, tern_msg_src(msg));
	const struct job_rank *r = &m->job->rank[m->rank];
	struct window w = { 0, 0 };
	bool open = net->rma && net->rma->expose(net, m->span[m->rank].base, m->job->heap_bytes, &w) == 0;
	uint64_t words[] = { open, atomic_load(&r->heap), atomic_load(&r->common), w.base, w.key };
	layer_reply(m->e, MEM_WINDOW_IS, NULL, 0, 5, words);
}

static void window_told(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	struct pane *p = m->panes ? &m->panes[tern_msg_src(msg)] : NULL;
	if (!p || !p->asked)
		return;
	p->open = tern_msg_arg(msg, 0);
	p->asked = !p->open; /* who has none is not asked again */
	p->own = tern_msg_arg(msg, 1);
	p->common = tern_msg_arg(msg, 2);
	p->window = (struct window){ tern_msg_arg(msg, 3), tern_msg_arg(msg, 4) };
}

void window_register(struct endpoint *e)
{
	layer_on(e, MEM_WINDOW, window_asked);
	layer_on(e, MEM_WINDOW_IS, window_told);
}
