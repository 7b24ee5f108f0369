/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a network of packets in one thread, whose wire is a queue: for tests of flow. */
#ifndef TERN_TESTS_FLOW_SIDES_H
#define TERN_TESTS_FLOW_SIDES_H

#include "base/clock.h"
#include "base/world.h"
#include "check.h"
#include "net/packet/packet.h"
#include "service/service.h"

enum { SIDES = 2, QUEUE = 512, MOST = 9000, MESSAGES = 3000, PAYLOAD = 3000 };

static const char *const strategies[] = { "credit", "return", "drop",   "nack",
					  "token",  "permit", "reserve" };
enum { STRATEGIES = sizeof strategies / sizeof *strategies, FIRST_TRY = 1, LAST_TRY = 3 };

/* -- Two ends and a wire ----------------------------------------------------------------------- */

struct letterbox {
	size_t len;
	unsigned char bytes[MOST];
};

struct side {
	struct wire wire; /* first: the wire of a side is the side */
	struct packet_net net;
	struct site site;
	struct tern_lane lanes[SIDES], refuse;
	struct peer peers[SIDES];
	struct job job;
	struct job_head head;
	struct job_rank ranks[SIDES];
	struct pulse pulse[SIDES];
	struct letterbox *queue; /* what has come */
	unsigned came, gone;
	unsigned lose; /* one of so many; 0: none */
	uint64_t handled[STREAMS], next[STREAMS];
};
static struct side side[SIDES];
static size_t longest;         /* of what side 0 was sent */
static unsigned wire_provides; /* enum provides */
static bool plain;             /* there are no payloads, */
static bool mixed;             /* and messages may overtake others */
static bool keeping;           /* payloads, whose blocks are */
static struct block *kept[LANDING];
static unsigned keeps;

static inline uint64_t counted(unsigned at, enum pulse_count what)
{
	return stats_get(&side[at].net.pulse->count[what]);
}

static inline size_t queue_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return MOST;
}

/* In no step with what is sent again and again. */
static inline bool loses(const struct side *from)
{
	static uint32_t sent;
	return from->lose && (++sent * UINT32_C(2654435761) >> 16) % from->lose == 0;
}

static inline void queue_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	struct side *from = (struct side *)(void *)w, *to = &side[1 - (from - side)];
	for (; n; n--, o++) {
		struct letterbox *l = &to->queue[to->came % QUEUE];
		if (to->came - to->gone == QUEUE || loses(from))
			continue;
		l->len = 0;
		for (int i = 0; i < o->parts; i++) {
			memcpy(l->bytes + l->len, o->part[i].iov_base, o->part[i].iov_len);
			l->len += o->part[i].iov_len;
		}
		to->came++;
		longest = to == side && l->len > longest ? l->len : longest;
	}
}

static inline unsigned queue_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct side *s = (struct side *)(void *)w;
	unsigned got = 0;
	for (; got < n && s->gone != s->came; got++, s->gone++) {
		struct letterbox *l = &s->queue[s->gone % QUEUE];
		d[got] = (struct datagram){ .bytes = l->bytes, .len = l->len };
	}
	return got;
}

static inline uint64_t queue_due(struct wire *w)
{
	(void)w;
	return DUE_NEVER;
}

static const struct wire_ops queue_ops = {
	.most = queue_most, .send = queue_send, .receive = queue_receive, .due = queue_due
};

static inline bool no_open(struct packet_net *n, uint32_t rank)
{
	(void)n, (void)rank;
	return true;
}

static inline void no_seal(struct packet_net *n, struct packet *k)
{
	(void)n;
	memset(k->at, 0, DATAGRAM_HEAD);
}

static inline enum seal no_unseal(struct packet_net *n, struct datagram *d, uint32_t *rank,
				  struct arrival *a)
{
	*rank = 1 - n->net.site->rank;
	*a = (struct arrival){ .at = d->bytes + DATAGRAM_HEAD, .len = d->len - DATAGRAM_HEAD };
	return SEAL_GOOD;
}

static const struct guard_ops no_guard = { .open = no_open, .seal = no_seal, .unseal = no_unseal };
static const struct net_ops queue_net;

/* A microsecond for each look at the clock: a busy machine makes no timer expire. */
static inline uint64_t steps_now(void)
{
	static uint64_t now = 1000000000;
	return now += 1000;
}

static inline void sides_open(const char *strategy, unsigned lose)
{
	static struct world steps;
	steps = world_real;
	steps.ticks = false;
	steps.now = steps_now;
	world_use(&steps);
	setenv("TERN_FLOW", strategy, 1);
	for (uint32_t i = 0; i < SIDES; i++) {
		struct side *s = &side[i];
		*s = (struct side){ .wire = { .ops = &queue_ops, .provides = wire_provides },
				    .lose = lose };
		s->queue = calloc(QUEUE, sizeof *s->queue);
		s->site = (struct site){ .rank = i,
					 .size = SIDES,
					 .lane = s->lanes,
					 .peer = s->peers,
					 .refuse = &s->refuse };
		s->job = (struct job){
			.head = &s->head, .rank = s->ranks, .pulse = s->pulse, .size = SIDES
		};
		s->net.wire = &s->wire;
		s->net.guard = &no_guard;
		s->net.service_table = service_all;
		REQUIRE(s->queue && packet_open(&s->net, &queue_net, &s->site, &s->job, NULL) == 0);
		REQUIRE(packet_connect(&s->net.net, 1 - i) == 0);
	}
}

static inline void sides_close(void)
{
	for (unsigned i = 0; i < SIDES; i++) {
		packet_free(&side[i].net);
		free(side[i].queue);
	}
}

static inline struct path *path_of(struct side *s)
{
	return s->net.path[1 - s->site.rank];
}

/*
 * Only what was written is announced, as the core would do: whatever else there is to do must be
 * remembered.
 */
static inline void sides_look(void)
{
	for (unsigned i = 0; i < SIDES; i++) {
		struct side *s = &side[i];
		if (path_of(s)->staged)
			path_mark_dirty(path_of(s));
		post_look(&s->net, true);
	}
}

/* -- As the core would --------------------------------------------------------------------- */

/* The i-th message has its number, and a payload now and then; false if there is no room for it. */
static inline bool put(struct side *s, struct tern_lane *lane, uint64_t i)
{
	struct parcel p = { .bits = 5 << TERN_ID_SHIFT | 1, .n = 1, .word = { i } };
	struct block *b = NULL;
	bool payload = i % 7 == 0 && !plain;
	if (!lane->base || !lane_ready(lane) || (payload && pool_take(&s->net.net, 0, &b) != 0))
		return false;
	if (b) {
		block_set(b, BLOCK_SENT);
		memset(b->data, (int)i, PAYLOAD);
		p.bits |= TERN_HEAD_PAYLOAD;
		p.payload = b->data;
		p.len = PAYLOAD;
	}
	lane_put(lane, &p);
	path_of(s)->staged += TERN_LINE + p.len;
	return true;
}

static inline void check_message(struct side *s, unsigned stream, const tern_msg *m)
{
	size_t len;
	const char *data = tern_msg_data(m, &len);
	uint64_t i = s->next[stream]++;
	if (mixed)
		return;
	CHECK_IS(tern_msg_word(m, 0), i);
	CHECK_IS(data != NULL, i % 7 == 0 && !plain);
	if (!data)
		return;
	CHECK(len == PAYLOAD && data[0] == (char)i && data[PAYLOAD - 1] == (char)i);
	if (keeping)
		kept[keeps++] = block_of(data);
	else
		block_set(block_of(data), BLOCK_FREE);
}

/* Up to `most` messages of a stream are handled. */
static inline void drink(struct side *s, unsigned stream, unsigned most)
{
	struct peer *peer = &s->peers[1 - s->site.rank];
	struct tern_inlet *in = stream == STREAM_REPLIES ? &peer->replies : &peer->requests;
	while (in->base && most) {
		const tern_msg *m = inlet_at(in);
		uint64_t x = atomic_load(&m->head) ^ in->expect;
		if (x >> TERN_LAP_SHIFT)
			return;
		if (inlet_control(in, x))
			continue;
		in->cursor += message_bytes(inlet_at(in), x);
		check_message(s, stream, m);
		in->handled++;
		most--;
	}
}

/* Requests from side 0 until no more can be sent, while nothing is handled. */
static inline uint64_t requests_fill(uint64_t sent)
{
	enum { LOOKS = 5000 }; /* in vain; time says nothing where the machine is busy */
	for (unsigned idle = 0; idle < LOOKS; idle++) {
		while (put(&side[0], &side[0].lanes[1], sent)) {
			sent++;
			idle = 0;
		}
		sides_look();
	}
	return sent;
}

/* Requests that side 1 has begun to take, from 0. */
static inline uint64_t requests_begun(void)
{
	return landing_begun(&path_of(&side[1])->in[STREAM_REQUESTS]) - ring_first_message();
}

/* Side 0 has sent a request, and side 1 has not looked at it yet. */

/* -- A packet that is sent again for nothing --------------------------------------------------- */

/* The first may put off what there is to do. */
static inline void look_twice(struct side *s)
{
	path_mark_dirty(path_of(s));
	post_look(&s->net, true);
	post_look(&s->net, true);
}

/*
 * A request of side 1 has come, but its acknowledgement is lost: the next look of side 1 sends it
 * again, and what goes up and down with it is not looked at, since it has come.
 */
static inline void request_to_double(void)
{
	struct side *s = &side[1];
	REQUIRE(put(s, &s->lanes[0], 1));
	path_pump(path_of(s), true);
	post_flush(&s->net);
	side[0].lose = 1;
	look_twice(&side[0]);
	side[0].lose = 0;
	while (clock_ns() < path_of(s)->transit.timer)
		;
}

static inline void look_and_double(void)
{
	uint64_t again = counted(1, PULSE_PACKETS_AGAIN);
	look_twice(&side[1]);
	REQUIRE(counted(1, PULSE_PACKETS_AGAIN) > again);
}

#endif
