/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: what this rank has asked of others and what is to be done with the answers. */
#include "mem/slot.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/wrap.h"
#include "core/wait.h"
#include "mem/mem.h"

/*
 * A name has 32 bits. A network may tell late of a move that was given up, when its slot has been
 * used thousands of times.
 */
enum {
	SLOT_GENERATION_SHIFT = 8,
	SLOT_GENERATION_BITS = 24,
	SLOT_GENERATIONS = 1 << SLOT_GENERATION_BITS
};

void slots_open(struct mem *m)
{
	for (unsigned i = 0; i < SLOTS; i++)
		m->slots.slot[i].generation = (uint32_t)wrap_first(SLOT_GENERATION_BITS, 0);
}

struct slot *slot_take(struct mem *m, uint32_t rank, enum slot_part part)
{
	for (unsigned i = part; i < (unsigned)part + SLOTS_OF_PART; i++) {
		struct slot *s = &m->slots.slot[i];
		if (s->used)
			continue;
		*s = (struct slot){ .used = true,
				    .generation = (s->generation + 1) % SLOT_GENERATIONS,
				    .rank = rank };
		return s;
	}
	return NULL;
}

struct slot_need {
	struct mem *m;
	uint32_t rank;
	struct slot *got;
};

static bool slot_got(struct endpoint *e, void *arg)
{
	struct slot_need *need = arg;
	(void)e;
	need->got = slot_take(need->m, need->rank, SLOTS_QUICK);
	return need->got != NULL;
}

static int slot_stop(struct endpoint *e, struct wait *w)
{
	return held(e) ? error_set(-EAGAIN, "%s: %s, and under a hold none ends", w->call, w->lack)
		       : 0;
}

struct record_need {
	struct pool_of *pool;
	void *got;
};

static bool record_got(struct endpoint *e, void *arg)
{
	struct record_need *need = arg;
	(void)e;
	need->got = record_take(need->pool);
	return need->got != NULL;
}

static int record_stop(struct endpoint *e, struct wait *w)
{
	const struct record_need *need = w->arg;
	if (!held(e) && !in_handler(e))
		return 0;
	return error_set(-EAGAIN, "%s: %u are under way, and %s none ends", w->call,
			 need->pool->used, held(e) ? "under a hold" : "in a handler");
}

int mem_record(struct mem *m, struct pool_of *p, struct wait *w, void *out)
{
	struct record_need need = { p, record_take(p) };
	if (!need.got && !p->used)
		return error_set(-ENOMEM, "%s: no memory", w->call);
	w->bounded = true;
	w->lack = "too many under way";
	w->stop = w->stop ? w->stop : record_stop;
	int rc = need.got ? 0 : wait_until(m->e, record_got, &need, w);
	*(void **)out = need.got;
	return rc;
}

int slot_wait(struct mem *m, uint32_t rank, struct slot **out)
{
	struct slot_need need = { .m = m, .rank = rank };
	struct wait w = { .bounded = true,
			  .call = "an operation",
			  .way = "to",
			  .whom = rank + 1,
			  .lack = "too many unanswered",
			  .stop = slot_stop };
	int rc = rules_program(m->e, "an operation that sends a request");
	if (!rc)
		rc = wait_until(m->e, slot_got, &need, &w);
	*out = need.got;
	return rc;
}

void slot_give(struct slot *s)
{
	s->used = false;
}

uint64_t slot_name(struct mem *m, struct slot *s)
{
	return (uint64_t)(s - m->slots.slot) | (uint64_t)s->generation << SLOT_GENERATION_SHIFT;
}

static struct slot *slot_named(struct mem *m, uint64_t name)
{
	struct slot *s = (name & 0xff) < SLOTS ? &m->slots.slot[name & 0xff] : NULL;
	return s && s->used && s->generation == name >> SLOT_GENERATION_SHIFT ? s : NULL;
}

int slot_request(struct mem *m, struct slot *s, tern_op *op, unsigned id, const void *data,
		 size_t len, unsigned n, const uint64_t *words)
{
	uint64_t name = slot_name(m, s);
	uint32_t before = op->pending++;
	s->op = op;
	int rc = layer_request(m->e, s->rank, id, data, len, n, words);
	if (!rc || slot_named(m, name) != s)
		return 0;
	op_withdraw(m->e, op, before);
	slot_give(s);
	return rc;
}

void slot_expect(struct mem *m, struct slot *s, void *local, size_t len)
{
	parts_block(&m->slots.walk[s - m->slots.slot], (uintptr_t)local, len);
	s->len = len;
}

static void slot_end(struct mem *m, struct slot *s, int error)
{
	struct transfer *x = s->x;
	tern_op *op = s->op;
	slot_give(s);
	if (x) {
		m->transfers.answers++;
		transfer_landed(x, error);
	}
	if (op)
		op_end(m->e, op, error);
}

/*
 * What was asked for has come: as a word, or in the answer. False if that lacks it.
 */
static bool slot_fill(struct mem *m, struct slot *s, const void *data, size_t len)
{
	if (!data || (s->word ? len < s->len : len != s->len))
		return false;
	parts_copy(&m->slots.walk[s - m->slots.slot], (char *)(uintptr_t)data, s->len, false);
	return true;
}

void slot_answer(struct mem *m, uint64_t name, int error, uint32_t from, const void *data,
		 size_t len)
{
	struct slot *s = slot_named(m, name);
	if (!s || s->rank != from)
		return; /* nobody wants it any more */
	if (error == -EAGAIN && s->asks) {
		s->again = m->slots.again = true;
		mem_busy(m);
		return;
	}
	if (!error && s->len && !slot_fill(m, s, data, len))
		error = error_set(-EBADMSG,
				  "rank %u answered without the %zu bytes that it was asked for",
				  from, s->len);
	slot_end(m, s, error);
}

/* Whether a rank has died is often known after its network says that nothing moves there. */
void slot_moved(struct mem *m, uint64_t name, int error)
{
	struct slot *s = slot_named(m, name);
	if (!s)
		return;
	if (!error) {
		slot_end(m, s, 0);
		return;
	}
	s->failed = error;
	m->lost = true;
	mem_busy(m);
}

bool slots_quiet(const struct mem *m)
{
	for (int i = SLOTS_QUICK; i < SLOTS_QUICK + SLOTS_OF_PART; i++)
		if (m->slots.slot[i].used)
			return false;
	return true;
}

unsigned slot_progress(struct mem *m)
{
	unsigned sent = 0;
	m->slots.again = false;
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &m->slots.slot[i];
		if (!s->used || !s->again)
			continue;
		s->again = false;
		int rc = when_ask(m, s, NULL);
		if (rc)
			slot_end(m, s, rc);
		sent++;
	}
	mem_busy(m);
	return sent;
}

bool slots_need_anyone(const void *mem, const tern_op *op)
{
	const struct mem *m = mem;
	for (int i = SLOTS_HELD; i < SLOTS; i++)
		if (m->slots.slot[i].used && m->slots.slot[i].op == op)
			return true;
	return false;
}

void slots_forget(struct mem *m, tern_op *op)
{
	for (int i = 0; i < SLOTS; i++)
		if (m->slots.slot[i].used && m->slots.slot[i].op == op) {
			slot_give(&m->slots.slot[i]);
			op->pending--;
		}
}

bool slot_lost(struct mem *m)
{
	bool owed = false;
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &m->slots.slot[i];
		struct net *net = m->e->site.peer[s->rank].net;
		bool lost = layer_lost(m->e, s->rank);
		if (!s->used || !(lost || s->failed))
			continue;
		if (!(lost && s->failed) && window_owed(m, s))
			owed = true;
		else
			slot_end(m, s,
				 lost ? net->ops->check(net, s->rank)
				      : error_set(s->failed,
						  "the network %s could not move memory of rank %u",
						  net->ops->name, s->rank));
	}
	return owed;
}
