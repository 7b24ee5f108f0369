/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a pair of descriptors that do not block. */
#include "boot/link/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/world.h"

/* In the byte order of the machine: both ends are the same build, which the order checks first. */
struct head {
	uint32_t type, len;
};

enum { READ_AT_ONCE = 64 << 10 };

void wire_open(struct wire *w, int from, int to)
{
	*w = (struct wire){ .from = from, .to = to, .most = FRAME_MOST };
	fcntl(from, F_SETFL, fcntl(from, F_GETFL) | O_NONBLOCK);
	fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_NONBLOCK);
}

void wire_close(struct wire *w)
{
	if (w->from >= 0)
		close(w->from);
	if (w->to >= 0 && w->to != w->from)
		close(w->to);
	free(w->in.bytes);
	free(w->out.bytes);
	explicit_bzero(w->seal.key, sizeof w->seal.key);
	*w = (struct wire){ .from = -1, .to = -1 };
}

/* How many bytes follow a frame. */
static size_t wire_tag(const struct wire *w)
{
	return w->seal.tag ? SEAL_TAG : 0;
}

void wire_send(struct wire *w, enum frame_type type, const void *data, size_t len)
{
	struct head h = { .type = type, .len = (uint32_t)len };
	struct buffer *b = &w->out;
	if (w->error || w->deaf || w->to < 0)
		return;
	if (len > FRAME_MOST || !buffer_reserve(b, sizeof h + len + wire_tag(w))) {
		w->error = ENOMEM;
		return;
	}
	char *frame = b->bytes + b->len;
	memcpy(frame, &h, sizeof h);
	if (len)
		memcpy(frame + sizeof h, data, len);
	b->len += sizeof h + len;
	if (w->seal.tag)
		w->seal.tag(&w->seal, frame, sizeof h + len, (uint8_t *)b->bytes + b->len);
	b->len += wire_tag(w);
	wire_flush(w);
}

void wire_send_number(struct wire *w, enum frame_type type, int32_t number)
{
	wire_send(w, type, &number, sizeof number);
}

size_t wire_backlog(const struct wire *w)
{
	return w->error || w->deaf ? 0 : w->out.len - w->out.at;
}

/* A connection that is being made takes bytes later. */
static bool errno_later(void)
{
	return errno == EAGAIN || errno == ENOTCONN;
}

void wire_flush(struct wire *w)
{
	struct buffer *b = &w->out;
	while (!w->error && !w->deaf && b->at < b->len) {
		ssize_t n = send(w->to, b->bytes + b->at, b->len - b->at, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(w->to, b->bytes + b->at, b->len - b->at);
		if (n >= 0)
			b->at += (size_t)n;
		else if (errno_later())
			return;
		else if (errno != EINTR)
			w->deaf = errno;
	}
}

bool wire_read(struct wire *w)
{
	struct buffer *b = &w->in;
	size_t room = w->most < READ_AT_ONCE ? w->most : READ_AT_ONCE;
	if (w->error)
		return false;
	if (b->at) { /* a stream may never end with a frame for long */
		memmove(b->bytes, b->bytes + b->at, buffer_backlog(b));
		b->len -= b->at;
		b->at = 0;
	}
	if (!buffer_reserve(b, room))
		return false;
	ssize_t n = read(w->from, b->bytes + b->len, room);
	if (n > 0)
		b->len += (size_t)n;
	else if (n == 0)
		w->ended = ECONNRESET;
	else if (!errno_later() && errno != EINTR)
		w->ended = errno;
	return !w->ended;
}

bool wire_next(struct wire *w, struct frame *f)
{
	struct buffer *b = &w->in;
	struct head h;
	if (w->error || b->len - b->at < sizeof h)
		return false;
	const char *frame = b->bytes + b->at;
	memcpy(&h, frame, sizeof h);
	if (h.type >= FRAME_TYPES || h.len > w->most) {
		w->error = EPROTO;
		return false;
	}
	size_t len = sizeof h + h.len;
	if (b->len - b->at < len + wire_tag(w))
		return false;
	if (w->seal.tag && !w->seal.believes(&w->seal, frame, len, (const uint8_t *)frame + len)) {
		w->error = EPROTO;
		return false;
	}
	*f = (struct frame){ .type = (enum frame_type)h.type,
			     .data = frame + sizeof h,
			     .len = h.len };
	b->at += len + wire_tag(w);
	return true;
}

bool wire_wait(struct wire *w, struct frame *f)
{
	bool there = true;
	while (!wire_next(w, f)) {
		struct pollfd p[] = { { .fd = w->from, .events = POLLIN },
				      { .fd = w->to, .events = POLLOUT } };
		if (!there)
			return false;
		world_poll(p, wire_backlog(w) ? 2 : 1, -1);
		wire_flush(w);
		there = wire_read(w);
	}
	return true;
}

bool frame_number(const struct frame *f, int32_t *number)
{
	if (f->len != sizeof *number)
		return false;
	memcpy(number, f->data, sizeof *number);
	return true;
}
