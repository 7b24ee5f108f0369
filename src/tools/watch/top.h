/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern top` shows: figures of a job, as rates between two looks at it. */
#ifndef TERN_TOOLS_WATCH_TOP_H
#define TERN_TOOLS_WATCH_TOP_H

#include "tools/watch/watch.h"

enum top_column {
	TOP_RANK,
	TOP_HANDLED,
	TOP_SENT,
	TOP_BYTES,
	TOP_QUEUE,
	TOP_ASLEEP,
	TOP_STALLS,
	TOP_COLUMNS
};

/* One rank, or a worker, between two looks. */
struct top_row {
	uint32_t rank;
	unsigned worker; /* of the rank's: 1 for the first; 0: it is the rank */
	struct rank_view now;
	double figure[TOP_COLUMNS]; /* per second; TOP_QUEUE messages, TOP_ASLEEP a part of the time
				     */
};

/* On a network of packets, of all ranks together: per second. */
struct top_packets {
	bool any; /* since the job began */
	double sent, received, again, dropped;
};

/* One handler, at all ranks that count. */
struct top_handler {
	unsigned id;
	char name[HANDLER_TEXT];
	uint64_t messages, bytes, timed, ticks; /* since the job began */
	double rate, byte_rate;                 /* per second */
	double mean_ns;
};

enum { TOP_HANDLERS = 1024 };

struct top {
	struct watch watch;
	double seconds; /* between the looks */
	uint32_t counting;
	struct rank_view *before;
	struct top_row *row;    /* one a rank, */
	struct top_row *worker; /* and behind them one a worker, */
	unsigned workers;       /* so many of them open */
	struct top_handler handler[TOP_HANDLERS], handler_before[TOP_HANDLERS];
	unsigned handlers; /* that have had messages: the first in `handler`, the busiest first */
	struct top_packets packets;
	enum top_column sort;
	uint64_t looked;
	uint32_t session; /* that `handler_before` is of */
};

bool top_begin(struct top *t); /* of the job that has been found: t->watch */
void top_close(struct top *t);
bool top_over(const struct top *t); /* every rank has ended */
void top_look(struct top *t);       /* the next look; rates are those since the one before */
void top_order(struct top *t);      /* rows by the chosen column */

/* Calls `emit` for each line of the table, from the row `first` on; a text has no line end. */
enum top_line {
	TOP_LINE_HEAD,
	TOP_LINE_COLUMNS,
	TOP_LINE_ROW,
	TOP_LINE_WAITING, /* a row of one that waits */
	TOP_LINE_PACKETS,
	TOP_LINE_NAMES, /* of the columns of handlers */
	TOP_LINE_HANDLER,
};
typedef void top_emit(void *to, enum top_line line, const char *text);
void top_show(const struct top *t, uint32_t first, top_emit *emit, void *to);
/* The next worker of the row's rank behind `w`, or the first for NULL; NULL: no more. */
const struct top_row *top_worker(const struct top *t, const struct top_row *r,
				 const struct top_row *w);
void top_print(const struct top *t);
void top_json(const struct top *t);

/*
 * Shows the job on the terminal until q is pressed or it is over. False if there is no such
 * screen here.
 */
bool top_screen(struct top *t, double interval);

#endif
