/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire that does wrong what wires do wrong, around any other: TERN_FAULT says what and how often.
 * All of it follows from a seed, which is printed, and from what is sent.
 */
#ifndef TERN_NET_FAULT_FAULT_H
#define TERN_NET_FAULT_FAULT_H

#include "net/packet/wire.h"

/*
 * Puts faults around *w, if TERN_FAULT asks for any; -EINVAL with a sentence if it cannot be
 * understood.
 */
int fault_wrap(struct wire **w, uint32_t rank, uint32_t size);

/*
 * Whether the faults around `w`, if there are any, can be survived by packets that are `checked`;
 * -EINVAL with a sentence.
 */
int fault_judge(struct wire *w, bool checked);

/* While they rest, nothing goes wrong on any wire of this process: to compare, in one run. */
void fault_rest(bool rest);

#endif
