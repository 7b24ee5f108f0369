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

/* Over a network: one message with the bytes, or, of more than it carries, with their number. */
static __attribute__((noinline)) int store_far(struct mem *m, tern_addr dst, const void *src,
					       size_t len)
{
	union word value;
	uint64_t words[] = { dst, len };
	bool whole = len <= TERN_PAYLOAD_MAX;
	int rc = rules_program(m->e, "a store to memory of another process");
	if (!rc && whole)
		rc = mem_check(m, dst, len, "a store");
	if (!rc && !whole) /* when it has ended, the count may follow it */
		rc = tern_put(m->e->t, dst, src, len);
	if (rc)
		return rc;
	return layer_request(m->e, tern_addr_rank(dst), MEM_STORED,
			     whole ? word_value(&value, src, len) : NULL, whole ? len : 0, 2,
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

/* UINT64_MAX ns are no limit. */
static int store_await(tern *t, uint64_t bytes, uint64_t ns, const char *call, const char *rule)
{
	INSIDE struct scope scope = scope_of(&t, call);
	struct stored s = { .bytes = bytes };
	struct wait w = { .call = call, .stop = wait_blame };
	int rc = rules_rank_waits(t->own, rule); /* cost: protection control */
	if (rc)
		return rc;
	s.count = stored_at(mem_of(t), t->rank);
	rc = ns == UINT64_MAX ? wait_until(t->own, stored_enough, &s, &w)
			      : wait_until_limit(t->own, stored_enough, &s, &w, ns);
	if (!rc)
		atomic_fetch_sub(s.count, bytes);
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

/* The bytes are there before they are counted. Nobody waits for an answer: an error is told here.
 */
static void on_stored(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	size_t len;
	const char *data = tern_msg_data(msg, &len);
	if (data && message_write(m, tern_msg_word(msg, 0), data, len)) {
		poll_trouble_warn(
			t->own, error_set(-EFAULT,
					  "rank %u refused a store of %zu bytes from rank %u: the "
					  "memory is not there (any more), or not that long",
					  m->rank, len, tern_msg_src(msg)));
		return;
	}
	atomic_fetch_add(stored_at(m, m->rank), data ? len : tern_msg_word(msg, 1));
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
