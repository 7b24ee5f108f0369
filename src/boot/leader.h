/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a machine share the job's memory when no `tern run` has given it to them.
 *
 * The lowest rank of a machine, its leader, makes the memory and passes its descriptor to the other
 * ranks, the members, through a socket. The socket has a name that the kernel chose and no file, so
 * nothing is left of it. A caller must be of the same user, and the process that the card of its
 * rank names.
 */
#ifndef TERN_BOOT_LEADER_H
#define TERN_BOOT_LEADER_H

#include "boot/card.h"

/* The leader's socket. Every rank opens one, because the lowest is known only afterwards. */
int leader_listen(int *fd, char door[CARD_DOOR]);

/*
 * The leader: makes the job's memory, which knows the processes of those on its machine, has
 * `begin` do what is to be done before anybody gets it, and gives it to all of them. If that fails
 * the others are told why, and their calls fail with the same sentence. One that ends before it has
 * come is named in it at once; one that lives is waited for, for TERN_JOIN seconds.
 */
int leader_share(int fd, const struct joiners *all, int (*begin)(struct job *job, void *arg),
		 void *arg, struct job *job);
/*
 * A member gets the job from the rank `leader`. The job's descriptor belongs to the caller, as
 * after job_create().
 */
int leader_join(const struct joiners *all, uint32_t leader, struct job *job);

#endif
