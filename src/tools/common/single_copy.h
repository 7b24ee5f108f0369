/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the kernel copies between the memory of two ranks. */
#ifndef TERN_TOOLS_COMMON_SINGLE_COPY_H
#define TERN_TOOLS_COMMON_SINGLE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Tries it with two processes. When it does not work, `why` gets the reason and what to do about
 * it.
 */
bool single_copy_usable(char *why, size_t len);

#endif
