/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send and receive. A message has a 64-bit id; a receive takes a message of one rank
 * and id, or of any rank, or of any id under a mask. Messages from one rank to another
 * with the same id are received in the order they were sent. (A deferred function that sends while
 * the program's own send waits for room may be first.)
 *
 * Three modes. TERN_SEND_READY does not wait for the receiver: a message that finds no receive is
 * discarded, and both sides hear of it. (One whose receive is just being filled by another is kept
 * for the next, as far as there is room.) TERN_SEND_RENDEZVOUS moves data only when the receiver is
 * ready. TERN_SEND_AUTO sends small messages at once, into a bounded buffer at the receiver if need
 * be, and large ones, or all while that buffer is full, by rendezvous. What goes wrong with a
 * message whose send is complete already is the result of the sender's next poll.
 *
 * An operation that was started with a handle (tern/op.h) tells that handle when it is complete,
 * and tern_op_state() says how far it is. One that was started without waits until it is complete.
 *
 * A send to TERN_RANK_NONE, and a receive from it, do nothing and are complete at once; the
 * envelope has that rank and 0 bytes.
 *
 * Conventions are those of <tern/tern.h>. In a handler only tern_op_state() is allowed. A receive
 * from any rank fails when no other rank is left; calls that wait for one also give up as
 * tern_wait() does.
 */
#ifndef TERN_SEND_H
#define TERN_SEND_H

#include <tern/mem.h>

TERN_BEGIN_

#define TERN_ID_ANY (~UINT64_C(0)) /* in tern_match.any: whatever the id */
/* Of the ids that tern_team_id() makes (<tern/coll.h>); all others are the program's at large. */
#define TERN_ID_TEAM (UINT64_C(1) << 63)

enum {
	TERN_SENDS_MAX = 16384, /* under way at one rank */
	TERN_RECVS_MAX = 16384,
	TERN_PARTS_MAX = 1024, /* of one message */
};

/* What a receive takes: messages of a rank, or of TERN_RANK_ANY, with an id. */
typedef struct tern_match {
	uint32_t rank;
	unsigned flags; /* TERN_RECV_UPTO, TERN_PROBE_WAIT */
	tern_id id;
	/* Bits in which another id may differ; 0: none. A team's ids stay among themselves. */
	tern_id any;
} tern_match;

/* What a receive has got. */
typedef struct tern_envelope {
	uint32_t src;
	int error; /* as tern_op has it */
	tern_id id;
	size_t len;
} tern_envelope;

enum tern_send_flags {
	TERN_SEND_AUTO = 0,
	TERN_SEND_READY = 1,
	TERN_SEND_RENDEZVOUS = 2,
	TERN_SEND_SYNC = 4,   /* complete when a receive has met it, and not before */
	TERN_RECV_UPTO = 8,   /* of receives in parts: less than their total may come */
	TERN_PROBE_WAIT = 16, /* of tern_probe(), in its match */
};

/* -- Blocking ------------------------------------------------------------------------ */

/*
 * Returns when `data` is free again, in the mode TERN_SEND_AUTO: that does not say that the
 * receiver has taken it.
 */
int tern_send(tern *t, uint32_t dst, tern_id id, const void *data, size_t len);
/*
 * Receives up to `cap` bytes; `env` may be NULL. A longer message is an error at both sides
 * (-EMSGSIZE), and nothing is written.
 */
int tern_recv(tern *t, uint32_t src, tern_id id, void *data, size_t cap, tern_envelope *env);

/*
 * The same of scattered memory: a message of `n` parts (tern_part, <tern/mem.h>: runs with counts
 * and strides), and a receive into `n` parts, which must have as many bytes together as the message
 * (-EMSGSIZE at both sides). The parts of the two sides need not agree.
 */
static inline int tern_send_parts(tern *t, uint32_t dst, tern_id id, const tern_part *parts,
				  size_t n);
static inline int tern_recv_parts(tern *t, uint32_t src, tern_id id, const tern_part *parts,
				  size_t n, tern_envelope *env);

/* -- Not blocking ---------------------------------------------------------------------- */

/*
 * The data belong to the operation until it is complete. `op` NULL: waits for that. -EAGAIN when
 * TERN_SENDS_MAX or TERN_RECVS_MAX are under way.
 */
int tern_send_start(tern *t, uint32_t dst, tern_id id, const void *data, size_t len, unsigned flags,
		    tern_op *op);
int tern_recv_start(tern *t, const tern_match *match, void *data, size_t cap, tern_envelope *env,
		    tern_op *op);

/*
 * The same with parts: disjoint memory on either side in one message. The parts of the two sides
 * need not agree, only their totals (-EMSGSIZE at both sides if they do not). The list, its counts
 * and its strides may be changed on return.
 */
int tern_send_parts_start(tern *t, uint32_t dst, tern_id id, const tern_part *parts, size_t n,
			  unsigned flags, tern_op *op);
int tern_recv_parts_start(tern *t, const tern_match *match, const tern_part *parts, size_t n,
			  tern_envelope *env, tern_op *op);

/*
 * One message whose parts have an id each and match a receive each. The lists, counts and strides
 * may be changed on return; after an error from a part that had to be sent by itself, the parts
 * before it are under way.
 */
int tern_send_each_start(tern *t, uint32_t dst, const tern_id *ids, const tern_part *parts,
			 size_t n, unsigned flags, tern_op *op);

/*
 * 1 if a message waits that such a receive would take, and *env tells which; 0 if not. With
 * TERN_PROBE_WAIT in the match it waits for one.
 */
int tern_probe(tern *t, const tern_match *match, tern_envelope *env);

/* -- Blocking, in parts --------------------------------------------------------------------- */

static inline int tern_send_parts(tern *t, uint32_t dst, tern_id id, const tern_part *parts,
				  size_t n)
{
	return tern_send_parts_start(t, dst, id, parts, n, TERN_SEND_AUTO, NULL);
}

static inline int tern_recv_parts(tern *t, uint32_t src, tern_id id, const tern_part *parts,
				  size_t n, tern_envelope *env)
{
	const tern_match match = { src, 0, id, 0 };
	return tern_recv_parts_start(t, &match, parts, n, env, NULL);
}

TERN_END_

#endif
