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

#include <stdio.h>
#include <tern/tern.h>

#include "base/role.h"
#include "net/sim/machine/machine.h"

/* Kinds of ROLE_CTS: from TOLD_CLEAR to TOLD_LAST a ROLE_RTS is answered. */
enum { TOLD_CLEAR = 1, TOLD_LAST = 4, NAME_SHIFT = 32 };

struct sim_controller {
	const char *name;
	const char *meaning; /* one line, for help */
	bool handles;
	bool programs; /* and those of the program as well */
	/* The process of t->src hands a packet over: sets t->sent, and charges who pays for it. */
	void (*send)(struct machine *m, struct travel *t);
	/* A packet arrives, at the clock's time. When it can be handled. NULL: at once. */
	uint64_t (*arrive)(struct machine *m, const struct travel *t);
	/* The packet is to enter the network, by machine_enter(), now or later. NULL: now. */
	void (*enter)(struct machine *m, uint32_t travel);
	/* Of one that is `watched`: so many of its flits have not left the node. */
	void (*left)(struct machine *m, uint32_t travel, uint32_t unsent);
	/* Whether its first flit may leave the network; asked again after wake(). NULL: yes. */
	bool (*take)(struct machine *m, const struct travel *t);
	/* Whether a thread of this process may not go on before a queue has room. NULL: never. */
	bool (*suspends)(struct machine *m, uint64_t thread);
	/* A node has gone, or has crashed. NULL: that changes nothing. */
	void (*gone)(struct machine *m);
	/*
	 * Whether messages wait here for what others do; says which, unless `to` is NULL. NULL: no.
	 */
	bool (*stuck)(const struct machine *m, FILE *to);
};

extern const struct sim_controller *const controller_table[]; /* ends with NULL */
const struct sim_controller *controller_named(const char *name);

enum travel_type controller_type(enum role role);
/* The words of 4 bytes that a packet has in the simulated network besides its header. */
uint32_t controller_words(const struct machine *m, const struct travel *t);

/* What sending a packet takes the processor, or the controller. */
uint64_t controller_send_cost(const struct machine *m, const struct travel *t);
/* When a packet is handed over: by a handler that runs here, or by the processor, which pays. */
uint64_t controller_hand_over(struct machine *m, const struct travel *t);
/* It takes up a packet that came at `since` and works for `ps`; when it is done. */
uint64_t controller_work(struct machine *m, uint32_t node, uint64_t *busy, uint64_t since,
			 uint64_t ps);

/* -- SCMP's network interface unit (niu.c) ---------------------------------------------------- */

extern const struct sim_controller niu_controller;
size_t niu_bytes(const struct profile *p, uint32_t nodes);
/* Whether the last message of a thread has no room in its queue. */
bool niu_full(const struct machine *m, uint32_t node, uint64_t thread);
/* What it knows of a message from its role and its words. */
void niu_read(struct travel *t, enum role role, const unsigned char *words);

#endif
