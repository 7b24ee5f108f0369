/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_MEM_STREAM_H
#define TERN_MEM_STREAM_H

#include <stddef.h>

/*
 * Copies past the caches: for a piece of a transfer that is larger than they are.
 * memcpy does so only when it sees the whole length, and a transfer moves in pieces.
 */
void stream_copy(void *to, const void *from, size_t len);

#endif
