/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into each program and library that scripts/mutate.py builds: marks which blocks of code a
 * test runs. The marks are in a file that all processes of the test map, so those of a process that
 * is killed or calls _exit() count too. Without COVER_TO nothing is marked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OWN __attribute__((visibility("hidden"))) /* each program and library has one */

extern OWN char __ehdr_start[], _end[]; /* of the linker: where this file is in memory */
static char *marks;                     /* [offset of the block's code] */

/* gcc calls it at the beginning of each block. */
OWN void __sanitizer_cov_trace_pc(void);
OWN void __sanitizer_cov_trace_pc(void)
{
	char *mark = marks + ((char *)__builtin_return_address(0) - __ehdr_start);
	if (marks && !*mark)
		*mark = 1;
}

__attribute__((constructor(101))) static void marks_open(void)
{
	const char *folder = getenv("COVER_TO");
	char path[PATH_MAX];
	Dl_info file;
	if (!folder || !dladdr(__ehdr_start, &file))
		return;
	const char *slash = strrchr(file.dli_fname, '/');
	snprintf(path, sizeof(path), "%s/%s", folder, slash ? slash + 1 : file.dli_fname);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	size_t len = (size_t)(_end - __ehdr_start);
	if (fd >= 0 && !ftruncate(fd, (off_t)len)) {
		void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		marks = at == MAP_FAILED ? NULL : at;
	}
	if (fd >= 0)
		close(fd);
}
