/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the job is committed piece by piece, within the budget and the limits of the cgroup.
 * Counts of bytes are seq_cst: each of these calls makes a system call beside it.
 */
#include "job/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/numa.h"
#include "base/setting.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* newer than the C library */
#endif

#define CORE_MOST (UINT64_C(32) << 20) /* bytes of it in a core dump, beside the front */

enum { PAGE = 4096, LARGE = 2 << 20 };

enum {
	CGROUP_SPARE = 2 << 20, /* bytes, for what the process takes beside the job's memory */
	CGROUP_TRUST = 1 << 20, /* bytes that may be taken before the limits are read again */
};

/* -- Core dumps ------------------------------------------------------------------------------- */

void job_dump(struct job *j, size_t at, size_t bytes)
{
	uint64_t before = atomic_load(&j->dumped);
	if (before >= CORE_MOST)
		return;
	if (bytes > CORE_MOST - before)
		bytes = CORE_MOST - before;
	atomic_fetch_add(&j->dumped, bytes);
	madvise(j->base + at, bytes, MADV_DODUMP);
}

void commit_dump(struct job *j, size_t front, bool all)
{
	if (all) {
		atomic_store(&j->dumped, UINT64_MAX);
		return;
	}
	madvise(j->base, j->bytes, MADV_DONTDUMP);
	madvise(j->base, front, MADV_DODUMP);
}

int commit_core(bool *all)
{
	const char *text = setting_text(SETTING_CORE);
	*all = strcmp(text, "all") == 0;
	if (*all || strcmp(text, "own") == 0)
		return 0;
	return error_set(-EINVAL, "TERN_CORE is '%s'; it can be own or all", text);
}

/* -- Pages ------------------------------------------------------------------------------------- */

/*
 * Reading the limits takes longer than taking the pages of a talk, so one look is good for several.
 */
bool commit_fits(struct job *j, size_t bytes)
{
	uint64_t trusted = atomic_load(&j->trusted);
	while (bytes <= trusted)
		if (atomic_compare_exchange_weak(&j->trusted, &trusted, trusted - bytes))
			return true;
	if (!j->cgroup.levels)
		return true;
	uint64_t room = cgroup_room(&j->cgroup), need = bytes + CGROUP_SPARE;
	atomic_store(&j->trusted, room >= need + CGROUP_TRUST ? CGROUP_TRUST : 0);
	return room >= need;
}

static int commit_refused(struct job *j, size_t bytes, const char *what, const char *why,
			  const char *todo)
{
	return error_set(
		-ENOMEM,
		"%s needs %zu KiB of shared memory, but %s (%llu of %llu KiB are in use); %s", what,
		bytes >> 10, why, (unsigned long long)atomic_load(&j->head->committed) >> 10,
		(unsigned long long)j->head->budget >> 10, todo);
}

/*
 * The whole large pages of it, 2 MiB each, where the kernel makes them (Linux 6.1): a rank that
 * stores there for the first time then takes one page fault and not 512. fallocate() has the rest.
 */
static void commit_large(struct job *j, size_t at, size_t bytes)
{
	for (size_t p = (at + LARGE - 1) / LARGE * LARGE; p + LARGE <= at + bytes; p += LARGE)
		if (fallocate(j->fd, 0, (off_t)p, PAGE) != 0 ||
		    madvise(j->base + p, LARGE, MADV_COLLAPSE) != 0)
			return;
}

/* The budget has it already. */
static int commit_pages(struct job *j, size_t at, size_t bytes, const char *what)
{
	char why[CGROUP_TEXT];
	if (!commit_fits(j, bytes)) {
		cgroup_tell(&j->cgroup, why);
		return commit_refused(j, bytes, what, why, "raise its limit or use fewer ranks");
	}
	commit_large(j, at, bytes);
	while (fallocate(j->fd, 0, (off_t)at, (off_t)bytes) != 0)
		if (errno != EINTR)
			return commit_refused(j, bytes, what, strerror(errno),
					      "free memory on this machine or use fewer ranks");
	return 0;
}

int job_commit(struct job *j, size_t at, size_t bytes, const char *what)
{
	if (atomic_fetch_add(&j->head->committed, bytes) + bytes > j->head->budget) {
		atomic_fetch_sub(&j->head->committed, bytes);
		return commit_refused(j, bytes, what, "the job's budget is spent",
				      "raise TERN_MEMORY or use fewer ranks");
	}
	int rc = commit_pages(j, at, bytes, what);
	if (rc) {
		atomic_fetch_sub(&j->head->committed, bytes);
		return rc;
	}
	/*
	 * The pages exist now; map them at once, as the first messages would otherwise fault on
	 * each.
	 */
	madvise(j->base + at, bytes, MADV_POPULATE_WRITE);
	job_dump(j, at, bytes);
	return 0;
}

int job_commit_near(struct job *j, size_t at, size_t bytes, uint32_t rank, const char *what)
{
	int node = -1; /* the worker at whom it is may have left */
	if (rank < j->size)
		node = (int)atomic_load_explicit(&j->rank[rank].node, memory_order_relaxed) - 1;
	bool elsewhere = node >= 0 && node != numa_node() && numa_prefer(node) == 0;
	int rc = job_commit(j, at, bytes, what);
	if (elsewhere)
		numa_prefer(-1);
	return rc;
}
