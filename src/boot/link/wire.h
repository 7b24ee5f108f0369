/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames between the parts of a job on several machines: down from a launcher to its links, over
 * whatever the remote shell carries, and up; and between the links of machines, over TCP and
 * sealed. Nothing here blocks, and nothing that arrives is believed: a frame that is too long,
 * unknown, or without the right seal ends the conversation.
 */
#ifndef TERN_BOOT_LINK_WIRE_H
#define TERN_BOOT_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/link/buffer.h"
#include "boot/link/seal.h"

enum frame_type {
	FRAME_ORDER,       /* down, first: what to start; see tools/run/order.h */
	FRAME_SIGNAL,      /* down: a number, to be passed to the ranks */
	FRAME_INPUT,       /* down: the next of rank 0's input, nothing at its end */
	FRAME_TAKEN,       /* up: the input has been taken, and there is room for more */
	FRAME_OUT,         /* up: text for the standard output */
	FRAME_ERROR,       /* up: text for the standard error */
	FRAME_RANK_STATUS, /* up, and from there down to all others, and between links: news of
			      a rank; job/exchange.h */
	FRAME_FABRIC,      /* up: whether the host has a fabric; down: whether all have,
			      open/nets.h */
	FRAME_ALIVE,       /* down, and back up: nothing, so that silence means something */
	FRAME_OVER,        /* up, last: the exit status of its part of the job; from a link that
			      watches: that it does, or why not */
	FRAME_GREETING,    /* between links, first: connection.h */
	FRAME_END,         /* down: end the ranks, with the grace that they have everywhere */
	FRAME_WATCH,       /* down from a rank, first: watch the ranks of its memory; see link.h */
	FRAME_TYPES
};

/*
 * Bytes behind the head of a frame. An order has a command line, for which the kernel allows half
 * of that.
 */
enum { FRAME_MOST = 4 << 20 };

struct frame {
	enum frame_type type;
	const char *data; /* until the next call */
	size_t len;
};

struct wire {
	int from, to;  /* both non-blocking; -1 when closed */
	uint32_t most; /* bytes of a frame that is taken */
	struct buffer in, out;
	struct seal seal; /* off, unless somebody begins it */
	int ended;        /* errno of why nothing more can be read; ECONNRESET at the end */
	int deaf;  /* errno of why the other end takes nothing any more; what it said is there */
	int error; /* errno of what broke it */
};

void wire_open(struct wire *w, int from, int to);
void wire_close(struct wire *w); /* with its descriptors */

/*
 * Takes a frame for sending, if the other end takes any. Callers bound what is taken: see
 * wire_backlog().
 */
void wire_send(struct wire *w, enum frame_type type, const void *data, size_t len);
void wire_send_number(struct wire *w, enum frame_type type, int32_t number);
size_t wire_backlog(const struct wire *w);
void wire_flush(struct wire *w); /* writes what can be written now */

/* Reads what is there. False at the end, or when the wire is broken. */
bool wire_read(struct wire *w);
/* The next whole frame among what was read; false if there is none yet. */
bool wire_next(struct wire *w, struct frame *f);
/* The same, and waits for it while it writes what is to be written; false at the end. */
bool wire_wait(struct wire *w, struct frame *f);
bool frame_number(const struct frame *f, int32_t *number);

#endif
