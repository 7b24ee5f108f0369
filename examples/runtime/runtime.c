/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime layer: start and end, threads, the implicit group, scattered memory, teams. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

struct rt rt;
_Thread_local struct rt_thread rt_here;

/* -- Start and end ----------------------------------------------------------------------- */

void rt_fail(int rc)
{
	tern_abort(rt_here.t, tern_strerror(rc));
	abort();
}

void rt_open(void)
{
	rt_must(tern_open(&rt_here.t, NULL));
	rt.rank = tern_rank(rt_here.t);
	rt.size = tern_size(rt_here.t);
	rt.machines = tern_machines(rt_here.t);
	rt_must(tern_on_range(rt_here.t, RT_NUMBERS * RT_HANDLERS, &rt.first));
}

static void segment_open(struct rt_segment *mine, size_t bytes, int fd)
{
	tern *t = rt_here.t;
	if (!mine->base) {
		rt_must(tern_alloc_all(t, bytes, (void **)&mine->base));
		rt_must(tern_addr_of(t, mine->base, &mine->origin));
	} else if (fd < 0) {
		rt_must(tern_register(t, mine->base, bytes, &mine->origin));
	} else {
		rt_must(tern_register_fd(t, mine->base, bytes, fd, 0, &mine->origin));
	}
	mine->origin -= (uintptr_t)mine->base;
}

void rt_attach(void *own, size_t bytes, int fd)
{
	struct rt_segment mine = { .base = own };
	segment_open(&mine, bytes, fd);
	rt.segment = malloc(rt.size * sizeof mine);
	if (!rt.segment)
		tern_abort(rt_here.t, "there is no memory for the runtime");
	rt_must(tern_team_all(rt_here.t, &rt.world));
	rt_must(tern_team_allgather(rt.world, &mine, rt.segment, sizeof mine));
	rt_must(tern_barrier(rt_here.t)); /* handlers may use all segments */
}

void rt_close(void)
{
	rt_sync(RT_ALL);
	rt_must(tern_barrier(rt_here.t));
	rt_must(tern_team_free(rt.world));
	rt_must(tern_close(rt_here.t));
	free(rt.segment);
}

void rt_thread_end(void)
{
	rt_sync(RT_ALL);
	rt_must(tern_close(rt_here.t));
}

/* -- The implicit group ------------------------------------------------------------------ */

void rt_sync(unsigned kinds)
{
	for (int i = 0; i < RT_KINDS; i++)
		if (kinds >> i & 1)
			rt_wait(&rt_here.group[i]);
}

int rt_try_sync(unsigned kinds)
{
	int all = 1;
	for (int i = 0; i < RT_KINDS; i++)
		if (kinds >> i & 1)
			all &= rt_test(&rt_here.group[i]);
	return all;
}

/* -- Scattered memory, teams ------------------------------------------------------------- */

tern_part *rt_at(uint32_t rank, tern_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++)
		part[i].addr = rt_addr(rank, part[i].base);
	return part;
}

void rt_broadcast(tern_team *team, uint32_t root, void *dst, const void *src, size_t len,
		  tern_op *op)
{
	if (tern_team_rank(team) == root && dst != src)
		memmove(dst, src, len);
	rt_must(tern_team_broadcast_start(team, root, dst, len, op));
}

void rt_reduce(tern_team *team, uint32_t root, void *dst, const void *src, size_t n,
	       enum tern_type type, uintptr_t how, tern_op *op)
{
	rt_must(root == RT_EVERYONE
			? tern_team_allreduce_start(team, src, dst, n, type, how, op)
			: tern_team_reduce_start(team, root, src, dst, n, type, how, op));
}
