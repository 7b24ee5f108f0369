/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace of one rank, as its file has it. */
#ifndef TERN_TOOLS_TRACE_FILE_H
#define TERN_TOOLS_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint/record.h"

struct track {
	const char *path;
	struct trace_head head;
	struct trace_record
		*record; /* in the order of their times, which are that rank's clock's */
	size_t records;
	/* Of each handler, and behind them of each call; "" if it has none. */
	char (*name)[RECORD_NAME_MOST + 1];
	bool cut; /* the file ends inside a record: the rank was killed while it wrote */
};

/* 0, or a negative code with a sentence that names the file and what is wrong with it. */
int track_read(struct track *t, const char *path);

/* Whether the rank closed its endpoint: if not, it was killed, or it still runs. */
bool track_closed(const struct track *t);

#endif
