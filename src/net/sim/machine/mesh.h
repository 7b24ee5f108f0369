/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mesh of flits, in the machine's memory. Links are numbered: those of node n are 6 n + port. A
 * link has `channels` virtual channels, each with a buffer of `channel_flits` at the link's end and
 * with one worm at most, from the worm's first flit in it to its last.
 */
#ifndef TERN_NET_SIM_MACHINE_MESH_H
#define TERN_NET_SIM_MACHINE_MESH_H

#include "net/sim/machine/network.h"

enum port { PORT_RIGHT, PORT_LEFT, PORT_DOWN, PORT_UP, PORT_IN, PORT_OUT, PORTS };

enum { LANES = 16 }; /* virtual channels of a link, at most */

struct channel {
	uint32_t worm;  /* that has it; NOTHING */
	uint32_t flits; /* in its buffer */
	uint64_t since; /* it can be had from this cycle on */
};

struct link {
	uint32_t worms;   /* in the network whose way it is on */
	uint32_t lone;    /* the one that moves as one; NOTHING */
	uint64_t used;    /* the last cycle in which it carried a flit */
	uint64_t carried; /* flits, */
	uint64_t passed;  /* worms, so far, */
	uint64_t fullest; /* and flits in the buffer of one of its channels, at most */
};

/*
 * Of a packet in the network, mine[] of struct travel is too small. One for each place of travel.
 */
struct worm {
	uint32_t length;  /* flits, */
	uint32_t unsent;  /* those at the source, */
	uint32_t arrived; /* and those at the destination */
	uint32_t way;     /* channels from source to destination: links between nodes and 2 */
	uint32_t first;   /* of the channels that it has: the last flit is there, or to come */
	uint32_t end;     /* behind the last channel that it has */
	bool frozen;      /* none of its flits can move before its first one gets a channel */
	uint32_t wanted;  /* while it is: the channel that it waits for */
	uint64_t stalled; /* the cycle from which on its first flit waits; 0: it does not */
	bool watched;     /* its controller is told when all flits but `low`, and all, have gone */
	uint32_t told;    /* how many were left at the node when it was last told */
	uint32_t stamp;   /* of the events that are to tell of one that moves as one */
	uint32_t low;
	uint32_t lone;  /* nonzero: it moves as one, and is to arrive with this stamp */
	uint64_t start; /* cycle in which its first flit enters */
	uint64_t born;  /* its number among those that began */
};

struct mesh {
	uint64_t tick;     /* the cycle that is to come; 0: none, */
	uint64_t done;     /* and the last that was */
	uint32_t worms;    /* in `active` */
	uint32_t stamps;   /* of worms that move as one */
	uint64_t moved;    /* flits by a link, flit by flit, */
	uint64_t skipped;  /* and by worms that moved as one */
	uint64_t injected; /* flits */
	uint64_t ejected;
	uint64_t begun;   /* worms */
	uint32_t refused; /* those that their node did not take in the last cycle */
	bool blocked;     /* no cycle moves any worm any more */
};

/* A node's way into the network, for each virtual channel. */
struct entry {
	struct queue waiting;
	bool busy; /* a worm has begun and its last flit has not gone on */
};

/* A process's view of it. */
struct mesh_view {
	struct mesh *mesh;
	struct channel *channel;
	struct link *link;
	struct entry *entry;
	uint32_t *way; /* of each worm, `longest` steps: link * LANES + virtual channel */
	uint32_t longest;
	uint32_t *active; /* worms that move flit by flit, the oldest first */
	struct worm *worm;
	uint32_t width, height, nodes;
};

struct mesh_view mesh_view(const struct machine *m);

/* -- way.c -- */
uint32_t way_longest(const struct profile *p, uint32_t nodes);
uint32_t way_sets(const struct profile *p); /* of virtual channels that worms do not share */
uint32_t way_links(const struct machine *m, const struct mesh_view *v, const struct travel *t);
/* Of the virtual channels of a link, the first that `t` may use; `passed`: the end of a circle. */
uint32_t way_lane(const struct machine *m, const struct travel *t, bool passed);
void way_lay(const struct machine *m, const struct mesh_view *v, uint32_t i);

/* The k-th step of its way, a link and a channel of it. */
static inline uint32_t *way_of(const struct mesh_view *v, uint32_t i, uint32_t k)
{
	return &v->way[(size_t)i * v->longest + k];
}

static inline struct channel *channel_at(const struct machine *m, const struct mesh_view *v,
					 uint32_t step)
{
	return &v->channel[step / LANES * (uint32_t)m->profile.channels + step % LANES];
}

static inline struct channel *channel_of(const struct machine *m, const struct mesh_view *v,
					 uint32_t i, uint32_t k)
{
	return channel_at(m, v, *way_of(v, i, k));
}

static inline struct link *link_of(const struct mesh_view *v, uint32_t i, uint32_t k)
{
	return &v->link[*way_of(v, i, k) / LANES];
}

#endif
