/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A payload block: a line that says who may use it, then the bytes. Only the
 * owner takes a free block, so taking needs no read-modify-write; whoever the
 * message went to frees it, which is one store.
 *
 * There are two classes: blocks of TERN_PAYLOAD_MAX bytes, and large ones of TERN_REQUEST_MAX for
 * what is longer. A block of one class never takes the place of one of the other, so a
 * rank that is out of large blocks still sends short payloads, and every short block is there for
 * replies.
 */
#ifndef TERN_NET_BLOCK_H
#define TERN_NET_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <tern/tern.h>

enum block_state {
	BLOCK_FREE,
	BLOCK_CLAIMED, /* its owner composes in it */
	BLOCK_KEPT,    /* its owner keeps a message that came back in it */
	BLOCK_SENT,    /* in a message: with the receiver, or on its way back in a reply */
};

enum { BLOCK_HEAD = 52 };

struct block {
	/* A network may write before the payload what goes with it. */
	unsigned char head[BLOCK_HEAD];
	_Atomic uint32_t state;
	uint32_t peer; /* where it goes */
	uint32_t len;  /* bytes claimed */
	char data[TERN_PAYLOAD_MAX];
};

_Static_assert(sizeof(struct block) == 64 + TERN_PAYLOAD_MAX, "a block is a line and its bytes");

/* A large block begins as every block does, and its bytes go on. */
struct large_block {
	struct block block;
	char more[TERN_REQUEST_MAX - TERN_PAYLOAD_MAX];
};

_Static_assert(sizeof(struct large_block) == 64 + TERN_REQUEST_MAX, "its bytes have no gap");

/* The blocks that a rank sends its payloads from. */
struct pool {
	struct block block[TERN_POOL_BLOCKS];
};

static inline struct block *block_of(const void *data)
{
	return (struct block *)((uintptr_t)data -
				offsetof(struct block, data)); /* of NULL too: nobody's */
}

/* Where its bytes begin. Those of a large block go on behind `data`. */
static inline char *block_bytes(struct block *b)
{
	return (char *)b + offsetof(struct block, data);
}

static inline int block_is(const struct block *b, enum block_state state)
{
	/* block.R3, acquire; released in block_set(): whoever freed it has read it. */
	return atomic_load_explicit(&b->state, memory_order_acquire) == (uint32_t)state;
}

static inline void block_set(struct block *b, enum block_state state)
{
	atomic_store_explicit(&b->state, (uint32_t)state, memory_order_release); /* block.R3 */
}

/* Whether `b` is a whole block of the pool, exactly. */
static inline int pool_has(const struct pool *pool, const struct block *b)
{
	uintptr_t offset = (uintptr_t)b - (uintptr_t)pool;
	return offset < sizeof *pool && offset % sizeof *b == 0;
}

#endif
