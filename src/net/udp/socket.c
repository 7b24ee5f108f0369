/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base write */
#include "net/udp/socket.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "boot/exchange.h"
#include "net/packet/packet.h"
#include "net/udp/card.h"
#include "service/service.h"

enum {
	BUFFER = 4 << 20, /* bytes asked of the kernel for each direction; it gives what it allows */
	IP4_UDP = 28,     /* bytes that these headers take of the path's MTU */
	IP6_UDP = 48,
	LEAST_MTU = 1280,
	CONNECTED =
		64, /* peers that have a socket of their own for what is sent to them: its route is known */
};

struct socket {
	struct wire wire;
	int fd;
	int *to_fd; /* one a rank, connected; -1 */
	unsigned connected;
	unsigned came; /* datagrams at the last look, or looks in a row that found one */
	socklen_t address_len;
	struct job *job;
	uint32_t size;
	struct sockaddr_in6 *to; /* one a rank; family 0 until its card was seen */
	unsigned char *bytes;    /* PACKET_BATCH datagrams */
	struct mmsghdr in[PACKET_BATCH], out[PACKET_BATCH];
	struct iovec in_part[PACKET_BATCH];
};

static struct socket *socket_of(struct wire *w)
{
	return (struct socket *)(void *)w;
}

/* As the route to it has it now; a path that is narrower is found by the kernel, which then cuts. */
static size_t path_mtu(int fd, bool six)
{
	int mtu = 0;
	socklen_t len = sizeof mtu;
	getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MTU : IP_MTU, &mtu, &len);
	return (size_t)(mtu < LEAST_MTU ? LEAST_MTU : mtu) - (six ? IP6_UDP : IP4_UDP);
}

/* Finds out how much a datagram to `rank` may have, and keeps the socket that told it, if there are few. */
static size_t socket_connect(struct socket *s, uint32_t rank)
{
	const struct sockaddr_in6 *to = &s->to[rank];
	bool six = to->sin6_family == AF_INET6;
	int buffer = BUFFER, fd = socket(to->sin6_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return LEAST_MTU - IP6_UDP;
	bool connected = connect(fd, (const struct sockaddr *)(const void *)to, s->address_len) == 0;
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

/* cost: base setup */
static size_t socket_most(struct wire *w, uint32_t rank)
{
	struct socket *s = socket_of(w);
	struct card card;
	if (!boot_look(s->job, rank, &card, sizeof card))
		return 0;
	s->to[rank] = card.address;
	size_t most = socket_connect(s, rank);
	return most < DATAGRAM_MAX ? most : DATAGRAM_MAX;
}

static struct msghdr header_for(const struct socket *s, const struct outgoing *o)
{
	bool connected = s->to_fd[o->rank] >= 0;
	return (struct msghdr){ .msg_name = connected ? NULL : &s->to[o->rank],
				.msg_namelen = connected ? 0 : s->address_len,
				.msg_iov = (struct iovec *)(uintptr_t)o->part,
				.msg_iovlen = (size_t)o->parts };
}

/* One datagram needs less than many; what the kernel has no room for is lost, as a router would lose it. */
static void send_one(struct socket *s, const struct outgoing *o)
{
	int fd = s->to_fd[o->rank];
	struct msghdr h = header_for(s, o);
	if (fd >= 0 && o->parts == 1)
		send(fd, o->part->iov_base, o->part->iov_len, MSG_DONTWAIT);
	else
		sendmsg(fd >= 0 ? fd : s->fd, &h, MSG_DONTWAIT);
}

static void send_many(struct socket *s, const struct outgoing *o, unsigned n)
{
	int fd = s->to_fd[o->rank] >= 0 ? s->to_fd[o->rank] : s->fd;
	for (unsigned i = 0; i < n; i++)
		s->out[i].msg_hdr = header_for(s, &o[i]);
	for (unsigned done = 0; done < n;) {
		int sent = sendmmsg(fd, s->out + done, n - done, MSG_DONTWAIT);
		if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return;
		if (sent < 0 && errno == EINTR)
			continue;
		done += sent > 0 ? (unsigned)sent : 1; /* past one that cannot be sent */
	}
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

/* Where few come, one is asked for: that is quicker, and if there are more, the next looks will see. */
static unsigned socket_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct socket *s = socket_of(w);
	if (s->came < 2) {
		ssize_t len = recv(s->fd, s->bytes, DATAGRAM_MAX, MSG_DONTWAIT);
		if (len < 0) {
			s->came = 0;
			return 0;
		}
		d[0] = (struct datagram){ .bytes = s->bytes, .len = (size_t)len };
		s->came++;
		return 1;
	}
	int came = recvmmsg(s->fd, s->in, n < PACKET_BATCH ? n : PACKET_BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < came; i++)
		d[i] = (struct datagram){ .bytes = s->in_part[i].iov_base, .len = s->in[i].msg_len };
	s->came = came > 0 ? (unsigned)came : 0;
	return s->came;
}

static int socket_descriptor(struct wire *w)
{
	return socket_of(w)->fd;
}

static uint64_t socket_due(struct wire *w)
{
	(void)w;
	return DUE_NEVER;
}

static void socket_close(struct wire *w)
{
	struct socket *s = socket_of(w);
	if (s->fd >= 0)
		close(s->fd);
	if (s->bytes)
		munmap(s->bytes, (size_t)PACKET_BATCH * DATAGRAM_MAX);
	for (uint32_t r = 0; s->to_fd && r < s->size; r++)
		if (s->to_fd[r] >= 0)
			close(s->to_fd[r]);
	free(s->to_fd);
	free(s->to);
	free(s);
}

static const struct wire_ops socket_ops = {
	.most = socket_most,
	.send = socket_send,
	.receive = socket_receive,
	.descriptor = socket_descriptor,
	.due = socket_due,
	.close = socket_close,
};

static int socket_bind(struct socket *s, struct sockaddr_in6 *address)
{
	const char *where = setting_text(SETTING_UDP_BIND);
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM }, *found;
	int buffer = BUFFER;
	if (getaddrinfo(where, NULL, &hints, &found) != 0)
		return error_set(-EINVAL, "TERN_UDP_BIND is '%s', which is no address in numbers", where);
	s->address_len = found->ai_addrlen;
	s->fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = s->fd < 0 || bind(s->fd, found->ai_addr, found->ai_addrlen) != 0 ? -errno : 0;
	freeaddrinfo(found);
	if (rc)
		return error_set(rc, "binding a UDP socket to %s: %s", where, strerror(-rc));
	setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	socklen_t len = sizeof *address;
	*address = (struct sockaddr_in6){ 0 };
	getsockname(s->fd, (struct sockaddr *)(void *)address, &len);
	return 0;
}

static int socket_allocate(struct socket *s, uint32_t size)
{
	s->to = calloc(size, sizeof *s->to);
	s->to_fd = calloc(size, sizeof *s->to_fd);
	s->bytes = mmap(NULL, (size_t)PACKET_BATCH * DATAGRAM_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->bytes == MAP_FAILED)
		s->bytes = NULL;
	if (!s->to || !s->to_fd || !s->bytes)
		return error_set(-ENOMEM, "opening a UDP socket: no memory");
	for (uint32_t r = 0; r < size; r++)
		s->to_fd[r] = -1;
	s->size = size;
	for (unsigned i = 0; i < PACKET_BATCH; i++) {
		s->in_part[i] = (struct iovec){ s->bytes + (size_t)i * DATAGRAM_MAX, DATAGRAM_MAX };
		s->in[i].msg_hdr = (struct msghdr){ .msg_iov = &s->in_part[i], .msg_iovlen = 1 };
	}
	return 0;
}

int socket_open(struct wire **out, struct job *job, uint32_t size, struct sockaddr_in6 *address)
{
	struct socket *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(-ENOMEM, "opening a UDP socket: no memory");
	s->wire = (struct wire){ .ops = &socket_ops };
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
