/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: buffer control */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

void *pages_take(size_t bytes, size_t align)
{
	size_t len = whole_pages(bytes), more = whole_pages(align);
	char *p = mmap(NULL, len + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t before = align ? (align - (uintptr_t)p % align) % align : 0;
	if (before)
		munmap(p, before);
	if (more - before)
		munmap(p + before + len, more - before);
	return p + before;
}

void pages_give(void *p, size_t bytes)
{
	if (p)
		munmap(p, whole_pages(bytes));
}
