/* SPDX-License-Identifier: BSD-3-Clause */
/* Composing in place: claims of blocks for requests and replies, and their commits. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/long.h"
#include "core/payload.h"
#include "endpoint/watched.h"

static int claim_checked(tern *t, uint32_t dst, size_t len, struct block **out)
{
	struct endpoint *e = t->own;
	int rc = rules_program(e, "tern_claim()");
	if (!rc)
		rc = rules_target(e, dst);
	if (!rc && len > TERN_REQUEST_MAX)
		rc = error_set(-EMSGSIZE,
			       "%zu bytes were claimed for rank %u; a request carries at most %d",
			       len, dst, TERN_REQUEST_MAX);
	return rc ? rc : block_claim(e, dst, len, out);
}

int tern_claim(tern *t, uint32_t dst, size_t len, void **claimed)
{
	INSIDE struct scope scope = scope_given(t);
	struct block *b;
	int rc = claim_checked(t, dst, len, &b);
	if (!rc)
		*claimed = b->data;
	return rc;
}

/* The block behind a pointer that the program says it has claimed. */
static int claim_find(struct endpoint *e, void *claimed, struct block **out)
{
	struct block *b = block_of(claimed);
	if (e->forked)
		return rules_forked(e);
	for (unsigned i = 0; claimed && i < e->nets; i++)
		if (net_ours(e->net[i], b) && block_is(b, BLOCK_CLAIMED) && b != e->reply.block) {
			*out = b;
			return 0;
		}
	return error_set(-EINVAL, "%p is not an open claim of rank %u", claimed, e->t->rank);
}

int tern_commit_array(tern *t, void *claimed, unsigned id, unsigned n, const uint64_t *words)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	struct block *b;
	int rc = claim_find(e, claimed, &b);
	if (!rc)
		rc = rules_send(e, b->peer, id, n, b->len);
	if (rc)
		return rc;
	struct parcel p = parcel_of(id, n, words);
	parcel_has(&p, b->data, b->len);
	return block_send(e, b, &p);
}

int tern_commit_words_(tern *t, void *claimed, unsigned n, unsigned id, TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return tern_commit_array(given(t), claimed, id, n, words);
}

/* Whether `b` is the last claim for the reply to the request in hand, in its own block or ours. */
static bool reply_claimed(const struct endpoint *e, const struct block *b)
{
	if (!in_handler(e) || e->reply.cursor != e->inlet->cursor ||
	    e->reply.leaf != e->inlet->leaf)
		return false;
	return e->reply.block ? b == e->reply.block : e->block && b == e->block && !e->block_kept;
}

int tern_abandon(tern *t, void *claimed)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	struct block *b = block_of(claimed);
	if (reply_claimed(e, b)) { /* in the request's block there is nothing to give back */
		payload_forget_reply(e);
		e->reply.leaf = ~e->inlet->leaf; /* so that it cannot be committed */
		return 0;
	}
	int rc = claim_find(e, claimed, &b);
	if (!rc)
		block_set(b, BLOCK_FREE);
	return rc;
}

/* -- Replies --------------------------------------------------------------------- */

static int reply_claim_checked(struct endpoint *e, const tern_msg *m, size_t len)
{
	int rc = rules_handling(e, m, "tern_reply_claim()");
	if (!rc && e->inlet->kind != TERN_KIND_REQUEST)
		rc = error_set(
			-EPERM,
			"tern_reply_claim() was called in a reply handler, which sends nothing");
	if (!rc && e->item)
		rc = item_refuses(e, "tern_reply_claim()");
	if (!rc && m != e->t->current && !watched_first(e, m))
		rc = error_set(-EALREADY, "the request from rank %u has been answered already",
			       inlet_source(e->inlet));
	if (!rc && len > TERN_REQUEST_MAX)
		rc = error_set(
			-EMSGSIZE,
			"%zu bytes were claimed for a reply to rank %u; a reply carries at most %d",
			len, inlet_source(e->inlet), TERN_REQUEST_MAX);
	return rc;
}

static struct block *reply_fresh(struct endpoint *e, size_t len)
{
	if (len <= TERN_PAYLOAD_MAX)
		return reply_block(e);
	struct block *b = reply_large(e, len);
	return b ? b : long_claim(e);
}

int tern_reply_claim(tern *t, const tern_msg *m, size_t len, enum tern_claim_from from,
		     void **claimed)
{
	struct endpoint *e = given(t)->own;
	int rc = reply_claim_checked(e, m, len);
	if (rc)
		return rc;
	size_t has;
	tern_msg_data(m, &has);
	bool same = from != TERN_CLAIM_FRESH && e->block && !e->block_kept && len <= has;
	bool copied = from != TERN_CLAIM_FRESH && e->carrying && len <= has;
	if (from == TERN_CLAIM_SAME && !same && !copied)
		return error_set(
			-ENOBUFS,
			"a reply of %zu bytes to rank %u cannot use the block of its request, "
			"which has %zu: claim a fresh one",
			len, inlet_source(e->inlet),
			(e->block && !e->block_kept) || e->carrying ? has : 0);
	payload_forget_reply(e);
	struct block *fresh = same ? NULL : reply_fresh(e, len);
	if (!same && !fresh)
		return error_set(-ENOMEM, "claiming a reply of %zu bytes to rank %u: no memory",
				 len, inlet_source(e->inlet));
	e->reply.block = fresh;
	e->reply.len = len;
	e->reply.cursor = e->inlet->cursor;
	e->reply.leaf = e->inlet->leaf;
	*claimed = block_bytes(same ? e->block : fresh);
	if (copied)
		memcpy(*claimed, tern_msg_data(m, NULL), has);
	return 0;
}

int tern_claim_shorten(tern *t, void *claimed, size_t len)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	struct block *b = block_of(claimed);
	bool reply = reply_claimed(e, b);
	int rc = reply ? 0 : claim_find(e, claimed, &b);
	if (rc)
		return rc;
	size_t has = reply ? e->reply.len : b->len;
	if (len > has)
		return error_set(-EMSGSIZE, "a claim of %zu bytes cannot be shortened to %zu", has,
				 len);
	if (reply)
		e->reply.len = len;
	else
		b->len = (uint32_t)len;
	return 0;
}

/* The same bytes in a block that a short reply can have. */
static int reply_moved(struct endpoint *e, struct block *from, struct parcel *p)
{
	int rc = reply_copy(e, reply_block(e), p, from->data, p->len);
	block_set(from, BLOCK_FREE);
	return rc;
}

int tern_reply_commit_array(tern *t, const tern_msg *m, void *claimed, unsigned id, unsigned n,
			    const uint64_t *words)
{
	struct endpoint *e = given(t)->own;
	int rc = rules_reply(e, m, id, n, e->reply.len);
	if (rc)
		return rc;
	struct block *b = block_of(claimed);
	if (!reply_claimed(e, b))
		return error_set(-EINVAL, "%p was not given by tern_reply_claim() for this request",
				 claimed);
	struct parcel p = parcel_of(id, n, words);
	parcel_has(&p, b->data, e->reply.len);
	const struct net *net = e->site.peer[e->inlet->peer].net;
	bool fresh = e->reply.block != NULL;
	e->reply.block = NULL;
	if (fresh && long_has(e, b)) /* and perhaps it is shorter by now */
		return p.len > TERN_PAYLOAD_MAX ? long_send(e, b, &p) : reply_moved(e, b, &p);
	if (fresh)
		return reply_send(e, b, &p);
	if (p.len > TERN_PAYLOAD_MAX && !(net->provides & PROVIDES_SHARED))
		return long_send(e, NULL, &p);
	rc = send_reply(e, &p); /* the block is the requester's and goes home */
	e->block_kept = rc == 0;
	return rc;
}

int tern_reply_commit_words_(tern *t, const tern_msg *m, void *claimed, unsigned n, unsigned id,
			     TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return tern_reply_commit_array(given(t), m, claimed, id, n, words);
}
