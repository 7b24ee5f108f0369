/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Playing a pattern. A node's processor does one thing at a time: it takes a packet that has
 * arrived, or else does its next step. Each takes what the profile says, and ends with an event,
 * EVENT_RESUME. A node that can do neither has no event until a packet arrives. So the cost is that
 * of the events, however many nodes wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "net/sim/machine/network.h"
#include "tools/sim/pattern.h"

struct player {
	uint64_t time;        /* until which its processor is busy, ps */
	uint32_t step, round; /* that it does next */
	bool sent;            /* what the step sends */
	bool idle;            /* has no event */
};

struct playing {
	const struct play *play;
	struct player *player;
	uint32_t *count; /* [node][slot] packets that have come */
	uint32_t steps, slots;
	bool full;    /* there was no room for a packet */
	bool blocked; /* packets block each other */
};
static struct playing now; /* the machine's callbacks have no place for it */

static void player_resume(struct machine *m, uint32_t node, uint64_t time)
{
	struct player *p = &now.player[node];
	p->idle = false;
	p->time = time;
	event_add(m, &(struct event){ .time = time,
				      .order = (uint64_t)node << 40 | m->node[node].numbered++,
				      .what = node,
				      .kind = EVENT_RESUME });
}

static void player_send(struct machine *m, uint32_t node, const struct step *s,
			enum packet_class class)
{
	const struct profile *p = &m->profile;
	uint32_t words = now.play->bytes / 4, i = travel_new(m, 0);
	uint64_t cost =
		(class == CLASS_REPLY ? p->send_reply : p->send_request) + words * p->send_word;
	uint64_t time = now.player[node].time + cost;
	if (i == NOTHING) {
		now.full = true;
		return;
	}
	struct travel *t = &m->travel[i];
	t->src = node;
	t->dst = s->dst;
	t->class = class;
	t->words = words;
	t->size = words * 4 + (uint32_t)p->header;
	t->bytes = t->size;
	t->context = (uint64_t)s->slot << 1 | s->reply;
	t->sent = time;
	m->node[s->dst].coming++;
	m->node[node].sent++;
	use_serve(use_node(m, node, USE_SEND), 0, cost);
	event_add(m, &(struct event){ .time = time,
				      .order = (uint64_t)node << 40 | m->node[node].numbered++,
				      .what = i,
				      .kind = EVENT_INJECT });
	player_resume(m, node, time);
}

/* Takes a packet; its answer, if it wants one, is sent in the same step. */
static void player_receive(struct machine *m, uint32_t node)
{
	const struct profile *p = &m->profile;
	struct player *who = &now.player[node];
	uint32_t i = queue_take(m, &m->node[node].inbox);
	struct travel t = m->travel[i];
	uint64_t cost = p->receive + t.words * p->receive_word;
	machine_taken(m, i, who->time);
	use_serve(use_node(m, node, USE_RECEIVE), 0, cost);
	travel_free(m, i);
	now.count[(size_t)node * now.slots + (t.context >> 1)]++;
	who->time += cost;
	if (t.context & 1)
		player_send(m, node, &(struct step){ .dst = t.src }, CLASS_REPLY);
	else
		player_resume(m, node, who->time);
}

/* Goes through steps until one takes time or cannot be done yet. */
static void player_step(struct machine *m, uint32_t node)
{
	struct player *who = &now.player[node];
	const uint32_t *count = &now.count[(size_t)node * now.slots];
	while (who->round < now.play->rounds) {
		struct step s = now.play->pattern->step(now.play, node, who->step, who->round);
		if (s.dst != NOTHING && !who->sent) {
			who->sent = true;
			player_send(m, node, &s, CLASS_REQUEST);
			return;
		}
		if (s.await != NOTHING && count[s.await] < s.need)
			break;
		who->sent = false;
		if (++who->step == now.steps)
			who->step = 0, who->round++;
	}
	who->idle = true;
}

static void on_resume(struct machine *m, const struct event *e)
{
	now.player[e->what].time = e->time;
	if (e->time > m->shared->ended)
		m->shared->ended = e->time;
	if (queue_empty(&m->node[e->what].inbox))
		player_step(m, e->what);
	else
		player_receive(m, e->what);
}

/* Somebody who waits looks once each `poll`. */
static void on_arrived(struct machine *m, uint32_t travel)
{
	uint32_t node = m->travel[travel].dst;
	const struct player *who = &now.player[node];
	uint64_t poll = m->profile.poll, late = m->shared->clock - who->time;
	if (who->idle)
		player_resume(m, node, who->time + (late + poll - 1) / poll * poll);
}

static void on_blocked(struct machine *m)
{
	(void)m;
	now.blocked = true;
}

/* -- The machine ------------------------------------------------------------------------------- */

int pattern_open(struct machine *m, const char *profile, uint32_t nodes)
{
	*m = (struct machine){ .resume = on_resume, .arrived = on_arrived, .blocked = on_blocked };
	if (nodes < 2)
		return error_set(-EINVAL, "a pattern needs 2 nodes or more");
	int rc = profile_load(&m->profile, profile);
	const struct sim_network *n = rc ? NULL : network_named(m->profile.network);
	if (!rc && (m->profile.crash_at || m->profile.crash_mean))
		rc = error_set(-EINVAL, "no node of a pattern crashes: crash_at = crash_mean = 0");
	if (!rc && n->judge)
		rc = n->judge(&m->profile, nodes);
	if (rc)
		return rc;
	void *base = mmap(NULL, machine_bytes(&m->profile, nodes), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return error_set(-errno, "mapping the memory of %u simulated nodes: %s", nodes,
				 strerror(errno));
	/* Processors send and receive themselves, at the controller's prices. */
	snprintf(m->profile.controller, sizeof m->profile.controller, "none");
	machine_lay(m, base, nodes);
	machine_init(m, nodes);
	return 0;
}

void pattern_close(struct machine *m)
{
	munmap(m->shared, m->bytes);
}

static int play_through(struct machine *m)
{
	for (uint32_t i = 0; i < now.play->nodes; i++)
		player_resume(m, i, 0);
	while (!now.full && !now.blocked && machine_step(m))
		;
	if (now.full)
		return error_set(
			-ENOMEM,
			"more than %u packets are under way at once, which is the most that "
			"can be simulated; take fewer nodes or --rounds",
			(unsigned)TRAVELS_MOST);
	if (!now.blocked)
		return 0;
	fprintf(stderr, "tern sim: at %.3f us packets block each other:\n",
		(double)m->shared->clock / 1e6);
	m->net->stuck(m, stderr);
	return error_set(-EDEADLK, "the pattern cannot go on: packets block each other");
}

int pattern_play(const struct play *p, struct machine *m)
{
	const struct pattern *by = p->pattern;
	now = (struct playing){ .play = p,
				.steps = by->many_steps ? by->many_steps(p) : by->steps };
	now.slots = by->slots ? by->slots : now.steps;
	now.player = calloc(p->nodes, sizeof *now.player);
	now.count = calloc((size_t)p->nodes * now.slots, sizeof *now.count);
	int rc = now.player && now.count ? play_through(m)
					 : error_set(-ENOMEM, "no memory for %u nodes", p->nodes);
	free(now.player);
	free(now.count);
	return rc;
}
