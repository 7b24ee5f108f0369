/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts: bytes as hexadecimal digits, and the name that a misspelt one may have meant. */
#ifndef TERN_BASE_TEXT_H
#define TERN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Two digits for each byte, and a 0. */
void hex_write(char *text, const void *bytes, size_t len);
/* False if `text` is not 2 * len digits. */
bool hex_read(const char *text, void *bytes, size_t len);

/* The one of `n` names that takes the fewest edits to become `word`: for "did you mean". */
const char *nearest_name(const char *word, const char *const *names, size_t n);

#endif
