/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets leave in batches and come in batches; in between, whoever has something to do is looked
 * after.
 */
#include "base/clock.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

enum {
	RECEIVE_ROUNDS = 4, /* batches taken in at one look, at most */
	AGAIN = 3,          /* looks at the wire in a row, for whoever waits for it */
};

struct packet *post_begin(struct path *p)
{
	struct packet_net *n = p->net;
	if (n->filled == PACKET_BATCH)
		post_flush(n);
	struct packet *k = &n->batch[n->filled];
	k->path = p;
	k->flight.slice.news = NEWS_NONE; /* the rest is written before it is read */
	for (unsigned stream = 0; stream < STREAMS; stream++)
		k->flight.slice.messages[stream] = 0;
	k->again = k->full = false;
	k->at = k->end = k->bytes + PACKET_FRONT;
	k->part[0] = (struct iovec){ k->at, 0 };
	k->parts = 1;
	k->named = 0;
	k->records = 0;
	k->class = CLASS_CONTROL;
	return k;
}

void post_end(struct packet *k)
{
	struct packet_net *n = k->path->net;
	struct iovec *last = &k->part[k->parts - 1];
	last->iov_len = (size_t)(k->end - (unsigned char *)last->iov_base);
	k->at -= DATAGRAM_HEAD;
	k->part[0].iov_len += (size_t)((unsigned char *)k->part[0].iov_base - k->at);
	k->part[0].iov_base = k->at;
	k->path->front = (size_t)(k->bytes + PACKET_FRONT - k->at);
	k->context = n->net.site->context ? n->net.site->context() : 0;
	n->guard->seal(n, k);
	if (!k->path->spoken)
		k->path->spoken = n->now;
	n->filled++;
	packet_count(n, PULSE_PACKETS_SENT, 1);
}

void post_flush(struct packet_net *n)
{
	struct outgoing o[PACKET_BATCH];
	for (unsigned i = 0; i < n->filled; i++)
		o[i] = (struct outgoing){ .rank = n->batch[i].path->rank,
					  .part = n->batch[i].part,
					  .parts = n->batch[i].parts,
					  .class = n->batch[i].class,
					  .context = n->batch[i].context,
					  .record = n->batch[i].bytes + PACKET_FRONT };
	if (n->filled)
		n->wire->ops->send(n->wire, o, n->filled);
	n->filled = 0;
}

void post_take(struct packet_net *n, struct datagram *d)
{
	struct arrival a;
	uint32_t rank;
	enum seal seal = n->guard->unseal(n, d, &rank, &a);
	if (seal == SEAL_UNMET)
		unmet_keep(n, rank, d);
	if (seal != SEAL_GOOD)
		return;
	struct path *p = n->path[rank] ? n->path[rank] : path_to(n, rank);
	if (!p || TERN_UNLIKELY(p->silence.missed))
		return; /* nothing is taken in behind a loss: it would come out of order */
	packet_count(n, PULSE_PACKETS_RECEIVED, 1);
	p->heard = true;
	n->up[n->layers](p, &a, n->layers);
	path_mark_dirty(p);
}

/* How many came. */
static unsigned post_receive(struct packet_net *n)
{
	struct datagram d[PACKET_BATCH];
	unsigned all = 0;
	if (n->unmets)
		unmet_review(n);
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		unsigned came = n->wire->ops->receive(n->wire, d, PACKET_BATCH);
		n->put_off = came == 1 && !round && !n->put_off && !n->resting;
		for (unsigned i = 0; i < came; i++)
			post_take(n, &d[i]);
		all += came;
		if (came < PACKET_BATCH)
			break;
	}
	return all;
}

/*
 * What a poll does besides takes as long as a look at the wire: whoever does nothing but wait sees
 * sooner what comes if that is done less often. Not where shared memory is to be looked at, too, or
 * somebody is to be looked after.
 */
static unsigned post_receive_idle(struct packet_net *n)
{
	unsigned came = post_receive(n);
	for (int i = 0; !came && !n->dirty_count && i < AGAIN; i++)
		came = post_receive(n);
	return came;
}

static void post_service_all(struct packet_net *n, bool all)
{
	uint64_t terms = terms_review(n), silence = silence_review(n);
	n->due = terms < silence ? terms : silence;
	for (uint32_t i = 0; i < n->actives; i++)
		path_service(n->path[n->active[i]], all);
}

/*
 * Those where something happened. Each may want to be looked after the next time, too, and then
 * takes its own place or one before it.
 */
static void post_service_dirty(struct packet_net *n, bool all)
{
	uint32_t dirty_count = n->dirty_count;
	n->dirty_count = 0;
	for (uint32_t i = 0; i < dirty_count; i++) {
		struct path *p = n->path[n->dirty[i]];
		p->dirty = false;
		path_service(p, all);
	}
}

void post_time(struct packet_net *n)
{
	n->ticked = tick_now();
	n->now = clock_ns();
}

void post_send(struct packet_net *n)
{
	post_time(n);
	for (uint32_t i = 0; i < n->dirty_count; i++)
		path_pump(n->path[n->dirty[i]], true);
	post_flush(n);
}

void post_look(struct packet_net *n, bool all)
{
	post_time(n);
	n->looked = n->now;
	n->round += all;
	if (n->records == 1 && n->dirty_count)
		post_send(n); /* nothing joins a packet of one message, so it need not wait */
	unsigned came = n->net.site->idle && !n->local ? post_receive_idle(n) : post_receive(n);
	n->empties += !came;
	if (n->barrier.stage != BARRIER_OVER)
		barrier_go_on(n); /* what it sends must be known before a date for a sleep is */
	if (n->put_off && n->barrier.told == n->barrier.arrived)
		return;
	if (n->now >= n->due)
		post_service_all(n, all);
	post_service_dirty(n, all);
	post_flush(n);
	barrier_tell(n);
}

uint64_t post_due(struct packet_net *n)
{
	uint64_t due = n->due, wire = n->wire->ops->due(n->wire);
	for (uint32_t i = 0; i < n->dirty_count; i++)
		if (n->path[n->dirty[i]]->due < due)
			due = n->path[n->dirty[i]]->due;
	if (n->unmets && n->now + CARD_NS < due)
		due = n->now + CARD_NS;
	return due < wire ? due : wire;
}
