/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns of communication that are played on a simulated machine without a program, so on as many
 * nodes as there is memory for. A pattern gives each node a list of steps, which it goes through
 * `rounds` times. In a step a node may send a packet, and waits until so many have come into one
 * of its slots.
 */
#ifndef TERN_TOOLS_SIM_PATTERN_H
#define TERN_TOOLS_SIM_PATTERN_H

#include "net/sim/machine/machine.h"

enum { SLOTS_MOST = 24 };

struct step {
	uint32_t dst;   /* NOTHING: sends nothing */
	uint32_t slot;  /* at the receiver */
	bool reply;     /* the receiver answers, into slot 0 here */
	uint32_t await; /* slot; NOTHING: waits for nothing */
	uint32_t need;  /* packets that must have come into it */
};

struct play;

struct pattern {
	const char *name, *meaning;
	uint32_t steps, slots; /* of each node; without slots, as many as steps */
	uint32_t (*many_steps)(const struct play *p); /* where the nodes say how many */
	struct step (*step)(const struct play *p, uint32_t node, uint32_t step, uint32_t round);
};
extern const struct pattern pattern_table[]; /* ends with a name of NULL */

const struct pattern *pattern_named(const char *name);

/* Whether to play, and how. */
struct play {
	const struct pattern *pattern;
	uint32_t nodes, width, rounds, bytes;
	uint64_t seed;
};

/* How much of an all-to-all is played: packets, at most, before the first. */
enum { PACKETS_MOST = 20000000 };

/* Plays it, and leaves what happened in the machine. 0, or a code with a sentence. */
int pattern_play(const struct play *p, struct machine *m);

/* A machine of its own, without processes; and away with it. */
int pattern_open(struct machine *m, const char *profile, uint32_t nodes);
void pattern_close(struct machine *m);

#endif
