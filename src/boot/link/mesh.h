/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of one machine of a job to each other one, over which status records of its ranks
 * go; see link.h.
 *
 * Each pair of machines has one connection. The lower one calls, at once and again whenever the
 * connection breaks; the higher one does so, too, when it has had none for a second. A broken
 * connection says nothing of the ranks at its other end: it is made again, and each end tells the
 * other everything. A machine is lost, with all its ranks, when its kernel has not answered for
 * TERN_KEEPALIVE seconds, or no connection could be made for so long.
 *
 * Whoever calls is a stranger until a status record with the right tag has come. There is room for
 * some strangers, for some seconds; the newest displaces the oldest, and none displaces a machine
 * of the job.
 */
#ifndef TERN_BOOT_LINK_MESH_H
#define TERN_BOOT_LINK_MESH_H

#include <poll.h>

#include "boot/link/connection.h"
#include "boot/link/keepalive.h"

enum { STRANGERS = 256 };

/* Another machine. */
struct mesh_peer {
	struct connection stream;
	struct sockaddr_in6 address;
	struct keepalive silence;
	uint64_t recall; /* when it is to be called, if there is no connection, ns */
	bool heard;      /* it has been, once */
	bool over;       /* it is lost, or all its ranks have ended */
	uint64_t *told;  /* see rank_status_news() */
};

struct mesh {
	struct job *job;
	int listener;
	uint64_t silence;       /* s */
	struct mesh_peer *peer; /* one a machine; our own is over */
	uint64_t *told;         /* theirs, in one piece */
	uint32_t machines;
	struct connection stranger[STRANGERS];
	uint32_t called; /* strangers, ever: the next one's place */
	bool starved;    /* somebody calls, and there is no descriptor or memory for it */
};

/* NULL: no memory. Connections are made later, and are their own. */
struct mesh *mesh_open(struct job *job, int listener, uint64_t silence);
void mesh_close(struct mesh *m); /* gives its memory back */

/* What to wait for; at most mesh_polls_most(). */
unsigned mesh_polls(const struct mesh *m, struct pollfd *p);
size_t mesh_polls_most(const struct job *job);
/* Does whatever can be done now: tells, hears, calls, accepts, and finds out who is lost. */
void mesh_serve(struct mesh *m);
/* Whether something must be tried again that no descriptor announces. */
bool mesh_must_retry(const struct mesh *m);
/*
 * Whether every machine has been told everything, of those with which there is a connection, or of
 * all.
 */
bool mesh_told(const struct mesh *m, bool all);
/* Nothing more will be told; then: whether all others have seen that. */
void mesh_finish(struct mesh *m);
bool mesh_over(struct mesh *m);

#endif
