/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for what handlers make. malloc() is not for them: an interrupt may find the program in the
 * middle of it, with its lock taken. Each piece is a mapping of its own, so this is for few and
 * large ones.
 */
#ifndef TERN_BASE_MEMORY_H
#define TERN_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, and aligned to `align`, a power of two; NULL if there is none. */
void *memory_aligned(size_t align, size_t bytes);
void *memory_new(size_t count, size_t bytes); /* of `count` elements; aligned to 64 */
void memory_free(void *p);                    /* NULL is allowed */

/*
 * Frees an object of the program's when GRAVES more have been freed: until then it can be read, and
 * whoever still uses it can be told so. `mapped`: it came from memory_new(), and not from malloc().
 */
enum { GRAVES = 16 };
void memory_bury(void *p, bool mapped);

#endif
