/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective by its number, blocking or with a handle, for tests of what they share. */
#ifndef TERN_TESTS_COLL_CALLS_H
#define TERN_TESTS_COLL_CALLS_H

#include <string.h>
#include <tern/coll.h>

#include "ranks.h"

enum coll_call {
	CALL_BARRIER,
	CALL_BROADCAST,
	CALL_REDUCE,
	CALL_ALLREDUCE,
	CALL_SCAN,
	CALL_EXSCAN,
	CALL_GATHER,
	CALL_ALLGATHER,
	CALL_SCATTER,
	CALL_ALLTOALL,
	CALL_ALLTOALLV,
	CALL_TRANSPOSE,
	CALL_GATHERV,
	CALL_SCATTERV,
	CALL_ALLGATHERV,
	CALL_EXCHANGE,
	CALL_REDUCE_SCATTER,
	CALLS
};

static const char *const call_name[CALLS] = {
	"barrier", "broadcast", "reduce",     "allreduce", "scan",          "exscan",
	"gather",  "allgather", "scatter",    "alltoall",  "alltoallv",     "transpose",
	"gatherv", "scatterv",  "allgatherv", "exchange",  "reduce_scatter"
};

enum { CALL_MEMBERS = 16, CALL_BYTES = 64 << 10 };

static _Thread_local _Alignas(16) unsigned char call_in[CALL_MEMBERS * CALL_BYTES];
static _Thread_local _Alignas(16) unsigned char call_out[CALL_MEMBERS * CALL_BYTES];

/* With a handle if there is one. */
#define CALL_EITHER(name, ...) \
	(op ? tern_team_##name##_start(team, __VA_ARGS__, op) : tern_team_##name(team, __VA_ARGS__))

static inline int call_reduction(tern_team *team, enum coll_call which, uint32_t root, size_t bytes,
				 tern_op *op)
{
	size_t n = bytes / 8, counts[CALL_MEMBERS];
	for (uint32_t i = 0; i < CALL_MEMBERS; i++)
		counts[i] = n;
	enum tern_type type = TERN_TYPE_UINT64;
	unsigned how = TERN_REDUCE_SUM;
	switch (which) {
	case CALL_REDUCE:
		return CALL_EITHER(reduce, root, call_in, call_out, n, type, how);
	case CALL_ALLREDUCE:
		return CALL_EITHER(allreduce, call_in, call_out, n, type, how);
	case CALL_SCAN:
		return CALL_EITHER(scan, call_in, call_out, n, type, how);
	case CALL_REDUCE_SCATTER:
		return CALL_EITHER(reduce_scatter, call_in, call_out, counts, type, how);
	default:
		return CALL_EITHER(exscan, call_in, call_out, n, type, how);
	}
}

static inline int call_varied(tern_team *team, enum coll_call which, uint32_t root, size_t bytes,
			      tern_op *op)
{
	tern_part in[CALL_MEMBERS], out[CALL_MEMBERS];
	uint32_t n = tern_team_size(team), me = tern_team_rank(team);
	tern_matrix x = { call_in, n, n * bytes / 8, 8, 0 },
		    y = { call_out, n * bytes / 8, n, 8, 0 };
	if (which == CALL_TRANSPOSE)
		return CALL_EITHER(transpose, &x, &y);
	for (uint32_t i = 0; i < n; i++) {
		in[i] = (tern_part){ .base = call_in + i * bytes, .run = bytes };
		out[i] = (tern_part){ .base = call_out + i * bytes, .run = bytes };
	}
	if (which == CALL_GATHERV)
		return CALL_EITHER(gatherv, root, in, out);
	if (which == CALL_SCATTERV)
		return CALL_EITHER(scatterv, root, in, out);
	if (which == CALL_ALLGATHERV)
		return CALL_EITHER(allgatherv, in, out);
	if (which == CALL_ALLTOALLV)
		return CALL_EITHER(alltoallv, in, out);
	tern_neighbor next = { (me + 1) % n, (me + n - 1) % n, in[0], out[0] };
	return CALL_EITHER(exchange, &next, 1);
}

/* Makes one call with `bytes` for each member, a multiple of 8. */
static inline int call_make(tern_team *team, enum coll_call which, uint32_t root, size_t bytes,
			    tern_op *op)
{
	switch (which) {
	case CALL_BARRIER:
		return op ? tern_team_barrier_start(team, op) : tern_team_barrier(team);
	case CALL_BROADCAST:
		return CALL_EITHER(broadcast, root, call_in, bytes);
	case CALL_GATHER:
		return CALL_EITHER(gather, root, call_in, call_out, bytes);
	case CALL_ALLGATHER:
		return CALL_EITHER(allgather, call_in, call_out, bytes);
	case CALL_SCATTER:
		return CALL_EITHER(scatter, root, call_in, call_out, bytes);
	case CALL_ALLTOALL:
		return CALL_EITHER(alltoall, call_in, call_out, bytes);
	case CALL_ALLTOALLV:
	case CALL_TRANSPOSE:
	case CALL_GATHERV:
	case CALL_SCATTERV:
	case CALL_ALLGATHERV:
	case CALL_EXCHANGE:
		return call_varied(team, which, root, bytes, op);
	default:
		return call_reduction(team, which, root, bytes, op);
	}
}

/* The same, and waits for its end. */
static inline int call_whole(tern *t, tern_team *team, enum coll_call which, uint32_t root,
			     size_t bytes, bool split)
{
	tern_op op = TERN_OP;
	int rc = call_make(team, which, root, bytes, split ? &op : NULL);
	return rc || !split ? rc : tern_op_wait(t, &op);
}

#endif
