/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Getting a value when it is ready. The owner holds the request in one of a bounded
 * number of places and looks at the flags when it polls; no thread waits there.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"

/* Whether the request can be answered: the flag says so, or its memory or the data's has gone. */
static bool when_ready(struct mem *m, const struct when *w)
{
	uint64_t value;
	const char *flag = mem_reach(m, w->flag, sizeof value);
	if (!flag || !mem_reach(m, w->src, w->len))
		return true;
	/* Of registered memory, which the program may have unmapped: an error is an answer, too. */
	if (!addr_in_heap(w->flag) && own_move(m, w->flag, (char *)&value, sizeof value, false))
		return true;
	return atomic_load_explicit((const _Atomic uint64_t *)(const void *)flag,
				    memory_order_acquire) >= w->least;
}

/* The data, unless they or the flag cannot be read: then an error. */
static int when_read(struct mem *m, const struct when *w, char bytes[TERN_PAYLOAD_MAX])
{
	char probe[8];
	int error = own_move(m, w->flag, probe, sizeof probe, false);
	return error ? error : own_move(m, w->src, bytes, w->len, false);
}

/* Sends the data as a request; the memory may have gone since the request came. */
static void when_tell(struct mem *m, const struct when *w)
{
	char bytes[TERN_PAYLOAD_MAX];
	int error = when_read(m, w, bytes);
	uint64_t words[] = { w->slot, (uint64_t)error, 0 };
	layer_request(m->e, w->asker, MEM_DONE, error ? NULL : bytes, w->len, 3, words);
}

unsigned when_progress(struct mem *m)
{
	unsigned told = 0;
	if (m->telling) /* sending may wait, and poll, and come back here */
		return 0;
	m->telling = true;
	for (int i = 0; i < TERN_WHEN_MAX; i++) {
		struct when *w = &m->when[i];
		if (!w->used || !when_ready(m, w))
			continue;
		struct when ready = *w;
		w->used = false;
		m->waiting--;
		when_tell(m, &ready);
		told++;
	}
	m->telling = false;
	mem_busy(m);
	return told;
}

/* Holds the request: -EAGAIN when every place is taken. */
static int when_hold(struct mem *m, const struct when *w)
{
	for (int i = 0; i < TERN_WHEN_MAX; i++)
		if (!m->when[i].used) {
			m->when[i] = *w;
			m->waiting++;
			mem_busy(m);
			return 0;
		}
	return -EAGAIN;
}

/* What the request asks for; false if there is no such memory here. */
static bool when_of(struct mem *m, const tern_msg *msg, struct when *w)
{
	*w = (struct when){
		.used = true,
		.asker = tern_msg_src(msg),
		.slot = (uint32_t)tern_msg_word(msg, 4),
		.src = tern_msg_word(msg, 0),
		.len = tern_msg_word(msg, 3),
		.flag = tern_msg_word(msg, 1),
		.least = tern_msg_word(msg, 2),
	};
	char *at = own_reach(m, w->flag, sizeof(uint64_t));
	return at && (uintptr_t)at % sizeof(uint64_t) == 0 && w->len <= TERN_PAYLOAD_MAX &&
	       own_reach(m, w->src, w->len);
}

/*
 * A request is not held by the thread that serves memory: what is held is answered by a request,
 * which polls send. The flag was up when the thread looked; if it is not any more, the asker sends
 * the request again.
 */
void on_when(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	char bytes[TERN_PAYLOAD_MAX];
	struct when w;
	if (!when_of(m, msg, &w))
		message_answer(t, w.slot, EFAULT, 0);
	else if (when_ready(m, &w))
		message_answer_data(t, w.slot, when_read(m, &w, bytes) ? NULL : bytes, w.len);
	else if (t->own->site.serving || when_hold(m, &w))
		message_answer(t, w.slot, EAGAIN, 0);
}

bool when_serves(tern *t, const tern_msg *msg)
{
	struct when w;
	return !when_of(mem_of(t), msg, &w) || when_ready(mem_of(t), &w);
}

static int when_check(struct mem *m, tern_addr src, size_t len, tern_addr flag)
{
	int rc = mem_check(m, src, len, "tern_get_when_start()");
	if (!rc)
		rc = mem_check(m, flag, sizeof(uint64_t), "tern_get_when_start()");
	if (!rc && tern_addr_rank(src) != tern_addr_rank(flag))
		rc = error_set(
			-EINVAL,
			"tern_get_when_start() was given data at rank %u and a flag at rank %u: "
			"they must be at one",
			tern_addr_rank(src), tern_addr_rank(flag));
	if (!rc && len > TERN_PAYLOAD_MAX)
		rc = error_set(-EMSGSIZE,
			       "tern_get_when_start() was asked for %zu bytes; it gets at most %d",
			       len, TERN_PAYLOAD_MAX);
	return rc;
}

/* The first time for `op`, then again: NULL. */
int when_ask(struct mem *m, struct slot *s, tern_op *op)
{
	uint64_t words[] = { s->ask[0], s->ask[1], s->ask[2], s->ask[3], slot_name(m, s) };
	return op ? slot_request(m, s, op, MEM_WHEN, NULL, 0, 5, words)
		  : layer_request(m->e, s->rank, MEM_WHEN, NULL, 0, 5, words);
}

static int when_start(struct mem *m, struct slot *s, char *dst, const uint64_t ask[4], tern_op *op)
{
	slot_expect(m, s, dst, ask[3]);
	s->asks = true;
	memcpy(s->ask, ask, sizeof s->ask);
	return when_ask(m, s, op);
}

int tern_get_when_start(tern *t, void *dst, tern_addr src, size_t len, const tern_when *when,
			tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	int rc = rules_rank(m->e, "tern_get_when_start()"); /* its answer is a request */
	if (!rc)
		rc = op ? rules_program(m->e, "tern_get_when_start()")
			: rules_wait(m->e, "a blocking tern_get_when_start()");
	if (!rc)
		rc = when_check(m, src, len, when->flag);
	struct slot *s = rc ? NULL : slot_take(m, tern_addr_rank(src), SLOTS_HELD);
	if (!rc && !s)
		rc = error_set(-EAGAIN, "%d of rank %u's own tern_get_when_start() wait already",
			       SLOTS_OF_PART, m->rank);
	if (!rc)
		rc = when_start(m, s, dst, (const uint64_t[]){ src, when->flag, when->least, len },
				op ? op : &own);
	if (op || rc)
		return rc;
	rc = tern_op_wait(t, &own);
	slots_forget(m, &own); /* it has given up, if something is left */
	return rc;
}
