/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The debug preset's malloc(), which tells of handlers that call it in an interrupt: the program
 * may be in it at that moment, and would wait for itself. Nothing else is different from the C
 * library's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "core/delivery.h"

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void *p);

static void forbid(const char *what)
{
	static _Thread_local bool telling;
	uint32_t rank;
	unsigned handler;
	if (telling || !interrupt_runs(&rank, &handler))
		return;
	telling = true;
	error_warn("rank %u: handler %u called %s in an interrupt, which may have come while the "
		   "program was in it: allocate before, or in tern_defer()'d work of a polled "
		   "endpoint",
		   rank, handler, what);
	telling = false;
}

void *malloc(size_t bytes)
{
	forbid("malloc()");
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	forbid("calloc()");
	return __libc_calloc(count, bytes);
}

void *realloc(void *p, size_t bytes)
{
	forbid("realloc()");
	return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	forbid("aligned_alloc()");
	return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	forbid("posix_memalign()");
	void *p = __libc_memalign(align, bytes);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void free(void *p)
{
	if (p)
		forbid("free()");
	__libc_free(p);
}
