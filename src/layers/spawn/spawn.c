/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself, and what a thread can ask about itself. */
#include "spawn/spawn.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/setting.h"
#include "core/delivery.h"
#include "core/scope.h"
#include "core/wait.h"
#include "spawn/context.h"
#include "spawn/preempt.h"

enum { CONTEXTS_MOST = 4096, STACK_LEAST = 16384 };

static int spawn_settle(struct spawn *s)
{
	uint64_t contexts, bytes, slice;
	int rc = setting_number(SETTING_CONTEXTS, &contexts);
	if (!rc)
		rc = setting_number(SETTING_STACK, &bytes);
	if (!rc)
		rc = setting_number(SETTING_SLICE, &slice);
	if (rc)
		return rc;
	if (contexts < 1 || contexts > CONTEXTS_MOST)
		return error_set(-EINVAL, "TERN_CONTEXTS is %llu; a rank has 1 to %d",
				 (unsigned long long)contexts, CONTEXTS_MOST);
	if (bytes < STACK_LEAST || bytes > SIZE_MAX / 2)
		return error_set(-EINVAL, "TERN_STACK is %llu; a stack has at least %d bytes",
				 (unsigned long long)bytes, STACK_LEAST);
	s->limit = (unsigned)contexts;
	s->stack_bytes = (size_t)bytes;
	s->slice_ns = preempt_possible() && slice < UINT32_MAX ? slice * UINT64_C(1000000) : 0;
	return 0;
}

static int spawn_open(struct endpoint *e, void *state)
{
	struct spawn *s = state;
	s->e = e;
	e->site.context = context_number;
	layer_on(e, SPAWN_CREATE, on_thread_create);
	layer_on(e, SPAWN_DONE, on_thread_done);
	role_set(SPAWN_CREATE, ROLE_THREAD);
	role_set(SPAWN_DONE, ROLE_THREAD_ENDS);
	return spawn_settle(s);
}

static void spawn_close(void *state)
{
	struct spawn *s = state;
	preempt_end(s);
	context_free(s);
	create_close(s);
	inbox_close(s);
}

static unsigned spawn_progress(void *state)
{
	struct spawn *s = state;
	unsigned sent = create_flush(s);
	layer_work(s->e, LAYER_SPAWN, create_waits(s));
	return sent;
}

static void spawn_lost(void *state, uint32_t rank)
{
	struct spawn *s = state;
	if (s->party)
		create_end_lost(s, rank);
}

static bool spawn_idle(struct endpoint *e, void *arg)
{
	(void)e;
	struct spawn *s = arg;
	return !s->busy && !s->inbox_count && !s->listed;
}

static int spawn_stop(struct endpoint *e, struct wait *w)
{
	const struct spawn *s = w->arg;
	return wait_stalled(e, w, s->started - e->threads); /* threads that have ended */
}

/*
 * Lets the threads that others have created here come to their end, for as long as any of them
 * does; one that waits for what does not come keeps the endpoint open.
 */
static int spawn_closing(void *state)
{
	struct spawn *s = state;
	struct endpoint *e = s->e;
	struct context *self = context_self();
	struct wait w = { .call = "tern_close",
			  .lack = "threads have not ended",
			  .stop = spawn_stop };
	if (self && self->home == s && self->number)
		return error_set(
			-EPERM,
			"tern_close() was called by a thread of rank %u, which runs in its "
			"endpoint",
			e->t->rank);
	s->leaving = wait_until(e, spawn_idle, s, &w) == 0;
	if (s->leaving)
		return 0;
	return error_set(
		-EBUSY,
		"tern_close(): rank %u has %u threads that have not ended and %u that have not "
		"started: join them first",
		e->t->rank, s->e->threads, s->inbox_count);
}

/*
 * Threads that run are counted where they run (e->threads), and what is sent to create one or to
 * tell of its end is a message like others.
 */
static bool spawn_busy(const void *state)
{
	const struct spawn *s = state;
	return s->inbox_count || s->queued;
}

static void spawn_report(const void *state, int fd)
{
	const struct spawn *s = state;
	if (!s->party || (!s->e->threads && !s->inbox_count && !s->tickets.used))
		return;
	dprintf(fd,
		"tern:   threads here: %u of %u contexts, %u waiting to start; created: %u not "
		"ended, %u of them queued here\n",
		s->e->threads, s->limit, s->inbox_count, s->tickets.used, s->queued);
}

LAYER_FITS(struct spawn, SPAWN_DONE, SPAWN_HANDLERS_END);
const struct layer spawn_layer = { .bytes = sizeof(struct spawn),
				   .open = spawn_open,
				   .close = spawn_close,
				   .progress = spawn_progress,
				   .lost = spawn_lost,
				   .busy = spawn_busy,
				   .closing = spawn_closing,
				   .report = spawn_report };

/* With the first function: memory, and slices if they are wanted. */
static int spawn_begin(struct spawn *s)
{
	if (s->e->owner.shared)
		return error_set(
			-ENOTSUP,
			"rank %u is shared by kernel threads, and its threads need one to run on",
			s->e->t->rank);
	create_close(s);
	if (create_open(s) || inbox_open(s))
		return error_set(-ENOMEM, "rank %u has no memory for threads", s->e->t->rank);
	s->e->threaded = true;
	if (s->slice_ns)
		delivery_slice(s->e);
	return 0;
}

int tern_thread_on(tern *t, unsigned id, tern_thread_fn *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_rank(t->own, "tern_thread_on()");
	if (!rc)
		rc = rules_function(t->own, "thread function", id, TERN_THREAD_IDS_MAX, fn);
	if (rc)
		return rc;
	struct spawn *s = spawn_of(t);
	if (in_handler(t->own))
		return rules_program(t->own, "tern_thread_on()");
	rc = s->inbox ? 0 : spawn_begin(s);
	if (!rc)
		s->function[id] = (struct thread_function){ fn, arg };
	return rc;
}

int tern_thread_yield(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_wait(t->own, "tern_thread_yield()");
	if (!rc)
		context_yield(t->own);
	return rc;
}

tern_thread_info tern_thread_self(const tern *t)
{
	const struct context *c = context_self();
	const tern *own = given(t);
	unsigned threads = own->own->threads;
	if (!c || !c->number)
		return (tern_thread_info){ .creator = own->rank, .threads = threads };
	const struct creation *made = &c->creation;
	return (tern_thread_info){ c->number, made->from, threads, made->data, made->len };
}
