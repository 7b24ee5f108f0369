/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of a machine whose memory is nearer to some cores than to others (NUMA). */
#ifndef TERN_BASE_NUMA_H
#define TERN_BASE_NUMA_H

enum { NUMA_NODES_MAX = 1024 };

/* The node of the core that this thread runs on; -1 where the kernel does not say. */
int numa_node(void);

/*
 * New pages that this thread takes come from `node` while it has some; -1: from where they came
 * before. -EBUSY if the program has chosen a policy, which then holds. Tests put another function
 * here.
 */
extern int (*numa_prefer)(int node);

#endif
