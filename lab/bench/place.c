/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the memory that transfers are measured between, and touches all of it. */
#include "lab/bench/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

struct place place;
struct private_place private;

int place_make(struct bench_rank *p, size_t bytes)
{
	void *own, *there;
	int rc = tern_alloc_all(p->t, bytes, &own);
	if (rc)
		return rc;
	place.own = own;
	place.addr = tern_addr_at(p->t, 1 - p->rank, own);
	rc = tern_addr_local(p->t, place.addr, bytes, &there);
	if (rc)
		return rc;
	place.there = there;
	memset(own, 1, bytes);
	rc = tern_barrier(p->t);
	if (rc)
		return rc;
	raw_sink += raw_sum(there, bytes);
	return tern_barrier(p->t);
}

int place_open(struct bench_rank *p)
{
	return place_make(p, p->size);
}

/* The ranks tell each other about their private memory in the heap. */
int private_open(struct bench_rank *p)
{
	enum { PAGE = 4096 };
	size_t bytes = p->size;
	private.own = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	if (!private.own)
		return error_set(-ENOMEM, "no memory for %zu bytes to copy", bytes);
	memset(private.own, 1, bytes);
	private.there = (uint64_t)(uintptr_t) private.own;
	private.there_pid = getpid();
	int rc = tern_register(p->t, private.own, bytes, &private.addr);
	if (!rc)
		rc = place_make(p, sizeof private);
	if (rc)
		return rc;
	char *own = private.own;
	memcpy(place.own, &private, sizeof private);
	rc = tern_barrier(p->t);
	memcpy(&private, place.there, sizeof private);
	private.own = own;
	return rc;
}

__attribute__((noinline)) void place_copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory");
}
