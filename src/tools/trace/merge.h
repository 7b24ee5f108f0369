/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traces of a job's ranks, put together on one clock: what each rank did when, and
 * which handler each message ran.
 */
#ifndef TERN_TOOLS_TRACE_MERGE_H
#define TERN_TOOLS_TRACE_MERGE_H

#include "tools/trace/file.h"

enum span_kind {
	SPAN_REQUEST,
	SPAN_REPLY,
	SPAN_WAIT,
	SPAN_BARRIER,
	SPAN_CALL,   /* on a team */
	SPAN_THREAD, /* from its beginning to its end */
	SPAN_KINDS
};

#define NO_MESSAGE SIZE_MAX

/*
 * Something that a rank did from a time to a time: a handler, a wait, a barrier, a call. What light
 * threads do overlaps, so each has a lane while it runs; the program's is 0, with all handlers.
 */
struct span {
	int64_t begin, end; /* ns since the merged trace began */
	uint32_t track;
	enum span_kind kind;
	uint16_t handler; /* or an enum wait_what */
	uint16_t peer;    /* or a light thread; 0: the program */
	uint16_t lane;
	uint32_t call; /* of `merged.call`, plus 1; 0: not known */
	uint32_t bytes, sequence;
	unsigned depth; /* spans around it in its lane, */
	size_t around;  /* and the one of them that begins last, or NO_SPAN */
	unsigned row;   /* of the track; those of one row do not overlap */
	size_t message; /* that it handles, or NO_MESSAGE: its sending was not recorded */
	bool unended;   /* its end was not recorded; what stands here is the latest it can be */
};

/* One message; either side may be missing. */
struct message {
	int64_t sent;  /* ns since the merged trace began; meaningless without `from` */
	uint32_t from; /* track, or NO_TRACK */
	bool reply;
	uint16_t handler;
	uint32_t bytes, sequence;
	uint32_t source, target; /* ranks */
	size_t span;             /* its handler, or NO_SPAN */
};

#define NO_TRACK UINT32_MAX
#define NO_SPAN SIZE_MAX

/* A rank's clock beside that of the track it is compared with; 0: no messages went both ways. */
struct offset {
	int64_t correction; /* ns that are added to its times */
	int64_t estimate;   /* half the difference of the least delays there and back */
};

struct merged {
	struct track *track; /* by rank */
	uint32_t tracks;
	struct offset *offset; /* of each track */
	struct span *span;     /* by track, then by begin */
	size_t spans;
	size_t *first_span;      /* of each track, and one more */
	struct message *message; /* by sender, receiver, kind, sequence */
	size_t messages;
	const char **call; /* names of calls, of all ranks */
	uint32_t calls;
	size_t undelivered, unsent; /* messages with one side only */
	uint64_t dropped;           /* events that the ranks could not write */
	int64_t length;             /* ns from the first event to the last */
};

/*
 * Sorts `track` by rank and keeps it. 0, or a negative code with a sentence: two files of one
 * rank, files of different jobs, no memory.
 */
int merge(struct merged *m, struct track *track, uint32_t tracks);

/* For people: "handler 3 (on_greeting)", or "mem 2 (on_get)" of Tern's own; what a wait is for. */
enum { HANDLER_TEXT = 96 };
void handler_name(char text[HANDLER_TEXT], const struct merged *m, unsigned handler);
void span_name(char text[HANDLER_TEXT], const struct merged *m, const struct span *s);
const char *span_kind_name(enum span_kind kind);

/* Fills the messages from the records of sends and from the spans of handlers. */
void messages_match(struct merged *m);

/* Fills the offsets of the tracks from the delays of the matched messages. 0 or -ENOMEM. */
int clocks_compare(struct merged *m);

#endif
