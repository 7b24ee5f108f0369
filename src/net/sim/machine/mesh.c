/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A two-dimensional mesh of flits with wormhole routing, or a torus with `wrap`. A packet is a worm
 * of flits. In a cycle each link carries one flit. The first flit takes a virtual channel of the
 * next link, first along the row and then along the column; the others follow; the last one frees
 * the channels that it leaves, for the next cycle. Older worms go first.
 *
 * A worm alone takes as many cycles as it has links, with those into and out of the network, and
 * one more for each flit but the first. While no other worm's way shares a link with its own, it
 * moves as one: its arrival is the only event. When another enters its way, it is laid out as it
 * would be by then, and both move flit by flit.
 */
#include "net/sim/machine/mesh.h"

#include <errno.h>

#include "base/error.h"
#include "net/sim/machine/controller.h"

/* -- Memory ----------------------------------------------------------------------------------- */

static size_t mesh_bytes(const struct profile *p, uint32_t nodes)
{
	return sizeof(struct mesh) + TRAVELS_MOST * (sizeof(struct worm) + sizeof(uint32_t)) +
	       (size_t)nodes * PORTS *
		       (sizeof(struct link) + p->channels * sizeof(struct channel)) +
	       nodes * p->channels * sizeof(struct entry) +
	       (size_t)TRAVELS_MOST * way_longest(p, nodes) * sizeof(uint32_t);
}

struct mesh_view mesh_view(const struct machine *m)
{
	struct mesh_view v = { .mesh = m->network, .nodes = m->shared->nodes };
	size_t links = (size_t)v.nodes * PORTS;
	v.link = (void *)(v.mesh + 1);
	v.channel = (void *)(v.link + links);
	v.worm = (void *)(v.channel + links * m->profile.channels);
	v.entry = (void *)(v.worm + TRAVELS_MOST);
	v.active = (void *)(v.entry + v.nodes * m->profile.channels);
	v.way = v.active + TRAVELS_MOST;
	v.longest = m->width + v.nodes / m->width + 2;
	v.width = m->width;
	v.height = v.nodes / v.width;
	return v;
}

static void mesh_init(struct machine *m)
{
	struct mesh_view v = mesh_view(m);
	for (uint32_t i = 0; i < v.nodes * PORTS; i++)
		v.link[i].lone = NOTHING;
	for (uint32_t i = 0; i < v.nodes * PORTS * m->profile.channels; i++)
		v.channel[i].worm = NOTHING;
	for (uint32_t i = 0; i < v.nodes * m->profile.channels; i++)
		v.entry[i].waiting = (struct queue){ NOTHING, NOTHING };
}

/* Figures of links into and out of the network are the node's. */
static struct use *mesh_use(const struct machine *m, uint32_t link)
{
	uint32_t node = link / PORTS, port = link % PORTS;
	if (port >= PORT_IN)
		return use_node(m, node, port == PORT_IN ? USE_IN : USE_OUT);
	return use_link(m, node * PORT_IN + port);
}

/* -- Worms that move as one ------------------------------------------------------------------- */

static uint64_t cycle_now(const struct machine *m)
{
	return m->shared->clock / m->profile.flit;
}

/* The last cycle that flits have moved in: one that begins now is to come, unless it has been. */
static uint64_t cycle_done(const struct machine *m, const struct mesh *mesh)
{
	uint64_t now = cycle_now(m);
	if (mesh->tick)
		return mesh->tick - 1;
	return now - (mesh->done != now && m->shared->clock % m->profile.flit == 0);
}

#define TICK_ORDER (UINT64_MAX - TRAVELS_MOST)

static void tick_at(struct machine *m, struct mesh *mesh, uint64_t cycle)
{
	if (mesh->tick)
		return;
	mesh->tick = cycle;
	/* Behind all else of that time, so that it does not matter when it was asked for. */
	event_add(m, &(struct event){ .time = cycle * m->profile.flit,
				      .order = TICK_ORDER,
				      .what = NOTHING,
				      .kind = EVENT_NETWORK });
}

/* Flits leave in a cycle, so it is told behind that, of worms in the order of their places. */
/* A node's way in carries one flit in a cycle: the node orders such events. */
static void tell_at(struct machine *m, uint64_t cycle, uint32_t i, uint32_t stamp)
{
	event_add(m, &(struct event){ .time = cycle * m->profile.flit,
				      .order = TICK_ORDER + 1 + m->travel[i].src,
				      .what = i,
				      .stamp = stamp,
				      .kind = EVENT_LEFT });
}

/*
 * Whose flits go first where two worms want a link: those of the older one. Of types with channels
 * of their own, data go last. A router goes round its channels, so what is short passes long
 * data within a few cycles; with the older one first it would wait for their end.
 */
static bool worm_before(const struct machine *m, const struct mesh_view *v, uint32_t a, uint32_t b)
{
	bool data = m->travel[a].type == TYPE_DATA, other = m->travel[b].type == TYPE_DATA;
	if (m->profile.channel_types && data != other)
		return other;
	return v->worm[a].born < v->worm[b].born;
}

static void worm_activate(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	uint32_t at = v->mesh->worms++;
	for (; at && worm_before(m, v, i, v->active[at - 1]); at--)
		v->active[at] = v->active[at - 1];
	v->active[at] = i;
	tick_at(m, v->mesh, cycle_done(m, v->mesh) + 1);
}

static struct entry *entry_of(const struct machine *m, const struct mesh_view *v, uint32_t i)
{
	const struct travel *t = &m->travel[i];
	return &v->entry[t->src * m->profile.channels + way_lane(m, t, false)];
}

/*
 * Lays a worm that moved as one out as it is after `cycle`: flit f is f channels behind the first.
 */
static void worm_lay(struct machine *m, const struct mesh_view *v, uint32_t i, uint64_t cycle)
{
	struct worm *w = &v->worm[i];
	uint64_t gone = cycle + 1 > w->start ? cycle + 1 - w->start : 0; /* cycles */
	uint32_t sent = gone < w->length ? (uint32_t)gone : w->length;
	for (uint32_t k = 0; k < w->way; k++)
		link_of(v, i, k)->lone = NOTHING;
	w->lone = 0;
	w->unsent = w->length - sent;
	v->mesh->injected += sent;
	w->end = (uint32_t)(gone < w->way ? gone : w->way);
	w->arrived = gone > w->way ? (uint32_t)(gone - w->way) : 0;
	w->first = sent == w->length ? (uint32_t)(gone - w->length) : 0;
	v->mesh->ejected += w->arrived;
	if (w->first)
		entry_of(m, v, i)->busy = false;
	for (uint32_t k = w->first; k < w->end; k++) {
		struct channel *c = channel_of(m, v, i, k);
		c->worm = i;
		c->flits = 1;
	}
	for (uint32_t k = 0; k < w->end; k++) { /* what its links have carried */
		uint64_t by = gone - k < w->length ? gone - k : w->length;
		link_of(v, i, k)->carried += by;
		v->mesh->skipped += by;
	}
	worm_activate(m, v, i);
}

/* Those that move as one on the way of worm `i` do so no longer. */
static bool way_clear(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	bool clear = m->profile.whole;
	for (uint32_t k = 0; k < v->worm[i].way; k++) {
		struct link *l = link_of(v, i, k);
		clear &= l->worms == 0;
		if (l->lone != NOTHING)
			worm_lay(m, v, l->lone, cycle_done(m, v->mesh));
	}
	return clear;
}

/* Of one that moves as one: when it has so many flits left at its node. */
static void worm_tell_at(struct machine *m, const struct mesh_view *v, uint32_t i, uint32_t unsent)
{
	const struct worm *w = &v->worm[i];
	if (w->watched && unsent < w->length)
		tell_at(m, w->start + w->length - 1 - unsent, i, w->lone);
}

/* Whether its node may refuse it: then it does not move as one. */
static bool worm_refusable(const struct machine *m, uint32_t i)
{
	return m->controller->take && m->travel[i].type == TYPE_THREAD;
}

/* Its first flit enters in the next cycle, if it can. */
static void worm_begin(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	struct worm *w = &v->worm[i];
	bool clear = way_clear(m, v, i) && !worm_refusable(m, i);
	uint64_t wait = m->shared->clock - m->travel[i].mine[0];
	struct use *in = use_node(m, m->travel[i].src, USE_IN);
	in->queued -= (uint32_t)m->travel[i].mine[1];
	in->waited += wait;
	in->longest = wait > in->longest ? wait : in->longest;
	w->start = cycle_now(m) + 1;
	w->born = v->mesh->begun++;
	entry_of(m, v, i)->busy = true;
	for (uint32_t k = 0; k < w->way; k++) {
		struct link *l = link_of(v, i, k);
		l->worms++;
		l->passed++;
		l->lone = clear ? i : NOTHING;
	}
	if (!clear) {
		worm_activate(m, v, i);
		return;
	}
	w->lone = w->stamp = ++v->mesh->stamps;
	event_network(m, (w->start + w->way + w->length - 1) * m->profile.flit, EVENT_NETWORK, i,
		      w->lone);
	worm_tell_at(m, v, i, 0);
	if (w->low)
		worm_tell_at(m, v, i, w->low);
}

static void worm_end(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	struct worm *w = &v->worm[i];
	for (uint32_t k = 0; k < w->way; k++) {
		struct link *l = link_of(v, i, k);
		l->worms--;
		if (w->lone)
			l->lone = NOTHING, l->carried += w->length;
	}
	if (w->lone) {
		entry_of(m, v, i)->busy = false;
		v->mesh->injected += w->length;
		v->mesh->ejected += w->length;
		v->mesh->skipped += (uint64_t)w->length * w->way;
	}
	machine_deliver(m, i);
}

/* It waits for another to have left its node. */
static void mesh_queue(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	struct use *in = use_node(m, m->travel[i].src, USE_IN);
	queue_put(m, &entry_of(m, v, i)->waiting, i);
	m->travel[i].mine[1] = 1;
	if (++in->queued > in->deepest)
		in->deepest = in->queued;
}

static void mesh_inject(struct machine *m, uint32_t i)
{
	struct mesh_view v = mesh_view(m);
	struct travel *t = &m->travel[i];
	const struct link *in = &v.link[t->src * PORTS + PORT_IN];
	uint32_t bytes = (uint32_t)m->profile.flit_bytes;
	uint32_t links = way_links(m, &v, t);
	uint32_t length = t->size ? (t->size + bytes - 1) / bytes : 1;
	v.worm[i] = (struct worm){ .length = length, .unsent = length, .way = links + 2 };
	v.worm[i].watched = t->niu.watched;
	v.worm[i].told = length;
	v.worm[i].low =
		m->profile.descriptors ? length - (length > 1 ? 2 : 1) : (uint32_t)m->profile.queue;
	way_lay(m, &v, i);
	if (in->lone != NOTHING)
		worm_lay(m, &v, in->lone, cycle_done(m, v.mesh));
	t->mine[0] = m->shared->clock; /* and whether it had to wait from then on: */
	t->mine[1] = 0;
	if (entry_of(m, &v, i)->busy)
		mesh_queue(m, &v, i);
	else
		worm_begin(m, &v, i);
}

/* -- Flit by flit ----------------------------------------------------------------------------- */

/* One flit into the k-th channel of the way; `tried`: the link is another's in this cycle. */
static bool flit_move(struct machine *m, const struct mesh_view *v, uint32_t i, uint32_t k,
		      uint64_t cycle, bool *tried)
{
	struct worm *w = &v->worm[i];
	struct channel *to = channel_of(m, v, i, k);
	struct link *l = link_of(v, i, k);
	uint32_t *from = k ? &channel_of(m, v, i, k - 1)->flits : &w->unsent;
	if (!*from || to->flits == m->profile.channel_flits)
		return false;
	if (l->used == cycle) {
		*tried = true;
		return false;
	}
	--*from;
	if (++to->flits > l->fullest)
		l->fullest = to->flits;
	l->used = cycle;
	l->carried++;
	v->mesh->moved++;
	if (k == 0) {
		v->mesh->injected++;
		if (w->watched && (w->unsent == w->low || !w->unsent))
			tell_at(m, cycle, i, 0);
	}
	return true;
}

/* Its first flit has waited for the next channel of its way, and has it in this cycle. */
static void worm_waited(struct machine *m, const struct mesh_view *v, uint32_t i, uint64_t cycle)
{
	struct worm *w = &v->worm[i];
	struct use *u = mesh_use(m, *way_of(v, i, w->end) / LANES);
	uint64_t wait = (cycle - w->stalled) * m->profile.flit;
	w->stalled = 0;
	u->waited += wait;
	u->longest = wait > u->longest ? wait : u->longest;
}

static inline bool channel_free(const struct channel *c, uint64_t cycle)
{
	return c->worm == NOTHING && c->since <= cycle;
}

/* The first flit takes the next channel, if that is free. */
static bool worm_reach(struct machine *m, const struct mesh_view *v, uint32_t i, uint64_t cycle)
{
	struct worm *w = &v->worm[i];
	struct channel *c = channel_of(m, v, i, w->end);
	w->wanted = (uint32_t)(c - v->channel);
	if (!channel_free(c, cycle)) {
		w->stalled = w->stalled ? w->stalled : cycle;
		return false;
	}
	if (w->stalled)
		worm_waited(m, v, i, cycle);
	c->worm = i;
	w->end++;
	return true;
}

static bool worm_wants(const struct machine *m, const struct mesh_view *v, uint32_t i)
{
	const struct worm *w = &v->worm[i];
	return w->end < w->way && (!w->end || channel_of(m, v, i, w->end - 1)->flits);
}

/* The channels that its last flit has left. */
static void worm_let_go(struct machine *m, const struct mesh_view *v, uint32_t i, uint64_t cycle)
{
	struct worm *w = &v->worm[i];
	while (!w->unsent && w->first < w->end) {
		struct channel *c = channel_of(m, v, i, w->first);
		if (c->flits)
			return;
		c->worm = NOTHING;
		c->since = cycle + 1;
		if (w->first++ == 0)
			entry_of(m, v, i)->busy = false;
	}
}

/* Flits that are at its node leave the network, one in a cycle, if the node takes the worm. */
static bool worm_eject(struct machine *m, const struct mesh_view *v, uint32_t i)
{
	struct worm *w = &v->worm[i];
	struct channel *last = channel_of(m, v, i, w->way - 1);
	if (!last->flits)
		return false;
	if (!w->arrived && m->controller->take && !m->controller->take(m, &m->travel[i])) {
		v->mesh->refused++;
		return false;
	}
	last->flits--;
	w->arrived++;
	v->mesh->ejected++;
	return true;
}

/*
 * A cycle of one worm, from its first flit to its last. False if nothing of it moved. If no flit
 * could move though its link was free, none can until the first one gets a channel.
 */
static bool worm_move(struct machine *m, const struct mesh_view *v, uint32_t i, uint64_t cycle)
{
	struct worm *w = &v->worm[i];
	if (w->frozen && !channel_free(&v->channel[w->wanted], cycle))
		return false;
	bool moved = false, tried = false, wants = worm_wants(m, v, i);
	if (w->end == w->way)
		moved = worm_eject(m, v, i);
	if (wants)
		moved |= worm_reach(m, v, i, cycle);
	for (uint32_t k = w->end; k-- > w->first + (w->first > 0);)
		moved |= flit_move(m, v, i, k, cycle, &tried);
	worm_let_go(m, v, i, cycle);
	w->frozen = wants && !moved && !tried;
	return moved;
}

/* Worms that have arrived leave the list; one that waited behind another's last flit begins. */
static void mesh_settle(struct machine *m, const struct mesh_view *v)
{
	struct mesh *mesh = v->mesh;
	struct queue next = { NOTHING, NOTHING }, over = { NOTHING, NOTHING };
	uint32_t kept = 0;
	for (uint32_t j = 0; j < mesh->worms; j++) {
		uint32_t i = v->active[j];
		if (v->worm[i].frozen) {
			v->active[kept++] = i;
			continue;
		}
		struct entry *e = entry_of(m, v, i);
		if (!e->busy && !queue_empty(&e->waiting)) {
			e->busy = true;
			queue_put(m, &next, queue_take(m, &e->waiting));
		}
		if (v->worm[i].arrived == v->worm[i].length)
			queue_put(m, &over, i);
		else
			v->active[kept++] = i;
	}
	mesh->worms = kept;
	for (uint32_t i; (i = queue_take(m, &over)) != NOTHING;)
		worm_end(m, v, i);
	for (uint32_t i; (i = queue_take(m, &next)) != NOTHING;)
		worm_begin(m, v, i);
}

static void mesh_tick(struct machine *m)
{
	struct mesh_view v = mesh_view(m);
	uint64_t cycle = v.mesh->tick;
	bool moved = false;
	v.mesh->tick = 0;
	v.mesh->done = cycle;
	v.mesh->refused = 0;
	for (uint32_t j = 0; j < v.mesh->worms; j++)
		moved |= v.worm[v.active[j]].start > cycle || worm_move(m, &v, v.active[j], cycle);
	mesh_settle(m, &v);
	v.mesh->blocked = !moved && !v.mesh->refused;
	if (v.mesh->blocked)
		m->blocked(m);
	else if (moved && v.mesh->worms)
		tick_at(m, v.mesh, cycle + 1);
}

/*
 * Tells a controller, once, that all flits of a worm but `low`, or all, have gone. Of one that
 * moved as one when this was planned, and has been laid out since, fewer may have gone: then they
 * tell.
 */
static void worm_left(struct machine *m, struct worm *w, const struct event *e)
{
	struct mesh *mesh = m->network;
	uint64_t gone = cycle_now(m) + 1 - w->start;
	uint32_t unsent = w->lone ? w->length - (uint32_t)gone : w->unsent;
	if ((e->stamp && e->stamp != w->stamp) || unsent == w->told || (unsent && unsent != w->low))
		return;
	w->told = unsent;
	if (!mesh->tick)
		mesh->done = cycle_now(m); /* this cycle has been */
	m->controller->left(m, e->what, unsent);
}

static void mesh_happen(struct machine *m, const struct event *e)
{
	if (e->what == NOTHING) {
		mesh_tick(m);
		return;
	}
	struct mesh_view v = mesh_view(m);
	if (e->kind == EVENT_LEFT)
		worm_left(m, &v.worm[e->what], e);
	else if (v.worm[e->what].lone == e->stamp)
		worm_end(m, &v, e->what);
}

/* A node may take what it has refused. While a cycle is to come, that sees to it. */
static void mesh_wake(struct machine *m)
{
	struct mesh *mesh = m->network;
	if (mesh->worms)
		tick_at(m, mesh, cycle_done(m, mesh) + 1);
}

static bool mesh_stands(const struct machine *m)
{
	const struct mesh *mesh = m->network;
	return mesh->refused && !mesh->tick;
}

/* -- The network ------------------------------------------------------------------------------- */

static void step_print(uint32_t step, FILE *to)
{
	static const char *const way[PORTS] = { "right of", "left of", "below",
						"above",    "into",    "out of" };
	uint32_t link = step / LANES;
	fprintf(to, "%s node %u (channel %u)", way[link % PORTS], link / PORTS, step % LANES);
}

static void mesh_stuck(struct machine *m, FILE *to)
{
	struct mesh_view v = mesh_view(m);
	for (uint32_t j = 0; j < v.mesh->worms; j++) {
		uint32_t i = v.active[j];
		const struct worm *w = &v.worm[i];
		const struct travel *t = &m->travel[i];
		fprintf(to, "  the packet from node %u to node %u holds", t->src, t->dst);
		for (uint32_t k = w->first; k < w->end; k++) {
			fputs(k == w->first ? " the link " : ", ", to);
			step_print(*way_of(&v, i, k), to);
		}
		if (w->first == w->end)
			fputs(" nothing", to);
		uint32_t wanted = w->end < w->way ? *way_of(&v, i, w->end) : NOTHING;
		if (wanted != NOTHING && channel_at(m, &v, wanted)->worm != NOTHING) {
			const struct travel *o = &m->travel[channel_at(m, &v, wanted)->worm];
			fputs(", and waits for the link ", to);
			step_print(wanted, to);
			fprintf(to, ", which the packet from node %u to node %u holds", o->src,
				o->dst);
		} else if (w->end == w->way && !w->arrived) {
			fprintf(to, ", and waits for a context of node %u, which has %u threads",
				t->dst, m->node[t->dst].threads);
		}
		fputc('\n', to);
	}
}

/* Messages of different sets have channels of their own. */
static bool mesh_overtakes(const struct profile *p)
{
	return way_sets(p) > 1;
}

static void mesh_observe(struct machine *m)
{
	struct mesh_view v = mesh_view(m);
	for (uint32_t i = 0; i < v.nodes * PORTS; i++) {
		struct use *u = mesh_use(m, i);
		u->busy = v.link[i].carried * m->profile.flit;
		u->packets = v.link[i].passed;
		if (i % PORTS != PORT_IN) /* which has a queue before it */
			u->deepest = (uint32_t)(v.link[i].fullest + !v.link[i].fullest);
	}
}

static int mesh_judge(const struct profile *p, uint32_t nodes)
{
	if (p->tolerant)
		return error_set(-EINVAL, "a mesh does not send again what it loses: tolerant = 0");
	return grid_judge(p, nodes);
}

static uint64_t mesh_least(const struct profile *p)
{
	return 2 * p->flit;
}

const struct sim_network mesh_network = { .name = "mesh",
					  .meaning =
						  "flits, rows of `width`, dimension order, worms; "
						  "a torus with `wrap`",
					  .judge = mesh_judge,
					  .least = mesh_least,
					  .overtakes = mesh_overtakes,
					  .bytes = mesh_bytes,
					  .init = mesh_init,
					  .links = grid_links,
					  .ends = grid_ends,
					  .observe = mesh_observe,
					  .inject = mesh_inject,
					  .happen = mesh_happen,
					  .wake = mesh_wake,
					  .stands = mesh_stands,
					  .stuck = mesh_stuck };
