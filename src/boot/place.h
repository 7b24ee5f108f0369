/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks are on one machine: those that can share memory and see each other's processes. */
#ifndef TERN_BOOT_PLACE_H
#define TERN_BOOT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Two processes with equal `machine` run under one kernel, in one namespace of processes and
 * one of networks. That is asked of the kernel and not of the launcher: a launcher knows of nodes,
 * and two nodes of its configuration may be one machine, or one node several containers.
 */
struct place {
	char machine[96];
	char host[64]; /* for sentences; nothing is decided by it */
};

int place_here(struct place *p);
bool place_same(const struct place *a, const struct place *b);

#endif
