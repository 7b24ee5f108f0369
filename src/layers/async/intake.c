/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Draining: what has come in a chain, or from the own program, is handed to the procedure that it
 * names. An intake stands in the queue from the moment it hears of a message until it finds nothing
 * between two.
 */
#include <errno.h>

#include "async/async.h"
#include "base/error.h"

int tern_async_on(tern *t, unsigned id, tern_drainer *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_function(t->own, "receive procedure", id, TERN_PROCS_MAX, fn);
	if (rc)
		return rc;
	async_of(t)->drainer[id] = (struct drainer){ fn, arg };
	proc_reserve(chans_of(t), id);
	return 0;
}

static bool intake_is_internal(const struct intake *n)
{
	return n == &n->a->internal;
}

/* For the program, which hears of it in its next poll. */
static void intake_trouble(struct intake *n, int code)
{
	poll_trouble(n->a->e, code);
	n->passing = true;
}

/* -- A message ------------------------------------------------------------------------------- */

static int message_drain(struct intake *n, tern_in *in)
{
	n->message.in = in;
	int rc = n->running->fn(n->a->e->t, &n->message, n->running->arg);
	if (rc == -EAGAIN && tern_chan_peek(in) == TERN_CHAN_CLOSED)
		rc = in_over(in->chan); /* nothing more comes, whatever it hopes for */
	if (turn_goes_on(rc))
		return rc;
	n->running = NULL;
	n->passing = true;
	if (rc < 0)
		intake_trouble(n, rc);
	return 1;
}

/*
 * The procedure that the message names: a number from another rank, looked up, and never followed.
 */
static int message_begin(struct intake *n, tern_in *in)
{
	struct cursor k;
	int rc = proc_waits(in, &k);
	if (rc)
		return rc;
	const struct drainer *d = k.item < TERN_PROCS_MAX ? &n->a->drainer[k.item] : NULL;
	if (!d || !d->fn) {
		intake_trouble(
			n,
			error_set(
				-ENXIO,
				"rank %u sent a message for receive procedure %llu, which rank %u "
				"has not registered with tern_async_on(); it was dropped",
				n->message.src, (unsigned long long)k.item, n->a->e->t->rank));
		return 1;
	}
	in_pass(&k);
	in_move(in, &k);
	n->running = d;
	n->message = (tern_incoming){ .src = n->message.src };
	return message_drain(n, in);
}

static int message_pass(struct intake *n, tern_in *in)
{
	int rc = tern_chan_next(in);
	if (rc != -EAGAIN)
		n->passing = false;
	return rc ? rc : 1;
}

/* Between two messages, where data and ends belong to none. */
static int message_stray(struct intake *n, enum tern_chan_kind what)
{
	if (what == TERN_CHAN_DATA && intake_is_internal(n))
		return -EAGAIN; /* for turns of the program to get */
	n->passing = true;
	if (what == TERN_CHAN_DATA)
		intake_trouble(n, error_set(-EPROTO,
					    "rank %u sent data without a procedure to rank %u: "
					    "a filler must not end its message itself",
					    n->message.src, n->a->e->t->rank));
	return 1;
}

/* -- An intake --------------------------------------------------------------------------------- */

static int intake_step(struct intake *n, tern_in *in)
{
	if (n->running)
		return message_drain(n, in);
	if (n->passing)
		return message_pass(n, in);
	enum tern_chan_kind what = tern_chan_peek(in);
	if (what == TERN_CHAN_NOTHING)
		return 0;
	if (what == TERN_CHAN_DATA || what == TERN_CHAN_END)
		return message_stray(n, what);
	return message_begin(n, in); /* or why nothing more comes, which a wait says */
}

/* The steps of one message, until its procedure has had a turn. */
static int intake_turn(tern *t, void *arg)
{
	struct intake *n = arg;
	(void)t;
	if (!n->chan)
		return 0;
	tern_in in = tern_chan_in(n->chan);
	int rc = intake_step(n, &in);
	tern_chan_in_back(&in);
	if (rc >= 0 || rc == -EAGAIN)
		return rc;
	if (rc == -EBADMSG)
		intake_trouble(n, rc);
	in_close(n->chan, READER_CLOSED);
	n->chan = NULL;
	n->running = NULL;
	n->passing = false;
	return 0;
}

void intake_open(struct async *a, struct intake *n, tern_chan *c, uint32_t src)
{
	n->a = a;
	n->chan = c;
	n->message.src = src;
	n->work.fn = intake_turn;
	n->work.arg = n;
}

/* There may be something in it: a message that has begun, an end, or that its rank has left. */
void intake_look(struct async *a, uint32_t rank)
{
	struct intake *n = &a->peer[rank].intake;
	if (n->chan)
		queue_push(a, &n->work);
}

/* -- What comes from other ranks --------------------------------------------------------------- */

/* What comes in a mirror wakes it, since nobody else tells of it. */
static void intake_wake(struct endpoint *e, void *arg)
{
	struct intake *n = arg;
	if (n->chan)
		queue_push(e->layer[LAYER_ASYNC], &n->work);
}

/* `mirror`: the number of the one that was made; 0: none was needed. */
static int open_checked(struct async *a, uint32_t src, struct ring ring, uint64_t *mirror)
{
	tern_chan *c;
	struct intake *n = &a->peer[src].intake;
	int rc = n->chan ? -EBADMSG : in_open(chans_of(a->e->t), src, CHAIN_NAME, ring, &c);
	if (rc)
		return rc;
	intake_open(a, n, c, src);
	if (c->mirror) {
		c->mirror->wake = intake_wake;
		c->mirror->wake_arg = n;
		*mirror = c->mirror->serial;
	}
	return 0;
}

void on_chain_open(tern *t, const tern_msg *m)
{
	const struct ring ring = { tern_msg_word(m, 0), tern_msg_word(m, 1), 0 };
	uint64_t words[] = { 0, 0 };
	words[0] = (uint64_t)open_checked(async_of(t), tern_msg_src(m), ring, &words[1]);
	layer_reply(t->own, ASYNC_OPENED, NULL, 0, 2, words);
}

void on_message_begun(tern *t, const tern_msg *m)
{
	intake_look(async_of(t), tern_msg_src(m));
}
