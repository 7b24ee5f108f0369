/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection between the links of two machines: a wire (wire.h) that carries status records.
 * Anybody may connect to a port, so what comes is believed only with a tag (seal.h). The key is of
 * this connection alone, from the job's and random bytes of both ends.
 *
 *     caller                         called
 *     greeting: machine, random ->
 *                                 <- greeting: machine, random
 *     status record, tag ->            <- status record, tag
 *
 * The other end is authenticated when its first status record has come. Nothing here blocks. A
 * status record replaces the ones before it, so there is no queue: the next one is made when the
 * connection has room for it.
 */
#ifndef TERN_BOOT_LINK_CONNECTION_H
#define TERN_BOOT_LINK_CONNECTION_H

#include <netinet/in.h>
#include <stdbool.h>

#include "boot/link/wire.h"
#include "job/exchange.h"

enum { CONNECTION_RANDOM = 16 };

struct greeting {
	uint32_t stamp, machine;
	uint8_t random[CONNECTION_RANDOM];
};

struct connection {
	int fd; /* -1: none */
	struct wire wire;
	bool caller, greeted;
	uint64_t begun; /* when, ns */
	/* Its machine: known when it has greeted, believed with its first status record. */
	uint32_t peer;
	struct greeting mine;
	uint64_t sent, received; /* status records */
};

/* A socket to be called at, bound to `address`, whose port is found out. -errno. */
int connection_listen(struct sockaddr_in6 *address);

/*
 * Begins to connect; -errno if that fails at once. `silence`: seconds after which the kernel takes
 * the other machine for lost.
 */
int connection_call(struct connection *c, const struct sockaddr_in6 *to, const struct job *job,
		    uint64_t silence);
/* Takes a connection that has come in; -errno if there is none. */
int connection_accept(struct connection *c, int listener, const struct job *job, uint64_t silence);
void connection_close(struct connection *c);

/* Whether a status record can be taken: the other end has greeted, and the last one was written. */
bool connection_room(const struct connection *c);
/* If there is room; connection_flush() writes it. */
void connection_send(struct connection *c, const struct rank_status *b);
/* Writes what can be written: 0, or the negative errno that ended it. */
int connection_flush(struct connection *c);
bool connection_waits(const struct connection *c); /* something is to be written */
/* Whether the other machine's kernel has taken our greeting. */
bool connection_reached(const struct connection *c);
/*
 * The next status record that has come: 1, or 0 if there is none yet, or a negative errno when the
 * connection is over (-ECONNRESET), the other machine does not answer (-ETIMEDOUT and the like), or
 * it is no link of this job (-EPROTO).
 */
int connection_receive(struct connection *c, struct rank_status *b);

#endif
