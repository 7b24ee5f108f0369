/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_BASE_NEAREST_H
#define TERN_BASE_NEAREST_H

#include <stddef.h>

/* The one of `n` names that takes the fewest edits to become `word`: for "did you mean". */
const char *nearest_name(const char *word, const char *const *names, size_t n);

#endif
