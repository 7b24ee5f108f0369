/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated run was like: its virtual time, and what each part of the machine was used for.
 * It comes from the file of TERN_SIM_USE or, of a pattern, from the machine itself.
 */
#ifndef TERN_TOOLS_SIM_FIGURES_H
#define TERN_TOOLS_SIM_FIGURES_H

#include <stddef.h>
#include <stdio.h>

#include "net/sim/machine/machine.h"

/* What can be the bottleneck. */
enum limit {
	LIMIT_PROCESSOR,
	LIMIT_CONTROLLER,
	LIMIT_IN,
	LIMIT_LINK,
	LIMIT_OUT,
	LIMIT_LATENCY, /* none of them: packets are waited for */
	LIMITS,
	LIMIT_PARTS = LIMIT_LATENCY,
};
extern const char *const limit_name[LIMITS];

/* All parts of one kind. Times are in us. */
struct load {
	double busy, waited, longest;
	double most; /* busy, of the busiest one, */
	uint32_t from, to;
	uint64_t parts;
	uint32_t deepest;
};

struct figures {
	char profile[PROFILE_NAME], network[PROFILE_NAME], controller[PROFILE_NAME];
	uint32_t nodes, width;
	double time;   /* us */
	double flight; /* of all packets together, us */
	uint64_t events, packets;
	uint64_t switches;   /* from rank to rank, */
	double cpu;          /* and CPU time of all ranks, us; 0 of a pattern */
	struct use_row *row; /* in the order of use_each() */
	size_t rows, room;
	struct load load[LIMIT_PARTS], inbox;
	double part[USE_PARTS]; /* busy, us */
};

/* Both are for figures_free(). 0, or a code with a sentence. */
int figures_take(struct figures *f, struct machine *m);
int figures_read(struct figures *f, const char *name);
void figures_free(struct figures *f);

/* Which part of the machine the run waited for, and for how much of the time that was busy. */
enum limit figures_limit(const struct figures *f, double *utilisation);
/* How a vertex is called: node 7, switch 2.3. */
const char *vertex_name(uint32_t vertex, char *text, size_t len);

/* Says where the time went, and what the bottleneck is. */
void figures_explain(const struct figures *f, FILE *to);
/* A picture of the nodes and links of a grid; of other networks, of the nodes. For file_write(). */
int figures_heat(const void *figures, FILE *to);
enum { HEAT_NODES_MOST = 4096 };

#endif
