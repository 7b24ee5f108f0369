/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks that join a job under another launcher know of each other: one card of each. */
#ifndef TERN_BOOT_CARD_H
#define TERN_BOOT_CARD_H

#include <netinet/in.h>

#include "base/process.h"
#include "job/job.h"

/*
 * The machine that a process is on, in numbers of the kernel's. Ranks with equal ones can share
 * memory and see each other's processes: they run under one kernel, in one namespace of processes
 * and one of networks. The launcher is not asked: two of its nodes may be one machine, or one node
 * several containers.
 */
struct machine_id {
	char id[96];
	char host[64]; /* for error texts; nothing is decided by it */
};

/* Bytes of a name that the kernel chooses for a socket: a 0, and five hexadecimal digits. */
enum { CARD_DOOR = 6 };

/* Travels as bytes. */
struct card {
	struct machine_id machine;
	char door[CARD_DOOR];        /* its socket, in case it is the lowest rank of its machine */
	struct process_name process; /* pid 0: it cannot join */
	struct sockaddr_in6 link;    /* family 0: no socket could be had */
	uint32_t fabric;             /* whether its machine has one */
	uint64_t id;                 /* rank 0's is the job's, */
	uint8_t key[JOB_KEY];
};

/* Those who join together, as one of them sees it. */
struct joiners {
	uint32_t rank, size, machines;
	struct card *card; /* one a rank */
	uint32_t *machine; /* of each rank, numbered in the order of their lowest ranks */
};

#endif
