/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard output and standard error are shared with whoever started us, so
 * O_NONBLOCK must not be set on them. Pipes and terminals are opened a second
 * time, non-blocking, through /proc. Everything else, or where that is refused,
 * gets a page at a time after poll() has said that there is room: a pipe or a
 * socket that says so takes a page.
 */
#include "tools/run/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int outlet_reopen(int fd)
{
	char path[32];
	struct stat st;
	if (fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || isatty(fd)))
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void outlet_open(struct outlet *o, int fd, int tag_digits)
{
	int own = outlet_reopen(fd);
	*o = (struct outlet){
		.fd = own < 0 ? fd : own, .careful = own < 0, .tag_digits = tag_digits, .begun = OUTLET_NOBODY
	};
}

void outlet_close(struct outlet *o)
{
	if (!o->careful)
		close(o->fd);
	free(o->text);
}

/* What is kept is bounded: whoever puts looks at the backlog before he reads more. */
static bool outlet_reserve(struct outlet *o, size_t more)
{
	if (o->at == o->len)
		o->at = o->len = 0;
	if (o->len + more <= o->room)
		return true;
	size_t room = 2 * o->room > o->len + more ? 2 * o->room : o->len + more;
	char *text = realloc(o->text, room);
	if (!text) {
		o->error = ENOMEM;
		return false;
	}
	o->text = text;
	o->room = room;
	return true;
}

static void outlet_append(struct outlet *o, const char *text, size_t len)
{
	if (o->error || !outlet_reserve(o, len))
		return;
	memcpy(o->text + o->len, text, len);
	o->len += len;
}

static void outlet_put_tagged(struct outlet *o, uint32_t rank, const char *text, size_t len)
{
	char tag[24];
	int width = snprintf(tag, sizeof tag, "[%*u] ", o->tag_digits, rank);
	while (len) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) + 1 : len;
		if (o->begun == OUTLET_NOBODY)
			outlet_append(o, tag, (size_t)width);
		outlet_append(o, text, line);
		o->begun = newline ? OUTLET_NOBODY : rank;
		text += line;
		len -= line;
	}
}

void outlet_put(struct outlet *o, uint32_t rank, const char *text, size_t len)
{
	if (!len)
		return;
	if (o->begun != OUTLET_NOBODY && o->begun != rank) {
		outlet_append(o, "\n", 1);
		o->begun = OUTLET_NOBODY;
	}
	if (o->tag_digits && rank != OUTLET_LAUNCHER) {
		outlet_put_tagged(o, rank, text, len);
		return;
	}
	outlet_append(o, text, len);
	o->begun = text[len - 1] == '\n' ? OUTLET_NOBODY : rank;
}

static ssize_t outlet_write(struct outlet *o)
{
	size_t len = outlet_backlog(o);
	struct pollfd room = { .fd = o->fd, .events = POLLOUT };
	if (!o->careful)
		return write(o->fd, o->text + o->at, len);
	if (poll(&room, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(o->fd, o->text + o->at, len < PAGE ? len : PAGE);
}

bool outlet_flush(struct outlet *o)
{
	while (!o->error && outlet_backlog(o)) {
		ssize_t n = outlet_write(o);
		if (n >= 0)
			o->at += (size_t)n;
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			o->error = errno;
	}
	if (o->error)
		o->at = o->len = 0;
	return true;
}
