/* SPDX-License-Identifier: BSD-3-Clause */
/* What opening and closing an endpoint has to do with workers. */
#ifndef TERN_OPEN_WORKER_H
#define TERN_OPEN_WORKER_H

#include "endpoint/endpoint.h"

/* -- open.c -- */
/* An endpoint without networks and layers; `peers`: who may send to it. NULL: no memory. */
struct endpoint *endpoint_new(uint32_t rank, uint32_t size, uint32_t member, uint32_t peers);

/* -- worker.c -- */
/* 0, or why the rank's endpoint cannot be closed. */
int workers_closing(struct endpoint *e);
/* Closes what parked workers of the rank still have. */
void workers_disconnect(struct endpoint *e);
/* Whether a worker was closed that is the endpoint itself. */
bool worker_unshare(struct endpoint *e);
/* By the thread that has it. The worker is parked: its rank opens it again. */
void worker_close(struct endpoint *e);

#endif
