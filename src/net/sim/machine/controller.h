/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of a controller: what stands between a node's processor and the network. It takes
 * packets over from the processor and says when they enter, and it takes those that arrive. One
 * that `handles` is a communication processor: the library's own handlers run on it when their
 * packet has arrived, at its time, while the processor computes (tern_sim_work). Those of the
 * program run on the processor, which is interrupted, unless the controller runs those too.
 */
#ifndef TERN_NET_SIM_MACHINE_CONTROLLER_H
#define TERN_NET_SIM_MACHINE_CONTROLLER_H

#include <tern/tern.h>

#include "net/sim/machine/machine.h"

/* Numbers of handlers that create threads and tell of their end (src/spawn). */
enum { HANDLER_THREADS = TERN_HANDLER_MAX + 5 * 28, HANDLER_THREADS_END = HANDLER_THREADS + 28 };
/* Those of a request to send, and of what a receiver tells its sender (src/msg). */
enum { HANDLER_RTS = TERN_HANDLER_MAX + 28 + 3, HANDLER_CTS = HANDLER_RTS + 5 };

struct sim_controller {
	const char *name;
	const char *meaning; /* one line, for help */
	bool handles;
	bool programs; /* and those of the program as well */
	/* The process of t->src hands a packet over: sets t->sent, and charges who pays for it. */
	void (*send)(struct machine *m, struct travel *t);
	/* A packet arrives, at the clock's time. When it can be handled. NULL: at once. */
	uint64_t (*arrive)(struct machine *m, const struct travel *t);
};

extern const struct sim_controller *const controller_table[]; /* ends with NULL */
const struct sim_controller *controller_named(const char *name);

enum travel_type controller_type(unsigned handler);
/* The words of 4 bytes that a packet has in the simulated network besides its header. */
uint32_t controller_words(const struct machine *m, const struct travel *t);

#endif
