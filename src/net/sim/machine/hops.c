/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of links, at the level of packets: torus, hypercube, fat tree. A packet cuts through:
 * its head goes on from hop to hop while its tail still leaves. Each link carries one packet at a
 * time, for b gap_byte; a head that finds its link taken waits there, in a buffer that is never
 * full. Each vertex between the ends takes `hop`.
 *
 * A head asks for a link when it gets there, and links are given in that order. So packets from one
 * node to another stay in order, in a fat tree, too: the later one never starts earlier on any of
 * several equal links.
 */
#include <errno.h>

#include "base/error.h"
#include "net/sim/machine/network.h"

/* -- Moving ------------------------------------------------------------------------------------ */

/* When each link is free, ps. */
static uint64_t *links_of(const struct machine *m)
{
	return m->network;
}

static void hops_inject(struct machine *m, uint32_t i)
{
	struct travel *t = &m->travel[i];
	t->mine[0] = t->src;
	event_network(m, flat_leave(m, t) + m->profile.latency, EVENT_NETWORK, i, 0);
}

/* The way out of the network carries one packet at a time. */
static void hops_leave(struct machine *m, uint32_t i)
{
	const struct travel *t = &m->travel[i];
	struct node *n = &m->node[t->dst];
	uint64_t bytes = t->size * m->profile.gap_byte;
	uint64_t at = later(m->shared->clock, n->drained) + bytes;
	use_serve(use_node(m, t->dst, USE_OUT), at - bytes - m->shared->clock, bytes);
	n->drained = at;
	event_network(m, at, EVENT_ARRIVE, i, 0);
}

static uint64_t *link_earliest(struct machine *m, const struct hop *s)
{
	uint64_t *best = &links_of(m)[s->link];
	for (uint32_t i = 1; i < s->links; i++)
		if (links_of(m)[s->link + i] < *best)
			best = &links_of(m)[s->link + i];
	return best;
}

/* The head of a packet has come to the vertex mine[0]. */
static void hops_go_on(struct machine *m, uint32_t i)
{
	struct travel *t = &m->travel[i];
	struct hop s = m->net->next(m, (uint32_t)t->mine[0], t);
	uint64_t *free = link_earliest(m, &s);
	uint64_t start = later(m->shared->clock, *free);
	*free = start + t->size * m->profile.gap_byte;
	use_serve(use_link(m, (uint32_t)(free - links_of(m))), start - m->shared->clock,
		  *free - start);
	t->mine[0] = s.to;
	event_network(m, start + (s.to == t->dst ? 0 : m->profile.hop), EVENT_NETWORK, i, 0);
}

static void hops_happen(struct machine *m, const struct event *e)
{
	const struct travel *t = &m->travel[e->what];
	if (t->mine[0] == t->dst)
		hops_leave(m, e->what);
	else
		hops_go_on(m, e->what);
}

static size_t hops_bytes(const struct profile *p, uint32_t nodes)
{
	return network_named(p->network)->links(nodes) * sizeof(uint64_t);
}

/* -- Torus: nodes in rows of `width`, first along the row -------------------------------------- */

uint32_t grid_width(const struct profile *p, uint32_t nodes)
{
	uint32_t width = 1;
	if (p->width)
		return (uint32_t)p->width;
	for (uint32_t w = 1; w * w <= nodes; w++)
		if (nodes % w == 0)
			width = nodes / w;
	return width;
}

int grid_judge(const struct profile *p, uint32_t nodes)
{
	uint32_t width = grid_width(p, nodes);
	if (nodes % width == 0)
		return 0;
	return error_set(-EINVAL, "%u nodes make no full rows of width = %u", nodes, width);
}

/* One step in a circle of n from `at` to `to`, the shorter way. */
static uint32_t circle_step(uint32_t at, uint32_t to, uint32_t n, uint32_t *direction)
{
	*direction = (to + n - at) % n > n / 2;
	return *direction ? (at + n - 1) % n : (at + 1) % n;
}

static struct hop torus_next(const struct machine *m, uint32_t at, const struct travel *t)
{
	uint32_t n = m->shared->nodes, w = m->width, way;
	uint32_t x = at % w, y = at / w, dx = t->dst % w;
	if (x != dx) {
		uint32_t to = circle_step(x, dx, w, &way);
		return (struct hop){ 4 * at + way, 1, y * w + to };
	}
	uint32_t to = circle_step(y, t->dst / w, n / w, &way);
	return (struct hop){ 4 * at + 2 + way, 1, to * w + x };
}

/* -- Hypercube: e-cube, the lowest bit that differs first ------------------------------------- */

enum { CUBE_MOST = 20 };

static int cube_judge(const struct profile *p, uint32_t nodes)
{
	(void)p;
	if ((nodes & (nodes - 1)) == 0)
		return 0;
	return error_set(-EINVAL, "a hypercube has 1, 2, 4, 8, ... nodes, not %u", nodes);
}

static struct hop cube_next(const struct machine *m, uint32_t at, const struct travel *t)
{
	uint32_t bit = (uint32_t)__builtin_ctz(at ^ t->dst);
	(void)m;
	return (struct hop){ CUBE_MOST * at + bit, 1, at ^ 1u << bit };
}

/*
 * -- Fat tree: four children each, as the CM-5's ------------------------------------------------
 *
 * The tree below a switch of level l has 4^l nodes. Each node has one link up and one down, each
 * switch of level 1 two, of level 2 four, and of each level above four times those of one below. A
 * vertex has its level in the bits from LEVEL on, and below its number in the level.
 */
enum { LEVEL = VERTEX_LEVEL };

static uint32_t tree_links_up(uint32_t level)
{
	return level <= 2 ? 1u << level : 4u << 2 * (level - 2);
}

static uint32_t tree_levels(uint32_t nodes)
{
	uint32_t levels = 0;
	while (1u << 2 * levels < nodes)
		levels++;
	return levels;
}

/* Where the links of a level begin, those up before those down. */
static uint32_t tree_level_first(uint32_t nodes, uint32_t level)
{
	uint32_t first = 0, levels = tree_levels(nodes);
	for (uint32_t l = 0; l < level; l++)
		first += 2 * tree_links_up(l) << 2 * (levels - l);
	return first;
}

/* The links between vertex `number` of `level` and its parent. */
static struct hop tree_edge(uint32_t nodes, uint32_t level, uint32_t number, bool down)
{
	uint32_t many = tree_links_up(level), all = many << 2 * (tree_levels(nodes) - level);
	return (struct hop){ .link = tree_level_first(nodes, level) + (down ? all : 0) +
				     number * many,
			     .links = many };
}

static struct hop tree_next(const struct machine *m, uint32_t at, const struct travel *t)
{
	uint32_t nodes = m->shared->nodes, level = at >> LEVEL, number = at & ((1u << LEVEL) - 1);
	bool down = level && t->dst >> 2 * level == number;
	struct hop s;
	if (!down) {
		s = tree_edge(nodes, level, number, false);
		s.to = (level + 1) << LEVEL | number >> 2;
		return s;
	}
	uint32_t child = t->dst >> 2 * (level - 1);
	s = tree_edge(nodes, level - 1, child, true);
	s.to = (level - 1) << LEVEL | child;
	return s;
}

/* -- The networks ------------------------------------------------------------------------------ */

uint32_t grid_links(uint32_t nodes)
{
	return 4 * nodes;
}

bool grid_ends(const struct machine *m, uint32_t link, uint32_t *from, uint32_t *to)
{
	uint32_t at = link / 4, w = m->width, h = m->shared->nodes / w, x = at % w, y = at / w;
	const uint32_t next[4] = { y * w + (x + 1) % w, y * w + (x + w - 1) % w,
				   (y + 1) % h * w + x, (y + h - 1) % h * w + x };
	*from = at;
	*to = next[link % 4];
	return true;
}

static uint32_t cube_links(uint32_t nodes)
{
	return CUBE_MOST * nodes;
}

static bool cube_ends(const struct machine *m, uint32_t link, uint32_t *from, uint32_t *to)
{
	*from = link / CUBE_MOST;
	*to = *from ^ 1u << link % CUBE_MOST;
	return *to < m->shared->nodes;
}

static uint32_t tree_links(uint32_t nodes)
{
	return tree_level_first(nodes, tree_levels(nodes));
}

static bool tree_ends(const struct machine *m, uint32_t link, uint32_t *from, uint32_t *to)
{
	uint32_t nodes = m->shared->nodes, level = 0;
	while (link >= tree_level_first(nodes, level + 1))
		level++;
	uint32_t many = tree_links_up(level), all = many << 2 * (tree_levels(nodes) - level);
	uint32_t place = link - tree_level_first(nodes, level);
	uint32_t number = place % all / many;
	uint32_t below = level << LEVEL | number, above = (level + 1) << LEVEL | number >> 2;
	*from = place < all ? below : above;
	*to = place < all ? above : below;
	return true;
}

const struct sim_network torus_network = { .name = "torus",
					   .meaning = "packets, rows of `width` closed to circles",
					   .judge = grid_judge,
					   .bytes = hops_bytes,
					   .links = grid_links,
					   .ends = grid_ends,
					   .inject = hops_inject,
					   .next = torus_next,
					   .happen = hops_happen };

const struct sim_network hypercube_network = { .name = "hypercube",
					       .meaning = "packets, e-cube routing",
					       .judge = cube_judge,
					       .bytes = hops_bytes,
					       .links = cube_links,
					       .ends = cube_ends,
					       .inject = hops_inject,
					       .next = cube_next,
					       .happen = hops_happen };

const struct sim_network fattree_network = { .name = "fattree",
					     .meaning = "packets, four children a switch, as the "
							"CM-5",
					     .bytes = hops_bytes,
					     .links = tree_links,
					     .ends = tree_ends,
					     .inject = hops_inject,
					     .next = tree_next,
					     .happen = hops_happen };
