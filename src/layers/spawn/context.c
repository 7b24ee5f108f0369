/* SPDX-License-Identifier: BSD-3-Clause */
/* The rota of contexts: which light thread runs next on this kernel thread. */
#include "spawn/context.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/scope.h"
#include "endpoint/trace.h"
#include "spawn/preempt.h"

/* The contexts of this kernel thread. */
static _Thread_local struct rota {
	struct context program;
	struct context *current;
	struct context *before; /* who ran before the current one, until that has noticed */
	unsigned live;          /* contexts in the rota */
	unsigned quiet;         /* turns in a row that found nothing to do */
	uint32_t looks;         /* how far their backoff is, of all of them together */
	uint64_t since;
	volatile bool between; /* two contexts: a signal that comes now must not switch */
	struct spawn *homes;   /* endpoints with threads that run, or want to */
} rota __attribute__((tls_model("initial-exec")));

struct context *context_self(void)
{
	return rota.current;
}

uint64_t context_number(void)
{
	return rota.current ? rota.current->number : 0;
}

bool context_is_between(void)
{
	return rota.between;
}

/* -- Switching -------------------------------------------------------------------------- */

/* Outside all scopes. The one that arrives says when it has its own again. */
static void context_switch(struct context *to)
{
	struct context *self = rota.current;
	rota.between = true;
	rota.before = self;
	rota.current = to;
	fiber_leave(&self->fiber, &to->fiber);
	machine_switch(&self->machine, &to->machine);
	fiber_arrive(&self->fiber, &rota.before->fiber);
}

/* -- The rota ----------------------------------------------------------------------------- */

static void rota_insert(struct context *c)
{
	struct context *after = rota.current;
	c->prev = after;
	c->next = after->next;
	c->next->prev = c;
	after->next = c;
	rota.live++;
}

static void rota_remove(struct context *c)
{
	c->prev->next = c->next;
	c->next->prev = c->prev;
	rota.live--;
}

/* Something has been done, so there may be more to do for somebody. */
static void rota_stir(void)
{
	rota.quiet = 0;
	rota.looks = 0;
	rota.since = 0;
}

/* -- What a context does --------------------------------------------------------------------- */

static void thread_release(const struct context *c)
{
	struct endpoint *e = c->home->e;
	if (!held(e))
		return;
	error_warn("rank %u: a thread of function %u has ended under a hold, which is released",
		   e->t->rank, c->creation.label.id);
	while (held(e))
		tern_release(e->t);
}

/*
 * Called inside, and the function is not: like the program, it computes, calls, and computes again.
 */
static void thread_run(struct context *c, struct scope *scope)
{
	struct spawn *s = c->home;
	c->number = ++s->started;
	s->e->threads++;
	if (TERN_UNLIKELY(s->e->trace))
		trace_call(s->e, RECORD_THREAD, NULL);
	scope_close(scope);
	const struct thread_function *f = &s->function[c->creation.label.id];
	uint64_t result = f->fn(s->e->t, c->creation.word, f->arg);
	*scope = scope_open(s->e->t);
	thread_release(c);
	inbox_answer(s, &c->creation, 0, result);
	s->e->threads--;
	if (TERN_UNLIKELY(s->e->trace))
		trace_call(s->e, RECORD_ENDED, NULL);
	c->number = 0;
}

/*
 * Outside all scopes, and with signals kept off: from the first line to the last but one it is half
 * parked.
 */
static void context_park(struct context *c)
{
	struct spawn *s = c->home;
	uint32_t scopes;
	scope_pass(s->e, &scopes);
	rota.between = true;
	struct context *next = c->next;
	rota_remove(c);
	c->spare = s->parked;
	s->parked = c;
	s->busy--;
	context_switch(next);
	scope_return(s->e, scopes);
	rota.between = false;
}

/* After each thread the others have a turn: many short ones shall not keep them waiting. */
static void context_main(void *arg)
{
	struct context *c = arg;
	struct spawn *s = c->home;
	fiber_arrive(&c->fiber, &rota.before->fiber);
	struct scope scope = scope_open(s->e->t);
	rota.between = false;
	for (;;) {
		s->hungry--;
		if (!inbox_take(s, &c->creation)) {
			context_park(c);
			continue;
		}
		thread_run(c, &scope);
		s->hungry++;
		context_pass(s->e, NULL, 1);
	}
}

/* What runs now, for the report of an overflow. */
static const struct stack *context_stack(unsigned *rank, unsigned *id)
{
	const struct context *c = rota.current;
	if (!c || !c->home)
		return NULL;
	*rank = c->home->e->t->rank;
	*id = c->creation.label.id;
	return &c->stack;
}

static struct context *context_make(struct spawn *s)
{
	stack_watch(context_stack);
	struct context *c = memory_new(1, sizeof *c);
	if (!c)
		return NULL;
	if (stack_map(&c->stack, s->stack_bytes)) {
		memory_free(c);
		return NULL;
	}
	c->home = s;
	fiber_make(&c->fiber, stack_bottom(&c->stack), c->stack.size);
	machine_make(&c->machine, stack_bottom(&c->stack), c->stack.size, context_main, c);
	c->older = s->contexts;
	s->contexts = c;
	s->made++;
	return c;
}

void context_free(struct spawn *s)
{
	for (struct context *c = s->contexts, *older; c; c = older) {
		older = c->older;
		memory_free(c->creation.data);
		fiber_free(&c->fiber);
		stack_unmap(&c->stack);
		memory_free(c);
	}
}

/* -- Who runs ---------------------------------------------------------------------------------- */

static const struct scheduler scheduler;

static void rota_begin(void)
{
	if (rota.current)
		return;
	rota.program.next = rota.program.prev = rota.current = &rota.program;
	rota.live = 1;
}

/* Something is in the inbox, or was: the endpoint's threads have their turns from now on. */
static void home_add(struct spawn *s)
{
	if (s->listed || !s->inbox_count)
		return;
	s->listed = true;
	s->next = rota.homes;
	rota.homes = s;
	wait_scheduler = &scheduler;
}

/*
 * Before another endpoint than the one that this is a call of is touched: its progress thread may
 * be doing so.
 */
static bool home_enter(const struct spawn *s)
{
	return s->e->owner.progress && scope_enter(s->e);
}

static void home_list(struct endpoint *e)
{
	struct spawn *s = e->layer[LAYER_SPAWN];
	if (!attach_is_own(e))
		return;
	bool entered = home_enter(s);
	atomic_store_explicit(&e->wanted, NULL, memory_order_relaxed);
	rota_begin();
	preempt_watch(s);
	home_add(s);
	if (entered)
		scope_leave_unserved(e);
}

/* The handler may run on a progress thread, or on one that has only borrowed the endpoint. */
void context_wanted(struct spawn *s)
{
	if (s->listed)
		return;
	atomic_store_explicit(&s->e->wanted, home_list, memory_order_relaxed);
	home_list(s->e);
}

static struct context *context_spare(struct spawn *s)
{
	struct context *c = s->parked;
	if (c)
		s->parked = c->spare;
	else if (s->made < s->limit)
		c = context_make(s);
	return c;
}

/* Without a single context nothing can run, and what waits in the inbox never will. */
static void home_refuse(struct spawn *s)
{
	struct creation c;
	while (inbox_take(s, &c))
		inbox_answer(s, &c, -ENOMEM, 0);
}

/* A context for each thread in the inbox, as far as there are some. */
static void home_admit(struct spawn *s)
{
	while (s->inbox_count > s->hungry) {
		struct context *c = context_spare(s);
		if (!c)
			break;
		s->busy++;
		s->hungry++;
		rota_insert(c);
		rota_stir();
	}
	if (s->inbox_count && !s->busy)
		home_refuse(s);
}

static void homes_admit(void)
{
	for (struct spawn **p = &rota.homes, *s; (s = *p);) {
		bool entered = home_enter(s);
		home_admit(s);
		s->listed = s->busy || s->inbox_count;
		if (s->listed)
			p = &s->next;
		else
			*p = s->next;
		if (entered)
			scope_leave_unserved(s->e);
	}
	if (!rota.homes)
		wait_scheduler = NULL;
}

/* What the caller's step tells about how idle all of them are. */
static void rota_note(struct wait *l, unsigned handled)
{
	if (handled || !l || !l->passed) {
		rota_stir();
		return;
	}
	rota.quiet++;
	if (l->since) {
		rota.since = l->since;
		rota.looks = l->looks;
	}
}

void context_pass(struct endpoint *e, struct wait *l, unsigned handled)
{
	struct context *c = rota.current;
	uint32_t scopes;
	if (!scope_can_pass(e))
		return;
	rota_note(l, handled);
	homes_admit();
	if (l)
		l->passed = true;
	if (c->next == c || !scope_pass(e, &scopes))
		return;
	c->wait = l;
	c->waits_in = e;
	context_switch(c->next);
	c->wait = NULL;
	scope_return(e, scopes);
	rota.between = false;
	if (l) {
		l->since = rota.since;
		l->looks = rota.looks;
	}
}

void context_yield(struct endpoint *e)
{
	unsigned handled = poll_once(e, KINDS_BOTH);
	wait_wanted(e);
	if (wait_scheduler)
		context_pass(e, NULL, handled);
}

static bool scheduler_idle(struct wait *l)
{
	if (rota.homes && rota.live == 1)
		return false; /* there is one to be admitted */
	if (rota.quiet < rota.live)
		return false;
	l->looks += rota.quiet;
	rota.looks = l->looks;
	rota.quiet = 0;
	return true;
}

static bool scheduler_bounded(void)
{
	for (struct context *c = rota.current->next; c != rota.current; c = c->next)
		if (!c->wait || c->wait->bounded || c->wait->until)
			return true;
	return false;
}

static uint64_t scheduler_rest(uint64_t ns)
{
	for (struct context *c = rota.current->next; c != rota.current; c = c->next)
		if (c->wait && c->wait->rest_ns && c->wait->rest_ns < ns)
			ns = c->wait->rest_ns;
	return ns;
}

static bool scheduler_over(void)
{
	for (struct context *c = rota.current->next; c != rota.current; c = c->next)
		if (!c->wait || (c->wait->over && c->wait->over(c->waits_in, c->wait->arg)))
			return true;
	return false;
}

static const struct scheduler scheduler = { .idle = scheduler_idle,
					    .bounded = scheduler_bounded,
					    .rest = scheduler_rest,
					    .over = scheduler_over,
					    .pass = context_pass };
