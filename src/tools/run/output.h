/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the ranks' pipes to the launcher's output: whole lines, bounded memory,
 * and a rank that writes faster than somebody reads is held up by its own pipe.
 */
#ifndef TERN_TOOLS_RUN_OUTPUT_H
#define TERN_TOOLS_RUN_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/link/wire.h"

#define WRITER_NOBODY UINT32_MAX         /* no rank: no line is begun */
#define WRITER_LAUNCHER (UINT32_MAX - 1) /* writes without a tag */

/* One of the two outputs, and the streams that lead to it. */
struct channel {
	int fd;
	int ready; /* epoll: the streams that have something */
	uint32_t streams;
	struct wire *wire; /* not NULL: the text goes there, in frames of this type */
	enum frame_type type;
	bool careful;       /* the descriptor may block: write only what poll() promises to take */
	int tag_digits;     /* 0: no tags */
	uint32_t begun;     /* the rank whose line has no newline yet, or WRITER_NOBODY */
	struct buffer text; /* still to be written */
	int error;          /* errno of the write that failed: from then on, text is dropped */
};

/* What one rank writes to one of its two outputs. */
struct stream {
	int fd; /* -1: none, or ended */
	uint32_t rank;
	struct channel *channel; /* NULL: not begun, or ended */
	char *text;              /* the line that is not complete; allocated when first needed */
	size_t len;
};

struct output {
	struct channel
		channel[2]; /* standard output and error; one only, if they are the same file */
	unsigned channels;
	bool eager; /* one rank cannot mix with another: forward without waiting for the newline */
	struct stream *stream; /* two for each rank: output, error */
	uint32_t ranks, first;
};

enum { OUTPUT_POLLS = 2 };

/*
 * For `ranks` ranks from `first` on, in a job of `total`; if `tagged`, lines carry theirs. The text
 * goes to standard output and error, or over `wire`, if that is not NULL.
 */
int output_open(struct output *o, uint32_t ranks, uint32_t first, uint32_t total, bool tagged,
		struct wire *wire);
/* Takes over the reading ends of a rank's pipes, which do not block; `out` may be -1: there is
 * none. */
int output_add(struct output *o, uint32_t rank, int out, int err);

/* What to poll for, OUTPUT_POLLS entries, before output_serve() has something to do. */
void output_polls(const struct output *o, struct pollfd *p);
void output_serve(struct output *o);

/*
 * Text of another output_open(), which came over its wire and ends where lines do; whoever has more
 * of it waits while the output is full.
 */
void output_take(struct output *o, uint32_t rank, bool error, const char *text, size_t len);
bool output_full(const struct output *o);

/* Takes in what a rank that has ended wrote last, so that a sentence about it comes after. */
void output_take_last(struct output *o, uint32_t rank);
/* A sentence of the launcher on standard error, a newline added. */
__attribute__((format(printf, 2, 3))) void output_say(struct output *o, const char *format, ...);

/*
 * When no process of the job is left: true once everything has been written. A
 * pipe that somebody outside the job still holds is not waited for.
 */
bool output_finished(struct output *o);
/* The errno of the output that could not be written, or 0. */
int output_error(const struct output *o);

#endif
