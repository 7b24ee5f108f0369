/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs wait for: flags that handlers signal, and conditions of their own. */
#include "core/wait.h"

struct flag {
	const _Atomic uint64_t *value;
	uint64_t n;
};

static bool flag_reached(struct endpoint *e, void *arg)
{
	(void)e;
	struct flag *f = arg;
	return atomic_load_explicit(f->value, memory_order_acquire) >= f->n;
}

static int flag_wait(struct endpoint *e, _Atomic uint64_t *value, uint64_t n, struct wait *w,
		     uint64_t ns)
{
	struct flag f = { value, n };
	int rc = rules_wait(e, w->rule);
	if (!rc)
		rc = wait_until_limit(e, flag_reached, &f, w, ns);
	/* Not locked: handlers that signal run on this thread. */
	if (!rc)
		atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) - n,
				      memory_order_relaxed);
	return rc;
}

#define FLAG_WAIT(name)                                                                \
	{                                                                              \
		.what = WAIT_FLAG, .call = name, .rule = name "()", .stop = wait_blame \
	}

int tern_wait(tern *t, _Atomic uint64_t *value, uint64_t n)
{
	INSIDE struct scope scope = scope_given(t);
	struct wait w = FLAG_WAIT("tern_wait");
	return flag_wait(t->own, value, n, &w, WAIT_FOREVER);
}

int tern_wait_for(tern *t, _Atomic uint64_t *value, uint64_t n, uint64_t ns)
{
	INSIDE struct scope scope = scope_given(t);
	struct wait w = FLAG_WAIT("tern_wait_for");
	return flag_wait(t->own, value, n, &w, ns);
}

/* -- Conditions of the program's --------------------------------------------------------------- */

struct condition {
	tern_condition *holds;
	void *arg;
};

static bool condition_holds(struct endpoint *e, void *arg)
{
	const struct condition *c = arg;
	return c->holds(e->t, c->arg) != 0;
}

/*
 * Bounded: whatever makes the condition true may be memory that another rank or thread wrote, for
 * which no bell rings. So the wait naps, and looks again at least every LONG_NAP_NS.
 */
#define CONDITION_WAIT(name)                                                         \
	{                                                                            \
		.bounded = true, .call = name, .rule = name "()", .stop = wait_blame \
	}

static int condition_wait(struct endpoint *e, struct condition c, struct wait *w, uint64_t ns)
{
	int rc = rules_wait(e, w->rule);
	return rc ? rc : wait_until_limit(e, condition_holds, &c, w, ns);
}

int tern_wait_until(tern *t, tern_condition *holds, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	struct wait w = CONDITION_WAIT("tern_wait_until");
	return condition_wait(t->own, (struct condition){ holds, arg }, &w, WAIT_FOREVER);
}

int tern_wait_until_for(tern *t, tern_condition *holds, void *arg, uint64_t ns)
{
	INSIDE struct scope scope = scope_given(t);
	struct wait w = CONDITION_WAIT("tern_wait_until_for");
	return condition_wait(t->own, (struct condition){ holds, arg }, &w, ns);
}
