/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_CORE_SEND_H
#define TERN_CORE_SEND_H

#include "core/endpoint.h"

/* 0 if `dst` can be sent to, after connecting if need be; else why not. */
int send_reachable(struct endpoint *e, uint32_t dst);

/*
 * Connects if need be, and serves what arrives until a request to `dst` has room; else why it
 * cannot have.
 */
int send_room(struct endpoint *e, uint32_t dst);

/* Sends a request whose rules are checked; waits for room. */
int send_request(struct endpoint *e, uint32_t dst, const struct parcel *p);

/* Sends the reply to the current request, whose rules are checked; never waits. */
int send_reply(struct endpoint *e, const struct parcel *p);

#endif
