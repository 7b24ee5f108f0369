/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern top` shows: figures of a job, as rates between two looks at it. */
#ifndef TERN_TOOLS_WATCH_TOP_H
#define TERN_TOOLS_WATCH_TOP_H

#include <stdio.h>

#include "tools/watch/watch.h"

/* One handler, at all ranks that count. */
struct top_handler {
	unsigned id;
	uint64_t messages, bytes, timed, ticks; /* since the job began */
	double rate, byte_rate;                 /* per second */
};

enum { TOP_HANDLERS = 1024 };

/* What ranks are ordered by: their number, or a figure, the largest first. */
enum top_column { BY_RANK, BY_HANDLED, BY_SENT, BY_BYTES, BY_QUEUE, BY_ASLEEP, BY_STALLS, COLUMNS };

struct top {
	struct watch watch;
	enum top_column by;
	double seconds;                 /* between the looks, */
	struct rank_view *before, *now; /* which saw these: one a rank, then one a worker */
	struct top_handler handler[TOP_HANDLERS];        /* the busiest first */
	struct top_handler handler_before[TOP_HANDLERS]; /* [number] */
	uint64_t looked;
	uint32_t session; /* that `handler_before` is of */
};

bool top_begin(struct top *t); /* of the job that has been found: t->watch */
void top_close(struct top *t);
bool top_over(const struct top *t); /* every rank has ended */
void top_look(struct top *t);       /* the next look; rates are those since the one before */

/* A table, with so many ranks at most, the first in that order. */
void top_print(const struct top *t, uint32_t ranks, FILE *to);

#endif
