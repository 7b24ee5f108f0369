/* SPDX-License-Identifier: BSD-3-Clause */
/* In a build without libfabric, whose tests are not usable. */
#include <errno.h>

#include "lab/perf/fabric.h"

int fabric_bare_open(struct bench_rank *p, bool waits)
{
	(void)p, (void)waits;
	return -ENOTSUP;
}

int fabric_bare_trips(struct bench_rank *p, uint64_t count, size_t len)
{
	(void)p, (void)count, (void)len;
	return -ENOTSUP;
}

int fabric_bare_writes(struct bench_rank *p, uint64_t count, size_t len)
{
	(void)p, (void)count, (void)len;
	return -ENOTSUP;
}
