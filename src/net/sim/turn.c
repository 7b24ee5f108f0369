/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is. A process runs, or waits for its turn; once all nodes are there, at most one
 * runs. The last one to wait lets events happen until one of them gives a process the turn, which
 * may be itself.
 *
 * The lock is held while the machine is touched. It is contended only at the beginning, when all
 * processes run, so it spins and naps. `go` is seq_cst: it is a turn's only handshake, and a system
 * call follows.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/kernel.h"
#include "net/sim/network.h"

enum { TURN_NS = 1000000000 }; /* how long a process sleeps before it looks whether others live */
static const uint64_t STUCK_PS = UINT64_C(3600) * 1000000000000; /* an hour */

void machine_lock(struct machine *m)
{
	while (atomic_exchange_explicit(&m->shared->lock, 1, memory_order_acquire))
		sched_yield();
}

void machine_unlock(struct machine *m)
{
	atomic_store_explicit(&m->shared->lock, 0, memory_order_release);
}

static struct process *self(struct machine *m)
{
	return &m->process[m->self];
}

/* -- Waiting for the turn --------------------------------------------------------------------- */

static uint64_t order_of(uint32_t process, uint64_t number)
{
	return (uint64_t)process << 40 | number;
}

/* Of the process that has the turn: nothing was heard of it for long, and it is not there. */
static void turn_check(struct machine *m)
{
	for (uint32_t i = 0; i < m->shared->nodes; i++) {
		struct process *p = &m->process[i];
		if (p->state == PROCESS_RUNS && kill(p->pid, 0) != 0 && errno == ESRCH) {
			error_warn(
				"the simulation cannot go on: process %d, whose turn it was, has "
				"ended",
				(int)p->pid);
			_exit(1);
		}
	}
}

static void turn_sleep(struct machine *m)
{
	struct process *p = self(m);
	while (!atomic_load(&p->go)) {
		futex_wait_many(&(_Atomic uint64_t *){ &p->go }, 1, 0, TURN_NS);
		if (!atomic_load(&p->go))
			turn_check(m);
	}
	atomic_store(&p->go, 0);
}

/* Everybody waits and nothing can happen any more. */
static void turn_stuck(struct machine *m)
{
	const struct sim_network *n = network_named(m->profile.network);
	fprintf(stderr, "tern: the simulated machine stands still at %.3f us: ",
		(double)m->shared->clock / 1e6);
	if (m->shared->underway && n->stuck) {
		fputs("packets block each other\n", stderr);
		n->stuck(m, stderr);
	} else {
		fputs("every rank waits for a message that nobody sends\n", stderr);
	}
	exit(1);
}

/* Until an event gives a process the turn. True: it is ours. */
static bool turn_pass(struct machine *m)
{
	while (!m->shared->running)
		if (!machine_step(m))
			turn_stuck(m);
	return m->self != NOTHING && self(m)->state == PROCESS_RUNS;
}

static void turn_give(struct machine *m, const struct event *e)
{
	struct process *p = &m->process[e->what];
	if (p->state != PROCESS_WAITS || p->stamp != e->stamp)
		return; /* it was woken by something else */
	p->state = PROCESS_RUNS;
	p->time = e->time;
	m->shared->running++;
	if (e->what == m->self)
		return;
	m->shared->switches++;
	atomic_store(&p->go, 1);
	futex_wake(&p->go);
}

/* Somebody who waits for packets looks once a step. */
static void turn_arrived(struct machine *m, uint32_t travel)
{
	uint32_t who = m->node[m->travel[travel].dst].process;
	struct process *p = &m->process[who];
	if (p->state != PROCESS_WAITS || !p->step)
		return;
	uint64_t late = m->shared->clock > p->time ? m->shared->clock - p->time : 0;
	uint64_t steps = (late + p->step - 1) / p->step;
	p->stamp++;
	event_add(m, &(struct event){ .time = p->time + steps * p->step,
				      .order = order_of(who, p->numbered++),
				      .what = who,
				      .stamp = p->stamp,
				      .kind = EVENT_RESUME });
	p->step = 0; /* once */
}

bool turn_coming(const struct machine *m)
{
	const struct process *p = &m->process[m->self];
	if (p->nodes == 1)
		return m->node[m->self].coming;
	for (uint32_t i = 0; i < m->shared->nodes; i++)
		if (m->node[i].process == m->self && m->node[i].coming)
			return true;
	return false;
}

/*
 * Whether this process can go on at `until` without giving up its turn: nothing happens before; or
 * nothing is on its way here, and what others do from now on cannot be here by then.
 */
static bool nothing_before(const struct machine *m, uint64_t until)
{
	const struct shared *s = m->shared;
	if (s->present != s->nodes || s->running != 1)
		return false;
	if (!s->events || m->heap[0].time >= until)
		return true;
	return until - m->heap[0].time <= m->ahead && !turn_coming(m);
}

bool turn_wait(struct machine *m, uint64_t until, uint64_t step)
{
	struct process *p = self(m);
	if (step && p->pending)
		return true;
	machine_lock(m);
	if (nothing_before(m, until)) {
		p->time = until;
		machine_unlock(m);
		return p->pending;
	}
	p->state = PROCESS_WAITS;
	p->step = step;
	p->stamp++;
	if (until != NEVER)
		event_add(m, &(struct event){ .time = until,
					      .order = order_of(m->self, p->numbered++),
					      .what = m->self,
					      .stamp = p->stamp,
					      .kind = EVENT_RESUME });
	m->shared->running--;
	bool ours = m->shared->present == m->shared->nodes && !m->shared->running && turn_pass(m);
	machine_unlock(m);
	if (!ours)
		turn_sleep(m);
	return p->pending;
}

/* Whether no node has done anything but look in vain for so long that none ever will. */
static bool all_look_in_vain(const struct machine *m, uint64_t now)
{
	for (uint32_t i = 0; i < m->shared->nodes; i++) {
		const struct process *p = &m->process[i];
		if ((p->state == PROCESS_RUNS && i != m->self) ||
		    (p->state == PROCESS_WAITS && (p->since > now || now - p->since < STUCK_PS)))
			return false;
	}
	return !m->shared->underway;
}

bool turn_look(struct machine *m, uint64_t part, uint64_t least)
{
	struct process *p = self(m);
	uint64_t now = p->time;
	if (p->since == NEVER)
		p->since = now;
	uint64_t ps = (now - p->since) / part;
	if (now - p->since > STUCK_PS && all_look_in_vain(m, now))
		turn_stuck(m);
	return turn_wait(m, now + (ps > least ? ps : least), m->profile.poll);
}

/* -- Coming and going ---------------------------------------------------------------------------
 */

void turn_join(struct machine *m, uint32_t node)
{
	m->resume = turn_give;
	m->arrived = turn_arrived;
	m->blocked = turn_stuck;
	machine_lock(m);
	if (m->self == NOTHING) {
		m->self = node;
		m->process[node] =
			(struct process){ .pid = getpid(), .state = PROCESS_RUNS, .since = NEVER };
		m->shared->running++;
	}
	m->node[node].process = m->self;
	m->node[node].present = true;
	self(m)->nodes++;
	m->shared->present++;
	machine_unlock(m);
}

void turn_leave(struct machine *m, uint32_t node)
{
	machine_lock(m);
	m->node[node].left = true;
	for (uint32_t i; (i = queue_take(m, &m->node[node].inbox)) != NOTHING; self(m)->pending--)
		travel_free(m, i);
	if (--self(m)->nodes == 0) {
		self(m)->state = PROCESS_LEFT;
		m->shared->running--;
		bool waits = false;
		for (uint32_t i = 0; i < m->shared->nodes; i++)
			waits |= m->process[i].state == PROCESS_WAITS;
		if (waits && !m->shared->running)
			turn_pass(m);
	}
	machine_unlock(m);
}

uint32_t turn_take(struct machine *m, uint32_t node)
{
	machine_lock(m);
	uint32_t i = queue_take(m, &m->node[node].inbox);
	self(m)->pending -= i != NOTHING;
	machine_unlock(m);
	return i;
}

uint32_t turn_send(struct machine *m, uint32_t src, const struct outgoing *o, uint32_t words)
{
	size_t bytes = 0;
	for (int i = 0; i < o->parts; i++)
		bytes += o->part[i].iov_len;
	machine_lock(m);
	uint32_t i = travel_new(m, (uint32_t)bytes);
	if (i != NOTHING) {
		struct travel *t = &m->travel[i];
		struct node *n = &m->node[src];
		outgoing_copy(travel_data(m, i), o);
		t->src = src;
		t->dst = o->rank;
		t->class = o->class;
		t->context = o->context;
		t->words = words;
		t->size = words * 4 + (uint32_t)m->profile.header;
		t->sent = self(m)->time;
		n->sent++;
		m->node[o->rank].coming++;
		n->sent_bytes += bytes;
		event_add(m, &(struct event){ .time = t->sent,
					      .order = order_of(src, n->numbered++),
					      .what = i,
					      .kind = EVENT_INJECT });
	}
	machine_unlock(m);
	return i;
}
