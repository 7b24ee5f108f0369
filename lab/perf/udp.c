/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over UDP on loopback, beside bare sockets that do the same without a library. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum {
	BULK_MOST = 4 * TERN_PAYLOAD_MAX, /* bytes of a bare datagram */
	WINDOW = 8,                       /* bare datagrams under way, so that none is lost */
	BATCH = 64,                       /* small ones, for the same reason */
	BUFFER = 4 << 20,
};

static int bare; /* connected to the other rank's */
static char bytes[BULK_MOST];

static int bare_failed(const char *what)
{
	return error_set(-errno, "%s a bare UDP socket: %s", what, strerror(errno));
}

/* Both ranks; they tell each other their ports in memory that they share. */
static int bare_open(struct bench_rank *p)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof address;
	int buffer = BUFFER;
	struct raw_line *port = p->raw.arena->token;
	bare = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bare < 0 || bind(bare, (struct sockaddr *)(void *)&address, sizeof address) != 0 ||
	    getsockname(bare, (struct sockaddr *)(void *)&address, &len) != 0)
		return bare_failed("opening");
	setsockopt(bare, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	port[p->rank].word[0] = address.sin_port;
	int rc = tern_barrier(p->t);
	if (rc)
		return rc;
	address.sin_port = (in_port_t)port[1 - p->rank].word[0];
	if (connect(bare, (struct sockaddr *)(void *)&address, sizeof address) != 0)
		return bare_failed("connecting");
	return 0;
}

static ssize_t bare_receive(void)
{
	ssize_t n;
	do
		n = recv(bare, bytes, sizeof bytes, MSG_DONTWAIT);
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n;
}

static void bare_send(size_t len)
{
	while (send(bare, bytes, len, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == ENOBUFS))
		;
}

/* -- Round trip --------------------------------------------------------------------------- */

static int trip_bare(struct bench_rank *p)
{
	size_t len = p->size * sizeof(uint64_t) + 2;
	for (uint64_t i = 0; i < p->count; i++) {
		if (p->rank)
			bare_receive();
		bare_send(len);
		if (!p->rank)
			bare_receive();
	}
	return 0;
}

/* -- One way -------------------------------------------------------------------------------- */

/* Datagrams one way; after every `window` of them the receiver says so. */
static uint64_t bare_stream(struct bench_rank *p, uint64_t count, size_t len, unsigned window)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < count; i++) {
		if (p->rank)
			bare_receive();
		else
			bare_send(len);
		if ((i + 1) % (window / 2) && i + 1 < count)
			continue;
		if (p->rank)
			bare_send(1);
		else if (i + 1 >= window)
			bare_receive();
	}
	for (uint64_t rest = count < window ? 1 : 2; !p->rank && rest > 1; rest--)
		bare_receive();
	return clock_ns() - began;
}

static double rate_bare(struct bench_rank *p)
{
	return each_microsecond(p, bare_stream(p, p->count, p->size * sizeof(uint64_t) + 2, BATCH));
}

enum { COPIED, CLAIMED }; /* ways */

static int send_claimed(struct bench_rank *p)
{
	void *claimed;
	int rc = tern_claim(p->t, 1, p->size, &claimed);
	return rc ? rc : tern_commit(p->t, claimed, WORDS_LAND);
}

static REPEATS(bulk_send, p->way == CLAIMED
				  ? send_claimed(p)
				  : tern_request_data(p->t, 1, WORDS_LAND, bytes, p->size));

/*
 * The bare stream sends the same bytes from one place again and again, receives them in one
 * place, looks at none of them, and its receiver says once for four datagrams that they
 * have come. Nothing is kept to be sent again.
 */
static double bulk_bare(struct bench_rank *p)
{
	uint64_t datagrams = p->count * p->size / BULK_MOST / WINDOW * WINDOW;
	return (double)(datagrams * BULK_MOST) /
	       (double)bare_stream(p, datagrams, BULK_MOST, WINDOW);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test udp_tests[] = {
	{ "udp-trip", "a request and its reply over UDP, without protection", "ns", "words", 0,
	  TERN_WORDS_MAX, .sizes = { 2, { 0, 4 } }, .count = 500, .rounds = 31, .open = bare_open,
	  .measure = { words_trips_of, PHASE_ACTED }, .limit = { { trip_bare, PHASE_ALL } },
	  .limit_name = "a bare UDP socket there and back, both sides polling",
	  .bar = { { 4, "at most 1.15" } },
	  .set = { { "TERN_NET", "udp" }, { "TERN_PROTECT", "none" } } },
	{ "udp-auth-trip", "a request and its reply over UDP, authenticated", "ns",
	  .like = "udp-trip", .bar = { { 4, "at most 1.30" } }, .set = { { "TERN_NET", "udp" } } },
	{ "udp-rate", "requests one way over UDP, a handler called for each", "M/s", "words", 0,
	  TERN_WORDS_MAX, .sizes = { 2, { 1, 4 } }, .count = 19200, .rounds = 31, .open = bare_open,
	  .measure = { words_sends_of, PHASE_HANDLED }, .limit[0].figure = rate_bare,
	  .limit_name = "a bare UDP socket, one message in a datagram",
	  .bar = { { 1, "at least 3.00" } }, .set = { { "TERN_NET", "udp" } } },
	{ "udp-bulk", "requests with payloads one way over UDP, without protection", "GB/s",
	  "bytes", 1024, TERN_PAYLOAD_MAX, .sizes = { 1, { TERN_PAYLOAD_MAX } }, .count = 2048,
	  .rounds = 31, .open = bare_open, .measure = { bulk_send, PHASE_HANDLED, COPIED },
	  .limit[0].figure = bulk_bare,
	  .limit_name = "a bare UDP socket with datagrams of 32 KiB, 8 of them under way",
	  .bar = { { TERN_PAYLOAD_MAX, "at least 0.80" } },
	  .set = { { "TERN_NET", "udp" }, { "TERN_PROTECT", "none" } } },
	{ "udp-claim",
	  "the same, composed in place: as in the bare stream, no byte is written or copied",
	  "GB/s", .like = "udp-bulk", .measure.way = CLAIMED },
	{ .like = NULL },
};
