/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: what they name, who can touch it, and why not. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/kernel.h"
#include "mem/mem.h"
#include "mem/word.h"

char *span_look(struct mem *m, tern_addr a, size_t len)
{
	struct span *s = &m->span[tern_addr_rank(a)];
	const struct job_rank *r = &m->job->rank[tern_addr_rank(a)];
	uint64_t at = a - s->first, beyond = at - s->middle;
	if (s->lost || !layer_maps(m->e, tern_addr_rank(a)))
		return NULL;
	s->own = atomic_load_explicit(&r->heap, memory_order_acquire);
	s->common = atomic_load_explicit(&r->common, memory_order_acquire);
	s->own_words = s->own ? s->own - 7 : 0;
	s->common_words = s->common ? s->common - 7 : 0;
	s->own_lines =
		s->own ? s->own - (TERN_LINE - 1) : 0; /* what is committed are whole pages */
	s->common_lines = s->common ? s->common - (TERN_LINE - 1) : 0;
	bool covered = (at < s->own && len <= s->own - at) ||
		       (beyond < s->common && len <= s->common - beyond);
	return covered ? s->base + at : NULL;
}

struct job_region *region_of(const struct mem *m, tern_addr a)
{
	unsigned segment = addr_segment(a);
	if (segment < SEGMENT_REGION || tern_addr_rank(a) >= m->size)
		return NULL;
	unsigned index = segment_region(segment);
	struct job_region *g = &m->job->rank[tern_addr_rank(a)].region[index];
	return region_segment(index, atomic_load(&g->turn)) == segment ? g : NULL;
}

/* Whether the region is in use and has [at, at + len). */
static bool region_covers(const struct job_region *g, uint64_t at, size_t len)
{
	uint64_t bytes = atomic_load(&g->bytes);
	return atomic_load(&g->base) && at <= bytes && len <= bytes - at;
}

char *mem_reach(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	if (rank >= m->size)
		return NULL;
	if (addr_segment(a) == SEGMENT_HEAP)
		return heap_reach(m, a, len);
	struct job_region *g = layer_maps(m->e, rank) ? region_of(m, a) : NULL;
	if (!g || atomic_load(&m->job->rank[rank].pid) != getpid() ||
	    !region_covers(g, addr_offset(a), len))
		return NULL;
	return (char *)(uintptr_t)atomic_load(&g->base) + addr_offset(a);
}

int mem_check(struct mem *m, tern_addr a, size_t len, const char *what)
{
	uint32_t rank = tern_addr_rank(a);
	unsigned long long at = addr_offset(a);
	int rc = rules_forked(m->e);
	if (rc)
		return rc;
	if (a == TERN_NOWHERE)
		return error_set(-EFAULT, "%s was given TERN_NOWHERE as an address", what);
	if (rank >= m->size)
		return error_set(-ERANGE,
				 "%s was given an address at rank %u; this job has ranks 0 to %u",
				 what, rank, m->size - 1);
	if (m->span[rank].lost) {
		struct net *net = m->e->site.peer[rank].net;
		return net->ops->check(net, rank);
	}
	if (mem_reach(m, a, len) || !layer_maps(m->e, rank)) /* its owner will check it */
		return 0;
	if (addr_segment(a) == SEGMENT_HEAP)
		return error_set(
			-EFAULT,
			"%s asked for %zu bytes at offset %llu of rank %u's heap, which are not allocated",
			what, len, at, rank);
	struct job_region *g = region_of(m, a);
	if (g && region_covers(g, addr_offset(a), len))
		return 0;
	return error_set(
		-EFAULT,
		"%s asked for %zu bytes at offset %llu of a region of rank %u that is not registered (any more), "
		"or not that long",
		what, len, at, rank);
}

static bool populated(const void *p, size_t len, int advice)
{
	enum { PAGE = 4096 };
	uintptr_t first = (uintptr_t)p / PAGE * PAGE;
	return madvise((void *)first, (uintptr_t)p + len - first, advice) == 0;
}

/* Before Linux 5.14 nothing can be populated; then both ends of a few bytes are tried. */
bool mem_writable(void *p, size_t len)
{
	return populated(p, len, MADV_POPULATE_WRITE) ||
	       (futex_can_write(p) && futex_can_write((char *)p + len - 1));
}

static bool few_readable(const void *p, size_t len)
{
	char byte[2];
	struct iovec here = { byte, 2 }, ends[] = { { (void *)(uintptr_t)p, 1 },
						    { (char *)(uintptr_t)p + len - 1, 1 } };
	return populated(p, len, MADV_POPULATE_READ) ||
	       process_vm_readv(getpid(), &here, 1, ends, 2, 0) == 2;
}

/* The kernel copies bytes one by one, so it is only asked whether a word is there. */
static bool word_there(void *to, const void *from, size_t len)
{
	return (word_is(to, len) || word_is(from, len)) && mem_writable(to, len) &&
	       few_readable(from, len);
}

int mem_copy_guarded(void *to, const void *from, size_t len)
{
	if (word_there(to, from, len)) {
		word_copy(to, from, len);
		return 0;
	}
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)from, len };
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	if (n == (ssize_t)len)
		return 0;
	if (n < 0 && (errno == EPERM || errno == ENOSYS)) {
		word_copy(to, from, len); /* the kernel cannot be asked: a page that is gone ends
					     this process */
		return 0;
	}
	return -EFAULT;
}

bool mem_there(void *p, size_t len, bool write)
{
	enum { WORTH = 16 << 10 };
	if (len < WORTH) /* copying by system call takes no longer than asking */
		return false;
	return populated(p, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

int mem_gone(tern_addr a)
{
	return error_set(-EFAULT, "rank %u unregistered the memory during the transfer",
			 tern_addr_rank(a));
}

void *tern_local(tern *t, tern_addr a, size_t len)
{
	INSIDE struct door door = door_open(t);
	return mem_reach(mem_of(t), a, len);
}

tern_addr tern_addr_of(tern *t, const void *p)
{
	INSIDE struct door door = door_open(t);
	struct mem *m = mem_of(t);
	tern_addr a = m->span[m->rank].first +
		      (uint64_t)((uintptr_t)p - (uintptr_t)m->span[m->rank].base);
	if (tern_addr_rank(a) == m->rank && heap_reach(m, a, 1))
		return a;
	for (unsigned i = 0; i < JOB_REGIONS_OWN; i++) {
		struct job_region *g = &m->job->rank[m->rank].region[i];
		uint64_t at = (uint64_t)(uintptr_t)p - atomic_load(&g->base);
		if (region_covers(g, at, 1))
			return region_addr(m, i) + at;
	}
	return TERN_NOWHERE;
}
