/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores, counted where they land, as Split-C has them. */
#include <errno.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

static _Atomic uint64_t *stored_at(struct mem *m, uint32_t rank)
{
	return &m->job->rank[rank].stored;
}

/*
 * Over a network: a signal that adds to the count, with the bytes if a message carries them. It has
 * no word for an answer, because nobody waits for one.
 */
static __attribute__((noinline)) int store_far(struct mem *m, tern_addr dst, const void *src,
					       size_t len)
{
	union word value;
	uint64_t words[] = { dst, TERN_ADDR_NONE, TERN_AMO_ADD, len };
	bool whole = len <= TERN_PAYLOAD_MAX;
	int rc = rules_program(m->e, "a store to memory of another process");
	if (!rc && whole)
		rc = mem_check(m, dst, len, "a store");
	if (!rc && !whole) /* when it has ended, the count may follow it */
		rc = tern_put(m->e->t, dst, src, len);
	if (rc)
		return rc;
	return layer_request(m->e, tern_addr_rank(dst), MEM_SIGNAL,
			     whole ? word_value(&value, src, len) : NULL, whole ? len : 0, 4,
			     words);
}

int tern_store(tern *t, tern_addr dst, const void *src, size_t len)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	uint32_t rank = tern_addr_rank(dst);
	if (TERN_UNLIKELY(rank < m->size && !layer_maps(m->e, rank)))
		return len ? store_far(m, dst, src, len) : 0;
	int rc = tern_put(t, dst, src, len);
	if (rc || !len)
		return rc;
	/*
	 * The bytes are there before the count (release), and the count before we look at
	 * the bell: whoever waits for it raises the bell and then looks at the count once more.
	 * So counts are sequentially consistent, here and below.
	 */
	atomic_fetch_add(stored_at(m, rank), len); /* cost: base write */
	if (atomic_load(&m->job->rank[rank].bell) & BELL_ASLEEP)
		job_ring(m->job, rank);
	return 0;
}

/* UINT64_MAX ns are no limit. */
static int store_await(tern *t, uint64_t bytes, uint64_t ns, const char *call, const char *rule)
{
	INSIDE struct scope scope = scope_of(&t, call);
	const struct wait how = { .call = call, .stop = wait_blame };
	int rc = rules_rank_waits(t->own, rule); /* cost: protection control */
	if (rc)
		return rc;
	_Atomic uint64_t *count = stored_at(mem_of(t), t->rank);
	if (atomic_load(count) < bytes)
		rc = word_reach(mem_of(t), count, TERN_WORD_GE, bytes, &how, ns);
	if (!rc)
		atomic_fetch_sub(count, bytes);
	return rc;
}

int tern_store_sync(tern *t, uint64_t bytes)
{
	return store_await(t, bytes, UINT64_MAX, __func__, "tern_store_sync()");
}

int tern_store_sync_for(tern *t, uint64_t bytes, uint64_t ns)
{
	return store_await(t, bytes, ns, __func__, "tern_store_sync_for()");
}

int tern_store_sync_all(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	int rc = barrier_busy(t->own, "tern_store_sync_all()");
	if (!rc)
		rc = tern_flush(t);
	/* Every store is a put that had ended, or was counted, before this. */
	if (!rc)
		rc = tern_barrier(t);
	if (rc)
		return rc;
	atomic_store(stored_at(m, m->rank), 0);
	return tern_barrier(t); /* nobody stores anew before all counts are cleared */
}
