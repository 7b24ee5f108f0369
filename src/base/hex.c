/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hex.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void hex_write(char *text, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[from[i] >> 4];
		text[2 * i + 1] = digits[from[i] & 15];
	}
	text[2 * len] = '\0';
}

bool hex_read(const char *text, void *bytes, size_t len)
{
	unsigned char *to = bytes;
	for (size_t i = 0; i < len; i++) {
		const char *high = text[2 * i] ? strchr(digits, text[2 * i]) : NULL;
		const char *low = high && text[2 * i + 1] ? strchr(digits, text[2 * i + 1]) : NULL;
		if (!low)
			return false;
		to[i] = (unsigned char)((high - digits) << 4 | (low - digits));
	}
	return text[2 * len] == '\0';
}

/* cost: base setup */
