/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime layer: start and end, events, puts with local completion, atomics, teams. */
#include "runtime.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_AT_ONCE = 64 };

struct rt rt;
rt_event *rt_now_, *rt_group_;
static rt_event program[RT_KINDS], *program_group[RT_KINDS];

/* -- Start, end, progress ---------------------------------------------------------------- */

void rt_fail(int rc)
{
	tern_abort(rt.t, tern_strerror(rc));
	abort();
}

void *rt_memory(size_t bytes)
{
	void *p = malloc(bytes);
	if (!p)
		tern_abort(rt.t, "there is no memory for the runtime");
	return p;
}

static void on_end(tern *t, int signal, void *arg)
{
	(void)t, (void)arg;
	if (rt.last)
		rt.last(signal);
}

void rt_open(void)
{
	rt_must(tern_open(&rt.t, NULL));
	rt_must(tern_end_on(rt.t, on_end, NULL));
	rt.rank = tern_rank(rt.t);
	rt.size = tern_size(rt.t);
	rt.machines = tern_machines(rt.t);
	rt_must(tern_on_range(rt.t, RT_NUMBERS * RT_HANDLERS, &rt.first));
	for (int i = 0; i < RT_KINDS; i++)
		program_group[i] = &program[i];
	rt.group = program_group;
}

void rt_attach(size_t bytes)
{
	void *mine;
	rt_must(tern_alloc_all(rt.t, bytes, &mine));
	rt_must(tern_team_all(rt.t, &rt.world));
	rt.base = rt_memory(rt.size * sizeof *rt.base);
	rt.origin = rt_memory(rt.size * sizeof *rt.origin);
	rt_must(tern_team_allgather(rt.world, &mine, rt.base, sizeof mine));
	for (uint32_t r = 0; r < rt.size; r++)
		rt.origin[r] = tern_addr_at(rt.t, r, mine) - (uintptr_t)rt.base[r];
	rt_must(tern_barrier(rt.t));
}

void rt_close(void)
{
	rt_sync(RT_ALL);
	rt_must(tern_barrier(rt.t));
	rt_must(tern_team_free(rt.world));
	rt_must(tern_close(rt.t));
	free(rt.base);
	free(rt.origin);
}

void rt_exit(int status)
{
	rt_must(tern_exit(rt.t, status));
}

/* -- Events ------------------------------------------------------------------------------ */

rt_event *rt_event_more(void)
{
	rt_event *e = rt_memory(EVENTS_AT_ONCE * sizeof *e);
	memset(e, 0, EVENTS_AT_ONCE * sizeof *e);
	for (int i = 0; i < EVENTS_AT_ONCE; i++)
		rt_event_settle(&e[i]);
	return rt.spare;
}

static int event_over(const rt_event *e)
{
	return !e || !__atomic_load_n(&e->op.pending, __ATOMIC_ACQUIRE);
}

void rt_wait(rt_event *e)
{
	if (!e)
		return;
	rt_must(tern_op_wait(rt.t, &e->op));
	rt_event_settle(e);
}

void rt_wait_all(rt_event **events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		rt_wait(events[i]);
		events[i] = NULL;
	}
}

int rt_test(rt_event **events, size_t n)
{
	rt_poll();
	for (size_t i = 0; i < n; i++)
		if (!event_over(events[i]))
			return 0;
	rt_wait_all(events, n);
	return 1;
}

struct some {
	rt_event **events;
	size_t n;
};

static int some_over(tern *t, void *arg)
{
	const struct some *s = arg;
	size_t pending = 0;
	(void)t;
	for (size_t i = 0; i < s->n; pending += s->events[i++] != NULL)
		if (s->events[i] && event_over(s->events[i]))
			return 1;
	return !pending;
}

size_t rt_wait_some(rt_event **events, size_t n)
{
	size_t null = 0;
	rt_must(tern_wait_until(rt.t, some_over, &(struct some){ events, n }));
	for (size_t i = 0; i < n; null += !events[i++])
		if (event_over(events[i]))
			rt_wait_all(&events[i], 1);
	return null;
}

/* -- The implicit group ------------------------------------------------------------------ */

void rt_sync(unsigned kinds)
{
	for (int i = 0; i < RT_KINDS; i++)
		if (kinds >> i & 1)
			rt_must(tern_op_wait(rt.t, &rt.group[i]->op));
}

int rt_try_sync(unsigned kinds)
{
	rt_poll();
	for (int i = 0; i < RT_KINDS; i++)
		if (kinds >> i & 1 && !event_over(rt.group[i]))
			return 0;
	rt_sync(kinds);
	return 1;
}

void rt_region_begin(void)
{
	static rt_event *group[RT_KINDS];
	rt_event *e = rt_event_take();
	for (int i = 0; i < RT_KINDS; i++)
		group[i] = e;
	rt.group = group;
}

rt_event *rt_region_end(void)
{
	rt_event *e = rt.group[0];
	rt.group = program_group;
	return rt_event_settle(e);
}

/* -- Local completion -------------------------------------------------------------------- */

/* The handle for the source of a put: `own`, that of the group, or that of an event. */
tern_op *rt_local_begin(rt_event **local, tern_op *own)
{
	if (local == RT_NOW)
		return own;
	if (local == RT_GROUP)
		return &rt_begin(RT_IMPLICIT, RT_SOURCES)->op;
	*local = rt_event_take();
	return &(*local)->op;
}

void rt_local_begun(rt_event **local, tern_op *own)
{
	if (local == RT_NOW)
		rt_must(tern_op_wait(rt.t, own));
	else if (local != RT_GROUP)
		*local = rt_event_settle(*local);
}

rt_event *rt_put_local(enum rt_mode mode, uint32_t rank, void *dst, const void *src, size_t len,
		       rt_event **local)
{
	tern_op own = TERN_OP, *told = rt_local_begin(local, &own);
	rt_event *e = rt_begin(mode, RT_PUTS);
	rt_must(tern_put_local_start(rt.t, rt_addr(rank, dst), src, len, told, rt_op(e)));
	rt_local_begun(local, &own);
	return rt_begun(mode, e, 0);
}

/* -- Atomics ----------------------------------------------------------------------------- */

static int atomic_start(enum rt_type type, enum tern_amo what, tern_addr at, rt_value a,
			rt_value *old, tern_op *op)
{
	switch (type) {
	case RT_32:
		return tern_amo_start(rt.t, at, what, a.u32, old ? &old->u32 : NULL, op);
	case RT_64:
		return tern_amo_start(rt.t, at, what, a.u64, old ? &old->u64 : NULL, op);
	case RT_INT32:
		return tern_amo_start(rt.t, at, what, a.i32, old ? &old->i32 : NULL, op);
	case RT_INT64:
		return tern_amo_start(rt.t, at, what, a.i64, old ? &old->i64 : NULL, op);
	case RT_FLOAT:
		return tern_amo_start(rt.t, at, what, a.f, old ? &old->f : NULL, op);
	default:
		return tern_amo_start(rt.t, at, what, a.d, old ? &old->d : NULL, op);
	}
}

rt_event *rt_atomic(enum rt_mode mode, enum rt_type type, enum tern_amo what, uint32_t rank,
		    void *at, rt_value operand, rt_value *old)
{
	rt_event *e = rt_begin(mode, RT_ATOMICS);
	tern_addr there = rt_addr(rank, at);
	return rt_begun(mode, e, atomic_start(type, what, there, operand, old, rt_op(e)));
}

rt_event *rt_compare_swap(enum rt_mode mode, enum rt_type type, uint32_t rank, void *at, rt_value a,
			  rt_value b, rt_value *old)
{
	rt_event *e = rt_begin(mode, RT_ATOMICS);
	tern_addr to = rt_addr(rank, at);
	bool wide = type == RT_64 || type == RT_INT64 || type == RT_DOUBLE;
	int rc = wide ? tern_cas_start(rt.t, to, a.u64, b.u64, old ? &old->u64 : NULL, rt_op(e))
		      : tern_cas_start(rt.t, to, a.u32, b.u32, old ? &old->u32 : NULL, rt_op(e));
	return rt_begun(mode, e, rc);
}

/* -- Teams ------------------------------------------------------------------------------- */

rt_event *rt_barrier(enum rt_mode mode, tern_team *team)
{
	rt_event *e = rt_begin(mode, RT_TEAMS);
	return rt_begun(mode, e, tern_team_barrier_start(team, rt_op(e)));
}

rt_event *rt_broadcast(enum rt_mode mode, tern_team *team, uint32_t root, void *dst,
		       const void *src, size_t len)
{
	rt_event *e = rt_begin(mode, RT_TEAMS);
	if (tern_team_rank(team) == root && dst != src)
		memmove(dst, src, len);
	return rt_begun(mode, e, tern_team_broadcast_start(team, root, dst, len, rt_op(e)));
}

rt_event *rt_reduce(enum rt_mode mode, tern_team *team, uint32_t root, void *dst, const void *src,
		    size_t n, enum tern_type type, uintptr_t how)
{
	rt_event *e = rt_begin(mode, RT_TEAMS);
	int rc = root == RT_EVERYONE
			 ? tern_team_allreduce_start(team, src, dst, n, type, how, rt_op(e))
			 : tern_team_reduce_start(team, root, src, dst, n, type, how, rt_op(e));
	return rt_begun(mode, e, rc);
}
