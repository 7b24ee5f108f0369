/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: what an endpoint keeps of one peer, and when it sends to it. */
#include "base/memory.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

/* What headers and the tag may take of a datagram. */
enum { OVERHEAD = PACKET_FRONT + PACKET_TAG };

static void out_open(struct out *o, struct tern_lane *lane, _Atomic uint64_t *freed)
{
	o->base = lane->base;
	o->leaf_lines = lane->leaf_lines;
	o->freed = freed;
	o->lane = lane;
	o->next = o->done =
		(struct place){ .cursor = lane->tail, .expect = lane->head, .leaf = lane->leaf };
}

static void in_open(struct path *p, unsigned stream, char *ring, uint32_t leaf_lines,
		    _Atomic uint64_t *freed, struct tern_inlet *inlet)
{
	struct in *in = &p->in[stream];
	uint32_t me = p->net->net.site->rank;
	in->freed = freed;
	in->landing = p->landing[stream];
	in->landing_large = stream == STREAM_REQUESTS ? p->large : NULL;
	in->inlet = inlet;
	lane_open(&in->fill, ring, leaf_lines, freed, &p->net->heed, p->rank, me);
}

void path_ask(struct path *p)
{
	struct site *site = p->net->net.site;
	struct rings rings = talk_rings(&p->ask);
	talk_ask(site, &rings, p->rank, p->rank, &p->net->heed);
	out_open(&p->out[STREAM_REQUESTS], &site->lane[p->rank], &p->ask.requests_freed);
	in_open(p, STREAM_REPLIES, p->ask.replies, REPLY_LEAF_LINES, &p->ask.replies_freed,
		&site->peer[p->rank].replies);
}

void path_serve_open(struct path *p)
{
	struct site *site = p->net->net.site;
	struct peer *peer = &site->peer[p->rank];
	struct rings rings = talk_rings(&p->serve);
	talk_serve(site, &rings, p->rank, p->rank, &p->net->heed);
	peer->reserve = &p->serve.reserve;
	out_open(&p->out[STREAM_REPLIES], &peer->answer, &p->serve.replies_freed);
	in_open(p, STREAM_REQUESTS, p->serve.requests, REQUEST_LEAF_LINES, &p->serve.requests_freed,
		&peer->requests);
}

/* Where both ends of a stream count from; what is sent before a ring is open says so, too. */
static void streams_begin(struct out *o, struct in *in)
{
	o->next.leaf = ring_first_leaf();
	o->sent = o->acked = ring_first_message();
	o->blocks = in->landed = payload_first();
	o->may = o->allowed = UINT64_MAX;
}

static size_t whole_lines(size_t bytes)
{
	return (bytes + TERN_LINE - 1) / TERN_LINE * TERN_LINE;
}

static struct path *path_make(struct packet_net *n, uint32_t rank)
{
	size_t bytes = whole_lines(sizeof(struct path));
	for (unsigned i = 0; i < n->layers; i++)
		bytes += whole_lines(n->layer[i]->bytes);
	struct path *p = memory_new(1, bytes);
	if (!p)
		return NULL;
	p->net = n;
	p->rank = rank;
	p->due = DUE_NEVER;
	for (unsigned stream = 0; stream < STREAMS; stream++)
		streams_begin(&p->out[stream], &p->in[stream]);
	char *at = (char *)p + whole_lines(sizeof *p);
	for (unsigned i = 0; i < n->layers; i++) {
		p->state[n->layer[i]->kind] = at;
		at += whole_lines(n->layer[i]->bytes);
		n->layer[i]->open(p);
	}
	struct peer *peer = &n->net.site->peer[rank];
	peer->pool = (const struct pool *)(const void *)p->landing[STREAM_REQUESTS];
	peer->may[0] = blocks_short(p->landing, STREAMS * LANDING);
	peer->may[1] = blocks_large(p->large, LANDING);
	return p;
}

struct path *path_to(struct packet_net *n, uint32_t rank)
{
	if (n->path[rank])
		return n->path[rank];
	n->path[rank] = path_make(n, rank);
	if (n->path[rank])
		n->active[n->actives++] = rank;
	return n->path[rank];
}

/*
 * Its card may come later than the first message for it, or while we look; and it may be of a rank
 * that we cannot talk with.
 */
static bool path_reachable(struct path *p)
{
	struct packet_net *n = p->net;
	if (p->most)
		return true;
	size_t most = terms_fit(n, p->rank) ? n->wire->ops->most(n->wire, p->rank) : 0;
	if (!most || !terms_fit(n, p->rank) || !n->guard->open(n, p->rank))
		return false;
	p->most = most;
	pace_open(&p->transit.pace, most);
	p->transit.pace.round_end = p->transit.next;
	return true;
}

static bool path_flying(const struct path *p)
{
	return p->transit.next != p->transit.first;
}

/* Whether more may join what is staged because something is under way. */
static bool path_busy(const struct path *p)
{
	return p->net->confirms ? path_ahead(p) : path_flying(p);
}

static bool path_room(const struct path *p)
{
	struct wire *w = p->net->wire;
	if (!w->ops->room)
		return true;
	post_flush(p->net); /* it knows only what it was given */
	return w->ops->room(w, p->rank);
}

void path_question(struct path *p)
{
	if (p->confirm.asked)
		return;
	p->confirm.asked = p->confirm.sent + 1;
	p->confirm.since = p->net->now;
	p->pending_control |= 1u << NEWS_ASK;
	path_mark_dirty(p);
}

void path_mark(struct path *p)
{
	for (unsigned stream = 0; stream < STREAMS; stream++)
		p->mark[stream] = p->out[stream].base ? lane_count(p->out[stream].lane) : 0;
	p->confirm.goal = 0;
}

bool path_landed(struct path *p)
{
	for (unsigned stream = 0; !p->gone && stream < STREAMS; stream++)
		if (p->out[stream].acked < p->mark[stream])
			return false;
	if (p->gone || !p->net->confirms)
		return true;
	if (!p->confirm.goal)
		p->confirm.goal = p->confirm.sent;
	if (p->confirm.landed >= p->confirm.goal)
		return true;
	path_question(p);
	return false;
}

/* Nearly full will do: the next message may be too long for the rest. */
bool path_full(const struct path *p)
{
	return p->staged >= p->most / 4 * 3 || p->staged_messages >= p->net->records;
}

static void path_unstage(struct path *p, size_t bytes, unsigned messages)
{
	p->staged = p->staged > bytes ? p->staged - bytes : 0;
	p->staged_messages = p->staged_messages > messages ? p->staged_messages - messages : 0;
}

/*
 * One packet, with as much as it holds; false if there is no more to send, or what there is may not
 * be.
 */
static bool path_send(struct path *p)
{
	struct packet *k = post_begin(p);
	bool more = false;
	if (p->net->flow && p->net->flow->budget)
		p->net->flow->budget(p);
	if (record_write(p, k, p->most - OVERHEAD)) {
		more = k->full || p->pending_control;
		p->sent = p->net->now;
		p->ahead = path_ahead(p) + 1;
		p->ahead_in = p->net->round;
		p->confirm.sent += k->records || k->flight.slice.news == NEWS_BARRIER;
		path_unstage(p, (size_t)(k->end - k->at) + k->named, k->records);
		/* It is only about right: who leaves now must come back. */
		p->staged += k->full && !p->staged;
		service_down(k, 0);
	}
	return more;
}

void path_pump(struct path *p, bool all)
{
	if (p->gone || (!p->staged && !p->pending_control) || !path_reachable(p))
		return;
	while (path_room(p) && service_ready(p)) {
		if (!all && !p->pending_control && path_busy(p) && !path_full(p))
			return;
		if (!path_send(p)) {
			p->staged = p->staged_messages = 0;
			return;
		}
	}
}

const struct place *path_unacked(const struct path *p, unsigned stream)
{
	const struct transit *t = &p->transit;
	return t->window && t->first != t->next ? &flight_at(t, t->first)->slice.from[stream]
						: &p->out[stream].next;
}

bool path_quiet(struct path *p)
{
	path_mark(p);
	return p->gone || (!p->pending_control && !path_flying(p) && path_landed(p));
}

void path_give_up(struct path *p)
{
	p->gone = true;
	for (unsigned i = 0; i < p->net->layers; i++)
		if (p->net->layer[i]->stop)
			p->net->layer[i]->stop(p);
}

/* Whether something may have to be done for it at the next look, whatever the time. */
static bool path_has_work(const struct path *p)
{
	bool work = p->staged || p->pending_control || p->transit.unacked || p->transit.lost;
	for (unsigned stream = 0; stream < STREAMS;
	     stream++) /* the core may be about to free what has come */
		work |= p->in[stream].fill.base && inlet_has(p->in[stream].inlet);
	return work && !p->gone;
}

void path_wake(struct path *p, uint64_t due)
{
	p->due = due;
	if (due < p->net->due)
		p->net->due = due;
}

void path_service(struct path *p, bool all)
{
	uint64_t now = p->net->now;
	if (p->gone)
		return;
	if (!path_reachable(p)) {
		path_wake(p, now + CARD_NS);
		path_mark_dirty(p);
		return;
	}
	bool held = p->transit.lost;
	uint32_t first = p->transit.first;
	path_pump(p, all);
	uint64_t due = service_tick(p, now);
	bool news = p->pending_control;
	/* News or an acknowledgement came up just now, or what was lost has been sent again. */
	if (news || (held && !p->transit.lost) || p->transit.first != first) {
		path_pump(p, all);
		due = service_tick(p, now);
	}
	path_wake(p, p->pending_control ? now : due);
	if (news || path_has_work(p))
		path_mark_dirty(p);
}
