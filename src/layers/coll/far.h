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
void far_gather(struct run *r, const struct members *p, uint32_t root, const void *in, size_t len,
		char *out);
void far_allgather(struct run *r, const struct members *p, const void *in, size_t len, char *out);
void far_scatter(struct run *r, const struct members *p, uint32_t root, const char *in, void *out,
		 size_t len);
void far_alltoall(struct run *r, const struct members *p, const char *in, char *out, size_t len);
/* In the order of the members; member i gets elements cuts[i] to cuts[i + 1]. */
void far_reduce_scatter(struct run *r, const struct members *p, const void *in, void *out,
			const size_t *cuts);
/* In the order of the members; to everybody, or to `root` if that is a member. */
void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n);

/* -- levels.c: near steps, messages between machines, near steps; for teams with two levels -- */
void levels_gather(struct run *r, uint32_t root, const void *in, size_t len, char *out);
void levels_scatter(struct run *r, uint32_t root, const char *in, void *out, size_t len);
void levels_allgather(struct run *r, const void *in, size_t len, char *out);
void levels_alltoall(struct run *r, const char *in, char *out, size_t len);
void levels_reduce(struct run *r, uint32_t root, const void *in, void *out, size_t n);

#endif
