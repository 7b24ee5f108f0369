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

/* A call of the program's, from its rules on. */
static int call_wait(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		     struct wait *w, uint64_t ns)
{
	int rc = rules_wait(e, w->rule);
	return rc ? rc : wait_until_limit(e, over, arg, w, ns);
}

static int flag_wait(tern *t, _Atomic uint64_t *value, uint64_t n, struct wait *w, uint64_t ns)
{
	INSIDE struct scope scope = scope_of(&t, w->call);
	struct flag f = { value, n };
	w->what = WAIT_FLAG;
	w->stop = wait_blame;
	int rc = call_wait(t->own, flag_reached, &f, w, ns);
	/* Not locked: handlers that signal run on this thread. */
	if (!rc)
		atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) - n,
				      memory_order_relaxed);
	return rc;
}

int tern_wait(tern *t, _Atomic uint64_t *value, uint64_t n)
{
	return flag_wait(t, value, n, &WAIT_IN("tern_wait"), WAIT_FOREVER);
}

int tern_wait_for(tern *t, _Atomic uint64_t *value, uint64_t n, uint64_t ns)
{
	return flag_wait(t, value, n, &WAIT_IN("tern_wait_for"), ns);
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
static int condition_wait(tern *t, struct condition c, struct wait *w, uint64_t ns)
{
	INSIDE struct scope scope = scope_of(&t, w->call);
	w->bounded = true;
	w->stop = wait_blame;
	return call_wait(t->own, condition_holds, &c, w, ns);
}

int tern_wait_until(tern *t, tern_condition *holds, void *arg)
{
	return condition_wait(t, (struct condition){ holds, arg }, &WAIT_IN("tern_wait_until"),
			      WAIT_FOREVER);
}

int tern_wait_until_for(tern *t, tern_condition *holds, void *arg, uint64_t ns)
{
	return condition_wait(t, (struct condition){ holds, arg }, &WAIT_IN("tern_wait_until_for"),
			      ns);
}
