/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the memory that transfers are measured between, and touches all of it. */
#include "lab/bench/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

int place_open(struct bench_rank *p, struct place *l, size_t bytes)
{
	void *own, *there;
	int rc = tern_alloc_all(p->t, bytes, &own);
	if (rc)
		return rc;
	l->own = own;
	l->addr = tern_addr_at(p->t, 1 - p->rank, own);
	rc = tern_addr_local(p->t, l->addr, bytes, &there);
	if (rc)
		return rc;
	l->there = there;
	memset(l->own, 1, bytes);
	rc = tern_barrier(p->t);
	if (rc)
		return rc;
	raw_sink += raw_sum(l->there, bytes);
	return tern_barrier(p->t);
}

/* What the ranks tell each other about their private memory, in the heap. */
struct private_note {
	uint64_t there;
	tern_addr addr;
	int32_t pid;
};

static int private_exchange(struct bench_rank *p, struct private_place *l, tern_addr own)
{
	struct place notes;
	int rc = place_open(p, &notes, sizeof(struct private_note));
	if (rc)
		return rc;
	const struct private_note mine = { (uint64_t)(uintptr_t)l->own, own, getpid() };
	struct private_note other;
	memcpy(notes.own, &mine, sizeof mine);
	rc = tern_barrier(p->t);
	memcpy(&other, notes.there, sizeof other);
	l->there = other.there;
	l->there_pid = other.pid;
	l->addr = other.addr;
	return rc;
}

int private_open(struct bench_rank *p, struct private_place *l, size_t bytes)
{
	enum { PAGE = 4096 };
	tern_addr own;
	l->own = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	if (!l->own)
		return error_set(-ENOMEM, "no memory for %zu bytes to copy", bytes);
	memset(l->own, 1, bytes);
	int rc = tern_register(p->t, l->own, bytes, &own);
	return rc ? rc : private_exchange(p, l, own);
}

__attribute__((noinline)) void place_copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory");
}
