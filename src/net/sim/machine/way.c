/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a worm through a mesh: which links it takes, and which virtual channel of each. */
#include "net/sim/machine/mesh.h"

/* Links between nodes, and those into and out of the network. */
uint32_t way_longest(const struct profile *p, uint32_t nodes)
{
	uint32_t width = grid_width(p, nodes);
	return width + nodes / width + 2;
}

/*
 * The virtual channels are divided into sets, of which a worm uses one: for requests and for
 * replies, or for each type of message, as far as there are enough. In a circle each set needs two,
 * one for worms that have passed its end. Of its set, which has lanes(), a worm takes the one of
 * its destination, so that worms of a kind to one node stay in order.
 */
static uint32_t need(const struct profile *p)
{
	return p->wrap ? 2 : 1;
}

uint32_t way_sets(const struct profile *p)
{
	uint32_t wanted = p->channel_types ? TYPES : 2;
	return p->channels >= wanted * need(p) ? wanted : 1;
}

static uint32_t lanes(const struct machine *m)
{
	const struct profile *p = &m->profile;
	uint32_t mine = (uint32_t)p->channels / way_sets(p) / need(p);
	return mine ? mine : 1;
}

uint32_t way_lane(const struct machine *m, const struct travel *t, bool passed)
{
	const struct profile *p = &m->profile;
	uint32_t set = p->channel_types ? t->type : t->class != CLASS_REQUEST;
	return set % way_sets(p) * ((uint32_t)p->channels / way_sets(p)) +
	       (p->channels >= need(p) && need(p) == 2 && passed ? lanes(m) : 0);
}

/* Along one dimension of n places: how many links, and whether towards smaller ones. */
struct leg {
	uint32_t links;
	bool back;
};
static struct leg leg(const struct machine *m, uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t ahead = (to + n - from) % n;
	if (m->profile.wrap)
		return ahead > n / 2 ? (struct leg){ n - ahead, true }
				     : (struct leg){ ahead, false };
	return to < from ? (struct leg){ from - to, true } : (struct leg){ to - from, false };
}

static uint32_t way_step(uint32_t node, enum port port, uint32_t lane)
{
	return (node * PORTS + port) * LANES + lane;
}

/*
 * The `i`th link of a leg from place `from` of n: where it begins, and whether its end was passed.
 */
static uint32_t leg_place(struct leg l, uint32_t from, uint32_t n, uint32_t i, bool *passed)
{
	*passed = l.back ? i > from : from + i >= n;
	return l.back ? (from + n - i) % n : (from + i) % n;
}

/* Between the nodes. */
uint32_t way_links(const struct machine *m, const struct mesh_view *v, const struct travel *t)
{
	return leg(m, t->src % v->width, t->dst % v->width, v->width).links +
	       leg(m, t->src / v->width, t->dst / v->width, v->height).links;
}

/* Its way: into the network, along the row, along the column, and out. */
void way_lay(const struct machine *m, const struct mesh_view *v, uint32_t i)
{
	const struct travel *t = &m->travel[i];
	uint32_t x = t->src % v->width, y = t->src / v->width, to = t->dst % v->width;
	struct leg row = leg(m, x, to, v->width), column = leg(m, y, t->dst / v->width, v->height);
	uint32_t *way = v->way + (size_t)i * v->longest, spread = t->dst % lanes(m);
	bool passed = false;
	*way++ = way_step(t->src, PORT_IN, way_lane(m, t, false));
	for (uint32_t k = 0; k < row.links; k++) {
		uint32_t at = leg_place(row, x, v->width, k, &passed);
		*way++ = way_step(y * v->width + at, row.back ? PORT_LEFT : PORT_RIGHT,
				  way_lane(m, t, passed) + spread);
	}
	for (uint32_t k = 0; k < column.links; k++) {
		uint32_t at = leg_place(column, y, v->height, k, &passed);
		*way++ = way_step(at * v->width + to, column.back ? PORT_UP : PORT_DOWN,
				  way_lane(m, t, passed) + spread);
	}
	*way = way_step(t->dst, PORT_OUT, way_lane(m, t, false) + spread);
}
