/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left behind in a process: a rank that has closed gives back each descriptor and each
 * mapping of shared memory that it took. Where the address sanitizer is on, left_nothing_since()
 * asks, too, for memory that no pointer leads to.
 */
#ifndef TERN_TESTS_LEFT_H
#define TERN_TESTS_LEFT_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define LEFT_OWN "memfd:tern-test" /* files that a test makes for itself */

enum { LEFT_FDS = 1024 };

struct left {
	bool open[LEFT_FDS];
	unsigned shared; /* mappings */
};

static inline void left_fds(struct left *l)
{
	DIR *fds = opendir("/proc/self/fd");
	if (!fds)
		return;
	for (struct dirent *e; (e = readdir(fds));) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && fd != dirfd(fds) && fd < LEFT_FDS)
			l->open[fd] = true;
	}
	closedir(fds);
}

static inline void left_shared(struct left *l)
{
	char line[512], rights[8];
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	while (fgets(line, sizeof line, maps))
		l->shared += sscanf(line, "%*s %7s", rights) == 1 && rights[3] == 's' &&
			     !strstr(line, LEFT_OWN);
	fclose(maps);
}

static inline void left_before(struct left *l)
{
	*l = (struct left){ .shared = 0 };
	left_fds(l);
	left_shared(l);
}

static inline void left_open_since(const struct left *before)
{
	struct left now;
	char path[64], to[256];
	left_before(&now);
	for (int fd = 0; fd < LEFT_FDS; fd++) {
		if (before->open[fd] || !now.open[fd])
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof to - 1);
		to[n > 0 ? n : 0] = 0;
		if (strstr(to, LEFT_OWN))
			continue;
		printf("    a closed rank left descriptor %d: %s\n", fd, to);
		CHECK(!now.open[fd]);
	}
	CHECK(now.shared <= before->shared);
}

/* Of a program that frees what it takes itself. */
static inline void left_nothing_since(const struct left *before)
{
	left_open_since(before);
#ifdef __SANITIZE_ADDRESS__
	CHECK_IS(__lsan_do_recoverable_leak_check(), 0);
#endif
}

#endif
