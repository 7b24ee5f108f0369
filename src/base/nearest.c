/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <limits.h>
#include <string.h>

static unsigned least_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits that turn `a` into `b`; one row, as names are short. */
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
