/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an endpoint's messages are delivered while its program computes; chosen here, done by
 * progress.c and interrupt.c.
 */
#ifndef TERN_CORE_DELIVERY_H
#define TERN_CORE_DELIVERY_H

#include "core/endpoint.h"

/* Whether TERN_DELIVERY is understood: 0, or -EINVAL with a sentence. */
int delivery_judge(void);
/* Before anybody has the endpoint. 0, or a code with a sentence. */
int delivery_open(struct endpoint *e, const tern_options *o);
/* The calling thread has the endpoint from now on; `t->reach` is set. */
void delivery_begin(struct endpoint *e);
/*
 * Between two calls its program may be preempted by its own threads from now on: calls must open
 * scopes.
 */
void delivery_slice(struct endpoint *e);
/* By the thread that has it, inside; nothing is delivered any more but by polls. */
void delivery_close(struct endpoint *e);

#endif

/* cost: protection control */
