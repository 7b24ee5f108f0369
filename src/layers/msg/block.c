/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of another rank's named memory, which that rank sends as a message (SCMP's getBlock). */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "msg/msg.h"

/* At its owner: has it sent; the code goes to the asker. */
static int block_send(struct msg *m, const tern_msg *msg)
{
	tern_block c = { (unsigned)tern_msg_word(msg, 0), tern_msg_word(msg, 1),
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
	struct msg *m = msg_of(t);
	uint32_t from = tern_msg_src(msg);
	uint64_t words[TELL_WORDS];
	int rc = block_send(m, msg);
	tell_words(m, words, from, TELL_AGREED, 0, rc, tern_msg_word(msg, 5));
	layer_reply(m->e, MSG_TELL, NULL, 0, TELL_WORDS, words);
}

/* A call that waits for an answer; from deferred functions there may be several. */
struct block_ask {
	struct block_ask *next;
	uint32_t rank;
	tern_id id;
	int answer; /* 1: none yet */
};

void block_agreed(struct msg *m, uint32_t from, tern_id id, int error)
{
	struct block_ask *a = m->asks;
	while (a && (a->rank != from || a->id != id || a->answer <= 0))
		a = a->next;
	if (a)
		a->answer = error;
}

static bool block_answered(struct endpoint *e, void *ask)
{
	(void)e;
	return ((struct block_ask *)ask)->answer <= 0;
}

static int block_stop(struct endpoint *e, struct wait *w)
{
	return msg_lost_error(msg_of(e->t), w->whom - 1);
}

/* Until the rank has answered, or left. */
static int block_await(struct msg *m, struct block_ask *a)
{
	struct wait w = msg_wait("tern_block_ask", "from", a->rank, a->id);
	w.rule = "tern_block_ask()";
	w.stop = block_stop;
	return wait_until(m->e, block_answered, a, &w);
}

/*
 * Asks, and waits. It is in the list before: sending may poll, and the answer come while it does.
 */
static int block_ask(struct msg *m, struct block_ask *a, const uint64_t words[6])
{
	struct block_ask **at = &m->asks;
	a->next = m->asks;
	m->asks = a;
	int rc = layer_request(m->e, a->rank, MSG_BLOCK, NULL, 0, 6, words);
	if (!rc)
		rc = block_await(m, a);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	return rc;
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
	struct msg *m = msg_of(t);
	struct block_ask a = { .rank = rank, .id = id, .answer = 1 };
	uint64_t words[] = { from->name, from->offset, from->stride, from->run, from->count, id };
	int rc = rules_rank_waits(m->e, "tern_block_ask()");
	if (!rc)
		rc = rules_destination(m->e, rank);
	if (!rc)
		rc = block_ask(m, &a, words);
	return rc || !a.answer ? rc : block_refused(rank, from->name, a.answer);
}
