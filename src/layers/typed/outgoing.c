/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages under way. The memory layer moves the data into the buffer, in pieces; when it has,
 * the notice is sent from this layer's progress, now or in a later poll if there is no room.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

struct outgoing *outgoing_new(struct typed *y)
{
	if (!y->outgoing)
		y->outgoing = memory_new(TERN_BUF_SENDS_MAX, sizeof *y->outgoing);
	for (unsigned i = 0; y->outgoing && i < TERN_BUF_SENDS_MAX; i++)
		if (y->outgoing[i].state == OUTGOING_FREE)
			return &y->outgoing[i];
	return NULL;
}

void outgoing_moves(struct typed *y, struct outgoing *o)
{
	o->state = OUTGOING_MOVING;
	y->moving++;
	typed_busy(y);
}

static int outgoing_sentence(struct typed *y, const struct outgoing *o)
{
	struct net *net = y->e->site.peer[o->rank].net;
	if (o->error == -EBADMSG)
		return error_set(
			-EBADMSG,
			"the %llu bytes of a message of type %u to rank %u were changed before "
			"the send was complete: the message was not delivered",
			(unsigned long long)o->notice.len, o->notice.type, o->rank);
	int rc = net->ops->check(net, o->rank);
	return rc ? rc
		  : error_set(o->error, "a message of type %u to rank %u could not be moved",
			      o->notice.type, o->rank);
}

/* It moves no more. Its place is free at once if a handle takes the result. */
static void outgoing_over(struct typed *y, struct outgoing *o, int error)
{
	tern_op *told = o->told;
	o->error = error;
	o->state = o->forgotten || told ? OUTGOING_FREE : OUTGOING_OVER;
	if (told)
		op_end(y->e, told, error ? outgoing_sentence(y, o) : 0);
}

/* Whether the data stayed what it was: at the sender, and on its way. */
static bool outgoing_changed(const struct outgoing *o)
{
	return check_sum(o->data, o->notice.len) != o->sum ||
	       (o->landed && check_sum(o->landed, o->notice.len) != o->sum);
}

bool outgoing_finish(struct typed *y, struct outgoing *o)
{
	uint64_t words[NOTICE_WORDS];
	if (o->op.pending)
		return false;
	int lost = send_reachable(y->e, o->rank);
	if (!lost && !lane_ready(&y->e->t->lane[o->rank]))
		return false;
	int rc = o->op.error ? o->op.error : lost;
	if (!rc && y->check && outgoing_changed(o))
		rc = -EBADMSG;
	o->state = OUTGOING_STARTING; /* first: the notice may serve others, who carry on what moves
				       */
	y->moving--;
	typed_busy(y);
	if (!lost) {
		o->notice.cancelled = rc != 0;
		notice_write(&o->notice, words);
		int failed =
			layer_request(y->e, o->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
		rc = failed ? failed : rc;
	}
	outgoing_over(y, o, rc);
	return true;
}

unsigned outgoing_progress(struct typed *y)
{
	unsigned over = 0;
	if (y->finishing)
		return 0;
	y->finishing = true;
	for (unsigned i = 0; y->moving && i < TERN_BUF_SENDS_MAX; i++)
		if (y->outgoing[i].state == OUTGOING_MOVING)
			over += outgoing_finish(y, &y->outgoing[i]);
	y->finishing = false;
	return over;
}

int outgoing_end(struct typed *y, struct outgoing *o)
{
	o->state = OUTGOING_FREE;
	return o->error ? outgoing_sentence(y, o) : 0;
}
