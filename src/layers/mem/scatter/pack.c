/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scattered memory in messages: a message describes runs of the home rank's memory, and has their
 * bytes one after another, or asks for them. What comes is checked, all of it, before a byte moves.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layer.h"
#include "mem/mem.h"
#include "mem/word.h"

/*
 * A description is a list of rows: runs of one length that lie equally far apart. A row travels as
 * the address of its first run, then the length of a run with their number above it, and of several
 * the way from one to the next.
 */
enum {
	ROW_WORDS = 3, /* at most */
	RUN_BITS = 16,
	RUN_MASK = (1 << RUN_BITS) - 1,
	PACK_WORDS = TERN_PAYLOAD_MAX / sizeof(uint64_t),
};
_Static_assert((int)TERN_PAYLOAD_MAX <= (int)RUN_MASK, "the length of a run has its place");

/* -- At the rank that asks ------------------------------------------------------------------- */

/* A message: the description, and behind it the bytes of a put. */
struct pack {
	uint64_t word[PACK_WORDS];
	size_t words;
	size_t bytes; /* that it moves */
};

/* Bytes that fit behind one more row. */
static size_t pack_room(const struct pack *k)
{
	size_t taken = (k->words + ROW_WORDS) * sizeof(uint64_t) + k->bytes;
	return taken < TERN_PAYLOAD_MAX ? TERN_PAYLOAD_MAX - taken : 0;
}

/* How much of one run fits; a word is not cut. */
static size_t pack_cut(const struct run_walk *w, size_t room)
{
	size_t left = parts_left(w);
	if (left <= room)
		return left;
	return w->len > WORD_MOST ? room - room % WORD_MOST : 0;
}

/* Describes as much of what is at `rank` as fits, together with its bytes if they go along. */
static void pack_describe(struct pack *k, struct run_walk *w, uint32_t rank)
{
	while (w->len && tern_addr_rank(w->at) == rank) {
		size_t room = pack_room(k), runs = parts_row(w, room);
		size_t run = runs ? w->len : pack_cut(w, room);
		runs = runs ? runs : 1;
		if (!run)
			return;
		k->word[k->words++] = w->at + w->done;
		k->word[k->words++] = (uint64_t)runs << RUN_BITS | run;
		if (runs > 1)
			k->word[k->words++] = (uint64_t)(int64_t)w->part->stride[w->low];
		k->bytes += runs * run;
		parts_pass(w, runs * run);
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
	pack_describe(&k, &remote, rank);
	return chunk_sent(x, s, k.bytes, pack_send(m, x, s, &k));
}

/* -- At the home rank -------------------------------------------------------------------------- */

/* A description being read, and its next row. */
struct unpack {
	const char *words; /* as they came: bytes from outside */
	size_t left;       /* of them */
	tern_addr at;
	size_t run, count;
	ptrdiff_t stride;
	char *first; /* of the memory that the row covers */
	size_t covers;
	ptrdiff_t begins; /* in it */
};

static uint64_t unpack_word(struct unpack *u)
{
	uint64_t word;
	memcpy(&word, u->words, sizeof word);
	u->words += sizeof word;
	u->left--;
	return word;
}

/* Whether the next row is whole. */
static bool unpack_row(struct unpack *u)
{
	if (u->left < ROW_WORDS - 1)
		return false;
	u->at = unpack_word(u);
	uint64_t shape = unpack_word(u);
	u->run = shape & RUN_MASK;
	u->count = shape >> RUN_BITS;
	if (u->count > 1 && !u->left)
		return false;
	u->stride = u->count > 1 ? (ptrdiff_t)unpack_word(u) : 0;
	return u->run && u->count;
}

/* Finds the memory that it covers: all of it is this rank's, or none is used. */
static bool unpack_reach(struct mem *m, struct unpack *u)
{
	const tern_part row = {
		.run = u->run, .dims = 1, .count = &u->count, .stride = &u->stride
	};
	int64_t before, beyond;
	if (!part_extent(&row, &before, &beyond) || before < -(int64_t)addr_offset(u->at) ||
	    __builtin_sub_overflow(beyond, before, &u->covers))
		return false;
	u->begins = -before;
	u->first = own_reach(m, u->at + (tern_addr)before, u->covers);
	return u->first;
}

/* Registered memory may have been unmapped: then the kernel says so. */
static int unpack_guarded(const struct unpack *u, char *bytes, bool put)
{
	char *own = u->first + u->begins;
	int rc = 0;
	for (size_t i = 0; i < u->count && !rc; i++, own += u->stride, bytes += u->run)
		rc = mem_copy_guarded(put ? own : bytes, put ? bytes : own, u->run);
	return -rc;
}

static int unpack_copy(const struct unpack *u, char *bytes, bool put)
{
	char *own = u->first + u->begins;
	ptrdiff_t beside = (ptrdiff_t)u->run;
	if (put)
		word_before_put();
	if (!addr_in_heap(u->at) && !mem_there(u->first, u->covers, put))
		return unpack_guarded(u, bytes, put);
	if (put)
		row_move(own, u->stride, bytes, beside, u->run, u->count);
	else
		row_move(bytes, beside, own, u->stride, u->run, u->count);
	return 0;
}

/* Whether all of a description can be used, and is of `len` bytes. */
static bool unpack_check(struct mem *m, struct unpack u, size_t len)
{
	for (; u.left; len -= u.run * u.count)
		if (!unpack_row(&u) || !unpack_reach(m, &u) || u.count > len / u.run)
			return false;
	return len == 0;
}

static int unpack_move(struct mem *m, const char *words, size_t n, char *bytes, size_t len,
		       bool put)
{
	struct unpack u = { .words = words, .left = n };
	int error = unpack_check(m, u, len) ? 0 : EFAULT;
	for (; !error && u.left; bytes += u.run * u.count)
		error = unpack_row(&u) && unpack_reach(m, &u) ? unpack_copy(&u, bytes, put)
							      : EFAULT;
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
