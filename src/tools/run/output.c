/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the ranks' pipes to the launcher's own two outputs, a line at a time.
 *
 * Standard output and standard error are shared with whoever started us, so
 * O_NONBLOCK must not be set on them. Pipes and terminals are opened a second
 * time, non-blocking, through /proc. Everything else, or where that is refused,
 * gets a page at a time after poll() has said that there is room: a pipe or a
 * socket that says so takes a page.
 */
#include "tools/run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { LINE_LONGEST = 65536, TAG_MOST = 24, BACKLOG = 65536, BATCH = 64, PAGE = 4096 };

static int standard_reopen(int fd)
{
	char path[32];
	struct stat st;
	if (fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || isatty(fd)))
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int channel_open(struct channel *c, int fd, int tag_digits, struct wire *wire)
{
	int own = wire ? wire->to : standard_reopen(fd);
	*c = (struct channel){ .fd = own < 0 ? fd : own,
			       .ready = epoll_create1(EPOLL_CLOEXEC),
			       .wire = wire,
			       .type = fd == STDOUT_FILENO ? FRAME_OUT : FRAME_ERROR,
			       .careful = own < 0,
			       .tag_digits = tag_digits,
			       .begun = WRITER_NOBODY };
	return c->ready < 0 ? error_system("watching what the ranks write (epoll_create1)") : 0;
}

/* What is kept is bounded: whoever puts looks at the backlog before he reads more. */
static void channel_append(struct channel *c, const char *text, size_t len)
{
	if (!c->error && !buffer_reserve(&c->text, len))
		c->error = ENOMEM;
	if (c->error)
		return;
	memcpy(c->text.bytes + c->text.len, text, len);
	c->text.len += len;
}

static void channel_put_tagged(struct channel *c, uint32_t rank, const char *text, size_t len)
{
	char tag[TAG_MOST];
	int width = snprintf(tag, sizeof tag, "[%*u] ", c->tag_digits, rank);
	while (len) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) + 1 : len;
		if (c->begun == WRITER_NOBODY)
			channel_append(c, tag, (size_t)width);
		channel_append(c, text, line);
		c->begun = newline ? WRITER_NOBODY : rank;
		text += line;
		len -= line;
	}
}

/*
 * Takes text of `rank`, as many lines as it has. Another rank's unfinished line is finished
 * first.
 */
static void channel_put(struct channel *c, uint32_t rank, const char *text, size_t len)
{
	if (!len)
		return;
	if (c->begun != WRITER_NOBODY && c->begun != rank) {
		channel_append(c, "\n", 1);
		c->begun = WRITER_NOBODY;
	}
	if (c->tag_digits && rank != WRITER_LAUNCHER) {
		channel_put_tagged(c, rank, text, len);
		return;
	}
	channel_append(c, text, len);
	c->begun = text[len - 1] == '\n' ? WRITER_NOBODY : rank;
}

static size_t channel_backlog(const struct channel *c)
{
	return buffer_backlog(&c->text);
}

/*
 * A frame at a time, so that others that have something to say are not behind much text. It ends
 * where a line does, unless that is longer than lines are kept whole.
 */
static ssize_t channel_send(struct channel *c, size_t len)
{
	const char *text = c->text.bytes + c->text.at;
	if (wire_backlog(c->wire)) {
		errno = EAGAIN;
		return -1;
	}
	if (len > LINE_LONGEST + TAG_MOST) {
		const char *newline = memrchr(text, '\n', LINE_LONGEST + TAG_MOST);
		len = newline ? (size_t)(newline - text) + 1 : LINE_LONGEST;
	}
	wire_send(c->wire, c->type, text, len);
	return (ssize_t)len;
}

static ssize_t channel_write(struct channel *c)
{
	size_t len = channel_backlog(c);
	struct pollfd room = { .fd = c->fd, .events = POLLOUT };
	if (c->wire)
		return channel_send(c, len);
	if (!c->careful)
		return write(c->fd, c->text.bytes + c->text.at, len);
	if (poll(&room, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(c->fd, c->text.bytes + c->text.at, len < PAGE ? len : PAGE);
}

static bool same_file(int a, int b)
{
	struct stat p, q;
	return fstat(a, &p) == 0 && fstat(b, &q) == 0 && p.st_dev == q.st_dev &&
	       p.st_ino == q.st_ino;
}

int output_open(struct output *o, uint32_t ranks, uint32_t first, uint32_t total, bool tagged,
		struct wire *wire)
{
	int digits = tagged ? snprintf(NULL, 0, "%u", total - 1) : 0;
	*o = (struct output){ .ranks = ranks, .first = first, .eager = total == 1 };
	o->stream = calloc(2 * (size_t)ranks, sizeof *o->stream);
	if (!o->stream)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2 * ranks; i++)
		o->stream[i].fd = -1;
	o->channels = !wire && same_file(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
	int rc = channel_open(&o->channel[0], STDOUT_FILENO, digits, wire);
	if (!rc && o->channels == 2)
		rc = channel_open(&o->channel[1], STDERR_FILENO, digits, wire);
	return rc;
}

static int stream_open(struct stream *s, struct channel *c, uint32_t rank, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
	*s = (struct stream){ .fd = fd, .rank = rank, .channel = c };
	if (epoll_ctl(c->ready, EPOLL_CTL_ADD, fd, &event) != 0)
		return error_system("watching what rank %u writes (epoll_ctl)", rank);
	c->streams++;
	return 0;
}

int output_add(struct output *o, uint32_t rank, int out, int err)
{
	struct stream *s = o->stream + 2 * (size_t)rank;
	int rc = out < 0 ? 0 : stream_open(s, &o->channel[0], o->first + rank, out);
	return rc ? rc : stream_open(s + 1, &o->channel[o->channels - 1], o->first + rank, err);
}

/* What an ended rank wrote last may lack its newline; the writer adds it if it must. */
static void stream_close(struct stream *s)
{
	if (!s->channel)
		return;
	channel_put(s->channel, s->rank, s->text, s->len);
	s->channel->streams--;
	epoll_ctl(s->channel->ready, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	free(s->text);
	*s = (struct stream){ .fd = -1, .rank = s->rank };
}

/* How much of the text may go out: whole lines, or a line too long to keep. */
static size_t stream_cut(const struct stream *s, size_t fresh, bool eager)
{
	if (eager)
		return s->len;
	const char *newline = memrchr(s->text + s->len - fresh, '\n', fresh);
	if (newline)
		return (size_t)(newline - s->text) + 1;
	return s->len == LINE_LONGEST ? s->len : 0;
}

/* `fresh` bytes have come behind those that were there. */
static void stream_pass(struct stream *s, size_t fresh, bool eager)
{
	s->len += fresh;
	size_t cut = stream_cut(s, fresh, eager);
	channel_put(s->channel, s->rank, s->text, cut);
	s->len -= cut;
	memmove(s->text, s->text + cut, s->len);
	if (!s->len) {
		free(s->text); /* of many ranks few are in the middle of a line */
		s->text = NULL;
	}
}

static void stream_read(struct stream *s, bool eager)
{
	if (s->fd < 0 || (!s->text && !(s->text = malloc(LINE_LONGEST))))
		return;
	ssize_t n = read(s->fd, s->text + s->len, LINE_LONGEST - s->len);
	if (n > 0)
		stream_pass(s, (size_t)n, eager);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		stream_close(s);
}

/* Nobody reads this writer any more: the ranks find out as they would without us, by SIGPIPE. */
static void output_abandon(struct output *o, struct channel *c)
{
	for (uint32_t i = 0; i < 2 * o->ranks; i++)
		if (o->stream[i].channel == c)
			stream_close(&o->stream[i]);
}

/* Writes what can be written now; false when something is left. */
static bool channel_flush(struct output *o, struct channel *c)
{
	while (!c->error && channel_backlog(c)) {
		ssize_t n = channel_write(c);
		if (n >= 0)
			c->text.at += (size_t)n;
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			c->error = errno;
	}
	if (!c->error)
		return true;
	c->text.at = c->text.len = 0;
	if (c->streams)
		output_abandon(o, c);
	return true;
}

static void channel_serve(struct output *o, struct channel *c)
{
	struct epoll_event event[BATCH];
	if (!channel_flush(o, c))
		return;
	int n = epoll_wait(c->ready, event, BATCH, 0);
	for (int i = 0; i < n; i++) {
		stream_read(event[i].data.ptr, o->eager);
		if (channel_backlog(c) > BACKLOG && !channel_flush(o, c))
			return;
	}
	channel_flush(o, c);
}

void output_serve(struct output *o)
{
	for (unsigned i = 0; i < o->channels; i++)
		channel_serve(o, &o->channel[i]);
}

void output_polls(const struct output *o, struct pollfd *p)
{
	for (unsigned i = 0; i < OUTPUT_POLLS; i++) {
		const struct channel *c = &o->channel[i];
		if (i >= o->channels)
			p[i] = (struct pollfd){ .fd = -1 };
		else if (channel_backlog(c))
			p[i] = (struct pollfd){ .fd = c->fd, .events = POLLOUT };
		else
			p[i] = (struct pollfd){ .fd = c->ready, .events = POLLIN };
	}
}

void output_take_last(struct output *o, uint32_t rank)
{
	struct stream *s = o->stream + 2 * (size_t)rank;
	for (int i = 0; i < 2; i++) {
		/*
		 * A full pipe takes a read or two; a child of the rank may go on writing for
		 * ever.
		 */
		int reads = 4;
		while (reads-- && s[i].fd >= 0 && channel_backlog(s[i].channel) <= BACKLOG)
			stream_read(&s[i], o->eager);
	}
}

void output_take(struct output *o, uint32_t rank, bool error, const char *text, size_t len)
{
	channel_put(&o->channel[error ? o->channels - 1 : 0], rank, text, len);
}

bool output_full(const struct output *o)
{
	for (unsigned i = 0; i < o->channels; i++)
		if (channel_backlog(&o->channel[i]) > BACKLOG)
			return true;
	return false;
}

void output_say(struct output *o, const char *format, ...)
{
	char line[1024];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	size_t len = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
	line[len] = '\n';
	struct channel *c = &o->channel[o->channels - 1];
	channel_put(c, WRITER_LAUNCHER, line, len + 1);
	channel_flush(o, c);
}

/* True when no stream has anything to read, and none will have. */
static bool output_quiet(const struct output *o)
{
	struct epoll_event event;
	for (unsigned i = 0; i < o->channels; i++)
		if (channel_backlog(&o->channel[i]) ||
		    epoll_wait(o->channel[i].ready, &event, 1, 0) > 0)
			return false;
	return true;
}

bool output_finished(struct output *o)
{
	if (!output_quiet(o))
		return false;
	for (uint32_t i = 0; i < 2 * o->ranks; i++)
		stream_close(&o->stream[i]);
	bool written = true;
	for (unsigned i = 0; i < o->channels; i++)
		written &= channel_flush(o, &o->channel[i]);
	return written;
}

int output_error(const struct output *o)
{
	for (unsigned i = 0; i < o->channels; i++)
		if (o->channel[i].error)
			return o->channel[i].error;
	return 0;
}
