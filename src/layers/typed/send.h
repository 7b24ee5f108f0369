/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message on its way out of tern_buf_send_start(), for the two ways that there are: send.c and
 * far.c.
 */
#ifndef TERN_TYPED_SEND_H
#define TERN_TYPED_SEND_H

#include <errno.h>

#include "typed/typed.h"

struct sending {
	uint32_t rank;
	unsigned type;
	const char *data;
	size_t len;
	const char *why;       /* it cannot be sent yet */
	struct target *target; /* the type's pool */
	struct target *where;  /* the pool in which a buffer was taken: that, or the spill's */
	struct bufpool_claim claim;
	struct notice notice;
	struct outgoing *outgoing; /* of a long message that was accepted */
	tern_op *op;               /* NULL: the call returns when `data` is free */
	unsigned flags;            /* of tern_buf_send_start() */
	int rc;                    /* of the last try */
	bool far;
	bool asked;        /* a far owner, by this very call */
	uint32_t *waiting; /* where it is counted while it waits for one that is far */
};

static inline int sending_later(struct sending *s, const char *why)
{
	s->why = why; /* the sentence is made when somebody wants it */
	return -EAGAIN;
}
int sending_full(const struct sending *s);     /* -ENOBUFS, with its sentence */
int sending_too_long(const struct sending *s); /* -EMSGSIZE */
/* From here on it will arrive, or its receiver is lost. */
void sending_number(struct sending *s);
/* Begins to move a long message to `at`, which is at `landed` if that can be seen. */
int sending_start(struct typed *y, struct sending *s, tern_addr at, const char *landed);
void sending_moves(struct typed *y, struct sending *s);

void far_listen(struct typed *y, uint32_t rank); /* handles what it has said already */
int far_try(struct typed *y, struct sending *s); /* as send_try(), when the target is known */
void far_end(struct sending *s);                 /* it waits no more */

/* Whether a message that must wait for its data to move may: not under a hold, without a handle. */
int far_long_rule(struct typed *y, const struct sending *s);

#endif
