/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts whose source is free at once: values, which travel in the call, and puts that complete
 * locally before they complete at the target. Where no process here can touch the target, the bytes
 * are copied into one message, and its acknowledgement is the remote completion.
 */
#include <errno.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

static bool value_has(size_t len)
{
	return len - 1 < WORD_MOST && !(len & (len - 1));
}

static int value_refused(size_t len)
{
	return error_set(-EINVAL, "a value has 1, 2, 4 or 8 bytes, not %zu", len);
}

static bool cannot_wait(struct endpoint *e)
{
	return in_handler(e) || held(e);
}

/* One message, which takes the bytes with it; `op` is told when the owner has them. */
int staged_put(struct mem *m, tern_addr dst, const void *data, size_t len, tern_op *op)
{
	struct slot *s;
	int rc = slot_wait(m, tern_addr_rank(dst), &s);
	if (rc)
		return rc;
	union word w;
	uint64_t words[] = { dst, slot_name(m, s), len };
	return slot_request(m, s, op, MEM_PUT, word_value(&w, data, len), len, 3, words);
}

/* -- Values --------------------------------------------------------------------------------- */

/* Neither of these is inline, so that a value's path saves no registers. */
static __attribute__((noinline)) int value_put_far(tern *t, tern_addr dst, uint64_t value,
						   size_t len)
{
	return value_has(len) ? tern_put(t, dst, &value, len) : value_refused(len);
}

static __attribute__((noinline)) int value_start_far(tern *t, tern_addr dst, uint64_t value,
						     size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_of_op(&t, op, "tern_put_value_start");
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	int rc = value_has(len) ? mem_check(m, dst, len, "a put") : value_refused(len);
	if (rc)
		return rc;
	if (!mem_reach(m, dst, len)) {
		rc = op ? 0 : rules_wait(m->e, "a blocking put of a value to another process");
		rc = rc ? rc : staged_put(m, dst, &value, len, op ? op : &own);
		return op_finish(t, op, &own, rc);
	}
	rc = tern_put(t, dst, &value, len);
	if (!rc && op)
		op_over(m->e, op);
	return rc;
}

int tern_put_value(tern *t, tern_addr dst, uint64_t value, size_t len)
{
	t = given(t);
	char *to = value_has(len) ? span_reach(t, dst, SPAN_WORD) : NULL;
	if (TERN_UNLIKELY(!to))
		return value_put_far(t, dst, value, len);
	word_before_put();
	word_copy(to, &value, len); /* cost: base write */
	return 0;
}

int tern_put_value_start(tern *t, tern_addr dst, uint64_t value, size_t len, tern_op *op)
{
	t = given(t);
	char *to = value_has(len) && op_silent(op) ? span_reach(t, dst, SPAN_WORD) : NULL;
	if (TERN_UNLIKELY(!to))
		return value_start_far(t, dst, value, len, op);
	word_before_put();
	word_copy(to, &value, len); /* cost: base write */
	return 0;
}

static __attribute__((noinline)) int value_get_far(tern *t, tern_addr src, size_t len,
						   uint64_t *value)
{
	uint64_t got = 0;
	int rc = value_has(len) ? tern_get(t, &got, src, len) : value_refused(len);
	if (!rc)
		*value = got;
	return rc;
}

int tern_get_value(tern *t, tern_addr src, size_t len, uint64_t *value)
{
	t = given(t);
	const char *from = value_has(len) ? span_reach(t, src, SPAN_WORD) : NULL;
	uint64_t got = 0;
	if (TERN_UNLIKELY(!from))
		return value_get_far(t, src, len, value);
	word_copy(&got, from, len);
	word_after_get();
	*value = got;
	return 0;
}

/* -- Local completion apart from remote completion -------------------------------------------- */

/* A transfer whose end tells both. It is begun with a handle of its own, by which it is known. */
static int put_both(tern *t, tern_addr dst, const void *src, size_t len, tern_op *local,
		    tern_op *op)
{
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	int rc = tern_put_start(t, dst, src, len, &own);
	if (rc)
		return rc;
	if (!own.pending) {
		op_over(m->e, local);
		if (!own.error)
			op_over(m->e, op);
		else
			op->pending++, op_end(m->e, op, own.error);
		return 0;
	}
	struct transfer *x = m->transfers.last; /* where it has just been queued */
	x->op = op;
	x->local = local;
	op->pending++;
	local->pending++;
	return 0;
}

/* All but what is complete on return with nobody to tell. */
static __attribute__((noinline)) int put_local_far(tern *t, tern_addr dst, const void *src,
						   size_t len, tern_op *local, tern_op *op)
{
	INSIDE struct scope scope =
		scope_of_op(&t, op_is_set_up(local) ? op : local, "tern_put_local_start");
	struct mem *m = mem_of(t);
	int rc;
	if (op && !local)
		return tern_put_start(t, dst, src, len, op);
	bool stage = len - 1 < TERN_PAYLOAD_MAX && !mem_reach(m, dst, len) && !cannot_wait(m->e);
	if (op && !stage)
		return put_both(t, dst, src, len, local, op);
	if (op) {
		rc = mem_check(m, dst, len, "a put");
		rc = rc ? rc : staged_put(m, dst, src, len, op);
	} else {
		rc = tern_put(t, dst, src, len);
	}
	if (!rc && local)
		op_over(m->e, local);
	return rc;
}

int tern_put_local_start(tern *t, tern_addr dst, const void *src, size_t len, tern_op *local,
			 tern_op *op)
{
	t = given(t);
	bool at_once = op_silent(local) && op_silent(op) && len - 1 < TERN_PAYLOAD_MAX;
	if (TERN_LIKELY(at_once && span_holds(t, dst, len)))
		return tern_put_handle(t, dst, src, len, op);
	return put_local_far(t, dst, src, len, local, op);
}
