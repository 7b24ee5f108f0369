/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication segments. A segment's number holds its rank, its place in the table
 * and how often that place has been used, so a number that is stale or another
 * rank's is known at arrival; the low bits are the offset.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/word.h"

/* rank: 16 bits, generation: 8, then offset: 32, index: 8. The index lies above the offset. */
static tern_segment segment_number(const struct mem *m, unsigned index)
{
	return (uint64_t)m->rank << 48 | (uint64_t)m->segment[index].generation << 40 |
	       (uint64_t)index << 32;
}

static size_t segment_offset(tern_segment s)
{
	return s & 0xffffffff;
}

static struct segment *segment_find(struct mem *m, tern_segment s)
{
	struct segment *g = &m->segment[s >> 32 & 0xff];
	bool is = g->open && s >> 48 == m->rank && (s >> 40 & 0xff) == g->generation;
	return is ? g : NULL;
}

int tern_segment_open(tern *t, void *base, size_t bytes, tern_segment_end *end, void *arg,
		      tern_segment *s)
{
	INSIDE struct scope scope = scope_given(t);
	int refused = rules_rank(t->own, "tern_segment_open()");
	if (refused)
		return refused;
	struct mem *m = mem_of(t);
	if (!base || !bytes || bytes >> 32)
		return error_set(
			-EINVAL,
			"a segment of %zu bytes at %p was asked for; it has 1 byte to 4 GiB", bytes,
			base);
	for (unsigned i = 0; i < TERN_SEGMENTS_MAX; i++) {
		struct segment *g = &m->segment[i];
		if (g->open)
			continue;
		*g = (struct segment){ true, (uint8_t)(g->generation + 1), base, bytes, bytes, end,
				       arg };
		*s = segment_number(m, i);
		return 0;
	}
	return error_set(-ENOBUFS, "rank %u has %d segments open: none is free", m->rank,
			 TERN_SEGMENTS_MAX);
}

/*
 * All has come: the end function says how much more there will be. It may close the segment itself.
 */
static void segment_end(struct mem *m, struct segment *g)
{
	uint8_t generation = g->generation;
	size_t more = g->end ? g->end(m->e->t, g->base, g->arg) : 0;
	if (!g->open || g->generation != generation)
		return;
	g->left = more < g->bytes ? more : g->bytes;
	g->open = g->left != 0;
}

static int segment_own(struct mem *m, tern_segment s, const char *call, struct segment **out)
{
	if (m->e->forked)
		return rules_forked(m->e);
	*out = segment_find(m, s);
	return *out ? 0
		    : error_set(-EINVAL, "%s was given a segment that rank %u has not open", call,
				m->rank);
}

int tern_segment_shorten(tern *t, tern_segment s, size_t bytes)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	struct segment *g;
	int rc = segment_own(m, s, "tern_segment_shorten()", &g);
	if (!rc && bytes > g->left)
		rc = error_set(-EINVAL,
			       "a segment that expects %zu more bytes was shortened by %zu",
			       g->left, bytes);
	if (rc)
		return rc;
	g->left -= bytes;
	if (!g->left)
		segment_end(m, g);
	return 0;
}

int tern_segment_close(tern *t, tern_segment s)
{
	INSIDE struct scope scope = scope_given(t);
	struct segment *g;
	int rc = segment_own(mem_of(t), s, "tern_segment_close()", &g);
	if (!rc)
		g->open = false;
	return rc;
}

/* -- Arrival -------------------------------------------------------------------------- */

/* Lays the data down; a code, and nothing written, if it does not belong there. */
static int segment_take(struct mem *m, tern_segment s, const void *data, size_t len)
{
	struct segment *g = segment_find(m, s);
	size_t at = segment_offset(s);
	if (!g || at > g->bytes || len > g->bytes - at) /* cost: protection control */
		return EFAULT;
	if (len > g->left) /* cost: flow control */
		return EOVERFLOW;
	word_copy(g->base + at, data, len);
	g->left -= len; /* cost: order control */
	if (!g->left)
		segment_end(m, g);
	return 0;
}

/* What is to be laid down: SEGMENT_WORDS as words behind the first `n`, or a payload. */
static const void *xfer_data(const tern_msg *msg, unsigned n, uint64_t words[4], size_t *len)
{
	if (tern_msg_count(msg) == n)
		return tern_msg_data(msg, len);
	for (unsigned i = 0; i < 4; i++)
		words[i] = tern_msg_word(msg, n + i);
	*len = SEGMENT_WORDS;
	return words;
}

static int xfer_take(tern *t, const tern_msg *msg, unsigned n)
{
	size_t len;
	uint64_t words[4];
	const void *data = xfer_data(msg, n, words, &len);
	return segment_take(mem_of(t), tern_msg_word(msg, 0), data, len);
}

void on_xfer(tern *t, const tern_msg *msg)
{
	message_answer(t, tern_msg_word(msg, 1), xfer_take(t, msg, 2), 0);
}

void on_reply_xfer(tern *t, const tern_msg *msg)
{
	if (xfer_take(t, msg, 1))
		error_warn(
			"rank %u refused a reply transfer from rank %u: the segment is not open, "
			"not that long, or full",
			t->rank, tern_msg_src(msg));
}

/* -- Sending --------------------------------------------------------------------------- */

/* SEGMENT_WORDS travel as words: the message is one line, and needs no room for data. */
static bool xfer_words(uint64_t words[4], const void *data, size_t len)
{
	if (len != SEGMENT_WORDS)
		return false;
	memcpy(words, data, SEGMENT_WORDS);
	return true;
}

static int xfer_send(struct mem *m, tern_segment s, const void *data, size_t len, tern_op *op)
{
	struct slot *slot;
	union word value;
	uint64_t words[6] = { s };
	int rc = slot_wait(m, (uint32_t)(s >> 48), &slot);
	if (rc)
		return rc;
	words[1] = slot_name(m, slot);
	bool line = xfer_words(&words[2], data, len);
	return slot_request(m, slot, op, MEM_XFER, line ? NULL : word_value(&value, data, len), len,
			    line ? 6 : 2, words);
}

int tern_segment_put_start(tern *t, tern_segment s, const void *data, size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP;
	int rc = op ? 0 : rules_wait(t->own, "a blocking tern_segment_put_start()");
	if (!rc)
		rc = rules_destination(t->own, (uint32_t)(s >> 48));
	if (!rc && len > (UINT64_C(1) << 32) - segment_offset(s))
		rc = error_set(-EMSGSIZE, "%zu bytes at offset %zu do not fit any segment", len,
			       segment_offset(s));
	for (size_t done = 0; !rc && done < len; done += TERN_PAYLOAD_MAX) {
		size_t part = len - done < TERN_PAYLOAD_MAX ? len - done : TERN_PAYLOAD_MAX;
		rc = xfer_send(mem_of(t), s + done, (const char *)data + done, part,
			       op ? op : &own);
	}
	return op_finish(t, op, &own, rc);
}

static int reply_check(tern *t, const tern_msg *m, tern_segment s, size_t len)
{
	int rc = rules_reply(t->own, m, 0, 0, len);
	if (rc == -ENXIO)
		rc = 0; /* handler 0 need not exist: the reply goes to one of Tern's own */
	if (!rc && len > TERN_PAYLOAD_MAX)
		rc = error_set(-EMSGSIZE,
			       "a reply transfer of %zu bytes to rank %u; it carries at most %d",
			       len, tern_msg_src(m), TERN_PAYLOAD_MAX);
	if (!rc && s >> 48 != tern_msg_src(m))
		rc = error_set(-EINVAL,
			       "a reply transfer to rank %u was given a segment of rank %u",
			       tern_msg_src(m), (unsigned)(s >> 48));
	/* The reply goes to the worker, and another thread has the rank's segments. */
	if (!rc && t->own->inlet->peer != tern_msg_src(m))
		rc = error_set(
			-ENOTSUP,
			"a reply transfer to a worker of rank %u: a segment belongs to the "
			"rank's own endpoint; reply with a payload, or with tern_put_reply()",
			tern_msg_src(m));
	return rc;
}

int tern_segment_reply(tern *t, const tern_msg *m, tern_segment s, const void *data, size_t len)
{
	union word value;
	uint64_t words[5] = { s };
	int rc = reply_check(given(t), m, s, len);
	if (rc)
		return rc;
	bool line = xfer_words(&words[1], data, len);
	return layer_reply(t->own, MEM_REPLY_XFER, line ? NULL : word_value(&value, data, len), len,
			   line ? 5 : 1, words);
}
