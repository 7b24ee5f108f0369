/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a pair of descriptors that do not block. */
#include "tools/run/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the byte order of the machine: both ends are the same build, which the order checks first. */
struct head {
	uint32_t type, len;
};

enum { READ_AT_ONCE = 64 << 10 };

void wire_open(struct wire *w, int from, int to)
{
	*w = (struct wire){ .from = from, .to = to };
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
	*w = (struct wire){ .from = -1, .to = -1 };
}

void wire_send(struct wire *w, enum frame_type type, const void *data, size_t len)
{
	struct head h = { .type = type, .len = (uint32_t)len };
	struct buffer *b = &w->out;
	if (w->error || w->deaf || w->to < 0)
		return;
	if (len > FRAME_MOST || !buffer_reserve(b, sizeof h + len)) {
		w->error = ENOMEM;
		return;
	}
	memcpy(b->bytes + b->len, &h, sizeof h);
	if (len)
		memcpy(b->bytes + b->len + sizeof h, data, len);
	b->len += sizeof h + len;
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

void wire_flush(struct wire *w)
{
	struct buffer *b = &w->out;
	while (!w->error && !w->deaf && b->at < b->len) {
		ssize_t n = write(w->to, b->bytes + b->at, b->len - b->at);
		if (n >= 0)
			b->at += (size_t)n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			w->deaf = true;
	}
}

bool wire_read(struct wire *w)
{
	struct buffer *b = &w->in;
	if (w->error || !buffer_reserve(b, READ_AT_ONCE))
		return false;
	ssize_t n = read(w->from, b->bytes + b->len, READ_AT_ONCE);
	if (n > 0)
		b->len += (size_t)n;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

bool wire_next(struct wire *w, struct frame *f)
{
	struct buffer *b = &w->in;
	struct head h;
	if (w->error || b->len - b->at < sizeof h)
		return false;
	memcpy(&h, b->bytes + b->at, sizeof h);
	if (h.type >= FRAME_TYPES || h.len > FRAME_MOST) {
		w->error = EPROTO;
		return false;
	}
	if (b->len - b->at < sizeof h + h.len)
		return false;
	*f = (struct frame){ .type = (enum frame_type)h.type,
			     .data = b->bytes + b->at + sizeof h,
			     .len = h.len };
	b->at += sizeof h + h.len;
	return true;
}

bool frame_number(const struct frame *f, int32_t *number)
{
	if (f->len != sizeof *number)
		return false;
	memcpy(number, f->data, sizeof *number);
	return true;
}
