/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computation that a program declares, at the prices of the profile. It goes on until it is done,
 * its thread has had its quantum, or a packet has come to a node whose controller handles it
 * meanwhile; core/work.c then does what is due, and calls again.
 */
#include <errno.h>

#include <tern/sim.h>

#include "base/error.h"
#include "net/sim/machine/controller.h"
#include "net/sim/sim.h"

static const uint64_t work_most = UINT64_C(1000000000000000000); /* ps */

/* Adds n at a price each. False: that is too much. */
static bool add(uint64_t *sum, uint64_t n, uint64_t price)
{
	uint64_t cost;
	return !__builtin_mul_overflow(n, price, &cost) &&
	       !__builtin_add_overflow(*sum, cost, sum) && *sum <= work_most;
}

int sim_price(const struct tern_work *work, uint64_t *left)
{
	struct machine *m = sim_machine();
	*left = 0;
	if (!m)
		return 0;
	const struct profile *p = &m->profile;
	if (!add(left, work->integer, p->integer) || !add(left, work->floating, p->floating) ||
	    !add(left, work->loads, p->load) || !add(left, work->stores, p->store))
		return error_set(-EINVAL, "tern_sim_work() was told of more than ten days of work");
	m->working++;
	return 0;
}

/* Computes for up to `ps`, or until something arrives if `served`. */
static void compute(struct machine *m, uint64_t *left, uint64_t ps, bool served)
{
	uint64_t began = baton_time(m);
	m->process[m->self].since = NEVER; /* whoever computes does not look in vain */
	if (served)
		baton_wait(m, began + ps, 1);
	else
		baton_charge(m, ps);
	uint64_t took = baton_time(m) - began;
	if (took)
		use_serve(use_node(m, m->self, USE_WORK), 0, took);
	*left -= took;
}

/* A handler that the controller runs computes there. */
static enum working work_there(struct machine *m, uint64_t *left)
{
	struct node *n = &m->node[m->self];
	use_serve(use_node(m, m->self, USE_CONTROLLER), 0, *left);
	m->served += *left;
	n->busy = n->busy > m->served ? n->busy : m->served;
	*left = 0;
	m->working--;
	return WORK_DONE;
}

static enum working work(struct machine *m, uint64_t *left, uint64_t thread, bool may, bool others)
{
	if (m->serving && m->controller->programs && !may)
		return work_there(m, left);
	m->serving = false;
	if (may && m->controller->suspends && m->controller->suspends(m, thread)) {
		baton_idle(m, thread, others);
		return others && !m->process[m->self].pending ? WORK_SWITCH : WORK_SERVE;
	}
	baton_thread(m, thread);
	uint64_t quantum = others ? m->profile.quantum : 0;
	uint64_t ps = quantum && quantum < *left ? quantum : *left;
	compute(m, left, ps, may && m->controller->handles);
	if (!*left) {
		m->working--;
		return WORK_DONE;
	}
	return m->process[m->self].pending ? WORK_SERVE : others ? WORK_SWITCH : WORK_SERVE;
}

enum working sim_work(uint64_t *left, uint64_t thread, bool may, bool others)
{
	struct machine *m = sim_machine();
	if (!m)
		return WORK_DONE;
	baton_measure_end(m); /* what others do in our time is not our program's */
	enum working next = work(m, left, thread, may, others);
	baton_measure_begin(m);
	return next;
}
