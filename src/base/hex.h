/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text: two digits each. */
#ifndef TERN_BASE_HEX_H
#define TERN_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

void hex_write(char *text, const void *bytes, size_t len); /* 2 * len digits and a 0 */
/* False if `text` is not just so many digits. */
bool hex_read(const char *text, void *bytes, size_t len);

#endif
