/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself, and what an address reaches. */
#include "mem/mem.h"
#include "mem/threshold.h"
#include "mem/wide.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/setting.h"
#include "core/wait.h"
#include "mem/word.h"

static void mem_close(void *state)
{
	struct mem *m = state;
	transfers_free(&m->transfers);
	regions_close(m);
	files_close(m);
	follow_close(m);
	heap_fini(&m->own);
	heap_fini(&m->common);
	memory_free(m->grants);
}

/*
 * Until this rank uses a heap, its own included: no address is of one, so each comes to
 * span_look(). Nobody writes it, so that it takes no memory.
 */
static struct job_span no_spans[TERN_RANKS_MAX];

static void handlers_open(struct endpoint *e)
{
	/*
	 * MEM_PIECE is served because MEM_PUT is: a put with a request sends its last data by
	 * MEM_PUT, whose answer says that the pieces before it are there.
	 */
	static const enum mem_handler served[] = { MEM_PUT,       MEM_GET,       MEM_AMO,
						   MEM_PUT_PARTS, MEM_GET_PARTS, MEM_SIGNAL,
						   MEM_PIECE };
	MEM_MESSAGES(LAYER_ON)
	for (unsigned i = 0; i < sizeof served / sizeof *served; i++)
		layer_serve(e, served[i], NULL);
	layer_serve(e, MEM_WHEN, when_serves);
}

static int mem_open(struct endpoint *e, void *state)
{
	struct mem *m = state;
	uint64_t single_copy;
	m->e = e;
	m->job = &e->group->job;
	m->rank = e->t->rank;
	m->size = e->t->size;
	m->span = no_spans;
	m->transfers.pool.bytes = sizeof(struct transfer);
	m->transfers.pool.most = TERN_OPS_MAX;
	m->follows.pool.bytes = sizeof(struct follow);
	m->follows.pool.most = FOLLOWS;
	slots_open(m);
	heap_init(&m->own, 0, m->job->heap_bytes / 2);
	heap_init(&m->common, m->job->heap_bytes / 2, m->job->heap_bytes);
	handlers_open(e);
	e->t->heaps = m->span;
	int rc = setting_number(SETTING_SINGLE_COPY, &single_copy);
	if (rc)
		return rc;
	m->single_copy = m->moves = single_copy;
	return grants_open(m);
}

static unsigned mem_progress(void *state)
{
	struct mem *m = state;
	if (m->lost) {
		m->lost = slot_lost(m);
		mem_busy(m);
	}
	unsigned moved = m->moving ? window_progress(m) : 0;
	moved += transfer_progress(m);
	moved += m->follows.first ? follow_progress(m) : 0;
	moved += m->follows.invited ? answer_invite(m) : 0;
	moved += m->waiting ? when_progress(m) : 0;
	return moved + (m->slots.again ? slot_progress(m) : 0);
}

/*
 * Its heap is still mapped, but nobody is there to whom it matters: operations on it fail from now
 * on.
 */
static void mem_lost(void *state, uint32_t rank)
{
	struct mem *m = state;
	if (m->span != no_spans)
		job_span_clear(&m->span[rank]);
	m->peer[rank].lost = true;
	m->lost = true;
	mem_busy(m);
}

/* No heap is within reach any more. */
static void mem_disown(void *state)
{
	struct mem *m = state;
	m->span = no_spans;
	m->e->t->heaps = no_spans;
	for (uint32_t r = 0; r < m->size; r++)
		m->peer[r].lost = true;
}

static bool leave_over(struct endpoint *e, void *arg)
{
	(void)e;
	return !((struct mem *)arg)->follows.first;
}

static int leave_stop(struct endpoint *e, struct wait *w)
{
	return wait_stalled(e, w, ((const struct mem *)w->arg)->follows.sent);
}

/* A rank whose request was taken counts on the whole of a long reply. */
static void mem_leave(void *state)
{
	struct mem *m = state;
	struct wait w = { .bounded = true,
			  .call = "tern_close",
			  .lack = "a long reply",
			  .rule = "tern_close()",
			  .stop = leave_stop };
	wait_until(m->e, leave_over, m, &w);
}

LAYER_FITS(struct mem, MEM_SIGNAL, MEM_HANDLERS_END);
const struct layer mem_layer = { .bytes = sizeof(struct mem),
				 .bytes_a_rank = sizeof(struct mem_peer),
				 .open = mem_open,
				 .close = mem_close,
				 .progress = mem_progress,
				 .lost = mem_lost,
				 .leave = mem_leave,
				 .disown = mem_disown,
				 .needs_anyone = slots_need_anyone };

static bool quiet_over(struct endpoint *e, void *arg)
{
	(void)e;
	const struct mem *m = arg;
	return m->transfers.pool.used == 0 && !m->follows.first && slots_quiet(m);
}

int tern_flush(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	struct wait w = { .call = "tern_flush" };
	int rc = quiet_over(t->own, m) ? rules_forked(t->own) : rules_wait(t->own, "tern_flush()");
	if (!rc)
		rc = wait_until(t->own, quiet_over, m, &w);
	atomic_thread_fence(memory_order_seq_cst);
	return rc;
}

/* -- Addresses: what they name, who can touch it, and why not ---------------------------------- */

/*
 * Behind the last place in a half where so many bytes may begin; what is committed are whole pages,
 * or nothing.
 */
static uint64_t span_places(uint64_t half, uint64_t committed, uint64_t bytes)
{
	return committed ? half + committed - (bytes - 1) : 0;
}

/* Whether they could not be, with a sentence. */
static int spans_open(struct mem *m)
{
	struct job_span *span;
	int rc = m->span == no_spans ? job_spans_open(m->job, m->e->site.member, &span) : 0;
	if (rc || m->span != no_spans)
		return rc;
	for (uint32_t r = 0; r < m->size; r++)
		span[r] = (struct job_span){ .first = addr_of_heap(r, 0),
					     .base = heap_base(m, r),
					     .shift = (uint64_t)(uintptr_t)heap_base(m, r) -
						      addr_of_heap(r, 0),
					     .middle = m->job->heap_bytes / 2 };
	/* Release: puts read what the pointer leads to, and another thread may be here. */
	atomic_thread_fence(memory_order_release);
	m->span = span;
	m->e->t->heaps = span;
	return 0;
}

char *span_look(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	const struct job_rank *r = &m->job->rank[rank];
	if (mem_dead(m, rank) || spans_open(m))
		return NULL;
	struct job_span *s = &m->span[rank];
	uint64_t at = a - s->first;
	if (!layer_maps(m->e, rank))
		return addr_in_heap(a) && grant_covers(m, a, len) ? s->base + at : NULL;
	s->own = atomic_load_explicit(&r->heap, memory_order_acquire);
	s->common = atomic_load_explicit(&r->common, memory_order_acquire);
	s->own_words = span_places(0, s->own, sizeof(uint64_t));
	s->common_words = span_places(s->middle, s->common, sizeof(uint64_t));
	s->own_wides = span_places(0, s->own, WIDE_MOST);
	s->common_wides = span_places(s->middle, s->common, WIDE_MOST);
	/* The rank may die meanwhile: see job_heap_withdraw(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (mem_dead(m, rank))
		job_span_clear(s);
	return halves_hold(at, len, s->middle, s->own, s->common) ? s->base + at : NULL;
}

int mem_check(struct mem *m, tern_addr a, size_t len, const char *what)
{
	uint32_t rank = tern_addr_rank(a);
	unsigned long long at = addr_offset(a);
	int rc = TERN_UNLIKELY(m->e->forked) ? rules_forked(m->e) : 0;
	if (rc)
		return rc;
	if (a == TERN_ADDR_NONE)
		return error_set(-EFAULT,
				 "%s was given TERN_ADDR_NONE as an address, which is what "
				 "tern_addr_at() makes of memory that is not of tern_alloc_all()",
				 what);
	if (rank >= m->size)
		return error_set(-ERANGE,
				 "%s was given an address at rank %u; this job has ranks 0 to %u",
				 what, rank, m->size - 1);
	if (!m->peer[rank].lost && mem_reach(m, a, len))
		return 0;
	if (mem_dead(m, rank)) {
		struct net *net = m->e->site.peer[rank].net;
		return net->ops->check(net, rank);
	}
	if (!layer_maps(m->e, rank)) /* its owner will check it */
		return 0;
	rc = spans_open(m);
	if (rc)
		return rc;
	if (addr_in_heap(a))
		return error_set(-EFAULT,
				 "%s asked for %zu bytes at offset %llu of rank %u's heap, "
				 "which are not allocated",
				 what, len, at, rank);
	if (region_find(m, a, len))
		return 0;
	return error_set(-EFAULT,
			 "%s asked for %zu bytes at address %#llx of rank %u, where no region "
			 "is registered (any more), or none that is that long",
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

/*
 * The kernel is asked by a copy. It copies bytes one by one, so that a word is copied here, once it
 * is known to be there.
 */
int mem_copy_guarded(void *to, const void *from, size_t len)
{
	char probe[WORD_MOST];
	bool word = word_is(to, len) || word_is(from, len);
	struct iovec here = { word ? probe : to, len }, there = { (void *)(uintptr_t)from, len };
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	/* If it cannot be asked, a page that is gone ends this process. */
	bool refused = n < 0 && (errno == EPERM || errno == ENOSYS);
	if ((n != (ssize_t)len && !refused) || (word && !mem_writable(to, len)))
		return -EFAULT;
	if (word || refused)
		word_copy(to, from, len);
	return 0;
}

bool mem_there(void *p, size_t len, bool write)
{
	return populated(p, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

int mem_gone(tern_addr a)
{
	return error_set(-EFAULT, "rank %u unregistered the memory during the transfer",
			 tern_addr_rank(a));
}

int tern_addr_local(tern *t, tern_addr a, size_t len, void **p)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	void *found = mem_reach(m, a, len);
	if (found) {
		*p = found;
		return 0;
	}
	int rc = mem_check(m, a, len, "tern_addr_local()");
	return rc ? rc
		  : error_set(-EXDEV,
			      "tern_addr_local() was asked for memory of rank %u that this process "
			      "cannot map%s: tern_get() and tern_put() reach it",
			      tern_addr_rank(a),
			      m->guarded ? ", or that the rank has not granted" : "");
}

tern_addr mem_addr_all(struct mem *m, const void *p, size_t len)
{
	tern_addr a = addr_of_heap(m->rank, 0) +
		      (uint64_t)((uintptr_t)p - (uintptr_t)heap_base(m, m->rank));
	if (tern_addr_rank(a) == m->rank && heap_reach(m, a, len))
		return a;
	return region_addr(m, p, len);
}

tern_addr mem_addr(struct mem *m, const void *p)
{
	return mem_addr_all(m, p, 1);
}

int tern_addr_of(tern *t, const void *p, tern_addr *a)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked == NO_ENDPOINT)
		return rules_forked(t->own);
	tern_addr found = mem_addr(mem_of(t), p);
	if (found == TERN_ADDR_NONE)
		return error_set(-EFAULT,
				 "tern_addr_of() was given %p, which is neither in rank %u's heap "
				 "nor in memory that it has registered",
				 p, t->rank);
	*a = found;
	return 0;
}

tern_addr tern_addr_at(tern *t, uint32_t rank, const void *p)
{
	t = given(t);
	if (t->own->forked == NO_ENDPOINT || rank > UINT16_MAX)
		return TERN_ADDR_NONE;
	const struct mem *m = mem_of(t);
	uint64_t at = heap_offset(m, p), half = m->job->heap_bytes / 2;
	return at - half < half ? addr_of_heap(rank, at) : TERN_ADDR_NONE;
}
