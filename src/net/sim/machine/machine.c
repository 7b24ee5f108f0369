/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's memory: where its parts lie, and how they begin. */
#include "net/sim/machine/machine.h"

#include <string.h>

#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"

/* What lies at `*at`, in pages of its own; *at goes on behind it. */
static void *carve(uintptr_t *at, size_t count, size_t bytes)
{
	uintptr_t here = *at;
	*at += (count * bytes + 4095) / 4096 * 4096;
	return (void *)here;
}

/* Lays the parts of a machine out from `base` on; how many bytes they have. */
static size_t parts_lay(struct machine *m, uintptr_t base, uint32_t nodes)
{
	const struct profile *p = &m->profile;
	uintptr_t at = base;
	m->net = network_named(p->network);
	m->shared = carve(&at, 1, sizeof *m->shared);
	m->node = carve(&at, nodes, sizeof *m->node);
	m->process = carve(&at, nodes, sizeof *m->process);
	m->heap = carve(&at, EVENTS_MOST, sizeof *m->heap);
	m->travel = carve(&at, TRAVELS_MOST, sizeof *m->travel);
	m->cell = carve(&at, CELLS_MOST, CELL);
	m->network = carve(&at, 1, m->net->bytes ? m->net->bytes(p, nodes) : 0);
	m->use = carve(&at, nodes * (size_t)USE_NODE + (m->net->links ? m->net->links(nodes) : 0),
		       sizeof *m->use);
	m->niu = carve(&at, 1, niu_bytes(p, nodes));
	return at - base;
}

size_t machine_bytes(const struct profile *p, uint32_t nodes)
{
	return parts_lay(&(struct machine){ .profile = *p }, 0, nodes);
}

/* What passes at least between looking and the entry of what is then sent. */
static uint64_t least_send(const struct machine *m)
{
	const struct profile *p = &m->profile;
	if (m->controller->handles)
		return 0;
	return p->send_reply < p->send_request ? p->send_reply : p->send_request;
}

void machine_lay(struct machine *m, void *base, uint32_t nodes)
{
	m->bytes = parts_lay(m, (uintptr_t)base, nodes);
	m->width = grid_width(&m->profile, nodes);
	m->self = m->woken = NOTHING;
	m->controller = controller_named(m->profile.controller);
	m->least = m->net->least ? m->net->least(&m->profile) : m->profile.latency;
	m->ahead = least_send(m) + m->least;
}

/* Nodes end by chances of their own, so that packets meet the same ones as without. */
static void crashes_plan(struct machine *m, uint32_t nodes)
{
	const struct profile *p = &m->profile;
	struct chance c = { p->seed + 1 };
	if (p->crash_at && p->crash_node < nodes)
		event_network(m, p->crash_at, EVENT_CRASH, (uint32_t)p->crash_node, 0);
	for (uint32_t i = 0; p->crash_mean && i < nodes; i++)
		event_network(m, 1 + chance_next(&c) % (2 * p->crash_mean), EVENT_CRASH, i, 0);
}

void machine_init(struct machine *m, uint32_t nodes)
{
	struct shared *s = m->shared;
	s->nodes = nodes;
	s->chance.state = m->profile.seed;
	s->free_travel = NOTHING;
	for (unsigned i = 0; i < sizeof s->free_cells / sizeof *s->free_cells; i++)
		s->free_cells[i] = NOTHING;
	for (uint32_t i = 0; i < nodes; i++)
		m->node[i].inbox = m->node[i].due = (struct queue){ NOTHING, NOTHING };
	crashes_plan(m, nodes);
	if (m->net->init)
		m->net->init(m);
}

/* -- Packets --------------------------------------------------------------------------------- */

static unsigned cells_shift(uint32_t bytes)
{
	unsigned shift = 0;
	while (((uint32_t)CELL << shift) < bytes)
		shift++;
	return shift;
}

/* A free place keeps the index of the next one in its first bytes. */
static uint32_t cells_new(struct machine *m, unsigned shift)
{
	struct shared *s = m->shared;
	uint32_t at = s->free_cells[shift];
	if (at != NOTHING) {
		memcpy(&s->free_cells[shift], m->cell + (size_t)at * CELL, sizeof at);
		return at;
	}
	if (s->cells + (1u << shift) > CELLS_MOST)
		return NOTHING;
	at = s->cells;
	s->cells += 1u << shift;
	return at;
}

uint32_t travel_new(struct machine *m, uint32_t bytes)
{
	struct shared *s = m->shared;
	unsigned shift = cells_shift(bytes);
	uint32_t i = s->free_travel, cells = cells_new(m, shift);
	if (cells == NOTHING)
		return NOTHING;
	if (i != NOTHING)
		s->free_travel = m->travel[i].next;
	else if (s->travels < TRAVELS_MOST)
		i = s->travels++;
	else
		return NOTHING;
	m->travel[i] = (struct travel){ .bytes = bytes,
					.cells = cells,
					.room = shift,
					.next = NOTHING,
					.stamp = m->travel[i].stamp };
	return i;
}

void travel_free(struct machine *m, uint32_t i)
{
	struct shared *s = m->shared;
	struct travel *t = &m->travel[i];
	memcpy(m->cell + (size_t)t->cells * CELL, &s->free_cells[t->room], sizeof(uint32_t));
	s->free_cells[t->room] = t->cells;
	t->next = s->free_travel;
	s->free_travel = i;
}

void queue_put(struct machine *m, struct queue *q, uint32_t i)
{
	m->travel[i].next = NOTHING;
	if (queue_empty(q))
		q->first = i;
	else
		m->travel[q->last].next = i;
	q->last = i;
}

uint32_t queue_take(struct machine *m, struct queue *q)
{
	uint32_t i = q->first;
	if (i != NOTHING)
		q->first = m->travel[i].next;
	return i;
}

/* -- Events ----------------------------------------------------------------------------------- */

static bool before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

/* A heap: the children of i are 2i + 1 and 2i + 2. */
void event_add(struct machine *m, const struct event *e)
{
	uint32_t i = m->shared->events++;
	for (; i && before(e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = *e;
}

/* Packets whose arrival is known stand in its order; most come last. A pattern never asks. */
static void due_put(struct machine *m, uint32_t i, uint64_t time)
{
	struct travel *t = &m->travel[i];
	struct node *n = &m->node[t->dst];
	t->arrived = time;
	n->dated++;
	if (queue_empty(&n->due) || m->travel[n->due.last].arrived <= time) {
		queue_put(m, &n->due, i);
		return;
	}
	uint32_t *at = &n->due.first;
	while (m->travel[*at].arrived <= time)
		at = &m->travel[*at].next;
	t->next = *at;
	*at = i;
}

void event_network(struct machine *m, uint64_t time, enum event_kind kind, uint32_t what,
		   uint32_t stamp)
{
	if (kind == EVENT_ARRIVE && m->job) {
		due_put(m, what, time);
		stamp = m->travel[what].stamp;
	}
	event_add(m, &(struct event){ .time = time,
				      .order = UINT64_C(1) << 63 | m->shared->numbered++,
				      .what = what,
				      .stamp = stamp,
				      .kind = kind });
}

bool event_next(struct machine *m, struct event *e)
{
	struct shared *s = m->shared;
	if (!s->events)
		return false;
	*e = m->heap[0];
	struct event last = m->heap[--s->events];
	uint32_t i = 0;
	for (uint32_t child; (child = 2 * i + 1) < s->events; i = child) {
		if (child + 1 < s->events && before(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!before(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
	}
	m->heap[i] = last;
	return true;
}

static bool event_stale(const struct machine *m, const struct event *e)
{
	if (e->kind == EVENT_ARRIVE)
		return m->travel[e->what].stamp != e->stamp;
	const struct process *p = &m->process[e->what];
	return e->kind == EVENT_RESUME && m->job &&
	       (p->state != PROCESS_WAITS || p->stamp != e->stamp);
}

void event_skip(struct machine *m)
{
	struct event e;
	while (m->shared->events && event_stale(m, &m->heap[0]))
		event_next(m, &e);
}

/* The controller has done with a packet: its handler can run. */
static void machine_handle(struct machine *m, uint32_t i)
{
	struct travel *t = &m->travel[i];
	struct node *n = &m->node[t->dst];
	t->arrived = m->shared->clock;
	n->coming--;
	if (n->left) {
		travel_free(m, i);
		return;
	}
	struct use *inbox = use_node(m, t->dst, USE_INBOX);
	if (++inbox->queued > inbox->deepest)
		inbox->deepest = inbox->queued;
	queue_put(m, &n->inbox, i);
	m->process[n->process].pending++;
	m->arrived(m, i);
}

void machine_deliver(struct machine *m, uint32_t i)
{
	struct travel *t = &m->travel[i];
	struct node *n = &m->node[t->dst];
	m->shared->underway--;
	if (t->damaged) {
		m->shared->damaged++;
		n->coming--;
		travel_free(m, i);
		return;
	}
	m->shared->delivered++;
	m->shared->flight += m->shared->clock - t->sent;
	n->received++;
	n->received_bytes += t->bytes;
	uint64_t at = m->controller->arrive ? m->controller->arrive(m, t) : m->shared->clock;
	if (at > m->shared->clock)
		event_network(m, at, EVENT_HANDLE, i, 0);
	else
		machine_handle(m, i);
}

/* What is known to arrive first does. */
static void machine_arrive(struct machine *m, struct node *n)
{
	uint32_t i = queue_take(m, &n->due);
	n->dated--;
	machine_deliver(m, i);
}

void machine_early(struct machine *m, struct node *n)
{
	uint64_t now = m->shared->clock;
	struct travel *t = &m->travel[n->due.first];
	m->shared->clock = t->arrived;
	t->stamp++;
	machine_arrive(m, n);
	m->shared->clock = now;
}

void machine_taken(struct machine *m, uint32_t i, uint64_t time)
{
	const struct travel *t = &m->travel[i];
	struct use *inbox = use_node(m, t->dst, USE_INBOX);
	uint64_t wait = time > t->arrived ? time - t->arrived : 0;
	inbox->queued--;
	use_serve(inbox, wait, 0);
}

static void machine_drop(struct machine *m, uint32_t i)
{
	m->shared->dropped++;
	m->node[m->travel[i].dst].coming--;
	travel_free(m, i);
}

/*
 * The network notices that it has lost a packet when that should have arrived and the news have
 * come back; until then the node's way into it is taken, so packets stay in order.
 */
static void machine_repeat(struct machine *m, const struct event *e)
{
	struct node *n = &m->node[m->travel[e->what].src];
	uint64_t from = n->free > e->time ? n->free : e->time;
	n->free = from + 2 * m->profile.latency + m->travel[e->what].size * m->profile.gap_byte;
	m->shared->dropped++;
}

void machine_enter(struct machine *m, uint32_t i)
{
	m->shared->underway++;
	m->net->inject(m, i);
}

static void machine_inject(struct machine *m, const struct event *e)
{
	const struct profile *p = &m->profile;
	struct chance *c = &m->shared->chance;
	bool lost = p->drop && !e->stamp && chance_below(c, 1000000) < p->drop;
	for (; lost && p->tolerant; lost = chance_below(c, 1000000) < p->drop)
		machine_repeat(m, e);
	if (lost) {
		machine_drop(m, e->what);
	} else if (p->jitter && !e->stamp) {
		event_network(m, e->time + chance_next(c) % p->jitter, EVENT_INJECT, e->what, 1);
	} else {
		m->travel[e->what].damaged = p->corrupt && chance_below(c, 1000000) < p->corrupt;
		if (m->controller->enter)
			m->controller->enter(m, e->what);
		else
			machine_enter(m, e->what);
	}
}

bool machine_step(struct machine *m)
{
	const struct sim_network *n = m->net;
	struct event e;
	if (!event_next(m, &e))
		return false;
	m->shared->clock = e.time;
	m->shared->happened++;
	switch ((enum event_kind)e.kind) {
	case EVENT_RESUME:
		m->resume(m, &e);
		break;
	case EVENT_INJECT:
		machine_inject(m, &e);
		break;
	case EVENT_ARRIVE:
		if (!m->job)
			machine_deliver(m, e.what);
		else if (!event_stale(m, &e))
			machine_arrive(m, &m->node[m->travel[e.what].dst]);
		break;
	case EVENT_CRASH:
		m->crash(m, e.what);
		break;
	case EVENT_HANDLE:
		machine_handle(m, e.what);
		break;
	case EVENT_NETWORK:
	case EVENT_LEFT:
		n->happen(m, &e);
		break;
	}
	return true;
}
