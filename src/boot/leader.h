/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a machine share the job's memory when no `tern run` has given it to them.
 *
 * The lowest rank of a machine, its leader, makes the memory and passes its descriptor to the other
 * ranks, the members, through a socket. The socket has a name that the kernel chose and no file, so
 * nothing is left of it. A caller must be of the same user, know the key that came with the name,
 * and be a process that lives.
 */
#ifndef TERN_BOOT_LEADER_H
#define TERN_BOOT_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"
#include "job/job.h"

enum { LEADER_NAME = 16, LEADER_KEY = 16 };

/* How the others find a rank's socket. Travels as bytes. */
struct leader_address {
	uint8_t name_len;
	char name[LEADER_NAME];
	uint8_t key[LEADER_KEY];
};

/* The leader's socket. Every rank opens one, because the lowest is known only afterwards. */
int leader_listen(int *fd, struct leader_address *a);

/* Who is where, and what the job is known by on all its machines. */
struct leader_plan {
	uint32_t size;
	const uint32_t *machine; /* of each rank */
	uint32_t machines;
	uint64_t id;
	uint8_t key[JOB_KEY];
	const struct process_name *process; /* of each rank, from its card; NULL: not known */
	/* What is to be done when the memory is there and before anybody gets it; NULL: nothing. */
	int (*begin)(struct job *job, void *arg);
	void *arg;
};

/*
 * The leader: makes a job of the plan's ranks, notes which process each of those on its machine is,
 * and gives it to all of them. If that fails the others are told why, and their calls fail with the
 * same sentence. One that ends before it has come is named in it at once; one that lives is waited
 * for, for TERN_JOIN seconds.
 */
int leader_share(int fd, const struct leader_address *a, uint32_t rank,
		 const struct leader_plan *plan, struct job *job);
/*
 * A member gets the job from its leader. The job's descriptor belongs to the caller, as after
 * job_create().
 */
struct leader_name {
	uint32_t rank;
	struct leader_address address;
	struct process_name process;
};
int leader_join(const struct leader_name *leader, uint32_t rank, struct job *job);

#endif
