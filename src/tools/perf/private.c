/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get between registered private memory of two processes, by the kernel and without it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/error.h"
#include "tools/bench/place.h"
#include "tools/bench/words.h"
#include "tools/common/single_copy.h"
#include "tools/perf/perf.h"

enum { MOST = 64 << 20 };

static struct private_place place;
static char *beside; /* as much again, of rank 0's alone: what memcpy copies to */

static int moves_open(struct player *p)
{
	int rc = words_register(p->t);
	return rc ? rc : private_open(p, &place, p->size);
}

static int fallback_open(struct player *p)
{
	beside = malloc(p->size);
	if (!beside)
		return error_set(-ENOMEM, "no memory for %u bytes to copy", p->size);
	memset(beside, 1, p->size);
	return moves_open(p);
}

/* Rank 1 serves messages meanwhile, which the fallback needs. */
static double moves_measure(struct player *p, bool put)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = put ? tern_put(p->t, place.addr, place.own, p->size)
			    : tern_get(p->t, place.own, place.addr, p->size);
	uint64_t ended = clock_ns();
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return place_rate(p, ended - began);
}

static double put_measure(struct player *p)
{
	return moves_measure(p, true);
}

static double get_measure(struct player *p)
{
	return moves_measure(p, false);
}

typedef ssize_t vm_call(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
			unsigned long);

static double vm_rate(struct player *p, vm_call *call)
{
	struct iovec here = { place.own, p->size }, there = { (char *)(uintptr_t)place.there, p->size };
	if (p->rank)
		return 0;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		if (call(place.there_pid, &here, 1, &there, 1, 0) != (ssize_t)p->size)
			p->rc = error_set(-EIO, "the kernel did not copy %u bytes between two processes: %s",
					  p->size, strerror(errno));
	return place_rate(p, clock_ns() - began);
}

static double vm_read(struct player *p)
{
	return vm_rate(p, process_vm_readv);
}

static double vm_write(struct player *p)
{
	return vm_rate(p, process_vm_writev);
}

static double copy_limit(struct player *p)
{
	if (p->rank)
		return 0;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count; i++)
		place_copy(beside, place.own, p->size);
	return place_rate(p, clock_ns() - began);
}

#define PRIVATE_SIZES                                                   \
	{                                                               \
		5,                                                      \
		{                                                       \
			64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20 \
		}                                                       \
	}
#define PRIVATE_BARS                                                                                       \
	{                                                                                                  \
		{ 1 << 20, "at least 0.90" }, { 4 << 20, "at least 0.90" }, { 16 << 20, "at least 0.90" }, \
	}
/* Below 1 MiB memcpy stays in one core's cache, which nothing between two cores can follow. */
#define FALLBACK_BARS                                                                                      \
	{                                                                                                  \
		{ 1 << 20, "at least 0.45" }, { 4 << 20, "at least 0.45" }, { 16 << 20, "at least 0.45" }, \
	}

const struct test test_private_put = {
	.name = "private-put",
	.purpose = "puts between registered memory of two processes, copied once by the kernel",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = PRIVATE_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 31,
	.warm = 2,
	.open = moves_open,
	.measure = put_measure,
	.limit = { vm_read, vm_write },
	.limit_name = "process_vm_readv or process_vm_writev between the same bytes, the better one",
	.bar = PRIVATE_BARS,
	.note = "the target does not read the data",
	.usable = single_copy_usable,
};

const struct test test_private_get = {
	.name = "private-get",
	.purpose = "gets between registered memory of two processes, copied once by the kernel",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = PRIVATE_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 31,
	.warm = 2,
	.open = moves_open,
	.measure = get_measure,
	.limit = { vm_read },
	.limit_name = "process_vm_readv between the same bytes",
	.bar = PRIVATE_BARS,
	.note = "nobody writes the source or reads what was got",
	.usable = single_copy_usable,
};

const struct test test_fallback_put = {
	.name = "fallback-put",
	.purpose = "the same puts where the kernel may not copy between processes: as messages",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = PRIVATE_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 31,
	.warm = 2,
	.open = fallback_open,
	.measure = put_measure,
	.limit = { copy_limit },
	.limit_name = "memcpy between two private buffers of one process",
	.bar = FALLBACK_BARS,
	.note = "the target copies the data to its place and does not read it there",
	.set = { { "TERN_SINGLE_COPY", "0" } },
};

const struct test test_fallback_get = {
	.name = "fallback-get",
	.purpose = "the same gets where the kernel may not copy between processes: as messages",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = PRIVATE_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 31,
	.warm = 2,
	.open = fallback_open,
	.measure = get_measure,
	.limit = { copy_limit },
	.limit_name = "memcpy between two private buffers of one process",
	.bar = FALLBACK_BARS,
	.note = "nobody writes the source or reads what was got",
	.set = { { "TERN_SINGLE_COPY", "0" } },
};
