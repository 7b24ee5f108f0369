/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes on their way: what has been taken and not yet passed on is bytes[at .. len). */
#ifndef TERN_TOOLS_RUN_BUFFER_H
#define TERN_TOOLS_RUN_BUFFER_H

#include <stdbool.h>
#include <stdlib.h>

struct buffer {
	char *bytes;
	size_t at, len, room;
};

static inline size_t buffer_backlog(const struct buffer *b)
{
	return b->len - b->at;
}

/* Makes room for `more` bytes behind the last; false without memory. */
static inline bool buffer_reserve(struct buffer *b, size_t more)
{
	if (b->at == b->len)
		b->at = b->len = 0;
	if (b->len + more <= b->room)
		return true;
	size_t room = 2 * b->room > b->len + more ? 2 * b->room : b->len + more;
	char *bytes = realloc(b->bytes, room);
	if (!bytes)
		return false;
	b->bytes = bytes;
	b->room = room;
	return true;
}

#endif
