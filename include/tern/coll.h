/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams, and calls that all members of a team make together: barrier, broadcast, reductions, scans,
 * gathering, all-to-all, the transposition of a matrix; whether a program of active messages has
 * come to its end; and a team of those who are left when ranks have died.
 *
 * All members make the same calls on a team in the same order, with arguments that agree. Each
 * collective has a blocking form and one with a handle (_start), whose buffers belong to the
 * operation until it completes. Several may be under way, on one team or on several. With
 * TERN_CHECK=1, calls that do not match fail with -EINVAL at every member.
 *
 * Conventions are those of <tern/tern.h>. A member that has left makes a call fail, at every member
 * that has not completed it, with -EOWNERDEAD or -ESHUTDOWN; so does every later call on that team
 * but tern_team_survivors() and tern_team_free(). tern_coll(7) has the rules.
 */
#ifndef TERN_COLL_H
#define TERN_COLL_H

#include <tern/send.h>

TERN_BEGIN_

typedef struct tern_team tern_team;

/* -- Teams ------------------------------------------------------------------------- */

/* All ranks of the job, in their order; every rank calls it. */
int tern_team_all(tern *t, tern_team **team);
/*
 * Members of `team` that say the same color get a team, ordered by key and then by their place in
 * `team`. Who says TERN_COLOR_NONE gets NULL.
 */
#define TERN_COLOR_NONE (-1)
int tern_team_split(tern_team *team, int color, int key, tern_team **out);
/*
 * Teams of listed ranks, several in one call: each member of `team` gives the list of its own team,
 * in its order. Who gives an empty list, or one without its own rank, gets NULL. -EINVAL at all
 * members if the members of a list do not give the same one.
 */
int tern_team_list(tern_team *team, const uint32_t *ranks, uint32_t n, tern_team **out);
/* The members of `team` that share memory with this one. */
int tern_team_machine(tern_team *team, tern_team **out);
/*
 * Those who live, agreed by all of them: the same team at every member that gets one. Every living
 * member calls it, and from then on no other call on `team` but tern_team_free(). A rank that dies
 * during the call may still be in the team.
 */
int tern_team_survivors(tern_team *team, tern_team **out);
/* All members call it; when one has died, each on its own. */
int tern_team_free(tern_team *team);

uint32_t tern_team_rank(const tern_team *team); /* this member's place */
uint32_t tern_team_size(const tern_team *team);
/* The rank in the job of member `i`; TERN_RANK_NONE if there is none. */
uint32_t tern_team_member(const tern_team *team, uint32_t i);
/*
 * The id under which members send and receive `id` among themselves. No other team that a member is
 * in has it, nor has the program at large if its own ids leave TERN_ID_TEAM out; TERN_ID_ANY in a
 * match with it is any id of the team. A team of the same members with ids of its own is
 * tern_team_split(team, 0, 0, &copy).
 */
tern_id tern_team_id(const tern_team *team, uint32_t id);

/*
 * Returns at every member when all have called it and nothing is under way among them that could
 * still run a handler, a deferred function or a thread. Members may have sent to members only.
 */
int tern_team_quiet(tern_team *team);

/* -- Types and operations ---------------------------------------------------------- */

/* Complex numbers are two floats or two doubles. A value with its location is a struct below. */
enum tern_type {
	TERN_TYPE_INT8,
	TERN_TYPE_INT16,
	TERN_TYPE_INT32,
	TERN_TYPE_INT64,
	TERN_TYPE_UINT8,
	TERN_TYPE_UINT16,
	TERN_TYPE_UINT32,
	TERN_TYPE_UINT64,
	TERN_TYPE_FLOAT,
	TERN_TYPE_DOUBLE,
	TERN_TYPE_COMPLEX_FLOAT,
	TERN_TYPE_COMPLEX_DOUBLE,
	TERN_TYPE_INT64_AT,
	TERN_TYPE_UINT64_AT,
	TERN_TYPE_DOUBLE_AT,
	TERN_TYPES,
	TERN_TYPE_USER = 64 /* of any size, combined by the program: TERN_REDUCE_BY() */
};

typedef struct tern_int64_at {
	int64_t value;
	uint64_t at;
} tern_int64_at;
typedef struct tern_uint64_at {
	uint64_t value;
	uint64_t at;
} tern_uint64_at;
typedef struct tern_double_at {
	double value;
	uint64_t at;
} tern_double_at;

/*
 * What a reduction does. Integers wrap. MIN and MAX of values with a location keep the location,
 * of equal values the smallest. Of reals they are a NaN if one is, and -0 is less than +0; every
 * NaN that comes out is the same quiet one. Bits and logic are for integers. All members of an
 * allreduce get the same bits. EXACT, added to one of them: the result of a team of this size is
 * the same, bit by bit, wherever its members run; of scans, too.
 */
enum tern_reduce {
	TERN_REDUCE_SUM,
	TERN_REDUCE_PRODUCT,
	TERN_REDUCE_MIN,
	TERN_REDUCE_MAX,
	TERN_REDUCE_AND,
	TERN_REDUCE_OR,
	TERN_REDUCE_XOR,
	TERN_REDUCE_ALL, /* 1 if all are not 0 */
	TERN_REDUCE_ANY, /* 1 if one is not 0 */
	TERN_REDUCES,
	TERN_REDUCE_EXACT = 256
};

/*
 * An operation of the program's: `left[i] = left[i] op right[i]`, for n elements. It must be
 * associative, and need not be commutative: members are combined in their order. It runs where a
 * handler may, so it neither sends nor waits.
 */
typedef void tern_reduce_fn(void *left, const void *right, size_t n, void *arg);
typedef struct tern_reduce_op {
	tern_reduce_fn *fn;
	void *arg;
	size_t size; /* bytes of an element */
} tern_reduce_op;
/*
 * In place of a TERN_REDUCE_ value, with TERN_TYPE_USER: the function of a tern_reduce_op. Each
 * member gives its own, which is read before the call returns.
 */
#define TERN_REDUCE_BY(op) ((uintptr_t)(1 ? (op) : (const tern_reduce_op *)0))

/* -- Collectives ------------------------------------------------------------------- */

/*
 * In place: where both have the same length `in` may be `out`; where one has a part for each
 * member, the other may be this member's part of it. Otherwise they do not overlap.
 */
int tern_team_barrier_start(tern_team *team, tern_op *op);
static inline int tern_team_barrier(tern_team *team)
{
	return tern_team_barrier_start(team, NULL);
}
int tern_team_broadcast_start(tern_team *team, uint32_t root, void *data, size_t len, tern_op *op);
static inline int tern_team_broadcast(tern_team *team, uint32_t root, void *data, size_t len)
{
	return tern_team_broadcast_start(team, root, data, len, NULL);
}
/* `out` matters at the root only. */
int tern_team_reduce_start(tern_team *team, uint32_t root, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op);
static inline int tern_team_reduce(tern_team *team, uint32_t root, const void *in, void *out,
				   size_t n, enum tern_type type, uintptr_t how)
{
	return tern_team_reduce_start(team, root, in, out, n, type, how, NULL);
}
int tern_team_allreduce_start(tern_team *team, const void *in, void *out, size_t n,
			      enum tern_type type, uintptr_t how, tern_op *op);
static inline int tern_team_allreduce(tern_team *team, const void *in, void *out, size_t n,
				      enum tern_type type, uintptr_t how)
{
	return tern_team_allreduce_start(team, in, out, n, type, how, NULL);
}
/* Member i gets the combination of members 0 to i. */
int tern_team_scan_start(tern_team *team, const void *in, void *out, size_t n, enum tern_type type,
			 uintptr_t how, tern_op *op);
static inline int tern_team_scan(tern_team *team, const void *in, void *out, size_t n,
				 enum tern_type type, uintptr_t how)
{
	return tern_team_scan_start(team, in, out, n, type, how, NULL);
}
/* Of members 0 to i - 1; `out` of member 0 stays as it is. */
int tern_team_exscan_start(tern_team *team, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op);
static inline int tern_team_exscan(tern_team *team, const void *in, void *out, size_t n,
				   enum tern_type type, uintptr_t how)
{
	return tern_team_exscan_start(team, in, out, n, type, how, NULL);
}
/* `len` bytes of each member, one behind the other in the order of the members. */
int tern_team_gather_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			   tern_op *op);
static inline int tern_team_gather(tern_team *team, uint32_t root, const void *in, void *out,
				   size_t len)
{
	return tern_team_gather_start(team, root, in, out, len, NULL);
}
int tern_team_allgather_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op);
static inline int tern_team_allgather(tern_team *team, const void *in, void *out, size_t len)
{
	return tern_team_allgather_start(team, in, out, len, NULL);
}
int tern_team_scatter_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			    tern_op *op);
static inline int tern_team_scatter(tern_team *team, uint32_t root, const void *in, void *out,
				    size_t len)
{
	return tern_team_scatter_start(team, root, in, out, len, NULL);
}
/*
 * Member i gets the combination of its part of `in`: of counts[i] elements, behind those of the
 * members before it. The counts are the same at every member.
 */
int tern_team_reduce_scatter_start(tern_team *team, const void *in, void *out, const size_t *counts,
				   enum tern_type type, uintptr_t how, tern_op *op);
static inline int tern_team_reduce_scatter(tern_team *team, const void *in, void *out,
					   const size_t *counts, enum tern_type type, uintptr_t how)
{
	return tern_team_reduce_scatter_start(team, in, out, counts, type, how, NULL);
}
/* `len` bytes for each member, and from each. */
int tern_team_alltoall_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op);
static inline int tern_team_alltoall(tern_team *team, const void *in, void *out, size_t len)
{
	return tern_team_alltoall_start(team, in, out, len, NULL);
}

/*
 * The same with parts of any length and shape: where there is one for each member, a list of as
 * many as the team has members, and where there is one, that one. What a member sends has the
 * length of what the other receives, else the call fails with -EMSGSIZE at both and the team goes
 * on. `in` and `out` do not overlap. Lists are free on return, counts and strides that parts point
 * to when the call is complete.
 */
int tern_team_alltoallv_start(tern_team *team, const tern_part *in, const tern_part *out,
			      tern_op *op);
static inline int tern_team_alltoallv(tern_team *team, const tern_part *in, const tern_part *out)
{
	return tern_team_alltoallv_start(team, in, out, NULL);
}
/* A part of each member, into out[i] of all. */
int tern_team_allgatherv_start(tern_team *team, const tern_part *in, const tern_part *out,
			       tern_op *op);
static inline int tern_team_allgatherv(tern_team *team, const tern_part *in, const tern_part *out)
{
	return tern_team_allgatherv_start(team, in, out, NULL);
}
/* The same to the root; `out` matters there only. */
int tern_team_gatherv_start(tern_team *team, uint32_t root, const tern_part *in,
			    const tern_part *out, tern_op *op);
static inline int tern_team_gatherv(tern_team *team, uint32_t root, const tern_part *in,
				    const tern_part *out)
{
	return tern_team_gatherv_start(team, root, in, out, NULL);
}
/* in[i] of the root, into `out` of member i; `in` matters at the root only. */
int tern_team_scatterv_start(tern_team *team, uint32_t root, const tern_part *in,
			     const tern_part *out, tern_op *op);
static inline int tern_team_scatterv(tern_team *team, uint32_t root, const tern_part *in,
				     const tern_part *out)
{
	return tern_team_scatterv_start(team, root, in, out, NULL);
}

/*
 * Neighbours exchange parts: for each entry, `in` goes to member `to`, and `out` comes from member
 * `from`; TERN_RANK_NONE is nobody. A member may be in the list more than once. What one sends
 * another, in the order of its list, fills what that expects of it, in the order of its own. The
 * list is free on return, counts and strides that its parts point to when the call is complete.
 */
typedef struct tern_neighbor {
	uint32_t to, from;
	tern_part in, out;
} tern_neighbor;
int tern_team_exchange_start(tern_team *team, const tern_neighbor *list, size_t n, tern_op *op);
static inline int tern_team_exchange(tern_team *team, const tern_neighbor *list, size_t n)
{
	return tern_team_exchange_start(team, list, n, NULL);
}

/*
 * A matrix of `rows` times `cols` elements, spread over a team by rows: of n members, member i has
 * rows rows*i/n to rows*(i+1)/n - 1, from `base` on, `stride` bytes apart.
 */
typedef struct tern_matrix {
	void *base;
	size_t rows, cols;
	size_t element; /* bytes */
	size_t stride;  /* 0: rows lie one behind the other */
} tern_matrix;

/* `out` gets the transposition of `in`, so it has as many rows as that has columns. */
int tern_team_transpose_start(tern_team *team, const tern_matrix *in, const tern_matrix *out,
			      tern_op *op);
static inline int tern_team_transpose(tern_team *team, const tern_matrix *in,
				      const tern_matrix *out)
{
	return tern_team_transpose_start(team, in, out, NULL);
}

/* -- Grids ------------------------------------------------------------------------- */

enum { TERN_GRID_DIMS = 8 };

/*
 * Members in a grid: member 0 is at the origin, and the last coordinate counts first. These calls
 * compute; nobody is asked.
 */
typedef struct tern_grid {
	unsigned dims;
	uint32_t size[TERN_GRID_DIMS];
	unsigned around; /* bit d: behind the last one in dimension d comes the first one again */
} tern_grid;

/*
 * Divides `n` members among the dimensions whose size is 0, as evenly as can be, the larger sizes
 * first. -EINVAL if the other sizes do not divide it.
 */
int tern_grid_fit(tern_grid *grid, uint32_t n);
/* Where a member is, and who is there: TERN_RANK_NONE if nobody. */
void tern_grid_coords(const tern_grid *grid, uint32_t member, int64_t *coords);
uint32_t tern_grid_member(const tern_grid *grid, const int64_t *coords);
/* Who is `distance` further in one dimension, or, if that is negative, before. */
uint32_t tern_grid_neighbor(const tern_grid *grid, uint32_t member, unsigned dim, int64_t distance);

TERN_END_

#endif
