/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's calls for nodes of memory, without a library for them. */
#include "base/numa.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD_BITS = 8 * sizeof(unsigned long) };

int numa_node(void)
{
	unsigned node;
	return syscall(SYS_getcpu, NULL, &node, NULL) ? -1 : (int)node;
}

static int policy_set(int mode, const unsigned long *nodes, unsigned long most)
{
	return syscall(SYS_set_mempolicy, mode, nodes, most) ? -errno : 0;
}

static int real_prefer(int node)
{
	unsigned long nodes[NUMA_NODES_MAX / WORD_BITS + 1] = { 0 };
	int mode;
	if (node < 0)
		return policy_set(MPOL_DEFAULT, NULL, 0);
	if (node >= NUMA_NODES_MAX)
		return -EINVAL;
	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0))
		return -errno;
	if (mode != MPOL_DEFAULT)
		return -EBUSY;
	nodes[node / WORD_BITS] = 1ul << node % WORD_BITS;
	return policy_set(MPOL_PREFERRED, nodes, NUMA_NODES_MAX);
}

int (*numa_prefer)(int node) = real_prefer;
