/* SPDX-License-Identifier: BSD-3-Clause */
/* Procedures: a message names one, and the receiver runs it where it likes. */
#include <errno.h>

#include "base/error.h"
#include "chan/chan.h"

int tern_chan_on(tern *t, unsigned id, tern_proc *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_function(t->own, "procedure", id, TERN_PROCS_MAX, fn);
	if (!rc)
		chans_of(t)->proc[id] = (struct proc){ .fn = fn, .arg = arg };
	return rc;
}

void proc_reserve(struct chans *s, unsigned id)
{
	s->proc[id] = (struct proc){ .reserved = true };
}

/* The number came from another rank: it is looked up, and never followed. */
static const struct proc *proc_named(const struct tern_chan *c, uint64_t id)
{
	if (id < TERN_PROCS_MAX && c->chans->proc[id].fn)
		return &c->chans->proc[id];
	error_set(-ENXIO,
		  "channel %llu from rank %u names procedure %llu, which is not registered here: "
		  "register it with tern_chan_on(), or pass its message with tern_chan_next()",
		  (unsigned long long)c->name, c->from, (unsigned long long)id);
	return NULL;
}

int proc_waits(tern_in *i, struct cursor *k)
{
	*k = in_cursor(i);
	int rc = in_wait(i, k);
	if (!rc)
		return error_set(
			-EPROTO,
			"a procedure was expected in channel %llu from rank %u; data waits there",
			(unsigned long long)i->chan->name, i->chan->from);
	k->item >>= ITEM_BITS;
	return rc == -ENOMSG ? 0 : rc;
}

int(tern_chan_run)(tern_in *i)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	struct tern_chan *c = i->chan;
	if (c->chans->e->forked)
		return rules_forked(c->chans->e);
	struct cursor k;
	int rc = proc_waits(i, &k);
	if (rc)
		return rc;
	const struct proc *p = proc_named(c, k.item);
	if (!p)
		return -ENXIO;
	in_pass(&k);
	in_move(i, &k);
	p->fn(c->chans->e->t, i, p->arg);
	return 0;
}
