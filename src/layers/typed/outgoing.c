/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages under way. The memory layer moves the data into the buffer, in pieces; when it has, the
 * notice is sent from this layer's progress, now or in a later poll if there is no room.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

static int outgoing_sentence(struct typed *y, const struct outgoing *o, int error)
{
	if (error == -EBADMSG)
		return error_set(
			-EBADMSG,
			"the %llu bytes of a message of type %u to rank %u were changed before "
			"the send was complete: the message was not delivered",
			(unsigned long long)o->notice.len, o->notice.type, o->rank);
	int rc = send_reachable(y->e, o->rank);
	return rc ? rc
		  : error_set(error, "a message of type %u to rank %u could not be moved",
			      o->notice.type, o->rank);
}

/* Its place is free, and whoever waits for the end is told. */
static void outgoing_over(struct typed *y, struct outgoing *o, int error)
{
	tern_op *told = o->told;
	record_give(&y->outgoing, o);
	op_end(y->e, told, error);
}

/* Whether the data stayed what it was: at the sender, and on its way. */
static bool outgoing_changed(const struct typed *y, const struct outgoing *o)
{
	return y->check && (check_sum(o->data, o->notice.len) != o->sum ||
			    (o->landed && check_sum(o->landed, o->notice.len) != o->sum));
}

/* Announces it if the data is in place and there is room; true when it is over. */
static bool outgoing_finish(struct typed *y, struct outgoing *o)
{
	uint64_t words[NOTICE_WORDS];
	if (o->op.pending)
		return false;
	int lost = send_reachable(y->e, o->rank);
	if (!lost && !lane_ready(&y->e->t->lane[o->rank]))
		return false;
	int rc = o->op.error ? o->op.error : lost;
	if (!rc && outgoing_changed(y, o))
		rc = -EBADMSG;
	if (!lost) {
		o->notice.flags |= rc ? NOTICE_CANCELLED : 0;
		memcpy(words, &o->notice, sizeof o->notice);
		int failed =
			layer_request(y->e, o->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
		rc = failed ? failed : rc;
	}
	y->moving--;
	typed_busy(y);
	outgoing_over(y, o, rc ? outgoing_sentence(y, o, rc) : 0);
	return true;
}

/* Under a hold no transfer to a far rank starts. Without a transfer the place goes back. */
static void outgoing_put(struct typed *y, struct outgoing *o)
{
	int rc = held(y->e) && !o->landed
			 ? -EAGAIN
			 : tern_put_start(y->e->t, o->at, o->data, o->notice.len, &o->op);
	if (rc && rc != -EAGAIN)
		o->op.error = rc;
	o->state = rc == -EAGAIN ? OUTGOING_PLACED : OUTGOING_MOVING;
}

/* One at a time: a put or a notice may serve others, who come back here. */
unsigned outgoing_progress(struct typed *y)
{
	unsigned over = 0;
	if (y->finishing || in_handler(y->e))
		return 0;
	y->finishing = true;
	for (struct outgoing *o = NULL; y->moving && (o = record_next(&y->outgoing, o));) {
		if (o->state == OUTGOING_PLACED)
			outgoing_put(y, o);
		if (o->state == OUTGOING_MOVING)
			over += outgoing_finish(y, o);
	}
	y->finishing = false;
	return over;
}

void outgoing_begin(struct typed *y, struct outgoing *o, tern_addr at)
{
	o->state = OUTGOING_PLACED;
	o->at = at;
	y->moving++;
	typed_busy(y);
	outgoing_progress(y);
}

/* -- To a far rank ----------------------------------------------------------------------------- */

static void answer_take(struct typed *y, struct outgoing *o, const struct answer_msg *a)
{
	if (a->error || !a->placed) {
		outgoing_over(y, o,
			      a->error ? send_refused(layer_error((uint64_t)(int64_t)a->error),
						      o->rank, o->notice.type, o->notice.len, a->at,
						      NULL)
				       : 0);
		return;
	}
	o->notice.generation = a->generation;
	o->notice.key = a->key;
	o->notice.index = (uint32_t)a->index;
	outgoing_begin(y, o, a->at);
}

void on_typed_answer(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t rank = tern_msg_src(m);
	struct answer_msg a;
	memcpy(&a, m->word, sizeof a);
	struct outgoing *o = record_named(&y->outgoing, a.id);
	if (tern_msg_count(m) != ANSWER_WORDS || !o || o->state != OUTGOING_OFFERED ||
	    o->rank != rank || (a.placed && tern_addr_rank(a.at) != rank))
		typed_refuse(y, rank, "that answers what was not asked");
	else
		answer_take(y, o, &a);
}

void outgoing_lost(struct typed *y, uint32_t rank)
{
	for (struct outgoing *o = NULL; (o = record_next(&y->outgoing, o));)
		if (o->state == OUTGOING_OFFERED && o->rank == rank)
			outgoing_over(y, o, outgoing_sentence(y, o, -EOWNERDEAD));
}
