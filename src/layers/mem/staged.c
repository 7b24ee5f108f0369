/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that complete locally before they complete at the target. Where no process here can touch
 * the target, the bytes are copied into one message, and its acknowledgement is the remote
 * completion.
 */
#include <errno.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

static bool cannot_wait(struct endpoint *e)
{
	return in_handler(e) || held(e);
}

int staged_put(struct mem *m, tern_addr dst, const void *data, size_t len, tern_op *op)
{
	struct slot *s;
	int rc = slot_wait(m, tern_addr_rank(dst), &s);
	return rc ? rc : staged_send(m, s, dst, data, len, op);
}

int staged_send(struct mem *m, struct slot *s, tern_addr dst, const void *data, size_t len,
		tern_op *op)
{
	union word w;
	uint64_t words[] = { dst, slot_name(m, s), len };
	return slot_request(m, s, op, MEM_PUT, word_value(&w, data, len), len, 3, words);
}

/* -- Local completion apart from remote completion -------------------------------------------- */

/* All but what is complete on return with nobody to tell. */
static __attribute__((noinline)) int put_local_far(tern *t, tern_addr dst, const void *src,
						   size_t len, tern_op *local, tern_op *op)
{
	INSIDE struct scope scope =
		scope_of_op(&t, op_is_set_up(local) ? op : local, "tern_put_local_start");
	struct mem *m = mem_of(t);
	if (op && !local)
		return tern_put_start(t, dst, src, len, op);
	bool stage = len - 1 < TERN_PAYLOAD_MAX && !mem_reach(m, dst, len) && !cannot_wait(m->e);
	int rc = op && len ? mem_check(m, dst, len, "a put") : 0;
	if (rc)
		return rc;
	if (op && !stage)
		return transfer_run(m, dst, src, len, true, local, op);
	rc = op ? staged_put(m, dst, src, len, op) : tern_put(t, dst, src, len);
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
		return tern_put_handle_(t, dst, src, len, op);
	return put_local_far(t, dst, src, len, local, op);
}
