/* SPDX-License-Identifier: BSD-3-Clause */
/* How two links prove to each other that they have the key, and pass records. */
#include "boot/link/connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/stamp.h"

_Static_assert((int)JOB_KEY == (int)SEAL_KEY, "keys have one size");

/* -- Connecting ------------------------------------------------------------------------- */

int connection_listen(struct sockaddr_in6 *address)
{
	return socket_bound(SOCK_STREAM | SOCK_NONBLOCK, (struct sockaddr *)(void *)address,
			    address_len(address), sizeof *address);
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

/* Both ends greet at once. */
static void connection_begin(struct connection *c, int fd, bool caller, const struct job *job)
{
	*c = (struct connection){ .fd = fd, .caller = caller, .begun = clock_ns() };
	wire_open(&c->wire, fd, fd);
	c->wire.most = sizeof(struct rank_status);
	memcpy(c->wire.seal.key, job->head->key, sizeof c->wire.seal.key);
	c->mine = (struct greeting){ .stamp = build_stamp, .machine = job->head->machine };
	seal_random(c->mine.random, sizeof c->mine.random);
	wire_send(&c->wire, FRAME_GREETING, &c->mine, sizeof c->mine);
}

int connection_call(struct connection *c, const struct sockaddr_in6 *to, const struct job *job,
		    uint64_t silence)
{
	int fd = socket(to->sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	socket_keepalive(fd, silence);
	if (connect(fd, (const struct sockaddr *)(const void *)to, address_len(to)) != 0 &&
	    errno != EINPROGRESS) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	connection_begin(c, fd, true, job);
	return 0;
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
		wire_close(&c->wire);
	*c = (struct connection){ .fd = -1 };
}

/* -- Sending ---------------------------------------------------------------------------- */

bool connection_room(const struct connection *c)
{
	return c->fd >= 0 && c->greeted && !connection_waits(c);
}

void connection_send(struct connection *c, const struct rank_status *b)
{
	c->sent++;
	wire_send(&c->wire, FRAME_RANK_STATUS, b, sizeof *b);
}

bool connection_waits(const struct connection *c)
{
	return buffer_backlog(&c->wire.out);
}

bool connection_reached(const struct connection *c)
{
	return c->fd >= 0 && (c->wire.out.at || !connection_waits(c));
}

int connection_flush(struct connection *c)
{
	wire_flush(&c->wire);
	return c->wire.error ? -c->wire.error : -c->wire.deaf;
}

/* -- Receiving -------------------------------------------------------------------------- */

/* Both have greeted: what comes from now on has a tag. */
static bool connection_greeted(struct connection *c, const struct frame *f)
{
	struct greeting theirs;
	if (f->type != FRAME_GREETING || f->len != sizeof theirs)
		return false;
	memcpy(&theirs, f->data, sizeof theirs);
	if (theirs.stamp != build_stamp)
		return false;
	seal_begin(&c->wire.seal, c->caller, c->caller ? &c->mine : &theirs,
		   c->caller ? &theirs : &c->mine, sizeof theirs);
	c->peer = theirs.machine;
	c->greeted = true;
	return true;
}

int connection_receive(struct connection *c, struct rank_status *b)
{
	struct frame f;
	for (bool more = true; more;) {
		while (wire_next(&c->wire, &f)) {
			if (!c->greeted && connection_greeted(c, &f))
				continue;
			if (!c->greeted || f.type != FRAME_RANK_STATUS || f.len != sizeof *b)
				return -EPROTO;
			memcpy(b, f.data, sizeof *b);
			c->received++;
			return 1;
		}
		size_t before = c->wire.in.len - c->wire.in.at;
		more = wire_read(&c->wire) && c->wire.in.len - c->wire.in.at > before;
	}
	return c->wire.error ? -c->wire.error : -c->wire.ended;
}
