/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies above TERN_PAYLOAD_MAX, where no large block carries them. */
#ifndef TERN_CORE_LONG_H
#define TERN_CORE_LONG_H

#include "core/core.h"

void long_register(struct endpoint *e);
/* Private memory for TERN_REQUEST_MAX bytes, until BLOCK_FREE is set; NULL if there is none. */
struct block *long_claim(struct endpoint *e);
bool long_has(const struct endpoint *e, const struct block *b); /* whether it came from there */
/*
 * Answers the request that is being handled. `claimed`, from long_claim(), is given back; NULL: one
 * is taken. What the parcel names may be changed on return.
 */
int long_send(struct endpoint *e, struct block *claimed, const struct parcel *p);
unsigned long_progress(struct endpoint *e); /* as progress in struct layer */
/* Waits until all have left; before a close, while there is progress. */
int long_flush(struct endpoint *e, bool leaves);
void long_close(struct endpoint *e);

#endif
