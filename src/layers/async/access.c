/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote read and write. Moving the bytes is the memory layer's, whose transfers have turns of
 * their own; what is added here is that nothing moves in the call, and that the other side hears of
 * a write.
 */
#include <errno.h>
#include <string.h>

#include "async/async.h"
#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

static int access_begin(struct mem *m, tern_addr remote, void *local, size_t len, bool put,
			tern_op *op)
{
	struct runs r;
	int rc = len ? mem_check(m, remote, len,
				 put ? "tern_async_put_start()" : "tern_async_get_start()")
		     : 0;
	if (rc)
		return rc;
	runs_of_block(&r, remote, local, len);
	return transfer_later(m, &r, put, op);
}

int tern_async_get_start(tern *t, void *dst, tern_addr src, size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP;
	int rc = async_enter(t->own, op, "tern_async_get_start() without a handle");
	if (!rc)
		rc = access_begin(mem_of(t), src, dst, len, false, op ? op : &own);
	return op_finish(t, op, &own, rc);
}

/* -- Writes that somebody hears of ------------------------------------------------------------ */

void on_raise(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	tern_addr flag = tern_msg_word(msg, 0);
	void *at = tern_addr_rank(flag) == m->rank ? mem_reach(m, flag, sizeof(uint64_t)) : NULL;
	if (at &&
	    (uintptr_t)at % sizeof(uint64_t) == 0) /* it may have been unregistered meanwhile */
		tern_signal(t, at, 1);
}

/*
 * 1 if an atomic operation was begun for it: where the flag cannot be seen from here, its owner
 * checks it.
 */
static int write_raise(tern *t, struct write *w)
{
	tern_addr flag = w->flag;
	if (layer_maps(t->own, tern_addr_rank(flag)))
		return layer_request(t->own, tern_addr_rank(flag), ASYNC_RAISE, NULL, 0, 1, &flag);
	int rc = tern_amo_start(t, flag, TERN_AMO_ADD, 1, (uint64_t *)NULL, &w->landed);
	if (rc)
		return rc;
	w->flag = TERN_ADDR_NONE;
	return 1;
}

static int write_turn(tern *t, void *arg)
{
	struct write *w = arg;
	int rc = w->landed.error;
	if (w->landed.pending)
		return -EAGAIN;
	if (!rc && w->flag != TERN_ADDR_NONE)
		rc = write_raise(t, w);
	return rc;
}

static int flag_check(struct mem *m, tern_addr dst, tern_addr flag)
{
	if (flag == TERN_ADDR_NONE)
		return 0;
	int rc = mem_check(m, flag, sizeof(uint64_t), "the flag of tern_async_put_start()");
	if (!rc && tern_addr_rank(flag) != tern_addr_rank(dst))
		rc = error_set(
			-EINVAL,
			"tern_async_put_start() was given data for rank %u and a flag at rank %u: "
			"they must be at one",
			tern_addr_rank(dst), tern_addr_rank(flag));
	if (!rc && flag % sizeof(uint64_t))
		rc = error_set(-EINVAL,
			       "tern_async_put_start() was given a flag that is not aligned");
	return rc;
}

static int write_start(struct async *a, tern_addr dst, const void *src, size_t len, tern_addr flag,
		       tern_op *op)
{
	struct write *w;
	struct wait wait = { .call = "a write that is handed over" };
	int rc = mem_record(mem_of(a->e->t), &a->writes, &wait, &w);
	if (rc)
		return rc;
	void *from = (void *)(uintptr_t)src;
	if (len && len <= WORD_MOST) {
		from = &w->value;
		word_copy(from, src, len);
	}
	rc = access_begin(mem_of(a->e->t), dst, from, len, true, &w->landed);
	if (rc) {
		record_give(&a->writes, w);
		return rc;
	}
	w->flag = flag;
	task_begin(a, &a->writes, &w->task, write_turn, w, op);
	return 0;
}

int tern_async_put_start(tern *t, tern_addr dst, const void *src, size_t len, tern_addr flag,
			 tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP, *told = op ? op : &own;
	bool plain = flag == TERN_ADDR_NONE && len > WORD_MOST;
	int rc = async_enter(t->own, op, "tern_async_put_start() without a handle");
	if (!rc)
		rc = flag_check(mem_of(t), dst, flag);
	if (!rc)
		rc = plain ? access_begin(mem_of(t), dst, (void *)(uintptr_t)src, len, true, told)
			   : write_start(async_of(t), dst, src, len, flag, told);
	return op_finish(t, op, &own, rc);
}
