/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has the baton. A process runs, or waits for the baton; once all nodes are there, at most one
 * runs. The last one to wait lets events happen until one of them gives a process the baton, which
 * may be itself.
 *
 * The lock is held while the machine is touched. It is contended only at the beginning, when all
 * processes run, so it spins and naps. `go` is seq_cst: it is the baton's only handshake, and a
 * system call follows.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/kernel.h"
#include "net/packet/packet.h"
#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"

enum { NOTED_NS = 1000000 };   /* between two looks whether a death is noted */
enum { TURN_NS = 1000000000 }; /* how long a process sleeps before it looks whether others live */
enum { WATCHERS = 2 };         /* processes that look: the first ones, one of which lives */
enum { GO_ON = 1, GO_DRIVE };  /* a process has the baton; or it is to let events happen */
static const uint64_t STUCK_PS = UINT64_C(3600) * 1000000000000; /* an hour */
static const uint64_t LOOK_PS = UINT64_C(100000000000);          /* the longest look: 0.1 s */

void machine_lock(struct machine *m)
{
	while (atomic_exchange_explicit(&m->shared->lock, 1, memory_order_acquire))
		sched_yield();
}

void machine_unlock(struct machine *m)
{
	atomic_store_explicit(&m->shared->lock, 0, memory_order_release);
}

static struct process *self(const struct machine *m)
{
	return &m->process[m->self];
}

/*
 * Waits, in real time, until the launcher has noted that the rank is dead. So those who live learn
 * of it at the same virtual time in each run, at their next look.
 */
static void crash_settle(struct machine *m)
{
	uint32_t rank = m->shared->crashing - 1;
	if (!m->shared->crashing)
		return;
	while (job_rank_state(m->job, rank) < RANK_GONE)
		world_real.nap(NOTED_NS);
	world_real.nap(NOTED_NS);
	m->shared->crashing = 0;
}

/* -- Waiting for the baton --------------------------------------------------------------------- */

static uint64_t order_of(uint32_t process, uint64_t number)
{
	return (uint64_t)process << 40 | number;
}

/* Of the process that has the baton: nothing was heard of it for long, and it is not there. */
static void baton_check(struct machine *m)
{
	for (uint32_t i = 0; i < m->shared->nodes; i++) {
		struct process *p = &m->process[i];
		if (p->state == PROCESS_RUNS && kill(p->pid, 0) != 0 && errno == ESRCH) {
			error_warn(
				"the simulation cannot go on: process %d, which had the baton, has "
				"ended",
				(int)p->pid);
			_exit(1);
		}
	}
}

static bool baton_pass(struct machine *m);

/* Gives up the lock. Only then is the next one woken: it would wait for the lock. */
static void baton_unlock(struct machine *m)
{
	uint32_t next = m->woken;
	m->woken = NOTHING;
	machine_unlock(m);
	if (next == NOTHING)
		return;
	atomic_store(&m->process[next].go, GO_ON);
	futex_wake(&m->process[next].go);
}

/* Until it is our time; or to let events happen, where the process that did so has crashed. */
static void baton_await(struct machine *m)
{
	struct process *p = self(m);
	for (bool ours = false; !ours;) {
		while (!atomic_load(&p->go)) {
			futex_wait_many(&(_Atomic uint64_t *){ &p->go }, 1, 0,
					m->self < WATCHERS ? TURN_NS : UINT64_MAX);
			if (!atomic_load(&p->go))
				baton_check(m);
		}
		ours = atomic_exchange(&p->go, 0) == GO_ON;
		if (ours)
			return;
		machine_lock(m);
		crash_settle(m);
		ours = baton_pass(m);
		baton_unlock(m);
	}
}

static void baton_sleep(struct machine *m)
{
	baton_await(m);
	if (m->core != m->shared->core || m->scout)
		core_follow(m);
}

/* Everybody waits and nothing can happen any more. */
static void baton_stuck(struct machine *m)
{
	const struct sim_network *n = m->net;
	fprintf(stderr, "tern: the simulated machine stands still at %.3f us: ",
		(double)m->shared->clock / 1e6);
	bool block = m->shared->underway && n->stuck;
	bool held = m->controller->stuck && m->controller->stuck(m, NULL);
	fputs(block  ? "packets block each other\n"
	      : held ? "messages wait in their nodes for permission to leave\n"
		     : "every rank waits for a message that nobody sends\n",
	      stderr);
	if (block)
		n->stuck(m, stderr);
	if (held)
		m->controller->stuck(m, stderr);
	exit(1);
}

/* Until an event gives a process the baton. True: it is ours. */
static bool baton_pass(struct machine *m)
{
	while (!m->shared->running)
		if (!machine_step(m))
			baton_stuck(m);
	return m->self != NOTHING && self(m)->state == PROCESS_RUNS;
}

/* The process goes on at `time`, if it still waits as it does now. */
static void baton_plan(struct machine *m, uint32_t who, uint64_t time)
{
	struct process *p = &m->process[who];
	event_add(m, &(struct event){ .time = time,
				      .order = order_of(who, p->numbered++),
				      .what = who,
				      .stamp = p->stamp,
				      .kind = EVENT_RESUME });
}

static void baton_give(struct machine *m, const struct event *e)
{
	struct process *p = &m->process[e->what];
	if (p->state != PROCESS_WAITS || p->stamp != e->stamp)
		return; /* it was woken by something else */
	p->state = PROCESS_RUNS;
	p->time = e->time;
	m->shared->running++;
	if (e->what == m->self)
		return;
	core_switched(m);
	m->woken = e->what;
}

/* Somebody who waits for packets looks once a step. */
static void baton_wake(struct machine *m, uint32_t who)
{
	struct process *p = &m->process[who];
	if (p->state != PROCESS_WAITS || !p->step)
		return;
	uint64_t late = m->shared->clock > p->time ? m->shared->clock - p->time : 0;
	uint64_t steps = (late + p->step - 1) / p->step;
	p->stamp++;
	baton_plan(m, who, p->time + steps * p->step);
	p->step = 0; /* once */
}

static void baton_arrived(struct machine *m, uint32_t travel)
{
	baton_wake(m, m->node[m->travel[travel].dst].process);
}

static void baton_room(struct machine *m, uint32_t node)
{
	if (m->process[m->node[node].process].suspended)
		baton_wake(m, m->node[node].process);
}

bool baton_coming(const struct machine *m)
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
 * Whether this process can take packets before the clock has come to their arrival. Not where a
 * controller has to handle them first, or a crash would have to end a wait meanwhile.
 */
static bool baton_foresees(const struct machine *m)
{
	return self(m)->nodes == 1 && !m->controller->arrive && !m->profile.crash_at &&
	       !m->profile.crash_mean;
}

/*
 * Until when this process knows what comes to it, whatever others do. What they do from the first
 * event on cannot be here before `ahead` has passed. Packets on their way whose arrival is not
 * known yet may come any time, or where the network has no events of its own, have still to enter
 * it.
 */
static uint64_t baton_horizon(struct machine *m)
{
	const struct shared *s = m->shared;
	const struct node *n = &m->node[m->self];
	if (s->present != s->nodes || s->running != 1 || !s->happened)
		return 0; /* at the beginning, whoever comes last in real time is not first */
	event_skip(m);
	if (!s->events)
		return NEVER;
	uint64_t first = m->heap[0].time;
	if (baton_foresees(m) ? n->dated == n->coming : !baton_coming(m))
		return first + m->ahead;
	return baton_foresees(m) && !m->net->happen ? first + m->least : first;
}

/* When a wait ends that begins now: at the first look that sees a packet, or `until`. */
static uint64_t baton_ends(const struct machine *m, uint64_t until, uint64_t step)
{
	uint64_t now = baton_time(m);
	uint32_t i = m->node[m->self].due.first;
	while (i != NOTHING && m->travel[i].damaged)
		i = m->travel[i].next;
	if (!step || i == NOTHING || m->travel[i].arrived >= until)
		return until;
	uint64_t late = m->travel[i].arrived > now ? m->travel[i].arrived - now : 0;
	return now + (late + step - 1) / step * step;
}

/*
 * The wait is over without giving up the baton, if it is known what comes until then. What arrives
 * meanwhile does so now. What arrives in the moment of the look is seen by the next one, unless it
 * ends the wait: that is the order of the events.
 */
static bool baton_alone(struct machine *m, uint64_t until, uint64_t step)
{
	struct process *p = self(m);
	struct node *n = &m->node[m->self];
	bool early = baton_foresees(m);
	uint64_t end = early ? baton_ends(m, until, step) : until;
	if (end == NEVER || end > baton_horizon(m))
		return false;
	while (early && !queue_empty(&n->due)) {
		uint64_t at = m->travel[n->due.first].arrived;
		if (at > end || (at == end && (p->pending || end == until)))
			break;
		machine_early(m, n);
	}
	p->time = end;
	return true;
}

bool baton_wait(struct machine *m, uint64_t until, uint64_t step)
{
	struct process *p = self(m);
	if (step && p->pending)
		return true;
	machine_lock(m);
	if (++m->waits == m->crash_wait) {
		event_network(m, baton_time(m), EVENT_CRASH, m->self, 0);
		until = NEVER, step = 0;
	}
	if (baton_alone(m, until, step)) {
		machine_unlock(m);
		return p->pending;
	}
	p->state = PROCESS_WAITS;
	p->step = step;
	p->stamp++;
	if (until != NEVER)
		baton_plan(m, m->self, until);
	m->shared->running--;
	bool ours = m->shared->present == m->shared->nodes && !m->shared->running && baton_pass(m);
	baton_unlock(m);
	if (!ours)
		baton_sleep(m);
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
	return !m->shared->underway || (m->net->stands && m->net->stands(m));
}

bool baton_look(struct machine *m, uint64_t part, uint64_t least, uint64_t due)
{
	struct process *p = self(m);
	uint64_t now = p->time, poll = m->profile.poll;
	if (p->since == NEVER)
		p->since = now;
	uint64_t waited = now - p->since;
	uint64_t ps = later(waited / part < LOOK_PS ? waited / part : LOOK_PS, least);
	uint64_t owed = later(due > now ? due - now : 0, waited / PATIENCE);
	if (waited > STUCK_PS && all_look_in_vain(m, now))
		baton_stuck(m);
	uint64_t looks = ((owed < ps ? owed : ps) + poll - 1) / poll;
	return baton_wait(m, now + later(looks, 1) * poll, poll);
}

/* -- Crashes ---------------------------------------------------------------------------------- */

/* With the last node that goes, what the machine was used for is complete. */
static void node_gone(struct machine *m, uint32_t node, uint64_t time)
{
	m->node[node].left = true;
	if (time > m->shared->ended)
		m->shared->ended = time;
	if (m->controller->gone)
		m->controller->gone(m);
	if (++m->shared->gone == m->shared->nodes)
		use_end(m);
}

/* Another process that waits; NOTHING. */
static uint32_t baton_other(const struct machine *m)
{
	for (uint32_t i = 0; i < m->shared->nodes; i++)
		if (i != m->self && m->process[i].state == PROCESS_WAITS)
			return i;
	return NOTHING;
}

static void baton_crash(struct machine *m, uint32_t node)
{
	struct process *p = &m->process[m->node[node].process];
	if (m->node[node].left || p->state != PROCESS_WAITS)
		return;
	node_gone(m, node, m->shared->clock);
	p->state = PROCESS_LEFT;
	m->shared->crashing = node + 1;
	for (uint32_t i = 0; i < m->shared->nodes; i++)
		baton_wake(m, i); /* the news has come to everybody */
	if (p != self(m)) {
		kill(p->pid, SIGKILL);
		crash_settle(m);
		return;
	}
	uint32_t other = baton_other(m);
	machine_unlock(m);
	if (other != NOTHING) {
		atomic_store(&m->process[other].go, GO_DRIVE);
		futex_wake(&m->process[other].go);
	}
	kill(p->pid, SIGKILL);
	pause();
}

/* -- Measured computation --------------------------------------------------------------------- */

/* What takes less between two calls is the library's own, and not the program's. */
enum { MEASURED_LEAST = 1000 }; /* ns */

static uint64_t cpu_ns(clockid_t whose)
{
	struct timespec t;
	clock_gettime(whose, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void baton_measure_begin(struct machine *m)
{
	if (m->profile.cpu)
		m->measured = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

void baton_measure_end(struct machine *m)
{
	if (!m->profile.cpu || !m->measured)
		return;
	uint64_t ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - m->measured;
	m->measured = 0;
	if (ns < MEASURED_LEAST)
		return;
	baton_charge(m, ns * PS_NS / 100 * m->profile.cpu);
	use_serve(use_node(m, m->self, USE_WORK), 0, ns * PS_NS / 100 * m->profile.cpu);
}

/* -- Coming and going ------------------------------------------------------------------------- */

void baton_begin(struct machine *m)
{
	m->began = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void baton_join(struct machine *m, uint32_t node)
{
	m->resume = baton_give;
	m->arrived = baton_arrived;
	m->room = baton_room;
	m->blocked = baton_stuck;
	m->crash = baton_crash;
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

void baton_leave(struct machine *m, uint32_t node)
{
	machine_lock(m);
	for (uint32_t i; (i = queue_take(m, &m->node[node].inbox)) != NOTHING; self(m)->pending--)
		travel_free(m, i);
	if (self(m)->nodes == 1 && m->began)
		m->shared->cpu += cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - m->began;
	node_gone(m, node, self(m)->time);
	if (--self(m)->nodes == 0) {
		self(m)->state = PROCESS_LEFT;
		m->shared->running--;
		bool waits = false;
		for (uint32_t i = 0; i < m->shared->nodes; i++)
			waits |= m->process[i].state == PROCESS_WAITS;
		if (waits && !m->shared->running)
			baton_pass(m);
	}
	baton_unlock(m);
	if (!self(m)->nodes)
		core_free(m);
}

/* -- Threads of this process ------------------------------------------------------------------ */

struct thread *baton_thread_of(struct machine *m, uint64_t number)
{
	return &m->thread[number % THREADS];
}

void baton_thread(struct machine *m, uint64_t number)
{
	if (number == m->running)
		return;
	m->running = number;
	baton_charge(m, m->profile.thread_switch);
	if (m->profile.thread_switch)
		use_serve(use_node(m, m->self, USE_WORK), 0, m->profile.thread_switch);
}

void baton_idle(struct machine *m, uint64_t number, bool others)
{
	struct thread *h = baton_thread_of(m, number);
	uint64_t now = baton_time(m);
	bool again = h->idled == now + 1;
	h->idled = now + 1;
	if (others && !again)
		return;
	if (self(m)->since == NEVER)
		self(m)->since = now; /* it waits in vain if nothing comes */
	self(m)->suspended = true;
	baton_wait(m, NEVER, 1);
	self(m)->suspended = false;
}

/* -- Packets of this process ------------------------------------------------------------------ */

uint32_t baton_take(struct machine *m, uint32_t node)
{
	machine_lock(m);
	uint32_t i = queue_take(m, &m->node[node].inbox);
	self(m)->pending -= i != NOTHING;
	if (i != NOTHING)
		machine_taken(m, i, self(m)->time);
	machine_unlock(m);
	return i;
}

/* What the first message in a packet is, from its record. */
static void travel_read(struct travel *t, const struct outgoing *o)
{
	const unsigned char *at = o->record;
	uint16_t head, field[4];
	t->library = o->class == CLASS_CONTROL;
	if (!at || t->library)
		return;
	memcpy(&head, at, sizeof head);
	at += head & RECORD_IS_NEWS ? sizeof head + sizeof(uint64_t) : 0;
	memcpy(&head, at, sizeof head);
	at += sizeof head;
	unsigned id = head % (1 << RECORD_WORDS_SHIFT), n = head >> RECORD_WORDS_SHIFT & 7;
	if (n == RECORD_WORDS_MORE) {
		memcpy(field, at, sizeof *field);
		at += sizeof *field;
		n = field[0];
	}
	t->library = id >= TERN_HANDLER_MAX;
	t->args = n;
	t->registers = t->library ? 0 : n;
	enum role role = t->library ? role_of(id - TERN_HANDLER_MAX) : ROLE_NONE;
	t->type = controller_type(role);
	if (role == ROLE_THREAD || role == ROLE_THREAD_ENDS)
		t->registers = n - 1;
	niu_read(t, role, at);
	if (!(head & RECORD_HAS_PAYLOAD))
		return;
	memcpy(field, at + n * sizeof(uint64_t), sizeof field);
	t->data = field[2];
}

static void travel_fill(struct machine *m, uint32_t src, uint32_t i, const struct outgoing *o)
{
	struct travel *t = &m->travel[i];
	outgoing_copy(travel_data(m, i), o);
	t->src = src;
	t->dst = o->rank;
	t->class = o->class;
	t->context = o->context;
	travel_read(t, o);
	t->words = controller_words(m, t);
	t->size = t->words * 4 + (uint32_t)m->profile.header;
}

uint32_t baton_send(struct machine *m, uint32_t src, const struct outgoing *o)
{
	size_t bytes = outgoing_bytes(o);
	machine_lock(m);
	uint32_t i = travel_new(m, (uint32_t)bytes);
	if (i != NOTHING) {
		struct travel *t = &m->travel[i];
		struct node *n = &m->node[src];
		travel_fill(m, src, i, o);
		m->controller->send(m, t);
		if (t->sent < n->latest)
			t->sent = n->latest; /* packets of a node stay in order */
		n->latest = t->sent;
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
