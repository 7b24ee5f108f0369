/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire of one UDP socket: many short datagrams with a call each way, cut and joined by the kernel
 * where it can. Peers that are sent much to have a connected socket of their own.
 */
#include "net/udp/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "job/exchange.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"
#include "net/udp/loopback.h"

enum {
	/* Bytes asked of the kernel for each direction; it gives what it allows. */
	BUFFER = 4 << 20,
	IP4_UDP = 28, /* bytes that these headers take of the path's MTU */
	IP6_UDP = 48,
	LEAST_MTU = 1280,
	/* Peers that have a socket of their own for what is sent to them: its route is known. */
	CONNECTED = 64,
	/*
	 * Datagrams at once, or looks in a row that found one, after which several are asked for.
	 */
	STREAK = 4,
	RX_BUFFERS = 2 * PACKET_BATCH,
	GSO_BYTES = 65000, /* bytes that the kernel cuts into datagrams, at most, */
	GSO_SEGMENTS = 64, /* and datagrams */
	RX_BYTES = (64 << 10) +
		   5 * 64, /* bytes: any datagram. Not all begin in the same place of a cache */
};

/*
 * A message and each poll ask the kernel, and not the C library: its calls are points where a
 * thread may be cancelled, which in a process of two threads takes 50 instructions more; and a poll
 * that ends in its middle would leave the endpoint half changed. Thread sanitizer sees what a
 * datagram orders in the C library's calls alone.
 */
#ifdef TERN_WATCHED_
#define KERNEL(call, ...) call(__VA_ARGS__)
#else
#define KERNEL(call, ...) syscall(SYS_##call, __VA_ARGS__)
#endif

/*
 * Where a datagram arrives, or several of one length. What is in it may stay, and then another
 * comes next.
 */
struct rx_buffer {
	struct pinned pinned;
	unsigned char *bytes;
};

/* Datagrams of one length, but for the last, that the kernel takes as one. */
struct gso_batch {
	struct msghdr header;
	size_t bytes, length;
	unsigned segments;
	char control[CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(8)));
	struct iovec part[PACKET_BATCH * PACKET_PARTS];
};

struct socket {
	struct wire wire;
	int fd;
	int *to_fd; /* one a rank, connected; -1 */
	unsigned connected;
	unsigned came; /* datagrams at the last look, or looks in a row that found few */
	socklen_t address_len;
	struct sockaddr_in6 own; /* where others send to, but for the port */
	struct job *job;
	uint32_t size;
	struct sockaddr_in6 *to; /* one a rank; family 0 until its card was seen */
	struct failure *failure; /* one a rank */
	unsigned char *bytes;    /* of the receive buffers */
	struct rx_buffer rx[RX_BUFFERS];
	unsigned next;         /* the one to receive in, if it is empty */
	struct rx_buffer *now; /* the last that was received in, */
	size_t len, cut, at;   /* what it has, of datagrams how long, and how much of it went on */
	bool able;             /* the kernel knows how to cut what is sent, */
	bool cuts;             /* and does it, */
	bool joins;            /* and joins what comes */
	struct gso_batch gso;
};

static struct socket *socket_of(struct wire *w)
{
	return (struct socket *)(void *)w;
}

/*
 * As the route to it has it now; a path that is narrower is found by the kernel, which then cuts,
 * see socket_narrow().
 */
static size_t path_mtu(int fd, bool six)
{
	int mtu = 0;
	socklen_t len = sizeof mtu;
	getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MTU : IP_MTU, &mtu, &len);
	return (size_t)(mtu < LEAST_MTU ? LEAST_MTU : mtu) - (six ? IP6_UDP : IP4_UDP);
}

/*
 * Finds out how much a datagram to `rank` may have, and keeps the socket that told it, if there are
 * few.
 */
static size_t socket_connect(struct socket *s, uint32_t rank)
{
	const struct sockaddr_in6 *to = &s->to[rank];
	bool six = to->sin6_family == AF_INET6;
	if (s->to_fd[rank] >= 0)
		return path_mtu(s->to_fd[rank], six);
	int buffer = BUFFER,
	    fd = socket(to->sin6_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return LEAST_MTU - IP6_UDP;
	bool connected =
		connect(fd, (const struct sockaddr *)(const void *)to, s->address_len) == 0;
	size_t most = path_mtu(fd, six);
	if (connected && s->connected < CONNECTED) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
		s->to_fd[rank] = fd;
		s->connected++;
	} else {
		close(fd);
	}
	return most;
}

/*
 * From now on several datagrams may come as one. Not where they are as large as that anyway: it
 * takes a slower call.
 */
static void socket_join(struct socket *s)
{
	int on = 1;
	if (!s->joins && setsockopt(s->fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0)
		s->joins = true;
}

static size_t socket_most(struct wire *w, uint32_t rank)
{
	struct socket *s = socket_of(w);
	struct card card;
	if (!card_read(s->job, rank, &card, sizeof card))
		return 0;
	s->to[rank] = card.address;
	loopback_warn(s->job, rank, &card, &s->own);
	size_t most = socket_connect(s, rank);
	if (most <= GSO_BYTES / 2)
		socket_join(s);
	return most < DATAGRAM_MAX ? most : DATAGRAM_MAX;
}

/*
 * The kernel may have heard from a router that the path is narrower than the route; what is too
 * long already goes in fragments. Where such news do not come through, IPv4 routers may cut.
 */
static size_t socket_narrow(struct wire *w, uint32_t rank, size_t had, bool dark)
{
	struct socket *s = socket_of(w);
	bool six = s->to[rank].sin6_family == AF_INET6;
	int fd = s->to_fd[rank], may_cut = IP_PMTUDISC_DONT;
	if (dark && !six)
		setsockopt(fd >= 0 ? fd : s->fd, IPPROTO_IP, IP_MTU_DISCOVER, &may_cut,
			   sizeof may_cut);
	size_t most = fd >= 0 ? path_mtu(fd, six) : had;
	if (most >= had)
		return had;
	s->cuts = s->able; /* though it did not cut what is too long now */
	return most;
}

static struct msghdr header_for(const struct socket *s, const struct outgoing *o)
{
	bool connected = s->to_fd[o->rank] >= 0;
	return (struct msghdr){ .msg_name = connected ? NULL : &s->to[o->rank],
				.msg_namelen = connected ? 0 : s->address_len,
				.msg_iov = (struct iovec *)(uintptr_t)o->part,
				.msg_iovlen = (size_t)o->parts };
}

/*
 * What the kernel has no room for, or refuses, is lost, as a router would lose it. Retry sends it
 * again, and whoever wonders why nothing is acknowledged asks what went wrong.
 */
static __attribute__((noinline)) void send_failed(struct socket *s, uint32_t rank)
{
	failure_note(&s->failure[rank], errno, clock_ns());
}

/* One datagram needs less than many. */
static void send_one(struct socket *s, const struct outgoing *o)
{
	int fd = s->to_fd[o->rank];
	const struct iovec *v = o->part;
	ssize_t sent;
	if (fd >= 0 && o->parts == 1) {
		sent = KERNEL(sendto, fd, v->iov_base, v->iov_len, MSG_DONTWAIT, NULL, 0);
	} else {
		struct msghdr h = header_for(s, o);
		sent = sendmsg(fd >= 0 ? fd : s->fd, &h, MSG_DONTWAIT);
	}
	if (TERN_UNLIKELY(sent < 0))
		send_failed(s, o->rank);
}

/*
 * Adds one that is as long as those before it, or shorter, which ends the batch; false if it must
 * go in another.
 */
static bool gso_add(struct gso_batch *r, const struct outgoing *o)
{
	size_t bytes = outgoing_bytes(o);
	if (!r->segments)
		r->length = bytes;
	if (r->bytes + bytes > GSO_BYTES || r->segments == GSO_SEGMENTS || bytes > r->length ||
	    r->bytes != r->segments * r->length)
		return false;
	memcpy(&r->part[r->header.msg_iovlen], o->part, (size_t)o->parts * sizeof *o->part);
	r->header.msg_iovlen += (size_t)o->parts;
	r->bytes += bytes;
	r->segments++;
	return true;
}

static bool gso_send(struct socket *s, struct gso_batch *r, int fd, uint32_t rank)
{
	uint16_t length = (uint16_t)r->length;
	r->header.msg_control = r->segments > 1 ? r->control : NULL;
	r->header.msg_controllen = r->segments > 1 ? sizeof r->control : 0;
	if (r->segments > 1) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&r->header);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof length), SOL_UDP, UDP_SEGMENT };
		memcpy(CMSG_DATA(c), &length, sizeof length);
	}
	if (sendmsg(fd, &r->header, MSG_DONTWAIT) >= 0)
		return true;
	if (errno == EINVAL || errno == EIO || errno == EMSGSIZE || errno == EOPNOTSUPP)
		return false;
	send_failed(s, rank);
	return true;
}

/*
 * One call for all of a length; how many were sent, or lost. Fewer than all, if the way out cannot
 * cut.
 */
static unsigned send_trains(struct socket *s, const struct outgoing *o, unsigned n, int fd)
{
	struct gso_batch *r = &s->gso;
	unsigned done = 0;
	while (done < n) {
		r->header = header_for(s, o);
		r->header.msg_iov = r->part;
		r->header.msg_iovlen = r->bytes = r->segments = 0;
		while (done + r->segments < n && gso_add(r, &o[done + r->segments]))
			;
		if (!gso_send(s, r, fd, o->rank))
			return done;
		done += r->segments;
	}
	return done;
}

/* What the kernel does not cut goes one by one. */
static void send_many(struct socket *s, const struct outgoing *o, unsigned n)
{
	int fd = s->to_fd[o->rank] >= 0 ? s->to_fd[o->rank] : s->fd;
	unsigned done = 0;
	if (s->cuts && outgoing_bytes(o) <= GSO_BYTES / 2) {
		done = send_trains(s, o, n, fd);
		bool too_long =
			done < n &&
			s->gso.length > path_mtu(fd, s->to[o->rank].sin6_family == AF_INET6);
		/* A batch can fail because the path MTU shrank: the kernel can cut all the same. */
		s->cuts = done == n || too_long;
	}
	for (; done < n; done++)
		send_one(s, &o[done]);
}

static void socket_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	struct socket *s = socket_of(w);
	for (unsigned first = 0, i = 1; first < n; first = i++) {
		while (i < n && o[i].rank == o[first].rank)
			i++;
		if (i - first == 1)
			send_one(s, &o[first]);
		else
			send_many(s, &o[first], i - first);
	}
}

static bool rx_buffer_free(struct rx_buffer *h)
{
	while (h->pinned.n && block_is(h->pinned.block[h->pinned.n - 1], BLOCK_FREE))
		h->pinned.n--;
	return !h->pinned.n;
}

/* The length of each datagram but the last of those that came as one. */
static size_t rx_segment_bytes(struct msghdr *m, size_t all)
{
	int length = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&length, CMSG_DATA(c), sizeof length);
	return length > 0 ? (size_t)length : all;
}

/* Receives into the next buffer that is empty; false if nothing has come. */
static bool socket_take(struct socket *s)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	while (!rx_buffer_free(&s->rx[s->next]))
		s->next++;
	struct iovec part = { s->rx[s->next].bytes, RX_BYTES };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof control };
	ssize_t len = s->joins ? KERNEL(recvmsg, s->fd, &m, MSG_DONTWAIT)
			       : KERNEL(recvfrom, s->fd, part.iov_base, part.iov_len, MSG_DONTWAIT,
					NULL, NULL);
	if (len < 0)
		return false;
	s->now = &s->rx[s->next++];
	s->at = 0;
	s->len = (size_t)len;
	s->cut = s->joins ? rx_segment_bytes(&m, s->len) : s->len;
	return true;
}

/*
 * The next datagram of those that came as one. It may stay only while a whole batch of other
 * buffers is empty, so that there is always one to receive in.
 */
static struct datagram rx_datagram(struct socket *s)
{
	size_t rest = s->len - s->at, len = rest < s->cut ? rest : s->cut;
	unsigned char *bytes = s->now->bytes + s->at;
	s->at += len;
	return (struct datagram){ .bytes = bytes,
				  .len = len,
				  .pinned =
					  s->now < s->rx + PACKET_BATCH ? &s->now->pinned : NULL };
}

/*
 * Begins with the same buffers again if they are empty: the caches have those. Where few come, one
 * is asked for: that is quicker, and if there are more, the next looks will see.
 */
static unsigned socket_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct socket *s = socket_of(w);
	unsigned given = 0, most = s->came < STREAK ? 1 : n;
	bool rest = s->at < s->len;
	for (s->next = rest ? s->next : 0; given < n; given++) {
		if (s->at == s->len && (rest || given >= most || !socket_take(s)))
			break;
		d[given] = rx_datagram(s);
	}
	s->came = !given || s->came >= STREAK ? given : s->came + 1;
	return given;
}

static int socket_descriptor(struct wire *w)
{
	return socket_of(w)->fd;
}

static uint64_t socket_due(struct wire *w)
{
	const struct socket *s = socket_of(w);
	/* What came with others: the descriptor does not tell of it. */
	return s->at < s->len ? 1 : DUE_NEVER;
}

static void socket_failed(struct wire *w, uint32_t rank, struct failure *f)
{
	const struct socket *s = socket_of(w);
	char text[INET6_ADDRSTRLEN];
	*f = s->failure[rank];
	snprintf(f->where, sizeof f->where, "UDP address %s, port %u,",
		 address_text(&s->to[rank], text), ntohs(s->to[rank].sin6_port));
}

static void socket_close(struct wire *w)
{
	struct socket *s = socket_of(w);
	if (s->fd >= 0)
		close(s->fd);
	memory_free(s->bytes);
	for (uint32_t r = 0; s->to_fd && r < s->size; r++)
		if (s->to_fd[r] >= 0)
			close(s->to_fd[r]);
	free(s->to_fd);
	free(s->to);
	free(s->failure);
	free(s);
}

static const struct wire_ops socket_ops = {
	.most = socket_most,
	.narrow = socket_narrow,
	.send = socket_send,
	.receive = socket_receive,
	.descriptor = socket_descriptor,
	.due = socket_due,
	.failed = socket_failed,
	.close = socket_close,
};

static int socket_bind(struct socket *s, struct sockaddr_in6 *address)
{
	int buffer = BUFFER, rc = address_choose(address, s->job && s->job->head->machines > 1);
	if (rc)
		return rc;
	rc = loopback_check(address);
	if (rc)
		return rc;
	s->own = *address;
	s->address_len = address_len(address);
	s->fd = socket(address->sin6_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)(void *)address, s->address_len) != 0)
		return address_refused(address, -errno, "opening a UDP socket");
	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	int none = 0;
	s->able = s->cuts = setsockopt(s->fd, SOL_UDP, UDP_SEGMENT, &none, sizeof none) == 0;
	socklen_t len = sizeof *address;
	getsockname(s->fd, (struct sockaddr *)(void *)address, &len);
	return 0;
}

static int socket_allocate(struct socket *s, uint32_t size)
{
	s->to = calloc(size, sizeof *s->to);
	s->to_fd = calloc(size, sizeof *s->to_fd);
	s->failure = calloc(size, sizeof *s->failure);
	s->bytes = memory_new(RX_BUFFERS, RX_BYTES);
	if (!s->to || !s->to_fd || !s->failure || !s->bytes)
		return error_set(-ENOMEM, "opening a UDP socket: no memory");
	for (uint32_t r = 0; r < size; r++)
		s->to_fd[r] = -1;
	s->size = size;
	s->wire.pinnable = s->bytes;
	s->wire.pinnable_len = (size_t)RX_BUFFERS * RX_BYTES;
	for (unsigned i = 0; i < RX_BUFFERS; i++)
		s->rx[i].bytes = s->bytes + (size_t)i * RX_BYTES;
	return 0;
}

int socket_open(struct wire **out, struct job *job, uint32_t size, struct sockaddr_in6 *address)
{
	struct socket *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(-ENOMEM, "opening a UDP socket: no memory");
	s->wire = (struct wire){ .ops = &socket_ops, .calls = true };
	s->job = job;
	s->fd = -1;
	int rc = socket_allocate(s, size);
	if (!rc)
		rc = socket_bind(s, address);
	if (rc) {
		socket_close(&s->wire);
		return rc;
	}
	*out = &s->wire;
	return 0;
}
