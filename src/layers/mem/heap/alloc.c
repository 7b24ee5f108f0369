/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap as programs see it: a rank's own half, and the half that all ranks allocate together. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "mem/mem.h"

enum { COMMIT_STEP = 64 << 10 };

/* Commits a heap up to `top`, in steps; `committed` is what others check addresses against. */
static int heap_commit(struct mem *m, const struct heap *h, uint64_t top,
		       _Atomic uint64_t *committed)
{
	/* Only this rank writes it, rarely; others acquire it. */
	uint64_t has = atomic_load(committed), need = top - h->start;
	if (need <= has)
		return 0;
	uint64_t more = (need - has + COMMIT_STEP - 1) / COMMIT_STEP * COMMIT_STEP;
	char what[64];
	snprintf(what, sizeof what, "the heap of rank %u", m->rank);
	int rc = job_commit(m->job, job_heap_at(m->job, m->rank) + h->start + has, more, what);
	if (!rc)
		atomic_store_explicit(committed, has + more, memory_order_release);
	return rc;
}

static int heap_full(struct mem *m, size_t bytes)
{
	return error_set(-ENOMEM,
			 "%zu bytes were asked of rank %u's heap, "
			 "half of which has %zu KiB: raise TERN_HEAP",
			 bytes, m->rank, m->job->heap_bytes >> 11);
}

static int heap_alloc(struct mem *m, struct heap *h, _Atomic uint64_t *committed, size_t align,
		      size_t bytes, uint64_t *at)
{
	/* What all ranks have lies at one offset, so pointers of one rank cannot decide. */
	uint64_t base = h == &m->own ? (uintptr_t)heap_base(m, m->rank) : 0;
	if (heap_take_aligned(h, base, align, bytes, at))
		return heap_full(m, bytes);
	int rc = heap_commit(m, h, *at + heap_size(h, *at), committed);
	if (rc)
		heap_give(h, *at);
	return rc;
}

bool mem_room(struct mem *m, size_t bytes)
{
	uint64_t at;
	return heap_take(&m->own, bytes, &at) == 0 && heap_give(&m->own, at) == 0;
}

static int own_alloc(struct scope *scope, tern *t, size_t align, size_t bytes, void **p,
		     const char *call)
{
	struct mem *m = mem_of(t);
	uint64_t at;
	int rc = rules_rank(t->own, call);
	if (!rc)
		rc = heap_alloc(m, &m->own, &m->job->rank[m->rank].heap, align, bytes, &at);
	if (rc)
		return rc;
	*p = heap_pointer(m, at);
	scope_close_unserved(scope);
	return 0;
}

int tern_alloc(tern *t, size_t bytes, void **p)
{
	INSIDE struct scope scope = scope_given(t);
	return own_alloc(&scope, t, HEAP_ALIGN, bytes, p, "tern_alloc()");
}

/* A multiple, so that a size and an alignment that were swapped are refused. */
int tern_alloc_aligned(tern *t, size_t bytes, size_t align, void **p)
{
	INSIDE struct scope scope = scope_given(t);
	if (!align || align & (align - 1) || bytes & (align - 1))
		return error_set(
			-EINVAL,
			"tern_alloc_aligned() was asked for %zu bytes aligned to %zu: that "
			"is a power of two, and the bytes are a multiple of it",
			bytes, align);
	return own_alloc(&scope, t, align, bytes, p, "tern_alloc_aligned()");
}

static int heap_free(struct mem *m, struct heap *h, const void *p, const char *call)
{
	if (heap_give(h, heap_offset(m, p)) == 0)
		return 0;
	return error_set(-EINVAL,
			 "%s was given %p, which is not the beginning of such memory of rank %u",
			 call, p, m->rank);
}

int tern_free(tern *t, void *p)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_rank(t->own, "tern_free()");
	return rc || !p ? rc : heap_free(mem_of(t), &mem_of(t)->own, p, "tern_free()");
}

static int common_alloc(struct mem *m, size_t bytes, uint64_t *at)
{
	struct odd odd;
	struct error_kept why;
	int rc = all_agree(m, "tern_alloc_all", bytes, &odd);
	if (!rc && odd.is)
		rc = error_set(-EINVAL,
			       "tern_alloc_all() was called for %zu bytes at rank %u, "
			       "and for %llu bytes at rank %u",
			       bytes, m->rank, (unsigned long long)odd.word, odd.rank);
	if (rc)
		return rc;
	quiesce_begin(m->e);
	int got = heap_alloc(m, &m->common, &m->job->rank[m->rank].common, HEAP_ALIGN, bytes, at);
	error_keep(&why); /* the wait for the others may write over it */
	rc = all_agree(m, "tern_alloc_all", got ? UINT64_MAX : *at, &odd);
	if (!rc && !got && odd.is)
		rc = error_set(-ENOMEM, "tern_alloc_all() of %zu bytes failed at rank %u", bytes,
			       odd.rank);
	bool here = !rc && got;
	rc = quiesce_end(m->e, rc ? rc : got);
	if (here)
		error_restore(&why);
	if (rc && !got)
		heap_give(&m->common, *at);
	return rc;
}

int tern_alloc_all(tern *t, size_t bytes, void **p)
{
	INSIDE struct scope scope = scope_given(t);
	uint64_t at;
	int rc = rules_rank_waits(t->own, "tern_alloc_all()");
	if (!rc)
		rc = barrier_busy(t->own, "tern_alloc_all()");
	if (!rc)
		rc = common_alloc(mem_of(t), bytes, &at);
	if (rc)
		return rc;
	*p = heap_pointer(mem_of(t), at);
	scope_pause(&scope);
	return 0;
}

int tern_free_all(tern *t, void *p)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	struct odd odd;
	int rc = rules_rank_waits(t->own, "tern_free_all()");
	if (!rc)
		rc = barrier_busy(t->own, "tern_free_all()");
	uint64_t at = rc ? 0 : heap_offset(m, p);
	if (!rc)
		rc = all_agree(m, "tern_free_all", heap_size(&m->common, at) ? at : UINT64_MAX,
			       &odd);
	if (!rc && odd.is)
		rc = error_set(-EINVAL,
			       "tern_free_all() was not given the same memory at ranks %u and %u",
			       m->rank, odd.rank);
	return rc ? rc : heap_free(m, &m->common, p, "tern_free_all()");
}
