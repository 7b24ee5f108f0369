/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scattered memory in messages: a message describes runs of the home rank's memory, and has their
 * bytes one after another, or asks for them. A description is a part of the list, cut to what the
 * message moves of it. What comes is checked, all of it, before a byte moves.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layer.h"
#include "mem/mem.h"
#include "mem/word.h"

/*
 * How a part travels: its address, and its bytes in this message with its dimensions in the low
 * byte. With dimensions: the run, how many bytes to pass first, and pairs of count and stride.
 */
enum {
	WORDS_RUN = 2,
	WORDS_STRIDED = 4,
	PACK_WORDS = TERN_PAYLOAD_MAX / sizeof(uint64_t),
	DIMS_BITS = 8,
};

/* -- At the rank that asks ------------------------------------------------------------------- */

/* A message: the description, and behind it the bytes of a put. */
struct pack {
	uint64_t word[PACK_WORDS];
	size_t words;
	size_t bytes; /* that it moves */
	size_t room;  /* bytes for both */
};

/* What is left of the current part. */
static size_t part_left(const struct run_walk *w)
{
	size_t bytes;
	if (!w->part)
		return parts_left(w);
	part_bytes(w->part, &bytes);
	return bytes - parts_passed(w);
}

/* Bytes of the current part that fit behind its description; a word is not cut. */
static size_t pack_fit(const struct pack *k, const struct run_walk *w, unsigned dims)
{
	size_t head = (dims ? WORDS_STRIDED + 2 * dims : WORDS_RUN) * sizeof(uint64_t);
	size_t left = part_left(w);
	if (k->room < head)
		return 0;
	size_t fit = k->room - head;
	if (fit >= left)
		return left;
	size_t cut = w->len <= WORD_MOST ? (w->done + fit) % w->len : fit % WORD_MOST;
	return cut < fit ? fit - cut : 0;
}

/* The next `len` bytes, which lie in one run. */
static void pack_run(struct pack *k, const struct run_walk *w, size_t len)
{
	k->word[k->words++] = w->at + w->done;
	k->word[k->words++] = (uint64_t)len << DIMS_BITS;
}

/* The next `len` bytes: only the rows that have them, so that the home rank looks at no others. */
static void pack_strided(struct pack *k, const struct run_walk *w, size_t len)
{
	const tern_part *p = w->part;
	unsigned dims = p->dims;
	size_t skip = parts_passed(w), row = w->len, count = 0;
	tern_addr at = p->addr;
	for (unsigned d = w->low; d + 1 < p->dims; d++)
		row *= p->count[d];
	for (; dims > w->low; row /= p->count[--dims - 1]) {
		size_t first = skip / row;
		count = (skip + len - 1) / row - first + 1;
		at += (tern_addr)(int64_t)p->stride[dims - 1] * first;
		skip -= first * row;
		if (count > 1 || dims == w->low + 1)
			break;
	}
	const uint64_t head[] = { at, (uint64_t)len << DIMS_BITS | (dims - w->low), w->len, skip };
	memcpy(&k->word[k->words], head, sizeof head);
	k->words += WORDS_STRIDED;
	for (unsigned d = w->low; d < dims; d++) {
		k->word[k->words++] = d + 1 < dims ? p->count[d] : count;
		k->word[k->words++] = (uint64_t)(int64_t)p->stride[d];
	}
}

/* Describes as much of what is at `rank` as fits, together with its bytes if they go along. */
static void pack_describe(struct pack *k, struct run_walk *w, uint32_t rank)
{
	while (w->len && tern_addr_rank(w->at) == rank) {
		unsigned dims = w->part ? w->part->dims - w->low : 0;
		size_t len = pack_fit(k, w, dims), words = k->words;
		if (!len)
			return;
		if (dims && len > parts_left(w))
			pack_strided(k, w, len);
		else
			pack_run(k, w, len);
		k->bytes += len;
		k->room -= len + (k->words - words) * sizeof(uint64_t);
		parts_pass(w, len);
	}
}

static int pack_send(struct mem *m, struct transfer *x, struct slot *s, struct pack *k)
{
	size_t head = k->words * sizeof(uint64_t);
	const uint64_t words[] = { slot_name(m, s), k->words, k->bytes };
	struct run_walk *local = &m->slots.walk[s - m->slots.slot];
	*local = x->runs.local;
	if (!x->put) {
		s->len = k->bytes;
		return layer_request(m->e, s->rank, MEM_GET_PARTS, k->word, head, 3, words);
	}
	parts_copy(local, (char *)k->word + head, k->bytes, true);
	return layer_request(m->e, s->rank, MEM_PUT_PARTS, k->word, head + k->bytes, 3, words);
}

ptrdiff_t pack_move(struct mem *m, struct transfer *x, uint32_t rank)
{
	struct slot *s = chunk_slot(m, x, rank);
	struct run_walk remote = x->runs.remote;
	struct pack k;
	if (!s)
		return 0;
	k.words = k.bytes = 0;
	k.room = TERN_PAYLOAD_MAX;
	pack_describe(&k, &remote, rank);
	return chunk_sent(x, s, k.bytes, pack_send(m, x, s, &k));
}

/* -- At the home rank -------------------------------------------------------------------------- */

/* A description being read, and the part that it has next. */
struct unpack {
	const char *words; /* as they came: bytes from outside */
	size_t left;       /* of them */
	tern_part part;
	size_t skip, bytes;
	bool heap;
	char *first; /* of the memory that the part covers */
	size_t covers;
	size_t count[TERN_DIMS_MAX];
	ptrdiff_t stride[TERN_DIMS_MAX];
};

static uint64_t unpack_word(struct unpack *u)
{
	uint64_t word;
	memcpy(&word, u->words, sizeof word);
	u->words += sizeof word;
	u->left--;
	return word;
}

/* Whether the next part is whole, and has the bytes that it is said to. */
static bool unpack_part(struct unpack *u)
{
	size_t total;
	if (u->left < WORDS_RUN)
		return false;
	u->part = (tern_part){ .addr = unpack_word(u), .count = u->count, .stride = u->stride };
	uint64_t second = unpack_word(u);
	u->bytes = u->part.run = second >> DIMS_BITS;
	u->part.dims = second & ((1u << DIMS_BITS) - 1);
	u->skip = 0;
	if (!u->part.dims)
		return u->bytes > 0;
	if (u->part.dims > TERN_DIMS_MAX || u->left < WORDS_STRIDED - 2 + 2 * u->part.dims)
		return false;
	u->part.run = unpack_word(u);
	u->skip = unpack_word(u);
	for (unsigned d = 0; d < u->part.dims; d++) {
		u->count[d] = unpack_word(u);
		u->stride[d] = (ptrdiff_t)unpack_word(u);
	}
	return u->bytes > 0 && part_bytes(&u->part, &total) && u->skip < total &&
	       u->bytes <= total - u->skip;
}

/* Finds the memory that it covers: all of it is this rank's, or none is used. */
static bool unpack_reach(struct mem *m, struct unpack *u)
{
	int64_t before, beyond;
	tern_addr a = u->part.addr;
	if (tern_addr_rank(a) != m->rank || !part_extent(&u->part, &before, &beyond) ||
	    before < -(int64_t)addr_offset(a) || __builtin_sub_overflow(beyond, before, &u->covers))
		return false;
	u->heap = addr_in_heap(a);
	u->first = mem_reach(m, a + (tern_addr)before, u->covers);
	if (!u->first)
		return false;
	u->part.base = u->first - before;
	return true;
}

/* Registered memory may have been unmapped: then the kernel says so. */
static int unpack_guarded(struct run_walk *w, char *bytes, size_t len, bool put)
{
	int rc = 0;
	for (size_t n; len && !rc; len -= n, bytes += n) {
		char *own = (char *)(uintptr_t)w->at + w->done;
		n = parts_left(w) < len ? parts_left(w) : len;
		rc = mem_copy_guarded(put ? own : bytes, put ? bytes : own, n);
		parts_pass(w, n);
	}
	return -rc;
}

static int unpack_copy(struct unpack *u, char *bytes, bool put)
{
	struct run_walk w;
	parts_begin(&w, &u->part, 1, false);
	parts_pass(&w, u->skip);
	if (put)
		word_before_put();
	if (!u->heap && !mem_there(u->first, u->covers, put))
		return unpack_guarded(&w, bytes, u->bytes, put);
	parts_copy(&w, bytes, u->bytes, !put);
	return 0;
}

/* Whether all of a description can be used, and is of `len` bytes. */
static bool unpack_check(struct mem *m, struct unpack u, size_t len)
{
	while (u.left) {
		if (!unpack_part(&u) || !unpack_reach(m, &u) || u.bytes > len)
			return false;
		len -= u.bytes;
	}
	return len == 0;
}

static int unpack_move(struct mem *m, const char *words, size_t n, char *bytes, size_t len,
		       bool put)
{
	struct unpack u = { .words = words, .left = n };
	int error = unpack_check(m, u, len) ? 0 : EFAULT;
	while (!error && u.left) {
		error = unpack_part(&u) && unpack_reach(m, &u) ? unpack_copy(&u, bytes, put)
							       : EFAULT;
		bytes += u.bytes;
	}
	return error;
}

void on_put_parts(tern *t, const tern_msg *msg)
{
	size_t len, n = tern_msg_word(msg, 1), most;
	char *data = (char *)(uintptr_t)tern_msg_data(msg, &len);
	most = data ? len / sizeof(uint64_t) : 0;
	size_t head = n * sizeof(uint64_t);
	int error = n && n <= most ? unpack_move(mem_of(t), data, n, data + head, len - head, true)
				   : EFAULT;
	message_answer(t, tern_msg_word(msg, 0), error, 0);
}

void on_get_parts(tern *t, const tern_msg *msg)
{
	char bytes[TERN_PAYLOAD_MAX];
	size_t len, n = tern_msg_word(msg, 1), wanted = tern_msg_word(msg, 2);
	char *data = (char *)(uintptr_t)tern_msg_data(msg, &len);
	bool good = data && n && n <= len / sizeof(uint64_t) && wanted <= sizeof bytes;
	int error = good ? unpack_move(mem_of(t), data, n, bytes, wanted, false) : EFAULT;
	message_answer_data(t, tern_msg_word(msg, 0), error ? NULL : bytes, wanted);
}
