/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the ranks of a machine meet when no `tern run` has given them the job's memory.
 *
 * The lowest of them, the host, makes the memory and hands its descriptor to the others
 * through a socket. The socket has a name that the kernel chose and no file, so
 * nothing is left of it; whoever knocks must be of the same user, know the key that
 * travelled with the name, and be a process that lives.
 */
#ifndef TERN_BOOT_MEET_H
#define TERN_BOOT_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"
#include "job/job.h"

enum { MEET_NAME = 16, MEET_KEY = 16 };

/* How the others find a rank's socket. Travels as bytes. */
struct meet_address {
	uint8_t name_len;
	char name[MEET_NAME];
	uint8_t key[MEET_KEY];
};

/* A socket to be met at: every rank opens one, because the lowest is known only afterwards. */
int meet_open(int *fd, struct meet_address *a);

/* Who is where, and what the job is known by on all its machines. */
struct meet_plan {
	uint32_t size;
	const uint32_t *machine; /* of each rank */
	uint32_t machines;
	uint64_t id;
	uint8_t key[JOB_KEY];
	const struct process_name
		*process; /* of each rank, as its card says; NULL: it is not known */
	/* What is to be done when the memory is there and before anybody gets it; NULL: nothing. */
	int (*begin)(struct job *job, void *arg);
	void *arg;
};

/*
 * The host: makes a job of the plan's ranks, notes which process each of those on its machine is,
 * and gives it to all of them. If that fails the others are told why, and their calls fail with the
 * same sentence. One that ends before it has come is named in it at once; one that lives is waited
 * for, for TERN_JOIN seconds.
 */
int meet_host(int fd, const struct meet_address *a, uint32_t rank, const struct meet_plan *plan,
	      struct job *job);
/*
 * Any other rank, and whom it comes to. The job's descriptor belongs to the caller, as after
 * job_create().
 */
struct meet_host {
	uint32_t rank;
	struct meet_address address;
	struct process_name process;
};
int meet_guest(const struct meet_host *host, uint32_t rank, struct job *job);

#endif
