/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short payloads lie behind their message in the ring, where it takes them: on shared memory, when
 * the ring has grown. All others lie in blocks, and the message in the ring names its block. So do
 * those that are composed in place: a claim holds no place in the order.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/long.h"
#include "core/payload.h"
#include "core/wait.h"
#include "endpoint/count.h"
#include "ring/ring.h"

/*
 * A block for a request, serving what arrives until one is free. Both classes of blocks wait so,
 * and neither wait can last: a block comes back when its message has been handled, a request is
 * handled when its peer can reply, and a reply waits for a short block or the reserve, never for a
 * large one, and is handled wherever somebody waits. So no circle of ranks that wait for large
 * blocks is closed, however few there are. models/flood.pml has them.
 */
static int block_wait(struct endpoint *e, uint32_t dst, size_t len, struct block **out)
{
	struct net *net = e->site.peer[dst].net;
	struct wait l = { .bounded = true,
			  .what = WAIT_BLOCK,
			  .call = "a payload",
			  .way = "to",
			  .whom = dst + 1,
			  .lack = "no free block" };
	struct stall stall = { 0 };
	int rc;
	while ((rc = net->ops->take(net, len, out)) == -EAGAIN) {
		lost_look(e); /* blocks that a lost rank held come back */
		rc = send_reachable(e, dst);
		if (!rc && held(e))
			rc = error_set(-EAGAIN,
				       "no block is free, and under a hold nothing is served");
		if (rc)
			return rc;
		stall_begin(e, &stall);
		wait_step(e, &l);
	}
	stall_end(e, &stall, PULSE_BLOCK_STALLS);
	if (rc == -ENOBUFS) /* waiting would be hopeless */
		error_set(rc,
			  "rank %u itself claims or keeps all its %u %sblocks: "
			  "commit, abandon or drop one",
			  e->t->rank, net_blocks(net, len), len > TERN_PAYLOAD_MAX ? "large " : "");
	return rc;
}

/*
 * For a rank, or the worker of that id. Until it is sent the block names the worker and not its
 * seat, which may have another one by then.
 */
int block_claim(struct endpoint *e, uint32_t dst, size_t len, struct block **out)
{
	struct block *b;
	int rc = target_reachable(e, dst);
	if (!rc)
		rc = block_wait(e, target_member(e, dst), len, &b);
	if (rc)
		return rc;
	b->peer = dst;
	b->len = (uint32_t)len;
	*out = b;
	return 0;
}

/*
 * Sends a claimed block; on error it stays claimed. While it waits for room it counts as kept:
 * handlers and deferred functions run meanwhile, and must not commit it again, nor may it be
 * taken back from its receiver, should that leave.
 */
int block_send(struct endpoint *e, struct block *b, const struct parcel *p)
{
	uint32_t dst = b->peer;
	block_set(b, BLOCK_KEPT);
	int rc = target_room(e, dst);
	if (!rc) {
		b->peer = target_member(e, dst);
		block_set(b, BLOCK_SENT);
		rc = target_request(e, dst, p); /* there is room: to a rank it does not fail */
	}
	if (rc) {
		b->peer = dst;
		block_set(b, BLOCK_CLAIMED);
	}
	return rc;
}

static bool parcel_may_carry(const struct parcel *p, const struct tern_lane *lane, size_t len)
{
	return lane->carries && len <= TERN_CARRY_MAX && p->n <= TERN_LINE_WORDS;
}

static void parcel_carry(struct parcel *p, const void *data, size_t len)
{
	parcel_has(p, data, len);
	p->carried = true;
}

/* A reply's payload goes behind it, where there is room for that now. */
static bool reply_carries(struct tern_lane *lane, struct parcel *p, const void *data, size_t len)
{
	if (!parcel_may_carry(p, lane, len) || !lane_carries(lane, len))
		return false;
	parcel_carry(p, data, len);
	return true;
}

/* Sends a copy of `data`. */
static int block_copy(struct endpoint *e, uint32_t dst, struct parcel *p, const void *data,
		      size_t len)
{
	struct block *b;
	int rc = block_claim(e, dst, len, &b);
	if (rc)
		return rc;
	if (len)
		memcpy(block_bytes(b), data, len); /* cost: base write */
	parcel_has(p, b->data, len);
	rc = block_send(e, b, p);
	if (rc)
		block_set(b, BLOCK_FREE);
	return rc;
}

/* A request's payload goes behind it, or into a block; under a hold nothing is waited for. */
static int data_copy(struct endpoint *e, uint32_t dst, struct parcel *p, const void *data,
		     size_t len)
{
	if (dst >= JOB_WORKER || !parcel_may_carry(p, &e->t->lane[dst], len) ||
	    (held(e) && !lane_carries(&e->t->lane[dst], len)))
		return block_copy(e, dst, p, data, len);
	int rc = send_room(e, dst, len);
	parcel_carry(p, data, len);
	return rc ? rc : send_request(e, dst, p);
}

enum { BLOCKS_AHEAD = 4 }; /* are on their way here: their receiver had them last */

/* A payload that goes behind its request, in this leaf or the next; false without room. */
static inline __attribute__((always_inline)) bool
carry_quick(struct tern_lane *lane, uint64_t bits, const void *data, size_t len, TERN_SIX_)
{
	while (!tern_lane_carry_(lane, bits, TERN_LINE_WORDS, data, len, TERN_SIX_VALUES_))
		if (!lane_carries(lane, len))
			return false;
	return true;
}

/*
 * The common case of a request with a payload: its lane has room, and the next block is free.
 * False if this is not it. The words are written all six, because counting them takes longer.
 */
static inline __attribute__((always_inline)) bool block_quick(tern *t, struct tern_lane *lane,
							      uint32_t dst, uint64_t bits,
							      const void *data, size_t len,
							      TERN_SIX_)
{
	struct net *net = t->own->site.peer[dst].net;
	char *line = lane->tail;
	struct block *b = net->pool ? &net->pool->block[net->next] : NULL;
	if (line >= lane->limit || !b || !block_is(b, BLOCK_FREE))
		return false;
	net->next = (net->next + 1) % TERN_POOL_BLOCKS;
	b->peer = dst;
	tern_prefetch_write_(b + BLOCKS_AHEAD);
	tern_prefetch_write_((b + BLOCKS_AHEAD)->data);
	memcpy(b->data, data, len);
	block_set(b, BLOCK_SENT);
	((tern_msg *)(void *)line)->payload = (uint64_t)(b->data - line) << TERN_LEN_BITS | len;
	tern_line_write_(line, lane->head | TERN_HEAD_PAYLOAD | bits, TERN_LINE_WORDS,
			 TERN_SIX_VALUES_);
	tern_prefetch_write_(line + lane->ahead);
	lane->tail = line + TERN_LINE;
	return true;
}

static inline __attribute__((always_inline)) bool
payload_quick(tern *t, uint32_t dst, uint64_t bits, const void *data, size_t len, TERN_SIX_)
{
	struct tern_lane *lane = &t->lane[dst];
	bool sent = len <= TERN_CARRY_MAX && lane->carries
			    ? carry_quick(lane, bits, data, len, TERN_SIX_VALUES_)
			    : block_quick(t, lane, dst, bits, data, len, TERN_SIX_VALUES_);
	return TERN_LIKELY(sent) && !tern_requested_(t, lane);
}

static int payload_missing(const void *data, unsigned id, size_t len)
{
	if (TERN_LIKELY(data || !len))
		return 0;
	return error_set(-EINVAL,
			 "a message to handler %u was given %zu bytes of payload at NULL; give it "
			 "the data, or 0 bytes",
			 id, len);
}

/* Everything else: broken rules, first contact, no room, no block, two lines. */
static __attribute__((noinline)) int payload_request(tern *t, uint32_t dst, unsigned id,
						     const void *data, size_t len, unsigned n,
						     const uint64_t *words)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	int rc = rules_send(e, dst, id, n, len); /* cost: protection control */
	if (!rc)
		rc = payload_missing(data, id, len);
	if (rc)
		return rc;
	struct parcel p = parcel_of(id, n, words);
	return data_copy(e, dst, &p, data, len);
}

/* More words than a line has come from nobody: whoever calls this counts them. */
int tern_request_payload_(tern *t, uint32_t dst, unsigned id, const void *data, unsigned n,
			  size_t len, TERN_SIX_)
{
	if (TERN_LIKELY(!tern_unsendable_(t, dst, id) && data && len <= TERN_PAYLOAD_MAX &&
			payload_quick(t, dst, (uint64_t)id << TERN_ID_SHIFT | n, data, len,
				      TERN_SIX_VALUES_)))
		return 0;
	if (!data && !len) /* no byte is read */
		return tern_request_payload_(t, dst, id, t, n, 0, TERN_SIX_VALUES_);
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return payload_request(t, dst, id, data, len, n, words);
}

int tern_request_data_array(tern *t, uint32_t dst, unsigned id, const void *data, size_t len,
			    unsigned n, const uint64_t *words)
{
	t = given(t);
	if (TERN_UNLIKELY(n > TERN_LINE_WORDS)) /* 9 are refused */
		return payload_request(t, dst, id, data, len, n, words);
	return tern_request_payload_(t, dst, id, data, n, len, WORDS_AT(words, n));
}

/* -- Replies --------------------------------------------------------------------- */

/* A block for a message of the reply class; if none is free, the peer's reserve if `reserve`. */
static struct block *reply_take(struct endpoint *e, uint32_t dst, size_t len, bool reserve)
{
	struct net *net = e->site.peer[dst].net;
	struct block *b;
	if (net->ops->take(net, len, &b) != 0) {
		b = reserve ? reserve_find(&e->site, dst) : NULL;
		if (!b)
			return NULL;
		reserve_claim(&e->site, dst, b);
	}
	b->peer = dst;
	return b;
}

/*
 * A block for the reply to the current request. There is one: the gate let the request through only
 * with a reserve free. Taking that closes the gate until the peer has given it back.
 */
struct block *reply_block(struct endpoint *e)
{
	return reply_take(e, e->inlet->peer, 0, true);
}

void payload_drop_reply(struct endpoint *e)
{
	if (e->inlet->kind != TERN_KIND_REQUEST)
		return;
	block_set(e->reply.block, BLOCK_FREE);
	e->reply.block = NULL;
}

/* A large block, where one is free and this process can write it for the peer; else NULL. */
struct block *reply_large(struct endpoint *e, size_t len)
{
	return layer_maps(e, e->inlet->peer) ? reply_take(e, e->inlet->peer, len, false) : NULL;
}

int reply_send(struct endpoint *e, struct block *b, const struct parcel *p)
{
	block_set(b, BLOCK_SENT);
	int rc = send_reply(e, p);
	if (rc)
		block_set(b, BLOCK_FREE);
	return rc;
}

/* Sends a copy of `data` in `b`. */
int reply_copy(struct endpoint *e, struct block *b, struct parcel *p, const void *data, size_t len)
{
	if (len)
		memcpy(block_bytes(b), data, len); /* cost: base write */
	parcel_has(p, b->data, len);
	return reply_send(e, b, p);
}

/* Sends a copy of `data`, behind its message or in a block. */
static int reply_with(struct endpoint *e, struct parcel *p, const void *data, size_t len)
{
	if (data && !e->item && reply_carries(e->inlet->answer, p, data, len))
		return send_reply(e, p);
	return reply_copy(e, reply_block(e), p, data, len);
}

int item_refuses(const struct endpoint *e, const char *what)
{
	return error_set(-ENOTSUP,
			 "%s was called for a posted item from rank %u, which is answered with "
			 "words alone",
			 what, inlet_source(e->inlet));
}

static __attribute__((noinline)) int reply_long(struct endpoint *e, struct parcel *p,
						const void *data, size_t len)
{
	if (e->item)
		return item_refuses(e, "tern_reply_data()");
	struct block *b = reply_large(e, len);
	if (b)
		return reply_copy(e, b, p, data, len);
	parcel_has(p, data, len);
	return long_send(e, NULL, p);
}

int tern_reply_data_array(tern *t, const tern_msg *m, unsigned id, const void *data, size_t len,
			  unsigned n, const uint64_t *words)
{
	struct endpoint *e = given(t)->own;
	int rc = rules_reply(e, m, id, n, len);
	if (!rc)
		rc = payload_missing(data, id, len);
	if (rc)
		return rc;
	payload_forget_reply(e);
	struct parcel p = parcel_of(id, n, words);
	return len > TERN_PAYLOAD_MAX ? reply_long(e, &p, data, len) : reply_with(e, &p, data, len);
}

int tern_reply_payload_(tern *t, const tern_msg *m, unsigned id, const void *data, unsigned n,
			size_t len, TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return tern_reply_data_array(given(t), m, id, data, len, n, words);
}

/* -- Tern's own messages ------------------------------------------------------------ */

int layer_request(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		  unsigned n, const uint64_t *words)
{
	struct parcel p = parcel_of(TERN_HANDLER_MAX + id, n, words);
	if (data && len - 1 < TERN_PAYLOAD_MAX && n <= TERN_LINE_WORDS && dst < e->t->reach &&
	    payload_quick(e->t, dst, p.bits, data, len, p.word[0], p.word[1], p.word[2], p.word[3],
			  p.word[4], p.word[5]))
		return 0;
	INSIDE struct scope scope = scope_open(e->t); /* some calls come from outside of one */
	int rc = rules_program(e, "an operation that sends a request");
	if (rc)
		return rc;
	return data ? data_copy(e, dst, &p, data, len) : send_request(e, dst, &p);
}

int layer_reply_more(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		     unsigned n, const uint64_t *words)
{
	struct parcel p = parcel_of(TERN_HANDLER_MAX + id, n, words);
	struct block *b = NULL;
	if (data && send_reply_ready(e, dst) &&
	    !reply_carries(&e->site.peer[dst].answer, &p, data, len)) {
		/* The reserve only where the gate stays closed until the peer has given it back. */
		b = reply_take(e, dst, 0, e->site.peer[dst].owing);
		if (!b)
			return -EAGAIN;
		memcpy(b->data, data, len); /* cost: base write */
		parcel_has(&p, b->data, len);
		block_set(b, BLOCK_SENT);
	}
	int rc = send_reply_to(e, dst, &p);
	if (rc && b)
		block_set(b, BLOCK_FREE);
	return rc;
}

void message_become(tern *t, const tern_msg *piece, unsigned id, unsigned n, const uint64_t *words,
		    const char *data, size_t len)
{
	tern_msg *m = (tern_msg *)(uintptr_t)piece;
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	head &= ~(TERN_HEAD_PAYLOAD | (uint64_t)(TERN_HANDLER_SLOTS - 1) << TERN_ID_SHIFT |
		  TERN_HEAD_WORDS);
	if (data) {
		head |= TERN_HEAD_PAYLOAD;
		m->payload = (uint64_t)(data - (const char *)m) << TERN_LEN_BITS | len;
	}
	for (unsigned i = 0; i < n; i++)
		*(i < TERN_LINE_WORDS ? &m->word[i] : &m[1].word[i - TERN_LINE_WORDS]) = words[i];
	/* The lap stays: to the ring it is the same line. */
	atomic_store_explicit(&m->head, head | (uint64_t)id << TERN_ID_SHIFT | n,
			      memory_order_relaxed);
	t->handler[id](t, m);
}

void payload_return(struct endpoint *e)
{
	if (e->block && !e->block_kept)
		block_set(e->block, BLOCK_FREE);
	e->block_kept = e->block != NULL;
	e->block = NULL;
}

int layer_reply(struct endpoint *e, unsigned id, const void *data, size_t len, unsigned n,
		const uint64_t *words)
{
	struct parcel p = parcel_of(TERN_HANDLER_MAX + id, n, words);
	/* A peer may send in the reply class what is a request: it has no lane for an answer. */
	if (TERN_UNLIKELY(e->inlet && e->inlet->kind == TERN_KIND_REPLY))
		return -EBADMSG;
	payload_forget_reply(e);
	return data ? reply_with(e, &p, data, len) : send_reply(e, &p);
}
