/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TERN_GRANT: the heaps of other ranks are mapped read-only, so that a stray store ends the process
 * that makes it. tern_grant() opens a range of this rank's heap: the others are told by a message,
 * and each makes the pages of its own mapping writable before it answers. What is not granted is
 * stored to by its owner, whom puts and atomics ask as they do across machines.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/memory.h"
#include "mem/mem.h"

enum { GRANTS_MOST = 1024 };

struct grant {
	tern_addr first;
	uint64_t bytes;
};

/* -- At the rank that may store ------------------------------------------------------------ */

/* Heaps and regions begin with a page. */
static tern_addr page_of(tern_addr a)
{
	return a / GRANT_PAGE * GRANT_PAGE;
}

static tern_addr pages_end(tern_addr a, uint64_t bytes)
{
	return page_of(a + bytes + GRANT_PAGE - 1);
}

/* Whole pages. Ranks of one process share a mapping, in which the owner must be able to store. */
static int pages_protect(const struct mem *m, tern_addr a, uint64_t bytes, int protection)
{
	tern_addr first = page_of(a);
	char *at = addr_in_heap(a) ? heap_base(m, tern_addr_rank(a)) + addr_offset(a)
				   : file_mapped(m, a);
	if (m->e->group->size > 1 || !at) /* it is protected when it is mapped */
		return 0;
	return mprotect(at - (a - first), pages_end(a, bytes) - first, protection) ? errno : 0;
}

/* Memory that others map, in a heap or of a file. */
static bool grant_range(const struct mem *m, tern_addr a, uint64_t bytes)
{
	uint64_t at = addr_offset(a);
	const struct job_region *g = region_find(m, a, bytes);
	if (!addr_in_heap(a))
		return bytes && g && atomic_load(&g->fd);
	return bytes && at < m->job->heap_bytes && bytes <= m->job->heap_bytes - at;
}

/* What was granted of memory that is unregistered by now is forgotten. */
static void grants_forget(struct mem *m)
{
	unsigned n = 0;
	for (unsigned i = 0; i < m->granted; i++) {
		const struct grant g = m->grants[i];
		if (addr_in_heap(g.first) || region_find(m, g.first, g.bytes))
			m->grants[n++] = g;
	}
	m->granted = n;
}

static int grant_add(struct mem *m, tern_addr a, uint64_t bytes)
{
	grants_forget(m);
	if (m->granted == GRANTS_MOST)
		return ENOBUFS;
	int why = pages_protect(m, a, bytes, PROT_READ | PROT_WRITE);
	if (!why)
		m->grants[m->granted++] = (struct grant){ a, bytes };
	return why;
}

/* Pages that another grant has as well stay open, and are never closed meanwhile. */
static int pages_close(const struct mem *m, tern_addr a, uint64_t bytes)
{
	tern_addr at = page_of(a), end = pages_end(a, bytes), next;
	int why = 0;
	for (; at < end && !why; at = next) {
		bool open = false;
		next = end;
		for (const struct grant *g = m->grants; g < m->grants + m->granted && !open; g++) {
			tern_addr first = page_of(g->first), beyond = pages_end(g->first, g->bytes);
			open = first <= at && at < beyond;
			first = open ? beyond : first;
			next = at < first && first < next ? first : next;
		}
		if (!open)
			why = pages_protect(m, at, next - at, PROT_READ);
	}
	return why;
}

/* `*had`: whether this rank had it. */
static int grant_remove(struct mem *m, tern_addr a, uint64_t bytes, uint64_t *had)
{
	unsigned i = 0;
	while (i < m->granted && (m->grants[i].first != a || m->grants[i].bytes != bytes))
		i++;
	*had = i < m->granted;
	if (!*had)
		return 0;
	m->grants[i] = m->grants[--m->granted];
	return pages_close(m, a, bytes);
}

void on_grant(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	tern_addr a = tern_msg_word(msg, 0);
	uint64_t bytes = tern_msg_word(msg, 1);
	uint64_t had = 1;
	int why = EFAULT;
	if (m->guarded && tern_addr_rank(a) == tern_msg_src(msg) && grant_range(m, a, bytes))
		why = tern_msg_word(msg, 2) ? grant_add(m, a, bytes)
					    : grant_remove(m, a, bytes, &had);
	message_answer(t, tern_msg_word(msg, 3), why, had);
}

bool grant_covers(const struct mem *m, tern_addr a, size_t len)
{
	for (unsigned i = 0; i < m->granted; i++) {
		const struct grant *g = &m->grants[i];
		if (a - g->first < g->bytes && len <= g->bytes - (a - g->first))
			return true;
	}
	return false;
}

void grants_apply(const struct mem *m, const struct job_region *g)
{
	for (unsigned i = 0; i < m->granted; i++) {
		const struct grant *one = &m->grants[i];
		if (region_find(m, one->first, one->bytes) == g)
			pages_protect(m, one->first, one->bytes, PROT_READ | PROT_WRITE);
	}
}

char *grant_read(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	if (rank >= m->size || mem_dead(m, rank) || m->e->forked || !mem_near(m, rank))
		return NULL;
	if (!addr_in_heap(a)) {
		const struct job_region *g = region_find(m, a, len);
		return g && !mem_same_process(m, rank) ? file_reach(m, g, a) : NULL;
	}
	const struct job_rank *r = &m->job->rank[rank];
	uint64_t at = addr_offset(a), middle = m->job->heap_bytes / 2;
	uint64_t own = atomic_load_explicit(&r->heap, memory_order_acquire);
	uint64_t common = atomic_load_explicit(&r->common, memory_order_acquire);
	return halves_hold(at, len, middle, own, common) ? heap_base(m, rank) + at : NULL;
}

/* -- At the owner ---------------------------------------------------------------------------- */

/* Whom a change concerns, and what they answer. A grant to all is a grant to each rank. */
struct change {
	tern_addr a;
	size_t len;
	bool on;
	tern_op op;
	uint64_t asked;
	uint64_t had[TERN_RANKS_MAX];
};

/* Asks one rank; ranks behind a network have no use for it. */
static int grant_ask(struct mem *m, struct change *c, uint32_t rank)
{
	struct slot *s;
	if (rank == m->rank || !mem_near(m, rank))
		return 0;
	int rc = slot_wait(m, rank, &s);
	if (rc)
		return rc;
	uint64_t words[] = { c->a, c->len, c->on, slot_name(m, s) };
	s->word = true;
	slot_expect(m, s, &c->had[c->asked++], sizeof c->had[0]);
	return slot_request(m, s, &c->op, MEM_GRANT, NULL, 0, 4, words);
}

/* One that cannot be asked does not keep the others from it. */
static int grant_ask_all(struct mem *m, struct change *c)
{
	int rc = 0;
	for (uint32_t r = 0; r < m->size; r++) {
		int one = m->e->site.peer[r].lost ? 0 : grant_ask(m, c, r);
		rc = rc ? rc : one;
	}
	return rc;
}

static bool change_concerns(const struct change *c)
{
	bool any = !c->asked;
	for (uint64_t i = 0; i < c->asked; i++)
		any |= c->had[i] != 0;
	return any;
}

static int grant_change(tern *t, uint32_t rank, const void *p, size_t len, bool on,
			const char *call)
{
	INSIDE struct scope scope = scope_open(t);
	struct mem *m = mem_of(t);
	int rc = rules_rank_waits(t->own, call);
	if (!rc && rank != TERN_RANK_ALL)
		rc = rules_destination(t->own, rank);
	if (rc)
		return rc;
	tern_addr a = len ? mem_addr_all(m, p, len) : TERN_ADDR_NONE;
	if (a == TERN_ADDR_NONE || !grant_range(m, a, len))
		return error_set(-EFAULT,
				 "%s was given %zu bytes at %p, which are not all in rank "
				 "%u's heap, nor registered with their file",
				 call, len, p, m->rank);
	struct change c = { .a = a, .len = len, .on = on, .op = TERN_OP };
	if (m->guarded)
		rc = rank == TERN_RANK_ALL ? grant_ask_all(m, &c) : grant_ask(m, &c, rank);
	rc = op_finish(t, NULL, &c.op, rc);
	if (!rc && !change_concerns(&c))
		rc = error_set(-ENXIO, "tern_revoke() of %zu bytes at %p that were not granted%s",
			       len, p, rank == TERN_RANK_ALL ? " to any rank" : " to that rank");
	return rc;
}

int tern_grant(tern *t, uint32_t rank, void *p, size_t len)
{
	return grant_change(given(t), rank, p, len, true, "tern_grant()");
}

int tern_revoke(tern *t, uint32_t rank, void *p, size_t len)
{
	return grant_change(given(t), rank, p, len, false, "tern_revoke()");
}

/* -- Opening ---------------------------------------------------------------------------------- */

/* The heaps before this rank's, and those behind it. A worker has the mapping of its rank. */
int grants_open(struct mem *m)
{
	size_t before = (size_t)m->rank * m->job->heap_bytes;
	size_t beyond = (size_t)(m->size - m->rank - 1) * m->job->heap_bytes;
	m->guarded = m->job->head->grant;
	m->grants = m->guarded ? memory_new(GRANTS_MOST, sizeof *m->grants) : NULL;
	if (m->guarded && !m->grants)
		return error_set(-ENOMEM, "TERN_GRANT=1 at rank %u: no memory", m->rank);
	if (!m->guarded || m->e->main || m->e->group->size > 1)
		return 0;
	if ((before && mprotect(heap_base(m, 0), before, PROT_READ)) ||
	    (beyond && mprotect(heap_base(m, m->rank) + m->job->heap_bytes, beyond, PROT_READ)))
		return error_set(-errno, "TERN_GRANT=1 at rank %u: protecting the other heaps: %s",
				 m->rank, strerror(errno));
	return 0;
}
