/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory copy between any two places, and puts that end in a request. */
#include <errno.h>

#include "base/error.h"
#include "mem/mem.h"

int tern_put_request_array(tern *t, tern_addr dst, unsigned id, const void *src, size_t len,
			   unsigned n, const uint64_t *words)
{
	INSIDE struct scope scope = scope_given(t);
	uint32_t rank = tern_addr_rank(dst);
	/* Before the data moves. */
	int rc = rules_send(t->own, rank, id, n, 0); /* cost: protection control */
	if (!rc)
		rc = tern_put(t, dst, src, len);
	return rc ? rc : tern_request_array(t, rank, id, n, words);
}

int tern_put_then_(tern *t, tern_addr dst, const void *src, size_t len, unsigned n, unsigned id,
		   TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return tern_put_request_array(t, dst, id, src, len, n, words);
}

/* Neither side is within reach: the source's owner puts the data, in its own time. */
static int copy_ask(struct mem *m, tern_addr dst, tern_addr src, size_t len, tern_op *op,
		    bool blocks)
{
	struct slot *s;
	int rc = blocks ? rules_wait(m->e, "a blocking copy between other ranks") : 0;
	if (!rc)
		rc = slot_wait(m, tern_addr_rank(src), &s);
	if (rc)
		return rc;
	uint64_t words[] = { dst, src, len, slot_name(m, s) };
	return slot_request(m, s, op, MEM_COPY, NULL, 0, 4, words);
}

/*
 * One side of a copy, if it stays here for as long as the copy may take: a file's mapping does not,
 * so that memory is the transfer's other side.
 */
static char *copy_side(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	bool there = addr_in_heap(a) || (rank < m->size && mem_same_process(m, rank));
	return there ? mem_reach(m, a, len) : NULL;
}

static int copy_start(struct mem *m, tern_addr dst, tern_addr src, size_t len, tern_op *op,
		      bool blocks)
{
	char *from = copy_side(m, src, len), *to = copy_side(m, dst, len);
	tern_op *run =
		blocks ? NULL : op; /* a transfer without a handle asks whether it may wait */
	if (from || !len)
		return transfer_run(m, dst, from, len, true, NULL, run);
	return to ? transfer_run(m, src, to, len, false, NULL, run)
		  : copy_ask(m, dst, src, len, op, blocks);
}

int tern_copy_start(tern *t, tern_addr dst, tern_addr src, size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	int rc = rules_rank(t->own, "tern_copy_start()"); /* its answer is a request */
	if (!rc && len)
		rc = mem_check(m, dst, len, "a memory copy");
	if (!rc && len)
		rc = mem_check(m, src, len, "a memory copy");
	if (!rc)
		rc = copy_start(m, dst, src, len, op ? op : &own, !op);
	return op_finish(t, op, &own, rc);
}

/*
 * At the source's owner. A handler cannot send the requests that the transfer may take,
 * so it goes into the queue of transfers; the answer is a request, sent when it is done.
 */
void on_copy(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	tern_addr dst = tern_msg_word(msg, 0), src = tern_msg_word(msg, 1);
	size_t len = tern_msg_word(msg, 2);
	char *from = own_reach(m, src, len);
	struct runs r;
	int rc = from ? mem_check(m, dst, len, "a memory copy") : -EFAULT;
	if (!rc) {
		runs_of_block(&r, dst, from, len);
		rc = transfer_for(m, &r, src, tern_msg_src(msg), (uint32_t)tern_msg_word(msg, 3));
	}
	if (rc)
		message_answer(t, tern_msg_word(msg, 3), -rc, 0);
}

void copy_done(struct mem *m, const struct transfer *x)
{
	uint64_t words[] = { x->slot, (uint64_t)-x->error, 0 };
	/* If the asker is gone, nobody minds. */
	layer_request(m->e, x->asker, MEM_DONE, NULL, 0, 3, words);
}
