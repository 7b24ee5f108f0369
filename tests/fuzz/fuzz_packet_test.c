/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever reads bytes of a datagram survives any bytes, and lets no message through that the core
 * could stumble over. Besides what a fuzz target does, this brings bytes of its own: those of real
 * packets, changed at random.
 */
#include "fuzz.h"

#include "net/packet/packet.h"
#include "service/service.h"

enum { ME, PEER, RANKS };

/* -- A network whose wire leads here ----------------------------------------------------------- */

static struct packet_net net;
static struct site site;
static struct tern_lane lanes[RANKS], refuse;
static struct peer peers[RANKS];
static struct job job;
static struct job_head head;
static struct job_rank ranks[RANKS];
static struct pulse pulse[RANKS];
static unsigned char sent[DATAGRAM_MAX];
static size_t sent_len;

static size_t any_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return 1400;
}

static void any_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	(void)w;
	sent_len = 0;
	for (int i = 0; n && i < o[n - 1].parts; i++) {
		memcpy(sent + sent_len, o[n - 1].part[i].iov_base, o[n - 1].part[i].iov_len);
		sent_len += o[n - 1].part[i].iov_len;
	}
}

static unsigned any_receive(struct wire *w, struct datagram *d, unsigned n)
{
	(void)w, (void)d, (void)n;
	return 0;
}

static uint64_t any_due(struct wire *w)
{
	(void)w;
	return DUE_NEVER;
}

static const struct wire_ops any_ops = {
	.most = any_most, .send = any_send, .receive = any_receive, .due = any_due
};
static struct wire any_wire = { .ops = &any_ops };

static bool no_open(struct packet_net *n, uint32_t rank)
{
	(void)n, (void)rank;
	return true;
}

static void no_seal(struct packet_net *n, struct packet *k)
{
	(void)n;
	memset(k->at, 0, DATAGRAM_HEAD);
}

static const struct guard_ops no_guard = { .open = no_open, .seal = no_seal };

static const struct net_ops any_net;

static void net_open(void)
{
	site = (struct site){
		.rank = ME, .size = RANKS, .lane = lanes, .peer = peers, .refuse = &refuse
	};
	memset(lanes, 0, sizeof lanes);
	memset(peers, 0, sizeof peers);
	head = (struct job_head){ 0 };
	memset(ranks, 0, sizeof ranks);
	job = (struct job){ .head = &head, .rank = ranks, .pulse = pulse, .size = RANKS };
	net = (struct packet_net){ .wire = &any_wire,
				   .guard = &no_guard,
				   .service_table = service_all };
	REQUIRE(packet_open(&net, &any_net, &site, &job, NULL) == 0);
	REQUIRE(packet_connect(&net.net, PEER) == 0);
}

static void net_close(void)
{
	packet_free(&net);
}

/* As the core would: everything that has come, checked as far as the core relies on it. */
static void inlet_drink(struct tern_inlet *in)
{
	while (in->base) {
		const tern_msg *m = inlet_at(in);
		uint64_t x = atomic_load(&m->head) ^ in->expect;
		size_t len;
		if (x >> TERN_LAP_SHIFT)
			return;
		if (inlet_control(in, x))
			continue;
		uint64_t flags = TERN_HEAD_PAYLOAD | (head_double(x) ? TERN_HEAD_CONTROL : 0);
		REQUIRE((x & ~flags) >> TERN_ID_SHIFT < TERN_HANDLER_SLOTS);
		REQUIRE(tern_msg_count(m) <= TERN_WORDS_MAX && tern_msg_src(m) == PEER);
		const char *data = tern_msg_data(m, &len);
		in->cursor += message_bytes(inlet_at(in), x);
		if (!data)
			continue;
		REQUIRE(net_owns(&net.net, PEER, data, len));
		block_set(block_of(data), BLOCK_FREE);
	}
}

static void bytes_arrive(const unsigned char *bytes, size_t len, unsigned level)
{
	struct arrival a = { .at = bytes, .len = len };
	struct path *p = net.path[PEER];
	net.now += 1000;
	net.up[level](p, &a, level);
	path_service(p, true);
	inlet_drink(&peers[PEER].requests);
	inlet_drink(&peers[PEER].replies);
	for (unsigned stream = 0; stream < STREAMS; stream++)
		REQUIRE(!p->in[stream].fill.base || landing_free(&p->in[stream]) >= LANDING - 1);
}

/*
 * The first byte says at which layer the first packet comes; packets are parted by their lengths.
 */
static void fuzz_one(const uint8_t *bytes, size_t len)
{
	if (len < 3)
		return;
	net_open();
	unsigned level = bytes[0] % 4;
	for (bytes++, len--; len > 2;) {
		size_t part = (size_t)bytes[0] | (size_t)bytes[1] << 8;
		bytes += 2, len -= 2;
		part = part < len ? part : len;
		bytes_arrive(bytes, part, level);
		bytes += part, len -= part;
	}
	net_close();
}

FUZZ_TARGET(packet, 500)

#ifndef FUZZ

/* What a peer would really send, without the guard's header: requests of all kinds. */
static size_t packet_real(struct chance *c, unsigned char *to)
{
	static struct large_block large;
	struct tern_lane *lane = &lanes[PEER];
	for (unsigned i = chance_below(c, 20) + 1; i && lane_ready(lane); i--) {
		unsigned n = chance_below(c, TERN_WORDS_MAX + 1);
		struct parcel p = { .bits = 5 << TERN_ID_SHIFT | n, .n = n };
		if (chance_one_in(c, 3)) {
			p.bits |= TERN_HEAD_PAYLOAD;
			p.payload = large.block.data;
			p.len = chance_below(
				c, 1 + (chance_one_in(c, 4) ? TERN_REQUEST_MAX : TERN_PAYLOAD_MAX));
		}
		lane_put(lane, &p);
		net.path[PEER]->staged += 64;
	}
	sent_len = 0;
	net.now += 1000;
	path_pump(net.path[PEER], true);
	post_flush(&net);
	size_t len = sent_len > DATAGRAM_HEAD ? sent_len - DATAGRAM_HEAD : 0;
	memcpy(to, sent + DATAGRAM_HEAD, len);
	return len;
}

TEST(bytes_at_random_do_no_harm)
{
	struct chance c = { check_seed() };
	for (unsigned i = 0; i < check_scaled(5000); i++) {
		unsigned char bytes[300];
		size_t len = chance_below(&c, sizeof bytes);
		for (size_t k = 0; k < len; k++)
			bytes[k] = (unsigned char)chance_next(&c);
		fuzz_exactly(bytes, len);
	}
}

TEST(packets_that_were_changed_do_no_harm)
{
	static const char *const flows[] = { "credit", "return", "drop",   "nack",
					     "token",  "permit", "reserve" };
	struct chance c = { check_seed() };
	for (unsigned round = 0; round < check_scaled(300); round++) {
		setenv("TERN_FLOW", flows[round % (sizeof flows / sizeof *flows)], 1);
		net_open();
		for (unsigned i = 0; i < 30; i++) {
			unsigned char bytes[DATAGRAM_MAX];
			size_t len = packet_real(&c, bytes);
			for (unsigned k = chance_below(&c, 4); len && k; k--)
				bytes[chance_below(&c, (uint32_t)len)] ^=
					(unsigned char)chance_next(&c);
			if (chance_one_in(&c, 4))
				len = chance_below(&c, (uint32_t)len + 1);
			bytes_arrive(bytes, len, net.layers);
		}
		net_close();
	}
}

#endif
