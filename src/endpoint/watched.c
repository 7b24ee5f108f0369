/* SPDX-License-Identifier: BSD-3-Clause */
/* What thread sanitizer is told of a library that it does not see. */
#include "endpoint/watched.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "endpoint/handler.h"

#ifdef TERN_WATCHED_
/* It sees everything itself. */
bool watched(void)
{
	return false;
}
static void order_from(void *at)
{
	(void)at;
}
static void order_to(void *at)
{
	(void)at;
}
static void ignore(bool begin)
{
	(void)begin;
}
#else
/* Of the sanitizer's runtime library; NULL without it. Those of gcc and clang have the same. */
extern void __tsan_acquire(void *at) __attribute__((weak));
extern void __tsan_release(void *at) __attribute__((weak));
extern void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

bool watched(void)
{
	return __tsan_acquire && __tsan_release && AnnotateIgnoreReadsBegin &&
	       AnnotateIgnoreReadsEnd && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd;
}

static void order_from(void *at)
{
	__tsan_acquire(at);
}

static void order_to(void *at)
{
	__tsan_release(at);
}

/* It sees memcpy() and its like in every library, and not what orders them there. */
static void ignore(bool begin)
{
	if (begin) {
		AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
		AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	} else {
		AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
		AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	}
}
#endif

static char order;
static _Thread_local uint32_t inside; /* scopes, since the last handler began */

void watched_enter(void)
{
	if (inside++)
		return;
	order_to(&order);
	ignore(true);
}

void watched_leave(void)
{
	if (--inside)
		return;
	ignore(false);
	order_from(&order);
}

/* -- Handlers --------------------------------------------------------------------------------- */

/* What the head's `current` is in a handler that has not replied: replies come to the library. */
static const tern_msg unanswered;

/*
 * Replies open no scope, so the library cannot tell when it goes back to the handler: what that
 * does behind its reply is not looked at.
 */
bool watched_first(struct endpoint *e, const tern_msg *m)
{
	if (e->t->current != &unanswered)
		return false;
	e->t->current = m;
	watched_enter();
	order_from(&order);
	return true;
}

static void watched_run(tern *t, const tern_msg *m, tern_handler *fn)
{
	uint32_t before = inside;
	t->current = &unanswered;
	inside = 0;
	if (before)
		ignore(false);
	fn(t, m);
	bool replied = inside;
	inside = before;
	if (replied != (before > 0))
		ignore(before > 0);
}

static void watched_deliver(tern *t, const tern_msg *m)
{
	unsigned id = handler_of(m);
	tern_handler *fn = t->own->behind[id];
	order_from(&order);
	if (id < TERN_HANDLER_MAX)
		watched_run(t, m, fn);
	else
		fn(t, m); /* the library's own */
	order_to(&order);
}

int watched_open(struct endpoint *e)
{
	if (!watched())
		return 0;
	e->behind = malloc(TERN_HANDLER_SLOTS * sizeof *e->behind);
	if (!e->behind)
		return error_set(-ENOMEM, "opening rank %u: no memory", e->t->rank);
	for (unsigned id = 0; id < TERN_HANDLER_SLOTS; id++)
		e->t->handler[id] = watched_handler(e, id, e->t->handler[id]);
	return 0;
}

tern_handler *watched_handler(struct endpoint *e, unsigned id, tern_handler *fn)
{
	if (!e->behind)
		return fn;
	e->behind[id] = fn;
	return watched_deliver;
}

tern_handler *watched_behind(const struct endpoint *e, unsigned id)
{
	return e->behind ? e->behind[id] : e->t->handler[id];
}
