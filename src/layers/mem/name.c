/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that are found at their owner through a named pointer (SCMP's getBlock). */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/word.h"

int tern_block_name(tern *t, unsigned name, void *const *where, size_t bytes)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_rank(t->own, "tern_block_name()");
	if (rc)
		return rc;
	struct mem *m = mem_of(t);
	if (name >= TERN_BLOCKS_MAX)
		return error_set(-ERANGE,
				 "memory was published under the name %u; names are below %d", name,
				 TERN_BLOCKS_MAX);
	m->name[name].where = where;
	m->name[name].bytes = where ? bytes : 0;
	return 0;
}

static uint64_t cut_bytes(const tern_block *c)
{
	return c->run * c->count;
}

/* Whether the cut has bytes, fewer than there are, and lies within `bytes`. */
static bool cut_fits(const tern_block *c, uint64_t bytes)
{
	uint64_t reach, total;
	if (!c->run || !c->count || __builtin_mul_overflow(c->run, c->count, &total) ||
	    total > PTRDIFF_MAX)
		return false;
	return !__builtin_mul_overflow(c->stride, c->count - 1, &reach) && reach <= bytes &&
	       c->offset <= bytes - reach && c->run <= bytes - reach - c->offset;
}

char *name_reach(const struct mem *m, const tern_block *c)
{
	if (c->name >= TERN_BLOCKS_MAX || !m->name[c->name].where || !*m->name[c->name].where ||
	    !cut_fits(c, m->name[c->name].bytes))
		return NULL;
	return (char *)*m->name[c->name].where + c->offset;
}

void on_get_block(tern *t, const tern_msg *msg)
{
	char packed[TERN_PAYLOAD_MAX];
	tern_block c = { (unsigned)tern_msg_word(msg, 0), tern_msg_word(msg, 1),
			 tern_msg_word(msg, 2), tern_msg_word(msg, 3), tern_msg_word(msg, 4) };
	const char *base = name_reach(mem_of(t), &c);
	if (!base || cut_bytes(&c) > sizeof packed) {
		message_answer(t, tern_msg_word(msg, 5), ENOENT, 0);
		return;
	}
	for (uint64_t i = 0; i < c.count; i++)
		word_copy(packed + i * c.run, base + i * c.stride, c.run);
	message_answer_data(t, tern_msg_word(msg, 5), packed, cut_bytes(&c));
}

static int block_ask(struct mem *m, uint32_t rank, const tern_block *c, char *dst,
		     size_t dst_stride, tern_op *op)
{
	struct slot *s;
	int rc = slot_wait(m, rank, &s);
	if (rc)
		return rc;
	s->runs = c->count;
	s->stride = (ptrdiff_t)dst_stride;
	s->part = (tern_part){ { dst }, c->run, 1, &s->runs, &s->stride };
	s->len = cut_bytes(c);
	parts_begin(&m->slots.walk[s - m->slots.slot], &s->part, 1, false);
	uint64_t words[] = { c->name, c->offset, c->stride, c->run, c->count, slot_name(m, s) };
	return slot_request(m, s, op, MEM_BLOCK, NULL, 0, 6, words);
}

static int block_check(struct mem *m, uint32_t rank, const tern_block *whole)
{
	uint64_t reach;
	int rc = rules_destination(m->e, rank);
	if (!rc && (whole->run > TERN_PAYLOAD_MAX || whole->name >= TERN_BLOCKS_MAX))
		rc = error_set(
			-EINVAL,
			"tern_block_get_start() was asked for runs of %zu bytes of name %u; at "
			"most %d, and below %d",
			whole->run, whole->name, TERN_PAYLOAD_MAX, TERN_BLOCKS_MAX);
	if (!rc &&
	    (__builtin_mul_overflow(whole->stride, whole->count ? whole->count - 1 : 0, &reach) ||
	     __builtin_add_overflow(reach, whole->offset, &reach)))
		rc = error_set(-EINVAL, "tern_block_get_start() was asked for "
					"a block that reaches further than addresses do");
	return rc;
}

int tern_block_get_start(tern *t, void *dst, size_t dst_stride, uint32_t rank,
			 const tern_block *from, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	tern_block c = *from;
	int rc = op ? 0 : rules_wait(m->e, "a blocking tern_block_get_start()");
	if (!rc)
		rc = block_check(m, rank, &c);
	size_t most = from->run && !rc ? TERN_PAYLOAD_MAX / from->run : 0;
	for (size_t i = 0; most && !rc && i < from->count; i += most) {
		c.offset = from->offset + i * from->stride;
		c.count = from->count - i < most ? from->count - i : most;
		rc = block_ask(m, rank, &c, (char *)dst + i * dst_stride, dst_stride,
			       op ? op : &own);
	}
	return op_finish(t, op, &own, rc);
}
