/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internal buffer: two channels of this rank to itself. What the program puts is drained by an
 * intake, as what comes from other ranks is; what the processor puts is the program's to get.
 */
#include "async/async.h"
#include "mem/mem.h"

/* A message was begun or ended, or much has been put: the processor should look. */
static void internal_wake(struct endpoint *e, void *arg)
{
	struct async *a = e->layer[LAYER_ASYNC];
	(void)arg;
	queue_push(a, &a->internal.work);
}

/* Both ends of a channel within this rank. */
static int internal_pair(struct async *a, tern_chan **out, tern_chan **in)
{
	struct chans *s = chans_of(a->e->t);
	uint32_t self = a->e->t->rank;
	int rc = out_open(s, CHAIN_NAME, &self, 1, out);
	if (rc)
		return rc;
	const struct ring ring = { mem_addr(mem_of(a->e->t), (*out)->pipe), (*out)->serial, 0 };
	rc = in_open(s, self, CHAIN_NAME, ring, in);
	if (rc) {
		out_close(*out, PIPE_CLOSED); /* swept when the next end is made */
		return rc;
	}
	(*out)->fixed = (*in)->fixed = true;
	return 0;
}

static int internal_open(struct async *a)
{
	tern_chan *to, *there;
	int rc = rules_forked(a->e);
	if (rc)
		return rc;
	if (!a->to) {
		rc = internal_pair(a, &to, &there);
		if (rc)
			return rc;
		to->wake = internal_wake;
		a->to = to;
		intake_open(a, &a->internal, there, a->e->t->rank);
	}
	return a->from ? 0 : internal_pair(a, &a->back, &a->from);
}

int tern_async_chan(tern *t, enum tern_async_side side, tern_chan **to, tern_chan **from)
{
	INSIDE struct scope scope = scope_given(t);
	struct async *a = async_of(t);
	int rc = rules_rank(t->own, "an internal channel");
	if (!rc)
		rc = internal_open(a);
	if (rc)
		return rc;
	*to = side == TERN_ASYNC_PROGRAM ? a->to : a->back;
	*from = side == TERN_ASYNC_PROGRAM ? a->from : a->internal.chan;
	return 0;
}
