/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory straight from the system, for what the library allocates where a handler may be running: one that
 * interrupts the program's own malloc() must not call malloc().
 */
#ifndef TERN_BASE_PAGES_H
#define TERN_BASE_PAGES_H

#include <stddef.h>

/* `bytes` of zeros, aligned to a page, or to `align` if that is more; NULL if there are none. */
void *pages_take(size_t bytes, size_t align);
void pages_give(void *p, size_t bytes); /* as many as were taken; `p` may be NULL */

#endif
