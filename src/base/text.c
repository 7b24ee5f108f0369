/* SPDX-License-Identifier: BSD-3-Clause */
/* Hexadecimal digits, and the nearest of several names. */
#include "base/text.h"

#include <limits.h>
#include <string.h>

/* -- Hexadecimal digits --------------------------------------------------------------------- */

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

/* -- Names that resemble each other --------------------------------------------------------- */

static unsigned least_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits that make `b` of `a`; one row, as names are short. */
static unsigned edits(const char *a, const char *b)
{
	unsigned row[64];
	size_t width = strlen(b);
	if (width >= sizeof row / sizeof *row)
		return UINT_MAX;
	for (unsigned j = 0; j <= width; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= width; j++) {
			unsigned least = corner + (a[i - 1] != b[j - 1]);
			corner = row[j];
			row[j] = least_of(least, least_of(row[j], row[j - 1]) + 1);
		}
	}
	return row[width];
}

const char *nearest_name(const char *word, const char *const *names, size_t n)
{
	const char *nearest = names[0];
	unsigned least = UINT_MAX;
	for (size_t i = 0; i < n; i++) {
		unsigned distance = edits(word, names[i]);
		if (distance < least) {
			least = distance;
			nearest = names[i];
		}
	}
	return nearest;
}
