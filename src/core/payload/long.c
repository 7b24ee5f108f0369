/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies above TERN_PAYLOAD_MAX. A reply always has room, and the gate promises one line and one
 * short block: a promise of a large block would cost 32 KiB for each pair. So such a reply takes a
 * large block only where both ranks share memory and one is free. Otherwise it travels as pieces of
 * TERN_PAYLOAD_MAX bytes, as the data of tern_put_reply() does: the first one has the room of any
 * reply, polls send the others when there is room, and the peer's requests stay behind the gate
 * until the last one has left (`owing`). Pieces wait only for the peer to handle replies, whose
 * handlers send nothing, so the argument of docs/design.md, No deadlock, holds for them.
 *
 * The receiver joins them in memory of its own, and the last piece becomes the message.
 */
#include "core/long.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/layers.h"
#include "core/wait.h"

/* The word of a piece: handler, words of the message, its length, and where the piece begins. */
enum { META_WORDS_SHIFT = 10, META_LEN_SHIFT = 16, META_AT_SHIFT = 32 };
_Static_assert(TERN_HANDLER_MAX <= 1 << META_WORDS_SHIFT, "a handler's number has its place");

/* One on its way here or from here, a claim for one, one that is kept, or none of them (FREE). */
struct long_reply {
	struct long_reply *next;
	uint32_t peer;
	bool sends;      /* polls send the rest */
	unsigned id, n;  /* the handler, and how many words */
	size_t len, at;  /* bytes, and how many of them have left, or come */
	const char *src; /* of one that leaves */
	uint64_t word[TERN_WORDS_MAX];
	_Alignas(TERN_LINE) struct large_block bytes;
};

/* -- Memory: kept until the endpoint closes ---------------------------------------------------- */

static struct long_reply *long_of(struct block *b)
{
	return (struct long_reply *)((uintptr_t)b - offsetof(struct long_reply, bytes));
}

/* In use from now on; NULL if there is no memory for one more. */
static struct long_reply *long_take(struct endpoint *e)
{
	struct long_reply *l = e->longs;
	while (l && !block_is(&l->bytes.block, BLOCK_FREE))
		l = l->next;
	if (!l) {
		l = memory_new(1, sizeof *l);
		if (!l)
			return NULL;
		l->next = e->longs;
		e->longs = l;
	}
	block_set(&l->bytes.block, BLOCK_CLAIMED);
	l->sends = false;
	return l;
}

struct block *long_claim(struct endpoint *e)
{
	struct long_reply *l = long_take(e);
	return l ? &l->bytes.block : NULL;
}

bool long_has(const struct endpoint *e, const struct block *b)
{
	const struct long_reply *l = e->longs;
	while (l && &l->bytes.block != b)
		l = l->next;
	return l;
}

void long_close(struct endpoint *e)
{
	for (struct long_reply *l = e->longs, *next; l; l = next) {
		next = l->next;
		memory_free(l);
	}
	e->longs = NULL;
}

/* -- Sending ----------------------------------------------------------------------------------- */

/*
 * The first piece has the first 7 words. The last one has the eighth, and as many lines as the
 * message that it becomes.
 */
static int piece_send(struct endpoint *e, struct long_reply *l)
{
	size_t left = l->len - l->at, len = left < TERN_PAYLOAD_MAX ? left : TERN_PAYLOAD_MAX;
	uint64_t words[TERN_WORDS_MAX] = { l->id | (uint64_t)l->n << META_WORDS_SHIFT |
					   (uint64_t)l->len << META_LEN_SHIFT |
					   (uint64_t)l->at << META_AT_SHIFT };
	unsigned n = 1;
	if (!l->at) {
		n += l->n < TERN_WORDS_MAX ? l->n : TERN_WORDS_MAX - 1;
		memcpy(&words[1], l->word, (n - 1) * sizeof *words);
	} else if (len == left && words_double(l->n)) {
		n = TERN_WORDS_MAX;
		words[1] = l->word[TERN_WORDS_MAX - 1];
	}
	int rc = layer_reply_more(e, l->peer, CORE_PIECE, l->src + l->at, len, n, words);
	if (!rc)
		l->at += len;
	return rc;
}

/* What there is room for; a peer that has left needs no more. How many pieces. */
static unsigned pieces_send(struct endpoint *e, struct long_reply *l)
{
	unsigned sent = 0;
	int rc = 0;
	while (l->at < l->len && !(rc = piece_send(e, l)))
		sent++;
	e->long_pieces += sent;
	if (l->at < l->len && rc == -EAGAIN)
		return sent;
	e->site.peer[l->peer].owing = false;
	l->sends = false;
	block_set(&l->bytes.block, BLOCK_FREE);
	return sent + 1;
}

static struct long_reply *long_sending(struct endpoint *e)
{
	struct long_reply *l = e->longs;
	while (l && !l->sends)
		l = l->next;
	return l;
}

unsigned long_progress(struct endpoint *e)
{
	unsigned sent = 0;
	for (struct long_reply *l = e->longs; l; l = l->next)
		if (l->sends)
			sent += pieces_send(e, l);
	layer_work(e, LAYERS_LONG, long_sending(e) != NULL);
	return sent;
}

int long_send(struct endpoint *e, struct block *claimed, const struct parcel *p)
{
	struct peer *to = &e->site.peer[e->inlet->peer];
	struct block *b = claimed ? claimed : long_claim(e);
	if (!b)
		return error_set(-ENOMEM, "a reply of %zu bytes to rank %u: no memory", p->len,
				 inlet_source(e->inlet));
	struct long_reply *l = long_of(b);
	if (to->lost) {
		block_set(b, BLOCK_FREE);
		return to->net->ops->check(to->net, e->inlet->peer);
	}
	l->peer = e->inlet->peer;
	l->id = (unsigned)(p->bits >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
	l->n = p->n;
	l->len = p->len;
	l->at = 0;
	l->src = p->payload;
	memcpy(l->word, p->word, p->n * sizeof *p->word);
	e->t->current = tern_answered_(e->t);
	to->owing = l->sends = true;
	pieces_send(e, l);
	if (!l->sends)
		return 0;
	/* The source is the program's again on return. */
	if (l->src != block_bytes(b))
		memcpy(block_bytes(b) + l->at, l->src + l->at, l->len - l->at);
	l->src = block_bytes(b);
	to->requests.accept = 0;
	layer_work(e, LAYERS_LONG, true);
	return 0;
}

static bool sending_over(struct endpoint *e, void *arg)
{
	(void)arg;
	return !long_sending(e);
}

static int sending_stop(struct endpoint *e, struct wait *w)
{
	return wait_stalled(e, w, e->long_pieces);
}

int long_flush(struct endpoint *e, bool leaves)
{
	struct wait w = { .bounded = true,
			  .call = leaves ? "tern_close" : "tern_barrier",
			  .lack = "a long reply",
			  .rule = leaves ? "tern_close()" : "tern_barrier()",
			  .stop = leaves ? sending_stop : NULL };
	return e->work & 1u << LAYERS_LONG ? wait_until(e, sending_over, NULL, &w) : 0;
}

/* -- Arrival ----------------------------------------------------------------------------------- */

/* BLOCK_SENT: of this peer, not whole yet. */
static struct long_reply *long_coming(struct endpoint *e, uint32_t peer)
{
	struct long_reply *l = e->longs;
	while (l && !(block_is(&l->bytes.block, BLOCK_SENT) && l->peer == peer))
		l = l->next;
	return l;
}

static struct long_reply *long_begun(struct endpoint *e, uint32_t peer)
{
	struct long_reply *l = long_coming(e, peer); /* whose rest never came */
	if (!l)
		l = long_take(e);
	if (!l) {
		poll_trouble_warn(e, error_set(-ENOMEM,
					       "a reply above %d bytes came from rank %u, and "
					       "there is no memory for it: it is lost",
					       TERN_PAYLOAD_MAX, inlet_source(e->inlet)));
		return NULL;
	}
	block_set(&l->bytes.block, BLOCK_SENT);
	l->peer = peer;
	l->at = 0;
	return l;
}

static bool piece_fits(const struct long_reply *l, const tern_msg *m, size_t at, size_t len)
{
	bool last = at + len == l->len;
	return len && at == l->at && len <= l->len - at && l->len <= TERN_REQUEST_MAX &&
	       l->id < TERN_HANDLER_MAX && l->n <= TERN_WORDS_MAX &&
	       (!last || !words_double(l->n) || tern_msg_count(m) == TERN_WORDS_MAX);
}

static void long_arrived(tern *t, const tern_msg *m, struct long_reply *l)
{
	struct endpoint *e = t->own;
	payload_return(e);
	block_set(&l->bytes.block, BLOCK_KEPT); /* until the handler returns, or while it is kept */
	e->block = &l->bytes.block;
	e->block_kept = false;
	message_become(t, m, l->id, l->n, l->word, block_bytes(e->block), l->len);
}

static void on_piece(tern *t, const tern_msg *m)
{
	struct endpoint *e = t->own;
	size_t len;
	const char *data = tern_msg_data(m, &len);
	uint64_t meta = tern_msg_word(m, 0);
	size_t at = meta >> META_AT_SHIFT;
	struct long_reply *l = at ? long_coming(e, e->inlet->peer) : long_begun(e, e->inlet->peer);
	if (!l)
		return; /* its beginning was lost, and has been told of */
	if (!at) {
		l->id = (unsigned)meta % (1 << META_WORDS_SHIFT);
		l->n = (unsigned)(meta >> META_WORDS_SHIFT) %
		       (1 << (META_LEN_SHIFT - META_WORDS_SHIFT));
		l->len = meta >> META_LEN_SHIFT & UINT16_MAX;
		for (unsigned i = 1; i < tern_msg_count(m); i++)
			l->word[i - 1] = tern_msg_word(m, i);
	}
	if (e->inlet->kind != TERN_KIND_REPLY || !piece_fits(l, m, at, len)) {
		poll_trouble_warn(e, error_set(-EBADMSG,
					       "rank %u sent a piece of a reply that does not fit "
					       "what came before; the reply was dropped",
					       inlet_source(e->inlet)));
		block_set(&l->bytes.block, BLOCK_FREE);
		return;
	}
	memcpy(block_bytes(&l->bytes.block) + at, data, len);
	l->at = at + len;
	if (l->at < l->len)
		return;
	if (l->n == TERN_WORDS_MAX)
		l->word[TERN_WORDS_MAX - 1] = tern_msg_word(m, 1);
	long_arrived(t, m, l);
}

void long_register(struct endpoint *e)
{
	layer_on(e, CORE_PIECE, on_piece);
}
