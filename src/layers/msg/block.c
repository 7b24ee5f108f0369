/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of another rank's named memory, which that rank sends as a message (SCMP's getBlock). */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "msg/msg.h"

enum { ASK_SLOT_SHIFT = 32 }; /* in the first word: the name, and above it the asker's slot */

/* At its owner: has it sent; the code goes to the asker. */
static int block_send(struct msg *m, const tern_msg *msg)
{
	tern_block c = { (uint32_t)tern_msg_word(msg, 0), tern_msg_word(msg, 1),
			 tern_msg_word(msg, 2), tern_msg_word(msg, 3), tern_msg_word(msg, 4) };
	const ptrdiff_t stride = (ptrdiff_t)c.stride;
	tern_part rows = { .run = c.run, .dims = 1, .count = &c.count, .stride = &stride };
	struct layout l;
	rows.base = name_reach(mem_of(m->e->t), &c);
	if (!rows.base)
		return -ENOENT;
	int rc = layout_parts(&l, &rows, 1, true);
	return rc ? rc : send_for(m, tern_msg_src(msg), tern_msg_word(msg, 5), &l);
}

void on_ask_block(tern *t, const tern_msg *msg)
{
	int rc = block_send(msg_of(t), msg);
	message_answer(t, tern_msg_word(msg, 0) >> ASK_SLOT_SHIFT, -rc, 0);
}

static int block_refused(uint32_t rank, unsigned name, int error)
{
	return error_set(error, "rank %u was asked for a block of name %u: %s", rank, name,
			 error == -ENOENT
				 ? "no memory is published under that name, or not that much"
				 : strerror(-error));
}

int tern_block_ask(tern *t, uint32_t rank, const tern_block *from, tern_id id)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *mem = mem_of(t);
	struct wait w = msg_wait("tern_block_ask", "from", rank, id);
	struct slot *s;
	tern_op own = TERN_OP;
	int rc = rules_rank_waits(t->own, "tern_block_ask()");
	if (!rc)
		rc = rules_destination(t->own, rank);
	if (!rc && from->name >= TERN_BLOCKS_MAX)
		return block_refused(rank, from->name, -ENOENT);
	if (!rc)
		rc = slot_wait(mem, rank, &s);
	if (rc)
		return rc;
	uint64_t words[] = { from->name | slot_name(mem, s) << ASK_SLOT_SHIFT,
			     from->offset,
			     from->stride,
			     from->run,
			     from->count,
			     id };
	rc = slot_request(mem, s, &own, MSG_BLOCK, NULL, 0, 6, words);
	if (rc)
		return rc;
	wait_through(t->own, op_ended, &own, &w);
	bool answered = own.error && !layer_lost(t->own, rank);
	return answered ? block_refused(rank, from->name, own.error) : own.error;
}
