/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory cgroups that a process is in. One that is full does not refuse memory: the kernel
 * kills a process of it instead. So whoever is about to take much looks first.
 */
#ifndef TERN_BASE_CGROUP_H
#define TERN_BASE_CGROUP_H

#include <stdint.h>

enum { CGROUP_LEVELS = 4, CGROUP_PATH = 256, CGROUP_TEXT = CGROUP_PATH + 128 };

/* The folders of those that have a limit, the innermost first. */
struct cgroup {
	unsigned levels;
	int version; /* 1 or 2 */
	char path[CGROUP_LEVELS][CGROUP_PATH];
};

/*
 * Those of this process, from /proc/self/cgroup and /sys/fs/cgroup. A limit that is set later is
 * not seen.
 */
void cgroup_find(struct cgroup *c);
/* The same from another file and folder. */
void cgroup_find_in(struct cgroup *c, const char *file, const char *mount);

/* How many bytes the limits leave; UINT64_MAX without one. Also from a signal's handler. */
uint64_t cgroup_room(const struct cgroup *c);
/* Names the one that has the least left, its limit, and what is left. There is one. */
void cgroup_tell(const struct cgroup *c, char text[CGROUP_TEXT]);

#endif
