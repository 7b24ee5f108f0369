/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread's other endpoints, while it waits in one of them: they are served, and the wait sleeps
 * on all of them at once.
 */
#include "core/wait.h"

/* Whether its own progress thread serves it. */
static bool sibling_apart(const struct endpoint *sibling)
{
	return sibling->owner.progress && !sibling->owner.serves && !attach_is_lent(sibling);
}

/*
 * Before touching it: a signal's handler might do so at the same time, or another thread that
 * shares it. False if that thread does; it is not waited for, since it might be waiting for us.
 */
static bool sibling_enter(struct endpoint *sibling)
{
	if (sibling->owner.shared && !share_try(sibling))
		return false;
	/* Closed meanwhile; its lock orders the two. */
	if (sibling->owner.shared && atomic_load_explicit(&sibling->closed, memory_order_relaxed)) {
		share_unlock(sibling);
		return false;
	}
	if (sibling->owner.shared)
		return true;
	if (!sibling->owner.entered && (sibling->owner.interrupt || sibling->owner.serves) &&
	    !attach_is_lent(sibling))
		sibling->owner.entered = scope_enter(sibling);
	return true;
}

static void sibling_leave(struct endpoint *sibling)
{
	if (sibling->owner.shared)
		share_unlock(sibling);
	if (!sibling->owner.entered)
		return;
	sibling->owner.entered = false;
	scope_leave(sibling);
}

static unsigned serve_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	wait_wanted(sibling);
	scope_resume(sibling);
	if (sibling_apart(sibling) || !sibling_enter(sibling))
		return 0;
	unsigned handled =
		held(sibling) || in_handler(sibling) ? 0 : poll_once(sibling, KINDS_BOTH);
	sibling_leave(sibling);
	return handled;
}

/*
 * The thread that has it rests in a wait and runs what is deferred itself: such a function may
 * wait for something that the worker's thread does next.
 */
static unsigned serve_main(struct endpoint *main)
{
	if (held(main) || in_handler(main))
		return 0;
	bool before = main->barrier.quiescing;
	main->barrier.quiescing = true;
	unsigned handled = poll_once(main, KINDS_BOTH);
	main->barrier.quiescing = before;
	return handled;
}

/* Nonzero if it cannot be slept on; also if another thread may take it any moment. */
static unsigned arm_sibling(struct endpoint *sibling, void *arg)
{
	/* Light threads its progress thread does not run, and cannot wake us for. */
	if (sibling_apart(sibling))
		return sibling->threaded;
	if (attach_is_lent(sibling) || sibling->owner.shared)
		return 1;
	sibling_enter(sibling);
	return !wait_arm(sibling, arg);
}

static unsigned disarm_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	if (sibling_apart(sibling) || sibling->owner.shared ||
	    ((sibling->owner.interrupt || sibling->owner.serves) && !sibling->owner.entered))
		return 0; /* it was not armed for this sleep, but maybe for calls */
	endpoint_disarm(sibling);
	sibling_leave(sibling);
	return 0;
}

unsigned siblings_serve(struct endpoint *e)
{
	return attach_each(e, serve_sibling, NULL) + attach_main(e, serve_main);
}

bool siblings_arm(struct endpoint *e, struct sleep *s)
{
	return attach_each(e, arm_sibling, s) == 0;
}

void siblings_disarm(struct endpoint *e)
{
	attach_each(e, disarm_sibling, NULL);
}
