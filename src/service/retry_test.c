/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of the window when a peer is late and when packets are lost, over UDP between two
 * endpoints of one thread.
 */
#include <stdlib.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "core/scope.h"
#include "lib/check.h"
#include "net/packet/packet.h"
#include "net/udp/udp.h"

enum { NOTE, WARM = 400, BURST = 20, POLLS_MOST = 20000000, AGO_NS = 300000 };

static tern *local[2];
static uint64_t noted;

static void note(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	noted++;
}

static struct packet_net *net_of(int rank)
{
	return (struct packet_net *)(void *)local[rank]->own->site.peer[!rank].net;
}

static struct path *path_there(void)
{
	return net_of(0)->path[1];
}

static bool all_acknowledged(void)
{
	return path_quiet(path_there());
}

/* The first was sent again longer ago than a round trip. */
static bool sent_again(void)
{
	const struct transit *r = &path_there()->transit;
	return r->tries && clock_ns() - flight_at(r, r->first)->sent > AGO_NS;
}

static bool timed_out_twice(void)
{
	return path_there()->transit.tries >= 2;
}

/* Polls rank 0, and rank 1 if it is not busy, until that is so. */
static void poll_until(bool (*so)(void), bool busy)
{
	for (int i = 0; i < POLLS_MOST && !so(); i++) {
		CHECK(tern_poll(local[0]) >= 0);
		if (!busy)
			CHECK(tern_poll(local[1]) >= 0);
	}
	CHECK(so());
}

static void send(unsigned messages)
{
	for (unsigned i = 0; i < messages; i++)
		CHECK_IS(tern_request(local[0], 1, NOTE, i), 0);
}

static void begin(void)
{
	char why[200];
	if (!udp_ops.usable(why, sizeof why))
		check_skip(why);
	setenv("TERN_NET", "udp", 1);
	setenv("TERN_DELIVERY", "poll", 1);
	REQUIRE(tern_open_local(2, local) == 0);
	for (int r = 0; r < 2; r++)
		CHECK_IS(tern_on(local[r], NOTE, note), 0);
	noted = 0;
	for (unsigned i = 0; i < WARM; i++) {
		send(1);
		poll_until(all_acknowledged, false);
	}
	CHECK(path_there()->transit.pace.smooth > 0);
}

static void lose(struct wire *w, const struct outgoing *o, unsigned n)
{
	(void)w, (void)o, (void)n;
}

static unsigned (*receive_any)(struct wire *w, struct datagram *d, unsigned n);

static unsigned receive_one(struct wire *w, struct datagram *d, unsigned n)
{
	return receive_any(w, d, n ? 1 : 0);
}

static void close_both(void)
{
	for (int r = 0; r < 2; r++)
		CHECK_IS(tern_close(local[r]), 0);
}

static size_t window(void)
{
	return path_there()->transit.pace.window;
}

TEST(a_timeout_for_nothing_leaves_the_window_as_it_was)
{
	begin();
	size_t before = window();
	send(BURST);
	poll_until(timed_out_twice, true); /* rank 1 has everything, and no time */
	CHECK(window() < before);
	poll_until(all_acknowledged, false);
	CHECK(window() >= before);
	CHECK_IS(noted, WARM + BURST);
	close_both();
}

TEST(a_packet_sent_again_for_nothing_overtakes_no_other)
{
	begin();
	size_t before = window();
	struct wire_ops slow = *net_of(1)->wire->ops;
	receive_any = slow.receive;
	slow.receive = receive_one;
	net_of(1)->wire->ops = &slow;
	for (unsigned i = 0; i < BURST; i++) {
		send(1); /* a packet each */
		CHECK(tern_poll(local[0]) >= 0);
	}
	poll_until(sent_again, true);
	poll_until(all_acknowledged, false);
	CHECK(window() >= before);
	CHECK_IS(noted, WARM + BURST);
	close_both();
}

TEST(a_timeout_for_a_loss_closes_the_window)
{
	begin();
	size_t before = window();
	struct wire *wire = net_of(0)->wire;
	struct wire_ops deaf = *wire->ops;
	const struct wire_ops *ops = wire->ops;
	deaf.send = lose;
	wire->ops = &deaf;
	send(BURST);
	poll_until(timed_out_twice, true);
	wire->ops = ops;
	poll_until(all_acknowledged, false);
	CHECK(path_there()->transit.pace.enough <= before / 2);
	CHECK_IS(noted, WARM + BURST);
	close_both();
}
