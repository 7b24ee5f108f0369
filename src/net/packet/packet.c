/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of net.h, for every network of packets. */
#include "net/packet/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/world.h"
#include "net/packet/service.h"

enum {
	LOOK_NS = 10000,        /* while the program sends: how often the network is asked, */
	LINGER_NS = 20000,      /* and how long a message waits for company */
	AHEAD = 4,              /* packets under way that a message does not wait for, */
	AHEAD_BYTES = 16 << 10, /* if they are small */
	SHORT = 10,             /* bytes that a message of a word takes, about */
	FAR_NS = 1000000,       /* a round trip to a peer that is far */
	LAST_NS = 100000000, /* how long, at most, what a rank sent before it ended is looked for */
};

/* -- Sending ----------------------------------------------------------------------------- */

/* About what the last message of a lane will take in a packet. */
static size_t lane_last(const struct tern_lane *lane)
{
	size_t len = 0;
	if (lane->piece || lane->tail == lane->base)
		return SHORT;
	tern_msg_data(message_before(lane->tail), &len);
	return TERN_LINE + len;
}

/*
 * The kernel's clock is asked where time has passed by the processor's own, which is quicker to
 * read: a little old does no harm.
 */
static void time_keep(struct packet_net *n)
{
	if (!world_used()->ticks || tick_now() - n->ticked > TICKS_BRIEF)
		post_time(n);
}

/* What handlers have replied, once their poll has ended. */
static void replies_leave(struct packet_net *n)
{
	if (n->replied)
		post_send(n);
	n->replied = false;
}

void packet_knock(struct net *net, struct tern_lane *lane)
{
	struct packet_net *n = packet_of(net);
	if (!lane) {
		replies_leave(n);
		return;
	}
	struct path *p = n->path[lane->peer];
	bool reply = lane->gate;
	p->staged += lane_last(lane);
	p->staged_messages++;
	/* In a burst it may have company, until something is acknowledged or somebody looks. */
	bool few = n->confirms ? path_ahead(p) < AHEAD
			       : p->transit.next - p->transit.first < AHEAD &&
					 p->transit.pace.flying < AHEAD_BYTES;
	time_keep(n); /* a handler that replies may have taken long since the last look */
	bool alone = few || n->now - p->sent > LINGER_NS;
	if (alone || path_full(p)) {
		path_pump(p, alone);
		post_flush(n);
	}
	if (p->staged || p->pending_control || !p->transit.timer)
		path_mark_dirty(p);
	else if (p->transit.timer < p->due) /* all that is left to do is to wait for an answer */
		path_wake(p, p->transit.timer);
	n->replied |= reply && p->staged;
	n->net.site->timer_armed |= n->called;
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
		return error_set(-ENOMEM, "talking from rank %u to rank %u: no memory",
				 net->site->rank, rank);
	path_ask(p);
	return 0;
}

/* A send's own look: what it has just written may be joined by more. */
static void look_in_passing(struct packet_net *n)
{
	time_keep(n);
	uint64_t since = n->now - n->looked;
	if (since > LOOK_NS || !block_is(&n->net.pool->block[n->net.next], BLOCK_FREE))
		post_look(n, since > LINGER_NS);
}

/*
 * The wire's descriptor calls a program that computes, by its signal. It does so for every
 * datagram, so whoever polls switches it off first, and whoever goes switches it on: a burst costs
 * one signal, or a few.
 */
static bool call_set(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) == 0;
}

/* False if that cannot be done. */
static bool call_on(struct packet_net *n, const struct sleep *s)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = s->thread };
	int fd = n->wire->ops->descriptor(n->wire);
	n->called = n->wire->calls && fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
		    fcntl(fd, F_SETSIG, s->signal) == 0 && call_set(fd, true);
	return n->called;
}

static void call_off(struct packet_net *n)
{
	if (!n->called)
		return;
	n->called = false;
	call_set(n->wire->ops->descriptor(n->wire), false);
}

static void packet_disarm(struct packet_net *n)
{
	call_off(n);
	if (n->sleeping)
		atomic_fetch_and(&n->job->rank[n->net.site->rank].bell, (uint64_t)BELL_RUNG);
	n->sleeping = false;
	loopback_drain(n->wake);
}

void packet_answer(struct net *net)
{
	struct packet_net *n = packet_of(net);
	if (n->called)
		packet_disarm(n); /* whoever polls need not be called */
	if (net->site->passing)
		look_in_passing(n);
	else
		post_look(n, true);
}

/* -- Payloads ---------------------------------------------------------------------------- */

/* Whether what is sent is away for so long that few blocks keep their sender waiting. */
static bool any_far(const struct packet_net *n)
{
	for (uint32_t i = 0; i < n->actives; i++)
		if (n->path[n->active[i]]->transit.pace.least > FAR_NS)
			return true;
	return false;
}

/*
 * For the thread that serves memory: a block that the program takes inside a call alone. Sends that
 * need no call take those of the pool at the same moment.
 */
static int serving_take(struct net *net, struct block **out)
{
	for (unsigned i = TERN_POOL_BLOCKS; i < POOL_LONG; i++) {
		struct block *b = pool_at(net, i);
		if (!block_is(b, BLOCK_FREE))
			continue;
		block_set(b, BLOCK_CLAIMED);
		*out = b;
		return 0;
	}
	return -EAGAIN;
}

/* Near peers give blocks back so soon that more would only be colder. */
int packet_take(struct net *net, size_t len, struct block **out)
{
	if (TERN_UNLIKELY(net->site->serving))
		return serving_take(net, out);
	int rc = pool_take(net, len, out);
	if (rc != -EAGAIN || net->blocks == POOL_LONG || !any_far(packet_of(net)))
		return rc;
	net->blocks = POOL_LONG;
	net->larges = LARGE_LONG;
	return pool_take(net, len, out);
}

void packet_reclaim(struct net *net, uint32_t rank)
{
	struct path *p = packet_of(net)->path[rank];
	if (p && !p->gone)
		path_give_up(p);
	unmet_review(packet_of(net));
	unmet_forget(packet_of(net), rank);
	pool_reclaim(net, rank);
}

/* -- Peers ------------------------------------------------------------------------------- */

/*
 * Whether what a rank that has ended sent before has been taken in: once a look finds nothing any
 * more.
 */
static bool last_words(struct path *p)
{
	const struct packet_net *n = p->net;
	if (!p->ended) {
		p->ended = clock_ns();
		p->empties = n->empties;
	}
	return n->empties != p->empties || clock_ns() - p->ended > LAST_NS;
}

/* Ranks that are there, and yet lost to this one. The job counts those that have left since. */
static uint32_t lost_though_there(struct packet_net *n)
{
	uint32_t lost = 0;
	for (uint32_t r = 0; r < n->net.site->size; r++) {
		bool over = !terms_fit(n, r) || (n->path[r] && n->path[r]->silence.over);
		lost += over && job_rank_state(n->job, r) <= RANK_OPEN;
	}
	return lost;
}

static uint32_t packet_left(struct packet_net *n)
{
	uint32_t left = n->local ? 0 : job_left(n->job);
	return n->strangers + n->unreachable ? left + lost_though_there(n) : left;
}

int packet_check(struct net *net, uint32_t rank)
{
	struct packet_net *n = packet_of(net);
	if (rank == NET_ALL)
		return (int)packet_left(n);
	struct path *p = n->path[rank];
	int rc = terms_check(n, rank);
	if (rc)
		return rc;
	rc = job_rank_check(n->job, rank);
	/* Of one that has left, messages are missing that it sent before. */
	if (p && ((!rc && p->silence.over) || (rc == -ESHUTDOWN && p->silence.missed)))
		return silence_check(p);
	/* A lost rank stays lost, though a packet of it comes late: its lane is shut. */
	return rc && p && !net->site->peer[rank].lost && !last_words(p) ? 0 : rc;
}

static bool inlet_empty(const struct tern_inlet *in)
{
	return !in->base || !inlet_has(in);
}

/*
 * The rings are private, so a peer that is not looked at cannot be missed: what comes brings it
 * back.
 */
void packet_demote(struct net *net)
{
	struct packet_net *n = packet_of(net);
	for (uint32_t i = 0; i < n->actives; i++) {
		struct peer *peer = &net->site->peer[n->active[i]];
		if (inlet_empty(&peer->requests))
			pollset_remove(net->site, &peer->requests);
		if (inlet_empty(&peer->replies))
			pollset_remove(net->site, &peer->replies);
	}
}

/* -- Sleeping ---------------------------------------------------------------------------- */

/*
 * Bells, and whom they wake, are sequentially consistent as in net/shm/shm.c: we write our bell and
 * then look whether something has come. What a rank tells of itself once (its port, its process)
 * has the default order, too: it is written at open.
 */

/* Whoever rings our bell is to send the signal, and so is the wire. */
static bool arm_call(struct packet_net *n, const struct sleep *sleep)
{
	struct job_rank *own = &n->job->rank[n->net.site->rank];
	atomic_store(&own->thread, sleep->thread);
	atomic_store(&own->signal, sleep->signal);
	if (!call_on(n, sleep))
		return false;
	post_look(n, true); /* what came before that has raised none */
	return !pollset_has(n->net.site);
}

static bool arm_sleep(struct packet_net *n, struct sleep *sleep)
{
	int fd = n->wire->ops->descriptor(n->wire);
	if (fd == -1 || sleep->fds + 2 > SLEEP_FDS || (!n->local && sleep->bells == FUTEX_MANY))
		return false;
	if (sleep->serving) {
		sleep->fd[sleep->fds++] = fd;
		return true;
	}
	if (!n->local)
		sleep->bell[sleep->bells++] = &n->job->rank[n->net.site->rank].bell;
	sleep->fd[sleep->fds++] = n->wake;
	sleep->fd[sleep->fds++] = fd; /* poll(2) passes over WIRE_NAPS */
	sleep->ports++;
	return true;
}

/* Ranks that ring see that we sleep, and knock at the port; or that we are to be called. */
static bool bell_arm(struct packet_net *n, const struct sleep *sleep)
{
	atomic_store(&n->job->rank[n->net.site->rank].bell, sleep->says);
	n->sleeping = true;
	if (packet_left(n) == n->known_left)
		return true;
	n->known_left = packet_left(n);
	return false;
}

/* Where shared memory is there, too, it has armed the bell already. */
bool packet_arm(struct net *net, struct sleep *sleep)
{
	struct packet_net *n = packet_of(net);
	if (!sleep) {
		packet_disarm(n);
		return true;
	}
	n->resting = true;
	post_look(n, true);
	bool ready = (sleep->serving || !pollset_has(net->site)) &&
		     (sleep->says == BELL_CALL ? arm_call(n, sleep) : arm_sleep(n, sleep));
	n->resting = false;
	if (!ready || (!n->local && !sleep->serving && !bell_arm(n, sleep)))
		return false;
	uint64_t due = post_due(n);
	if (due != DUE_NEVER && (!sleep->until || due < sleep->until))
		sleep->until = due;
	return true;
}

/* -- What is under way --------------------------------------------------------------------- */

enum { REPORT_RANKS = 8, REPORT_MOST = 160 };

/* "requests: 9 written, 8 sent, 7 acknowledged; 6 came, 5 handled": theirs are the last two. */
static const char *stream_text(const struct path *p, unsigned stream, char text[REPORT_MOST])
{
	const struct out *o = &p->out[stream];
	const struct in *in = &p->in[stream];
	uint64_t first = ring_first_message();
	snprintf(text, REPORT_MOST,
		 "%s: %llu written, %llu sent, %llu acknowledged; %llu came, %llu handled",
		 stream == STREAM_REPLIES ? "replies" : "requests",
		 (unsigned long long)(o->base ? lane_sent(o->lane) : 0),
		 (unsigned long long)(o->sent - first), (unsigned long long)(o->acked - first),
		 (unsigned long long)(in->fill.base ? lane_sent(&in->fill) : 0),
		 (unsigned long long)(in->inlet ? inlet_handled(in->inlet) : 0));
	return text;
}

static void path_report(const struct path *p)
{
	char requests[REPORT_MOST], replies[REPORT_MOST];
	const struct transit *t = &p->transit;
	error_warn("rank %u with rank %u: %s; %s; %zu bytes staged, %u packets under way, %u lost",
		   p->net->net.site->rank, p->rank, stream_text(p, STREAM_REQUESTS, requests),
		   stream_text(p, STREAM_REPLIES, replies), p->staged, t->next - t->first, t->lost);
}

void packet_report(struct net *net)
{
	const struct packet_net *n = packet_of(net);
	for (uint32_t i = 0; i < n->actives && i < REPORT_RANKS; i++)
		path_report(n->path[n->active[i]]);
}

/* -- Opening and closing ------------------------------------------------------------------ */

static bool path_settled(struct path *p, bool late)
{
	return path_quiet(p) || packet_check(&p->net->net, p->rank) != 0 ||
	       (late && silence_computes(p));
}

bool packet_settled(struct net *net, bool late)
{
	struct packet_net *n = packet_of(net);
	bool first = !n->leaving, all = true;
	n->leaving = true;
	for (uint32_t i = 0; i < n->actives; i++) {
		if (first)
			silence_watch(n->path[n->active[i]]);
		all &= path_settled(n->path[n->active[i]], late);
	}
	return all;
}

static int packet_allocate(struct packet_net *n, uint32_t size)
{
	n->path = calloc(size, sizeof *n->path);
	n->active = calloc(size, sizeof *n->active);
	n->dirty = calloc(size, sizeof *n->dirty);
	n->met = calloc(size, sizeof *n->met);
	n->barrier.member = calloc(size, sizeof *n->barrier.member);
	n->barrier.first = calloc(size + 1, sizeof *n->barrier.first);
	n->batch = memory_new(PACKET_BATCH, sizeof *n->batch);
	n->net.pool = memory_new(POOL_LONG, sizeof(struct block));
	struct large_block *large = memory_new(LARGE_LONG, sizeof *large);
	n->net.blocks = n->net.larges = TERN_POOL_BLOCKS;
	n->net.own = blocks_short(n->net.pool, POOL_LONG);
	n->net.large = blocks_large(large, LARGE_LONG);
	if (n->path && n->active && n->dirty && n->met && n->barrier.member && n->barrier.first &&
	    n->batch && n->net.pool && large)
		return 0;
	return error_set(-ENOMEM, "opening the network of rank %u: no memory", n->net.site->rank);
}

static int packet_wake(struct packet_net *n)
{
	uint16_t port = 0;
	n->wake = loopback_listen(&port);
	if (n->wake < 0)
		return error_set(n->wake,
				 "opening a socket of loopback that ends the sleep of rank %u: %s",
				 n->net.site->rank, strerror(-n->wake));
	atomic_store(&n->job->rank[n->net.site->rank].port, port);
	return 0;
}

/*
 * A poll asks the network first. Where shared memory is there, too, its bell is answered on the
 * way.
 */
static void packet_pollset(struct packet_net *n, struct site *site)
{
	pollset_begin(site, &n->bell);
	site->asks = true;
	site->behind = n->local ? &n->job->rank[site->rank].bell : NULL;
}

/*
 * Where payloads that the wire lets stay can lie: the line of such a block begins anywhere that a
 * line can.
 */
static struct block_range stays_range(const struct wire *w)
{
	uintptr_t begin = ((uintptr_t)w->pinnable + TERN_LINE - 1) / TERN_LINE * TERN_LINE;
	size_t skipped = begin - (uintptr_t)w->pinnable;
	return (struct block_range){ begin,
				     w->pinnable_len > skipped ? w->pinnable_len - skipped : 0,
				     TERN_LINE, TERN_REQUEST_MAX };
}

int packet_open(struct packet_net *n, const struct net_ops *ops, struct site *site, struct job *job,
		struct net *local)
{
	n->net = (struct net){ .ops = ops, .site = site };
	n->job = job;
	n->pulse = &job->pulse[site->rank];
	n->local = local;
	n->records = n->wire->messages ? n->wire->messages : PACKET_RECORDS;
	n->bell = BELL_RUNG;
	int rc = service_choose(n);
	if (!rc)
		rc = packet_allocate(n, site->size);
	if (!rc)
		rc = silence_open(n);
	if (!rc)
		rc = packet_wake(n);
	if (rc)
		return rc;
	terms_open(n);
	barrier_open(n);
	n->net.provides = (n->wire->provides | n->services) &
			  (PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE);
	n->net.any[0] = stays_range(n->wire);
	n->confirms = n->wire->provides & ~n->services & PROVIDES_RELIABLE;
	packet_pollset(n, site);
	site->mute |= !n->wire->calls;
	atomic_store(&job->rank[site->rank].pid, getpid());
	return 0;
}

/* Shared memory, where it is there, too, is closed last and does it. */
static void packet_leave(struct packet_net *n)
{
	if (n->local)
		return;
	job_rank_leaves(n->job, n->net.site->rank, RANK_CLOSED);
	for (uint32_t r = 0; r < n->net.site->size; r++)
		if (n->path[r] && job_here(n->job, r))
			job_ring(n->job, r);
}

void packet_free(struct packet_net *n)
{
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		for (unsigned k = 0; k < n->layers; k++)
			if (n->layer[k]->close)
				n->layer[k]->close(p);
		memory_free(p);
	}
	memory_free(n->batch);
	memory_free(n->net.pool);
	memory_free((void *)n->net.large.at);
	if (n->wake > 0)
		close(n->wake);
	unmet_close(n);
	free(n->met);
	free(n->barrier.member);
	free(n->barrier.first);
	free(n->path);
	free(n->active);
	free(n->dirty);
}

void packet_dispose(struct packet_net *n)
{
	packet_free(n);
	if (n->keys)
		n->guard->close(n);
	if (n->wire)
		n->wire->ops->close(n->wire);
	free(n);
}

void packet_close(struct net *net)
{
	packet_leave(packet_of(net));
	packet_dispose(packet_of(net));
}
