/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames between the parts of a job on several machines: between the launcher and its agents, over
 * whatever the remote shell carries, and between the links of machines, over TCP and sealed.
 * Nothing here blocks, and nothing that arrives is believed: a frame that is too long, unknown, or
 * without the right seal ends the conversation.
 */
#ifndef TERN_BOOT_LINK_WIRE_H
#define TERN_BOOT_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/link/buffer.h"
#include "boot/link/seal.h"

enum frame_type {
	FRAME_ORDER,  /* to the agent, first: what to start; see order.h */
	FRAME_SIGNAL, /* to the agent: a number, to be passed to its ranks */
	FRAME_INPUT,  /* to the agent: the next of rank 0's input, nothing at its end */
	FRAME_TAKEN,  /* from the agent: the input has been taken, and there is room for more */
	FRAME_OUT,    /* from the agent: text for the standard output */
	FRAME_ERROR,  /* from the agent: text for the standard error */
	FRAME_RANK_STATUS, /* from an agent, and from there to all others, and between links: news
			      of one of its ranks; job/exchange.h */
	FRAME_FABRIC,      /* from an agent: whether its host has a fabric; to the agents: whether
			      all have, open/nets.h */
	FRAME_ALIVE,       /* to the agent, and back: nothing, so that silence means something */
	FRAME_OVER,        /* from the agent, last: the exit status of its part of the job */
	FRAME_GREETING,    /* between links, first: connection.h */
	FRAME_END, /* to the agent: end the ranks, with the grace that they have everywhere */
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
bool frame_number(const struct frame *f, int32_t *number);

#endif
