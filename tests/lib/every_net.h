/* SPDX-License-Identifier: BSD-3-Clause */
/* A test of ranks in this process, on every network. */
#ifndef TERN_TESTS_EVERY_NET_H
#define TERN_TESTS_EVERY_NET_H

#include "lib/local.h"
#include "open/nets.h"

/* Simulated machines that the network `sim` is tried on. */
static const char *const simulated[] = { "cluster", "scmp", "flash" };
enum { SIMULATED = sizeof simulated / sizeof *simulated };

/* On every network that this machine has, and where messages come as this test is told. */
static inline void on_every_network(void (*fn)(void))
{
	const char *delivery = getenv("TERN_DELIVERY");
	bool interrupts = delivery && !strcmp(delivery, "interrupt");
	bool delivered = interrupts || (delivery && !strcmp(delivery, "thread"));
	char why[200];
	for (int i = 0; net_table[i]; i++) {
		const struct net_ops *net = net_table[i];
		if (net->span == SPAN_SELF || !net->usable(why, sizeof why) ||
		    (interrupts && !strcmp(net->name, "ofi")) || /* it raises no signal */
		    /* In virtual time a rank runs alone: no thread or signal can run beside it. */
		    (delivered && !strcmp(net->name, "sim")))
			continue;
		setenv("TERN_NET", net->name, 1);
		for (unsigned k = 0; k < (strcmp(net->name, "sim") ? 1 : SIMULATED); k++) {
			setenv("TERN_SIM", simulated[k], 1);
			atomic_store(&requests.count, 0);
			atomic_store(&replies.count, 0);
			fn();
		}
	}
	unsetenv("TERN_NET");
	unsetenv("TERN_SIM");
}

#endif
