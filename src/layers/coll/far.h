/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of collectives between machines: see far.c and levels.c. */
#ifndef TERN_COLL_FAR_H
#define TERN_COLL_FAR_H

#include "coll/run.h"

/* -- far.c: steps of messages among a party -- */
void far_barrier(struct run *r, const struct members *p);
void far_broadcast(struct run *r, const struct members *p, uint32_t root, void *data, size_t len);
void far_reduce(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		size_t n);
void far_allreduce(struct run *r, const struct members *p, void *data, size_t n);
void far_scan(struct run *r, const struct members *p, const void *in, char *out, size_t n,
	      bool inclusive);
/* Of all members of the team; `root` is for those that have one. */
typedef void mover(struct run *r, uint32_t root, const void *in, void *out, size_t len);
mover far_gather, far_allgather, far_scatter, far_alltoall;
/* In the order of the members; member i gets elements cuts[i] to cuts[i + 1]. */
void far_reduce_scatter(struct run *r, const struct members *p, const void *in, void *out,
			const size_t *cuts);
/* In the order of the members; to everybody, or to `root` if that is a member. */
void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n);

/* -- levels.c: near steps, messages between machines, near steps; for teams with two levels -- */
mover levels_gather, levels_allgather, levels_scatter, levels_alltoall;
void levels_reduce(struct run *r, uint32_t root, const void *in, void *out, size_t n);

#endif
