/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program tells a simulated machine (`tern sim`). Computation takes no virtual time by
 * itself, so that a run does not depend on the machine that simulates. A program says here what it
 * computes, and the profile of the simulated machine has the prices.
 */
#ifndef TERN_SIM_H
#define TERN_SIM_H

#include <stdint.h>

#include <tern/tern.h>

TERN_BEGIN_

/* Operations of each kind. */
typedef struct tern_work {
	uint64_t integer, floating, loads, stores;
} tern_work;

/*
 * This rank has computed so much: its virtual time goes on by that. On a machine that is not
 * simulated, nothing. Handlers may call it. Where a controller of the simulated node handles
 * messages, or threads share its processor, it serves messages and lets other threads run, as
 * tern_thread_yield() does. -EINVAL: no work, or more than ten days.
 */
int tern_sim_work(tern *t, const tern_work *work);

TERN_END_

#endif
