/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings for what handlers make. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Lies before what was given. */
struct piece {
	void *map;
	size_t bytes;
};

void *memory_aligned(size_t align, size_t bytes)
{
	size_t whole = bytes + align + sizeof(struct piece);
	if (whole < bytes)
		return NULL;
	char *map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	uintptr_t at =
		((uintptr_t)map + sizeof(struct piece) + align - 1) & ~(uintptr_t)(align - 1);
	((struct piece *)at)[-1] = (struct piece){ map, whole };
	return (void *)at;
}

void *memory_new(size_t count, size_t bytes)
{
	size_t whole;
	return __builtin_mul_overflow(count, bytes, &whole) ? NULL : memory_aligned(64, whole);
}

void memory_free(void *p)
{
	if (!p)
		return;
	struct piece piece = ((struct piece *)p)[-1];
	munmap(piece.map, piece.bytes);
}

/* No lock: an interrupt may find the program here. The default order, since this is rare. */
void memory_bury(void *p, bool mapped)
{
	static _Atomic(void *) graves[2][GRAVES]; /* a ring of each */
	static _Atomic unsigned next[2];
	void *old = atomic_exchange(&graves[mapped][next[mapped]++ % GRAVES], p);
	if (mapped)
		memory_free(old);
	else
		free(old);
}
