/* SPDX-License-Identifier: BSD-3-Clause */
/* What payload.c and claim.c share: the blocks of requests and replies. */
#ifndef TERN_CORE_PAYLOAD_H
#define TERN_CORE_PAYLOAD_H

#include "core/core.h"

static inline void parcel_has(struct parcel *p, const char *data, size_t len)
{
	p->bits |= TERN_HEAD_PAYLOAD;
	p->payload = data;
	p->len = len;
}

/* A block for a request to a rank, or to the worker of that id; serves what arrives until then. */
int block_claim(struct endpoint *e, uint32_t dst, size_t len, struct block **out);

/* Sends a claimed block; on error it stays claimed. */
int block_send(struct endpoint *e, struct block *b, const struct parcel *p);

/* A block for the reply to the current request. There is one. */
struct block *reply_block(struct endpoint *e);

/* A large block, where one is free and this process can write it for the peer; else NULL. */
struct block *reply_large(struct endpoint *e, size_t len);

/* Sends the reply that lies in `b`, or a copy of `data` in it; on error the block is free. */
int reply_send(struct endpoint *e, struct block *b, const struct parcel *p);
int reply_copy(struct endpoint *e, struct block *b, struct parcel *p, const void *data, size_t len);

int item_refuses(const struct endpoint *e, const char *what);

#endif
