/* SPDX-License-Identifier: BSD-3-Clause */
/* What thread sanitizer is told of a library that it does not see. */
#include "endpoint/watched.h"

#include "endpoint/handler.h"

/* A library that was compiled with it: the sanitizer sees everything itself. */
#ifdef TERN_WATCHED_
enum { COMPILED_WITH_IT = 1 };
#else
enum { COMPILED_WITH_IT = 0 };
#endif

/* Of the sanitizer's runtime library; NULL without it. Those of gcc and clang have the same. */
extern void __tsan_acquire(void *at) __attribute__((weak));
extern void __tsan_release(void *at) __attribute__((weak));
extern void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

bool watched(void)
{
	return !COMPILED_WITH_IT && __tsan_acquire && __tsan_release && AnnotateIgnoreReadsBegin &&
	       AnnotateIgnoreReadsEnd && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd;
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

static char order;
static _Thread_local uint32_t inside; /* scopes, since the last handler began */

void watched_enter(void)
{
	if (inside++)
		return;
	__tsan_release(&order);
	ignore(true);
}

void watched_leave(void)
{
	if (--inside)
		return;
	ignore(false);
	__tsan_acquire(&order);
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
	__tsan_acquire(&order);
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

void watched_deliver(tern *t, const tern_msg *m, tern_handler *fn)
{
	__tsan_acquire(&order);
	if (handler_of(m) < TERN_HANDLER_MAX)
		watched_run(t, m, fn);
	else
		fn(t, m); /* the library's own */
	__tsan_release(&order);
}
