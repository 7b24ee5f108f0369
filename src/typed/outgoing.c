/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages under way. The memory layer moves the data into the buffer, in pieces; when it has,
 * the notice is sent from this layer's progress, now or in a later poll if there is no room.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/wrap.h"
#include "typed/typed.h"

/*
 * A name is the use, then the place, from 1 on; that of a short message, which is over, has the
 * highest bit.
 */
enum { NAME_PLACE_BITS = 16 };
static const uint64_t NAME_OVER = UINT64_C(1) << 63;

static void outgoings_make(struct typed *y)
{
	y->outgoing = memory_new(TERN_BUF_SENDS_MAX, sizeof *y->outgoing);
	for (unsigned i = 0; y->outgoing && i < TERN_BUF_SENDS_MAX; i++)
		y->outgoing[i].use = (uint32_t)wrap_first(32, 0);
}

struct outgoing *outgoing_new(struct typed *y)
{
	if (!y->outgoing)
		outgoings_make(y);
	for (unsigned i = 0; y->outgoing && i < TERN_BUF_SENDS_MAX; i++)
		if (y->outgoing[i].state == OUTGOING_FREE)
			return &y->outgoing[i];
	return NULL;
}

bool outgoing_any(const struct typed *y)
{
	uint64_t any = 0;
	for (unsigned w = 0; w < OUTGOING_WORDS; w++)
		any |= y->moving[w];
	return any;
}

static void moving_mark(struct typed *y, const struct outgoing *o, bool moves)
{
	size_t i = (size_t)(o - y->outgoing);
	uint64_t bit = UINT64_C(1) << i % 64;
	y->moving[i / 64] = moves ? y->moving[i / 64] | bit : y->moving[i / 64] & ~bit;
	typed_busy(y);
}

void outgoing_moves(struct typed *y, struct outgoing *o)
{
	o->state = OUTGOING_MOVING;
	moving_mark(y, o, true);
}

static bool outgoing_over(struct typed *y, struct outgoing *o, int error)
{
	o->error = error;
	o->state = o->forgotten ? OUTGOING_FREE : OUTGOING_OVER;
	moving_mark(y, o, false);
	return true;
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
	int rc = send_reachable(y->e, o->rank);
	if (rc)
		return outgoing_over(y, o, o->op.error ? o->op.error : rc);
	if (!lane_ready(&y->e->t->lane[o->rank]))
		return false;
	rc = o->op.error ? o->op.error : y->check && outgoing_changed(o) ? -EBADMSG : 0;
	o->notice.cancelled = rc != 0;
	notice_write(&o->notice, words);
	outgoing_over(y, o, rc); /* first: the send may serve others, who ask */
	rc = layer_request(y->e, o->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
	o->error = rc ? rc : o->error;
	return true;
}

unsigned outgoing_progress(struct typed *y)
{
	unsigned over = 0;
	if (y->finishing)
		return 0;
	y->finishing = true;
	for (unsigned w = 0; w < OUTGOING_WORDS; w++)
		for (uint64_t bits = y->moving[w]; bits; bits &= bits - 1)
			over += outgoing_finish(
				y, &y->outgoing[w * 64 + (unsigned)__builtin_ctzll(bits)]);
	y->finishing = false;
	return over;
}

static int outgoing_sentence(struct typed *y, const struct outgoing *o)
{
	struct net *net = y->e->site.peer[o->rank].net;
	if (o->error == -EBADMSG)
		return error_set(
			-EBADMSG,
			"the %llu bytes of a message of type %u to rank %u were changed before "
			"tern_buf_done() said that they may be: the message was not delivered",
			(unsigned long long)o->notice.len, o->notice.type, o->rank);
	int rc = net->ops->check(net, o->rank);
	return rc ? rc
		  : error_set(o->error, "a message of type %u to rank %u could not be moved",
			      o->notice.type, o->rank);
}

int outgoing_end(struct typed *y, struct outgoing *o)
{
	o->state = OUTGOING_FREE;
	return o->error ? outgoing_sentence(y, o) : 0;
}

tern_mid outgoing_name(struct typed *y, const struct outgoing *o)
{
	if (!o)
		return NAME_OVER | ++y->named;
	return (uint64_t)o->use << NAME_PLACE_BITS | (uint64_t)(o - y->outgoing + 1);
}

static struct outgoing *outgoing_named(const struct typed *y, tern_mid mid)
{
	uint64_t place = (mid & ((1 << NAME_PLACE_BITS) - 1)) - 1;
	struct outgoing *o = y->outgoing && place < TERN_BUF_SENDS_MAX ? &y->outgoing[place] : NULL;
	return o && o->state != OUTGOING_FREE && o->use == mid >> NAME_PLACE_BITS ? o : NULL;
}

int tern_buf_done(tern *t, tern_mid mid)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct typed *y = typed_here(t);
	bool short_one = mid & NAME_OVER && (mid & ~NAME_OVER) - 1 < y->named;
	if (!in_handler(y->e) && !held(y->e))
		poll_once(y->e, KINDS_BOTH);
	if (short_one)
		return 1;
	if (far_named(y, mid))
		return far_done(y, mid);
	struct outgoing *o =
		outgoing_named(y, mid); /* after the poll, which may have asked for it too */
	if (!o)
		return error_set(
			-EINVAL,
			"tern_buf_done() was given %#llx, which names no send of rank %u, or none "
			"any more",
			(unsigned long long)mid, t->rank);
	if (o->state != OUTGOING_OVER)
		return 0;
	int rc = outgoing_end(y, o);
	return rc ? rc : 1;
}
