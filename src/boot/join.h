/* SPDX-License-Identifier: BSD-3-Clause */
/* Becoming a rank of a job that another launcher started, once in the life of a process. */
#ifndef TERN_BOOT_JOIN_H
#define TERN_BOOT_JOIN_H

#include "boot/boot.h"
#include "boot/card.h"
#include "boot/pmi/pmi.h"

int machine_id_read(struct machine_id *m);
bool machine_id_same(const struct machine_id *a, const struct machine_id *b);

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
 * Joins the job of the processes that call o->allgather together: o->size of them, of which this
 * one is o->rank. Each call makes another job, which ends when every rank has closed it.
 */
int join_gathered(const tern_options *o, struct boot *b, bool (*fabric)(void));

#endif
