/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores, counted where they land, as Split-C has them. */
#include <errno.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"

static _Atomic uint64_t *stored_at(struct mem *m, uint32_t rank)
{
	return &m->job->rank[rank].stored;
}

int tern_store(tern *t, tern_addr dst, const void *src, size_t len)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	int rc = tern_put(t, dst, src, len);
	if (rc || !len)
		return rc;
	uint32_t rank = tern_addr_rank(dst);
	/* The put has ended, so the count may follow it. */
	if (TERN_UNLIKELY(!layer_maps(m->e, rank))) {
		uint64_t bytes = len;
		return layer_request(m->e, rank, MEM_STORED, NULL, 0, 1, &bytes);
	}
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

struct stored {
	_Atomic uint64_t *count;
	uint64_t bytes;
};

static bool stored_enough(struct endpoint *e, void *arg)
{
	(void)e;
	struct stored *s = arg;
	return atomic_load(s->count) >= s->bytes;
}

int tern_store_sync(tern *t, uint64_t bytes)
{
	INSIDE struct scope scope = scope_given(t);
	struct stored s = { .bytes = bytes };
	struct wait w = { .call = "tern_store_sync", .stop = wait_blame };
	int rc = rules_rank(t->own, "tern_store_sync()");
	if (!rc)
		rc = rules_wait(t->own, "tern_store_sync()"); /* cost: protection control */
	if (rc)
		return rc;
	s.count = stored_at(mem_of(t), t->rank);
	rc = wait_until(t->own, stored_enough, &s, &w);
	if (!rc)
		atomic_fetch_sub(s.count, bytes);
	return rc;
}

int tern_store_sync_for(tern *t, uint64_t bytes, uint64_t ns)
{
	INSIDE struct scope scope = scope_given(t);
	struct stored s = { .bytes = bytes };
	struct wait w = { .call = "tern_store_sync_for", .stop = wait_blame };
	int rc = rules_rank(t->own, "tern_store_sync_for()");
	if (!rc)
		rc = rules_wait(t->own, "tern_store_sync_for()");
	if (rc)
		return rc;
	s.count = stored_at(mem_of(t), t->rank);
	rc = wait_until_limit(t->own, stored_enough, &s, &w, ns);
	if (!rc)
		atomic_fetch_sub(s.count, bytes);
	return rc;
}

static void on_stored(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	atomic_fetch_add(stored_at(m, m->rank), tern_msg_word(msg, 0));
}

void store_register(struct endpoint *e)
{
	layer_on(e, MEM_STORED, on_stored);
	layer_serve(e, MEM_STORED, NULL);
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
