/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For core_test.sh and cgroup_test.sh:
 *
 *     crash  every rank has memory and talks with every other; rank 0 crashes, and the others print
 *            by how many KiB the job's memory has grown meanwhile
 *     fill   rank 0 allocates until it is told that there is no more, and prints the sentence
 *     fill-all   all ranks allocate together, and each prints the sentence
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tern/mem.h>

#include "lib/handed.h"

enum { NOTE, PART = 1 << 20, OWN = 8 << 20 };

static _Atomic uint64_t noted;

static void note(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &noted, 1);
}

/* That the job's memory has. */
static long long job_kib(void)
{
	struct stat st;
	const char *fd = getenv("TERN_JOB_FD");
	return fd && fstat(atoi(fd), &st) == 0 ? (long long)st.st_blocks / 2 : -1;
}

static int crash(tern *t)
{
	char *own = handed_alloc(t, OWN);
	int rc = own ? 0 : -errno;
	if (own)
		memset(own, 1, OWN);
	for (uint32_t r = 0; !rc && r < tern_size(t); r++)
		rc = tern_request_data(t, r, NOTE, "payload", 8);
	if (!rc)
		rc = tern_wait(t, &noted, tern_size(t));
	if (!rc)
		rc = tern_barrier(t);
	if (!rc && tern_rank(t) == 0)
		raise(SIGSEGV);
	long long before = job_kib();
	rc = rc ? rc : tern_wait(t, &noted, 1);
	printf("%s %lld\n", rc == -EOWNERDEAD ? "grown" : tern_strerror(rc), job_kib() - before);
	return 0;
}

/* All together; each rank prints what it is told. */
static int fill_all(tern *t)
{
	while (handed_alloc_all(t, PART))
		;
	puts(tern_strerror(-errno));
	return tern_barrier(t);
}

static int fill(tern *t)
{
	while (tern_rank(t) == 0 && handed_alloc(t, PART))
		;
	if (tern_rank(t) == 0)
		puts(tern_strerror(-errno));
	return tern_barrier(t);
}

int main(int argc, char **argv)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (!rc)
		rc = tern_on(t, NOTE, note);
	if (!rc)
		rc = argc < 2                           ? fill(t)
		     : strcmp(argv[1], "crash") == 0    ? crash(t)
		     : strcmp(argv[1], "fill-all") == 0 ? fill_all(t)
							: fill(t);
	if (rc)
		fprintf(stderr, "core_ranks: %s\n", tern_strerror(rc));
	return rc != 0;
}
