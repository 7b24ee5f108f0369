/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream between the heralds of two machines, that carries bulletins. Anybody may connect to a port, so what comes is
 * believed only with a tag (keyed BLAKE2b) that whoever has the job's key can make, over the bulletin, its number
 * and its direction; the key is of this connection alone, from random bytes of both ends. Bulletins are no secret.
 *
 *     caller                         called
 *     greeting: rank, random ->
 *                                 <- greeting: rank, random
 *     bulletin, tag ->            <- bulletin, tag
 *
 * Nothing here blocks.
 */
#ifndef TERN_BOOT_CHANNEL_H
#define TERN_BOOT_CHANNEL_H

#include <netinet/in.h>
#include <stdbool.h>

#include "boot/bulletin.h"

enum { CHANNEL_RANDOM = 16, CHANNEL_TAG = 16 };

struct greeting {
	uint32_t version, rank;
	uint8_t random[CHANNEL_RANDOM];
};

struct sealed {
	struct bulletin bulletin;
	uint8_t tag[CHANNEL_TAG];
};

struct channel {
	int fd; /* -1: none */
	bool caller, greeted;
	uint64_t begun; /* when, ns */
	uint32_t peer;  /* known when it has greeted, and believed with its first bulletin */
	struct greeting mine;
	size_t mine_at;       /* how much of it has been written */
	uint8_t key[JOB_KEY]; /* the job's, then this connection's */
	uint64_t sent, received;
	char *out; /* what is to be written behind it, once the other has greeted */
	size_t out_at, out_len, out_room;
	union {
		struct greeting greeting;
		struct sealed sealed;
		char bytes[sizeof(struct sealed)];
	} in;
	size_t in_len;
};

/* Whether this build has what it takes; if not, why and what to do. */
bool channel_usable(char *why, size_t len);

/* A socket to be called at, bound to `address`, whose port is found out. -errno. */
int channel_listen(struct sockaddr_in6 *address);

/* Begins to connect; -errno if that fails at once. `silence`: seconds after which the kernel takes the other machine for lost. */
int channel_call(struct channel *c, const struct sockaddr_in6 *to, const struct job *job, uint32_t rank,
		 uint64_t silence);
/* Takes a connection that has come in; -errno if there is none. */
int channel_accept(struct channel *c, int listener, const struct job *job, uint32_t rank, uint64_t silence);
void channel_close(struct channel *c);

/* Sent when it can be; before the other has greeted it waits. -errno when there is no memory. */
int channel_send(struct channel *c, const struct bulletin *b);
/* Writes what can be written: 0, or the negative errno that ended it. */
int channel_flush(struct channel *c);
bool channel_waits(const struct channel *c); /* something is to be written */
/*
 * The next bulletin that has come: 1, or 0 if there is none yet, or a negative errno when the stream is over
 * (-ECONNRESET), the other's machine is not heard of (-ETIMEDOUT and the like), or it is no herald of this job (-EPROTO).
 */
int channel_receive(struct channel *c, struct bulletin *b);

#endif
