/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a wire do wrong what wires do wrong: TERN_FAULT says what and how often. All of it follows
 * from a seed, which is printed, and from what is sent.
 */
#ifndef TERN_NET_FAULT_FAULT_H
#define TERN_NET_FAULT_FAULT_H

#include "net/packet/wire.h"

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

/*
 * Takes the place of some of the functions of `w`, which provides nothing from then on, if
 * TERN_FAULT asks for faults; -EINVAL with a sentence if it cannot be understood.
 */
int fault_wrap(struct wire *w, uint32_t rank, uint32_t size);
bool fault_in(const struct wire *w); /* whether it has */

/*
 * Whether the faults in `w`, if there are any, can be survived by packets that are `checked`;
 * -EINVAL with a sentence.
 */
int fault_judge(const struct wire *w, bool checked);

/* While they rest, nothing goes wrong on any wire of this process: to compare, in one run. */
void fault_rest(bool rest);

#endif
