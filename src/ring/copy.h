/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies a short payload line by line, which is quicker than a call of memcpy(). */
#ifndef TERN_RING_COPY_H
#define TERN_RING_COPY_H

#include <string.h>
#include <tern/tern.h>

/* Fetches as many lines at `fetch` meanwhile. */
static inline void copy_lines(char *to, const char *data, size_t len, const char *fetch)
{
	size_t whole = len & ~(size_t)(TERN_LINE - 1);
	for (size_t i = 0; i < whole; i += TERN_LINE) {
		tern_prefetch_write_(fetch + i);
		memcpy(to + i, data + i, TERN_LINE);
	}
	if (whole < len) {
		tern_prefetch_write_(fetch + whole);
		memcpy(to + whole, data + whole, len - whole);
	}
}

#endif
