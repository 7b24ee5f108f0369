/* SPDX-License-Identifier: BSD-3-Clause */
/* Becoming a rank of a job that another launcher started, once in the life of a process. */
#ifndef TERN_BOOT_JOIN_H
#define TERN_BOOT_JOIN_H

#include "boot/boot.h"
#include "boot/pmi.h"

/*
 * Joins the job through `pmi`: the ranks find out who is on this machine, and share memory, and the
 * lowest of them starts the machine's link. Blocks until every rank has called it, or one of them
 * has ended, or TERN_JOIN seconds have passed. If the job has one rank, b->size is 1 and there is
 * no memory. Not for two threads at once.
 *
 * What is joined stays joined until the process ends, for one session after another.
 */
int join_through(const struct pmi_ops *pmi, struct boot *b, bool (*fabric)(void));

/*
 * Closes the process manager, if it is still open. Also done when the process returns from main().
 */
void join_leave(void);

#endif
