/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers and atomics as messages: what every network can do, and what is left
 * on one machine when the kernel does not copy between processes.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

struct slot *chunk_slot(struct mem *m, struct transfer *x, uint32_t rank)
{
	struct slot *s = x->flying < TERN_POOL_BLOCKS ? slot_take(m, rank, SLOTS_QUICK) : NULL;
	if (s) {
		s->x = x;
		x->flying++;
	}
	return s;
}

ptrdiff_t chunk_sent(struct transfer *x, struct slot *s, size_t len, int rc)
{
	if (!rc)
		return (ptrdiff_t)len;
	x->flying--;
	slot_give(s);
	return rc == -EAGAIN ? 0 : rc; /* no room: in another slice */
}

/* Between one run here and one there. */
static ptrdiff_t move_run(struct mem *m, struct transfer *x, uint32_t rank)
{
	size_t left = runs_left(&x->runs), len = left < TERN_PAYLOAD_MAX ? left : TERN_PAYLOAD_MAX;
	struct slot *s = chunk_slot(m, x, rank);
	if (!s)
		return 0; /* all is under way */
	char *local = transfer_local(m, x, len);
	slot_expect(m, s, local, x->put ? 0 : len); /* the answer to a put brings no data */
	uint64_t words[] = { runs_remote(&x->runs), slot_name(m, s), len };
	union word value;
	const void *from = x->put ? word_value(&value, local, len) : NULL;
	int rc = layer_request(m->e, rank, x->put ? MEM_PUT : MEM_GET, from, len, 3, words);
	return chunk_sent(x, s, len, rc);
}

ptrdiff_t message_move(struct mem *m, struct transfer *x)
{
	uint32_t rank = tern_addr_rank(x->runs.remote.at);
	bool several = x->runs.remote.part && runs_left(&x->runs) < TERN_PAYLOAD_MAX;
	return several ? pack_move(m, x, rank) : move_run(m, x, rank);
}

/* -- At the home rank ---------------------------------------------------------------- */

/* This rank's heap is always there; registered memory may have been unmapped all the same. */
int own_move(struct mem *m, tern_addr a, char *bytes, size_t len, bool put)
{
	char *own = own_reach(m, a, len);
	if (!own || !bytes)
		return EFAULT;
	if (put) /* the program may look at what comes while a thread serves it */
		word_before_put();
	if (!addr_in_heap(a) && !mem_there(own, len, put))
		return -mem_copy_guarded(put ? own : bytes, put ? bytes : own, len);
	word_copy(put ? own : bytes, put ? bytes : own, len);
	return 0;
}

void on_put(tern *t, const tern_msg *msg)
{
	size_t len;
	char *data = (char *)(uintptr_t)tern_msg_data(msg, &len);
	message_answer(t, tern_msg_word(msg, 1),
		       own_move(mem_of(t), tern_msg_word(msg, 0), data, len, true), 0);
}

void on_get(tern *t, const tern_msg *msg)
{
	char bytes[TERN_PAYLOAD_MAX];
	size_t len = tern_msg_word(msg, 2);
	int error = len <= sizeof bytes
			    ? own_move(mem_of(t), tern_msg_word(msg, 0), bytes, len, false)
			    : EFAULT;
	message_answer_data(t, tern_msg_word(msg, 1), error ? NULL : bytes, len);
}

/* Where an atomic operation shall be done; memory that is not aligned is not touched. */
static int amo_place(struct mem *m, tern_addr a, size_t width, char **at)
{
	*at = own_reach(m, a, width);
	if ((uintptr_t)*at % width)
		return EINVAL;
	if (!*at || (!addr_in_heap(a) && !mem_writable(*at, width)))
		return EFAULT; /* not there, or its owner may only read it */
	return 0;
}

void on_amo(tern *t, const tern_msg *msg)
{
	unsigned what = (unsigned)tern_msg_word(msg, 1);
	const uint64_t operand[2] = { tern_msg_word(msg, 2), tern_msg_word(msg, 3) };
	char *at = NULL;
	int error = EINVAL;
	if (amo_known(what))
		error = amo_place(mem_of(t), tern_msg_word(msg, 0), amo_width(what), &at);
	message_answer(t, tern_msg_word(msg, 4), error, error ? 0 : amo_apply(at, what, operand));
}

void message_answer(tern *t, uint64_t slot, int error, uint64_t word)
{
	uint64_t words[] = { slot, (uint64_t)error, word };
	layer_reply(t->own, MEM_DONE, NULL, 0, 3, words);
}

void message_answer_data(tern *t, uint64_t slot, const void *data, size_t len)
{
	uint64_t words[] = { slot, data ? 0 : EFAULT, 0 };
	layer_reply(t->own, MEM_DONE, data, len, 3, words);
}

/* -- Back at the rank that asked ------------------------------------------------------ */

static int answer_error(const tern_msg *msg)
{
	int why = -layer_error(tern_msg_word(msg, 1));
	if (!why)
		return 0;
	return error_set(-why, "rank %u refused what was asked: %s", tern_msg_src(msg),
			 why == EFAULT      ? "the memory is not there (any more), or not that long"
			 : why == EINVAL    ? "its address is not aligned"
			 : why == EOVERFLOW ? "more came than the segment still expects"
			 : why == ENOENT
				 ? "no memory is published under that name, or not that much"
				 : strerror(why));
}

void on_mem_answer(tern *t, const tern_msg *msg)
{
	size_t len;
	const void *data = tern_msg_data(msg, &len);
	uint64_t word = tern_msg_word(msg, 2);
	if (!data) {
		/* An operation without data has no use for it: its slot expects other bytes. */
		data = &word;
		len = sizeof word;
	}
	slot_answer(mem_of(t), tern_msg_word(msg, 0), answer_error(msg), tern_msg_src(msg), data,
		    len);
}

int message_amo(struct mem *m, tern_addr a, unsigned what, const uint64_t operand[2], void *old,
		tern_op *op, bool blocks)
{
	struct slot *s;
	int rc =
		blocks ? rules_wait(m->e, "a blocking atomic operation on another process's memory")
		       : 0;
	if (!rc)
		rc = slot_wait(m, tern_addr_rank(a), &s);
	if (rc)
		return rc;
	slot_expect(m, s, old, old ? amo_width(what) : 0);
	s->word = true;
	uint64_t words[] = { a, what, operand[0], operand[1], slot_name(m, s) };
	return slot_request(m, s, op, MEM_AMO, NULL, 0, 5, words);
}
