/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What messages of Tern's own mean to a simulated network interface that has hardware for them
 * (net/sim/machine/niu.c). Who registers a handler gives it its role; all of a process agree.
 */
#ifndef TERN_BASE_ROLE_H
#define TERN_BASE_ROLE_H

enum role {
	ROLE_NONE,
	ROLE_THREAD,      /* creates a thread; the first word is a label */
	ROLE_THREAD_ENDS, /* and tells of its end */
	ROLE_RTS,         /* a request to send: id, the send's name in the upper half, the length */
	ROLE_CTS,  /* what a receiver tells: kind, above it the send's name; .., the receive's */
	ROLE_DATA, /* of a send that was cleared: the receive's name */
	ROLE_SEND, /* another message between the two */
};

/* `handler` counts from TERN_HANDLER_MAX. */
void role_set(unsigned handler, enum role role);
enum role role_of(unsigned handler);

#endif
