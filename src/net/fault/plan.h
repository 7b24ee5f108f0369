/* SPDX-License-Identifier: BSD-3-Clause */
/* What is to go wrong: TERN_FAULT, read. */
#ifndef TERN_NET_FAULT_PLAN_H
#define TERN_NET_FAULT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* How often (of 2^32 packets), and how much. */
struct plan {
	uint32_t drop, duplicate, reorder, delay, corrupt, truncate, partition;
	uint64_t late_ns;      /* how late a delayed packet is, at most */
	uint64_t partition_ns; /* how long nothing gets through to a rank */
	uint64_t slow_ns;      /* that each packet takes before the next can go */
	uint64_t seed;
	bool seeded;
};

/* "drop=0.01,reorder=0.05,seed=42"; -EINVAL with a sentence. */
int plan_read(struct plan *p, const char *text);

/*
 * Whether it can be survived by packets that are `checked` for damage, or are not; -EINVAL with a
 * sentence.
 */
int plan_judge(const struct plan *p, bool checked);

#endif
