/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of collectives between machines: see far.c and levels.c. */
#ifndef TERN_COLL_FAR_H
#define TERN_COLL_FAR_H

#include "coll/run.h"

/* -- far.c: steps of messages among a party -- */
/*
 * Blocks one behind the other, of so many units for each member, or of nearly equal shares of
 * `units`. Without memory for them -ENOMEM is kept in the run, whose steps are not added then.
 */
struct blocks blocks_none(struct run *r, const void *base, uint32_t n); /* all are empty */
struct blocks blocks_lay(struct run *r, const void *base, uint32_t n, const size_t *counts,
			 size_t units, size_t unit);
/* To each member its block of `in`, and from each one of `out`; empty ones are no messages. */
void far_exchange(struct run *r, const struct members *p, unsigned tag, const struct blocks *in,
		  const struct blocks *out);
/* The root gathers its blocks `all` from the members, or scatters them: each has `one`. */
void far_rooted(struct run *r, const struct members *p, uint32_t root, struct blocks all,
		const void *one, size_t len, bool gathers);
/* Each has its own block; in the end everybody has all of them. */
void far_allgather(struct run *r, const struct members *p, const struct blocks *b);
void far_barrier(struct run *r, const struct members *p);
void far_broadcast(struct run *r, const struct members *p, uint32_t root, void *data, size_t len);
void far_reduce(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		size_t n);
void far_allreduce(struct run *r, const struct members *p, void *data, size_t n);
/* In the order of the members; to everybody, or to `root` if that is a member. */
void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n);
/* Of all members of the team, in their order; member i gets counts[i] elements. */
void far_reduce_scatter(struct run *r, const void *in, void *out, const size_t *counts);
void far_scan(struct run *r, const void *in, char *out, size_t n, bool inclusive);
/* Of all members of the team; `root` is for those that have one. */
typedef void mover(struct run *r, uint32_t root, const void *in, void *out, size_t len);
mover far_gather, far_scatter, far_alltoall;

/*
 * -- levels.c: near steps, messages between machines, near steps. In a team without outboxes each
 * member counts as a machine of its own --
 */
mover levels_broadcast, levels_gather, levels_allgather, levels_scatter, levels_alltoall;
void levels_barrier(struct run *r);
void levels_reduce(struct run *r, uint32_t root, const void *in, void *out, size_t n);
void levels_allreduce(struct run *r, const void *in, void *out, size_t n);

#endif
