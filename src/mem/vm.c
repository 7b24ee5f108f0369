/* SPDX-License-Identifier: BSD-3-Clause */
/* Single copy: the kernel moves bytes between this process and another. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/error.h"
#include "mem/mem.h"
#include "mem/word.h"

static ptrdiff_t vm_refused(tern_addr remote, size_t len, bool put, int why)
{
	uint32_t rank = tern_addr_rank(remote);
	if (why == ESRCH)
		return error_set(-EOWNERDEAD, "rank %u is dead: its memory is gone", rank);
	return error_set(-why, "%s %zu bytes of rank %u's registered memory: %s", put ? "writing" : "reading",
			 len, rank,
			 why == EFAULT ? "it is not mapped there (any more), or without the right to that"
				       : strerror(why));
}

ptrdiff_t vm_move(struct mem *m, tern_addr remote, char *local, size_t len, bool put)
{
	uint64_t base = region_enter(m, remote);
	if (!base)
		return mem_gone(remote);
	if (len > 1 && word_is((void *)(uintptr_t)(base + addr_offset(remote)), len)) {
		region_leave(m, remote);
		return -EAGAIN; /* the kernel copies bytes one by one: the word's owner loads or stores it */
	}
	struct job_rank *r = &m->job->rank[tern_addr_rank(remote)];
	struct iovec here = { local, len }, there = { (char *)(uintptr_t)(base + addr_offset(remote)), len };
	ssize_t moved = put ? process_vm_writev(atomic_load(&r->pid), &here, 1, &there, 1, 0)
			    : process_vm_readv(atomic_load(&r->pid), &here, 1, &there, 1, 0);
	int why = errno;
	region_leave(m, remote);
	if (moved > 0)
		return moved;
	if (why == EPERM || why == ENOSYS) {
		m->single_copy = false; /* containers often refuse; from now on, messages carry the data */
		return -EAGAIN;
	}
	return vm_refused(remote, len, put, moved < 0 ? why : EFAULT);
}
