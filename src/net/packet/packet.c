/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base status */
/* The contract of net.h, for every network of packets. */
#include "net/packet/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/setting.h"
#include "base/world.h"
#include "service/service.h"

enum {
	LOOK_NS = 5000,         /* while the program sends: how often the network is asked, */
	LINGER_NS = 20000,      /* and how long a message waits for company */
	AHEAD = 4,              /* packets under way that a message does not wait for, */
	AHEAD_BYTES = 16 << 10, /* if they are small */
	SHORT = 10,             /* bytes that a message of a word takes, about */
};

/* -- Sending ----------------------------------------------------------------------------- */

/* About what the last message of a lane will take in a packet. */
static size_t lane_last(const struct tern_lane *lane)
{
	const tern_msg *m = (const tern_msg *)(const void *)(lane->tail - TERN_LINE);
	size_t len = 0;
	if (lane->piece || lane->tail == lane->base)
		return SHORT;
	tern_msg_data(m, &len);
	return TERN_LINE + len;
}

void packet_knock(struct net *net, struct tern_lane *lane)
{
	struct packet_net *n = packet_of(net);
	struct path *p = n->path[lane->peer];
	bool reply = lane->gate;
	p->staged += lane_last(lane);
	p->letters++;
	path_stir(p);
	n->spoke |= !reply;
	if (!reply) /* replies are made in a poll, which has looked at the clock */
		n->now = clock_ns();
	/* In a burst it may have company, until something is acknowledged or somebody looks. */
	bool few = n->confirms ? path_ahead(p) < AHEAD
			       : p->retry.next - p->retry.first < AHEAD && p->retry.pace.flying < AHEAD_BYTES;
	bool alone = few || n->now - p->sent > LINGER_NS;
	if (alone || path_full(p)) {
		path_pump(p, alone);
		post_flush(n);
	}
	n->replied |= reply && p->staged;
}

int packet_connect(struct net *net, uint32_t rank)
{
	struct packet_net *n = packet_of(net);
	int rc = packet_check(net, rank);
	if (rc)
		return rc;
	n->now = clock_ns();
	struct path *p = path_to(n, rank);
	if (!p)
		return error_set(-ENOMEM, "talking from rank %u to rank %u: no memory", net->site->rank,
				 rank);
	path_ask(p);
	return 0;
}

void packet_answer(struct net *net)
{
	struct packet_net *n = packet_of(net);
	n->ending = !n->ending;
	if (!n->ending) { /* the program may not come back for long, so replies leave now */
		if (n->replied)
			post_send(n);
		n->replied = false;
		return;
	}
	bool spoke = n->spoke;
	n->spoke = false;
	if (!spoke) {
		post_look(n, true);
		return;
	}
	/* A send's own look: what it has just written may be joined by more. */
	uint64_t since = clock_ns() - n->looked;
	if (since > LOOK_NS)
		post_look(n, since > LINGER_NS);
}

/* -- Payloads ---------------------------------------------------------------------------- */

/* cost: buffer setup */
int packet_take(struct net *net, struct block **out)
{
	return pool_take(net, out);
}

void packet_reclaim(struct net *net, uint32_t rank)
{
	struct path *p = packet_of(net)->path[rank];
	if (p && !p->gone)
		path_give_up(p);
	pool_reclaim(net->pool, rank);
}

/* cost: protection control */
bool packet_ours(struct net *net, const struct block *b)
{
	return pool_has(net->pool, b);
}

/* cost: protection control */
bool packet_owns(struct net *net, uint32_t rank, const char *data, size_t len)
{
	const struct path *p = packet_of(net)->path[rank];
	uintptr_t offset = p ? (uintptr_t)block_of(data) - (uintptr_t)p->landing : 0;
	return p && len <= TERN_PAYLOAD_MAX && offset < sizeof p->landing &&
	       offset % sizeof(struct block) == 0;
}

/* -- Peers ------------------------------------------------------------------------------- */

/* cost: fault status */
int packet_check(struct net *net, uint32_t rank)
{
	struct packet_net *n = packet_of(net);
	int rc = job_rank_check(n->job, rank);
	if (rc || !n->path[rank] || !n->path[rank]->silent)
		return rc;
	return error_set(-EOWNERDEAD, "rank %u is taken for dead: nothing was heard of it for %u s", rank,
			 (unsigned)(n->keepalive / 1000000000));
}

/* cost: fault status */
uint32_t packet_left(struct net *net)
{
	struct packet_net *n = packet_of(net);
	return atomic_load_explicit(&n->job->head->left, memory_order_relaxed) + n->silent;
}

static bool inlet_empty(const struct tern_inlet *in)
{
	return !in->base || !inlet_has(in);
}

/* The rings are private, so a peer that is not looked at cannot be missed: what comes brings it back. */
void packet_demote(struct net *net)
{
	struct packet_net *n = packet_of(net);
	for (uint32_t i = 0; i < n->actives; i++) {
		struct peer *peer = &net->site->peer[n->active[i]];
		if (inlet_empty(&peer->requests))
			circle_remove(net->site, &peer->requests);
		if (inlet_empty(&peer->replies))
			circle_remove(net->site, &peer->replies);
	}
}

/* -- Sleeping ---------------------------------------------------------------------------- */

static bool any_arrived(const struct site *site)
{
	for (struct tern_inlet *in = site->bell.next; in->kind != TERN_BELL; in = in->next)
		if (inlet_has(in))
			return true;
	return false;
}

/* Ranks that ring ours knock on the socket, seeing that we sleep. */
bool packet_arm(struct net *net, struct sleep *sleep)
{
	struct packet_net *n = packet_of(net);
	_Atomic uint64_t *bell = &n->job->rank[net->site->rank].bell;
	for (int i = 0; i < 2; i++) /* twice, because acknowledgements wait for one look */
		post_look(n, true);
	if (any_arrived(net->site) || sleep->bells == FUTEX_MANY || sleep->fds == SLEEP_FDS ||
	    sleep->says == BELL_CALL)
		return false;
	atomic_store(bell, sleep->says);
	n->sleeping = true;
	if (packet_left(net) != n->known_left) {
		n->known_left = packet_left(net);
		return false;
	}
	int fd = n->wire->ops->descriptor(n->wire);
	if (fd < 0)
		return false;
	sleep->bell[sleep->bells++] = bell;
	sleep->fd[sleep->fds++] = fd;
	uint64_t due = post_due(n);
	if (due != DUE_NEVER && (!sleep->until || due < sleep->until))
		sleep->until = due;
	return true;
}

void packet_disarm(struct net *net)
{
	struct packet_net *n = packet_of(net);
	if (n->sleeping)
		atomic_store(&n->job->rank[net->site->rank].bell, BELL_QUIET);
	n->sleeping = false;
}

/* -- Opening and closing ------------------------------------------------------------------ */

bool packet_settled(struct net *net)
{
	struct packet_net *n = packet_of(net);
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		path_mark(p);
		if (!(path_quiet(p) && path_landed(p)) && packet_check(net, p->rank) == 0)
			return false;
	}
	return true;
}

static void *zero_pages(size_t bytes)
{
	void *p =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static int packet_allocate(struct packet_net *n, uint32_t size)
{
	n->path = calloc(size, sizeof *n->path);
	n->active = calloc(size, sizeof *n->active);
	n->stirred = calloc(size, sizeof *n->stirred);
	n->stirring = calloc(size, sizeof *n->stirring);
	n->batch = zero_pages(PACKET_BATCH * sizeof *n->batch);
	n->net.pool = zero_pages(sizeof *n->net.pool);
	if (n->path && n->active && n->stirred && n->stirring && n->batch && n->net.pool)
		return 0;
	return error_set(-ENOMEM, "opening the network of rank %u: no memory", n->net.site->rank);
}

static unsigned rounds_for(uint32_t size)
{
	unsigned rounds = 0;
	while (UINT64_C(1) << rounds < size)
		rounds++;
	return rounds;
}

int packet_open(struct packet_net *n, const struct net_ops *ops, struct site *site, struct job *job,
		const struct packet_options *o)
{
	uint64_t keepalive;
	n->net = (struct net){ .ops = ops, .site = site };
	n->job = job;
	n->wire = o->wire;
	n->guard = o->guard;
	n->keys = o->keys;
	n->copies = o->copies;
	n->bell = BELL_RUNG;
	n->due = DUE_NEVER;
	n->barrier.rounds = rounds_for(site->size);
	int rc = setting_number(SETTING_KEEPALIVE, &keepalive);
	n->keepalive = keepalive * UINT64_C(1000000000);
	if (!rc)
		rc = service_choose(n);
	if (!rc)
		rc = packet_allocate(n, site->size);
	if (rc)
		return rc;
	n->confirms = n->wire->provides & ~n->services & PROVIDES_RELIABLE;
	circle_begin(site, &n->bell);
	site->asks = true;
	n->last = (struct tern_inlet){ .cursor = site->bell.cursor, .expect = BELL_RUNG, .kind = TERN_BELL };
	circle_add(site, &n->last); /* others come before it */
	atomic_store(&job->rank[site->rank].pid, getpid());
	return 0;
}

void packet_free(struct packet_net *n)
{
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		for (unsigned k = 0; k < n->layers; k++)
			n->layer[k]->close(p);
		munmap(p, sizeof *p);
	}
	if (n->batch)
		munmap(n->batch, PACKET_BATCH * sizeof *n->batch);
	if (n->net.pool)
		munmap(n->net.pool, sizeof *n->net.pool);
	free(n->path);
	free(n->active);
	free(n->stirred);
	free(n->stirring);
}
