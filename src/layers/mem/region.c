/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private memory that other ranks may use. A region is followed by its virtual
 * address: a page that its owner remaps is found by the kernel at each access, and
 * one that is gone makes the access fail. Unregistering waits for transfers that
 * are under way (hold-off).
 */
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wrap.h"
#include "core/wait.h"
#include "mem/mem.h"

static struct job_region *own_region(const struct mem *m, unsigned index)
{
	return &m->job->rank[m->rank].region[index];
}

void regions_open(struct mem *m)
{
	for (unsigned i = 0; i < JOB_REGIONS && wrap_distance(); i++)
		atomic_store(&own_region(m, i)->generation, (uint32_t)wrap_first(32, 0));
}

unsigned region_segment(unsigned index, uint32_t generation)
{
	if (index < JOB_REGIONS_OWN)
		return SEGMENT_REGION + generation % REGION_GENERATIONS * JOB_REGIONS_OWN + index;
	return SEGMENT_LENT + generation % LENT_GENERATIONS * JOB_REGIONS_LENT + index -
	       JOB_REGIONS_OWN;
}

unsigned segment_region(unsigned segment)
{
	if (segment < SEGMENT_LENT)
		return (segment - SEGMENT_REGION) % JOB_REGIONS_OWN;
	return JOB_REGIONS_OWN + (segment - SEGMENT_LENT) % JOB_REGIONS_LENT;
}

tern_addr region_addr(const struct mem *m, unsigned index)
{
	return addr_make(m->rank,
			 region_segment(index, atomic_load(&own_region(m, index)->generation)), 0);
}

/*
 * What others read of a region (base, bytes, turn, users) has the default order everywhere in mem.
 * Dekker's pattern with region_close(): we raise `users` and then look at `base`; the
 * owner clears `base` and then looks at `users`. All are sequentially consistent, so
 * either we see that the region is closed or the owner sees us.
 */
uint64_t region_enter(struct mem *m, tern_addr a)
{
	struct job_region *g = region_of(m, a);
	if (!g)
		return 0;
	atomic_fetch_add(&g->users, 1);
	uint64_t base = atomic_load(&g->base);
	if (base && region_of(m, a) == g)
		return base;
	atomic_fetch_sub(&g->users, 1);
	return 0;
}

void region_leave(struct mem *m, tern_addr a)
{
	unsigned index = segment_region(addr_segment(a));
	atomic_fetch_sub(&m->job->rank[tern_addr_rank(a)].region[index].users, 1);
}

/* Ranks are siblings: where Yama asks for it, the launcher's descendants may, and only they. */
void mem_let_in(struct mem *m)
{
	if (!m->let_in)
		prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
	m->let_in = true;
}

/* Opens a region that is not in use, of those from `first` on; false if there is none. */
static bool region_open(struct mem *m, unsigned first, unsigned n, void *p, size_t len,
			tern_addr *a)
{
	for (unsigned i = first; i < first + n; i++) {
		struct job_region *g = own_region(m, i);
		if (atomic_load(&g->base))
			continue;
		mem_let_in(m);
		atomic_store(&g->bytes, len);
		atomic_store(&g->base, (uint64_t)(uintptr_t)p);
		*a = region_addr(m, i);
		return true;
	}
	return false;
}

int tern_register(tern *t, void *p, size_t len, tern_addr *a)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	int rc = rules_forked(t->own);
	if (!rc)
		rc = rules_rank(t->own, "tern_register()");
	if (rc)
		return rc;
	if (!p || !len || len >> ADDR_SEGMENT_SHIFT)
		return error_set(-EINVAL, "%zu bytes at %p cannot be registered", len, p);
	if (region_open(m, 0, JOB_REGIONS_OWN, p, len, a))
		return 0;
	return error_set(-ENOBUFS, "rank %u has registered %d regions already: unregister one",
			 m->rank, JOB_REGIONS_OWN);
}

tern_addr region_lend(struct mem *m, void *p, size_t len)
{
	tern_addr a;
	bool some = !(len >> ADDR_SEGMENT_SHIFT) &&
		    region_open(m, JOB_REGIONS_OWN, JOB_REGIONS_LENT, p, len, &a);
	return some ? a : TERN_ADDR_NONE;
}

void region_unlend(struct mem *m, tern_addr a)
{
	struct job_region *g = region_of(m, a);
	atomic_store(&g->base, 0);
	atomic_fetch_add(&g->generation, 1);
}

static bool region_idle(struct endpoint *e, void *arg)
{
	(void)e;
	return atomic_load(&((struct job_region *)arg)->users) == 0;
}

static int region_stop(struct endpoint *e, struct wait *w)
{
	const struct job_region *g = w->arg;
	if (!lost_count(e))
		w->moved_at = 0;
	return wait_stalled(e, w, atomic_load(&g->users));
}

/*
 * Until nobody is in a transfer with the region. A rank that died in one never leaves it; so
 * when a rank has left and nothing changes for the grace time, that is whom we wait for.
 */
static void region_wait(struct mem *m, struct job_region *g)
{
	struct wait w = { .bounded = true, .call = "tern_unregister", .stop = region_stop };
	wait_until(m->e, region_idle, g, &w);
}

int tern_unregister(tern *t, tern_addr a)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	struct job_region *g = tern_addr_rank(a) == m->rank ? region_of(m, a) : NULL;
	int rc = rules_rank(t->own, "tern_unregister()");
	if (!rc)
		rc = rules_wait(t->own, "tern_unregister()");
	if (!rc && (!g || !atomic_load(&g->base)))
		rc = error_set(
			-EINVAL,
			"tern_unregister() was given an address that rank %u has not registered",
			m->rank);
	if (rc)
		return rc;
	atomic_store(&g->base, 0);
	region_wait(m, g);
	atomic_fetch_add(&g->generation, 1);
	return 0;
}
