/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of a simulated machine were used for: how long each was busy, and how long packets
 * waited for it. A part serves one packet at a time, so the time that it was busy is its
 * utilisation, and by Little's law the time that packets waited is the mean length of its queue.
 */
#ifndef TERN_NET_SIM_MACHINE_USE_H
#define TERN_NET_SIM_MACHINE_USE_H

#include <stdint.h>
#include <stdio.h>

struct machine;

/* The parts of a node; links follow, numbered by the network. */
enum use_part {
	USE_SEND,       /* the processor, sending, */
	USE_RECEIVE,    /* receiving, */
	USE_WORK,       /* and computing */
	USE_CONTROLLER, /* the communication processor */
	USE_IN,         /* the channel into the network, */
	USE_OUT,        /* and out of it */
	USE_INBOX,      /* packets that have arrived and that the processor has not taken */
	USE_NODE,
	USE_LINK = USE_NODE,
	USE_PARTS,
};
extern const char *const use_name[USE_PARTS];

struct use {
	uint64_t busy;    /* ps */
	uint64_t waited;  /* by all packets together, ps */
	uint64_t longest; /* wait, ps */
	uint64_t packets;
	uint32_t queued;  /* at the moment, where the part has a queue, */
	uint32_t deepest; /* and at most; mesh: flits of one channel */
};

/* One part, for whoever looks at all of them. A vertex above 2^24 is a switch. */
struct use_row {
	enum use_part part;
	uint32_t from, to;
	struct use use;
};

enum { VERTEX_LEVEL = 24 };

/* A packet that has waited is served. */
static inline void use_serve(struct use *u, uint64_t wait, uint64_t busy)
{
	u->packets++;
	u->busy += busy;
	u->waited += wait;
	if (wait <= u->longest)
		return;
	u->longest = wait;
	if (busy && u->deepest < (wait + busy - 1) / busy) /* packets of its size */
		u->deepest = (uint32_t)((wait + busy - 1) / busy);
}

struct use *use_node(const struct machine *m, uint32_t node, enum use_part part);
struct use *use_link(const struct machine *m, uint32_t link);

/* Each part that a packet has used, node by node and then link by link. */
void use_each(struct machine *m, void (*each)(void *to, const struct use_row *row), void *to);
/*
 * The table: a comment with the machine and the virtual time, a heading, and a line for each part
 * that a packet has used.
 */
void use_write(struct machine *m, FILE *to);
/* When the last rank leaves: into the file of TERN_SIM_USE, if that is set. */
void use_end(struct machine *m);

#endif
