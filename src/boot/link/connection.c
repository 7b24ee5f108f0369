/* SPDX-License-Identifier: BSD-3-Clause */
/* How two links prove to each other that they have the key, and pass records. */
#include "boot/link/connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"

enum { VERSION = 1, BACKLOG = 1024 };

_Static_assert(JOB_KEY == crypto_generichash_KEYBYTES, "keys have one size");
_Static_assert(CONNECTION_TAG == crypto_generichash_BYTES_MIN, "a tag is BLAKE2b's shortest");

bool connection_usable(char *why, size_t len)
{
	(void)why, (void)len;
	return sodium_init() >= 0;
}

/* -- Connecting ------------------------------------------------------------------------- */

static int socket_new(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

int connection_listen(struct sockaddr_in6 *address)
{
	socklen_t len = address_len(address);
	int fd = socket_new(address->sin6_family);
	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)(void *)address, len) == 0 && listen(fd, BACKLOG) == 0 &&
	    getsockname(fd, (struct sockaddr *)(void *)address, &len) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

/*
 * The kernel of the other machine answers for a process that computes, or is stopped; so silence
 * means that the machine is gone, or the way to it.
 */
static void socket_keepalive(int fd, uint64_t silence)
{
	int on = 1, times = 3, third = silence < 3 ? 1 : (int)(silence / 3);
	unsigned ms = (unsigned)silence * 1000;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!silence)
		return;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &third, sizeof third);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &third, sizeof third);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static void connection_begin(struct connection *c, int fd, bool caller, const struct job *job)
{
	*c = (struct connection){
		.fd = fd, .caller = caller, .begun = clock_ns(), .out_at = sizeof c->out
	};
	c->mine = (struct greeting){ .version = VERSION, .machine = job->head->machine };
	randombytes_buf(c->mine.random, sizeof c->mine.random);
	memcpy(c->key, job->head->key, sizeof c->key);
}

int connection_call(struct connection *c, const struct sockaddr_in6 *to, const struct job *job,
		    uint64_t silence)
{
	int fd = socket_new(to->sin6_family);
	if (fd < 0)
		return fd;
	socket_keepalive(fd, silence);
	connection_begin(c, fd, true, job);
	if (connect(fd, (const struct sockaddr *)(const void *)to, address_len(to)) == 0 ||
	    errno == EINPROGRESS)
		return 0;
	int rc = -errno;
	connection_close(c);
	return rc;
}

int connection_accept(struct connection *c, int listener, const struct job *job, uint64_t silence)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	socket_keepalive(fd, silence);
	connection_begin(c, fd, false, job);
	return 0;
}

void connection_close(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	sodium_memzero(c->key, sizeof c->key);
	*c = (struct connection){ .fd = -1 };
}

/* -- Sending ---------------------------------------------------------------------------- */

static void connection_tag(const struct connection *c, uint8_t tag[CONNECTION_TAG],
			   const struct rank_status *b, uint64_t number, bool by_caller)
{
	crypto_generichash_state s;
	uint64_t head = number << 1 | by_caller;
	crypto_generichash_init(&s, c->key, sizeof c->key, CONNECTION_TAG);
	crypto_generichash_update(&s, (const unsigned char *)&head, sizeof head);
	crypto_generichash_update(&s, (const unsigned char *)b, sizeof *b);
	crypto_generichash_final(&s, tag, CONNECTION_TAG);
}

bool connection_room(const struct connection *c)
{
	return c->fd >= 0 && c->greeted && c->out_at == sizeof c->out;
}

void connection_send(struct connection *c, const struct rank_status *b)
{
	c->out.record = *b;
	connection_tag(c, c->out.tag, b, c->sent++, c->caller);
	c->out_at = 0;
}

bool connection_waits(const struct connection *c)
{
	return c->mine_at < sizeof c->mine || c->out_at < sizeof c->out;
}

/* As much as can be; 0, or a negative errno. */
static int socket_write(int fd, const void *bytes, size_t len, size_t *at)
{
	while (*at < len) {
		ssize_t n = send(fd, (const char *)bytes + *at, len - *at, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		*at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int connection_flush(struct connection *c)
{
	int rc = socket_write(c->fd, &c->mine, sizeof c->mine, &c->mine_at);
	if (!rc && c->mine_at == sizeof c->mine)
		rc = socket_write(c->fd, &c->out, sizeof c->out, &c->out_at);
	return rc;
}

/* -- Receiving -------------------------------------------------------------------------- */

/* The key of this connection, from what both have said. */
static void connection_greeted(struct connection *c)
{
	const struct greeting *caller = c->caller ? &c->mine : &c->in.greeting;
	const struct greeting *called = c->caller ? &c->in.greeting : &c->mine;
	crypto_generichash_state s;
	crypto_generichash_init(&s, c->key, sizeof c->key, sizeof c->key);
	crypto_generichash_update(&s, (const unsigned char *)caller, sizeof *caller);
	crypto_generichash_update(&s, (const unsigned char *)called, sizeof *called);
	crypto_generichash_final(&s, c->key, sizeof c->key);
	c->peer = c->in.greeting.machine;
	c->greeted = true;
	c->in_len = 0;
}

/* False at the end of what has come. *rc: why nothing more will. */
static bool connection_fill(struct connection *c, size_t want, int *rc)
{
	while (c->in_len < want) {
		ssize_t n = recv(c->fd, c->in.bytes + c->in_len, want - c->in_len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*rc = n == 0                                 ? -ECONNRESET
			      : errno == EAGAIN || errno == ENOTCONN ? 0
								     : -errno;
			return false;
		}
		c->in_len += (size_t)n;
	}
	return true;
}

int connection_receive(struct connection *c, struct rank_status *b)
{
	uint8_t tag[CONNECTION_TAG];
	int rc = 0;
	if (!c->greeted) {
		if (!connection_fill(c, sizeof c->in.greeting, &rc))
			return rc;
		if (c->in.greeting.version != VERSION)
			return -EPROTO;
		connection_greeted(c);
	}
	if (!connection_fill(c, sizeof c->in.sealed, &rc))
		return rc;
	c->in_len = 0;
	connection_tag(c, tag, &c->in.sealed.record, c->received, !c->caller);
	if (sodium_memcmp(tag, c->in.sealed.tag, sizeof tag) != 0)
		return -EPROTO;
	c->received++;
	*b = c->in.sealed.record;
	return 1;
}

/* cost: protection setup */
