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

enum { PAGE = 4096, TEXT_AT_ONCE = 32 << 10 };

static int writer_reopen(int fd)
{
	char path[32];
	struct stat st;
	if (fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || isatty(fd)))
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void writer_open(struct writer *o, int fd, int tag_digits, struct wire *wire)
{
	int own = wire ? wire->to : writer_reopen(fd);
	*o = (struct writer){ .fd = own < 0 ? fd : own,
			      .wire = wire,
			      .type = fd == STDOUT_FILENO ? FRAME_OUT : FRAME_ERROR,
			      .careful = own < 0,
			      .tag_digits = tag_digits,
			      .begun = WRITER_NOBODY };
}

/* What is kept is bounded: whoever puts looks at the backlog before he reads more. */
static void writer_append(struct writer *o, const char *text, size_t len)
{
	if (!o->error && !buffer_reserve(&o->text, len))
		o->error = ENOMEM;
	if (o->error)
		return;
	memcpy(o->text.bytes + o->text.len, text, len);
	o->text.len += len;
}

static void writer_put_tagged(struct writer *o, uint32_t rank, const char *text, size_t len)
{
	char tag[24];
	int width = snprintf(tag, sizeof tag, "[%*u] ", o->tag_digits, rank);
	while (len) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) + 1 : len;
		if (o->begun == WRITER_NOBODY)
			writer_append(o, tag, (size_t)width);
		writer_append(o, text, line);
		o->begun = newline ? WRITER_NOBODY : rank;
		text += line;
		len -= line;
	}
}

/*
 * Takes text of `rank`, as many lines as it has. Another rank's unfinished line is finished
 * first.
 */
static void writer_put(struct writer *o, uint32_t rank, const char *text, size_t len)
{
	if (!len)
		return;
	if (o->begun != WRITER_NOBODY && o->begun != rank) {
		writer_append(o, "\n", 1);
		o->begun = WRITER_NOBODY;
	}
	if (o->tag_digits && rank != WRITER_LAUNCHER) {
		writer_put_tagged(o, rank, text, len);
		return;
	}
	writer_append(o, text, len);
	o->begun = text[len - 1] == '\n' ? WRITER_NOBODY : rank;
}

static size_t writer_backlog(const struct writer *o)
{
	return buffer_backlog(&o->text);
}

/* A frame at a time, so that others that have something to say are not behind much text. */
static ssize_t writer_send(struct writer *o, size_t len)
{
	if (wire_backlog(o->wire)) {
		errno = EAGAIN;
		return -1;
	}
	len = len < TEXT_AT_ONCE ? len : TEXT_AT_ONCE;
	wire_send(o->wire, o->type, o->text.bytes + o->text.at, len);
	return (ssize_t)len;
}

static ssize_t writer_write(struct writer *o)
{
	size_t len = writer_backlog(o);
	struct pollfd room = { .fd = o->fd, .events = POLLOUT };
	if (o->wire)
		return writer_send(o, len);
	if (!o->careful)
		return write(o->fd, o->text.bytes + o->text.at, len);
	if (poll(&room, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(o->fd, o->text.bytes + o->text.at, len < PAGE ? len : PAGE);
}

/* Writes what can be written now; false when something is left. */
static bool writer_flush(struct writer *o)
{
	while (!o->error && writer_backlog(o)) {
		ssize_t n = writer_write(o);
		if (n >= 0)
			o->text.at += (size_t)n;
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			o->error = errno;
	}
	if (o->error)
		o->text.at = o->text.len = 0;
	return true;
}

enum { LINE_LONGEST = 65536, BACKLOG = 65536, BATCH = 64 };

static int channel_open(struct channel *c, int fd, int tag_digits, struct wire *wire)
{
	*c = (struct channel){ .ready = epoll_create1(EPOLL_CLOEXEC) };
	if (c->ready < 0)
		return error_system("watching what the ranks write (epoll_create1)");
	writer_open(&c->writer, fd, tag_digits, wire);
	return 0;
}

static bool same_file(int a, int b)
{
	struct stat p, q;
	return fstat(a, &p) == 0 && fstat(b, &q) == 0 && p.st_dev == q.st_dev &&
	       p.st_ino == q.st_ino;
}

int output_open(struct output *o, uint32_t ranks, uint32_t first, uint32_t tagged,
		struct wire *wire)
{
	int digits = tagged ? snprintf(NULL, 0, "%u", tagged - 1) : 0;
	*o = (struct output){ .ranks = ranks, .first = first, .eager = ranks == 1 };
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
	if (fd >= 0 && epoll_ctl(c->ready, EPOLL_CTL_ADD, fd, &event) != 0)
		return error_system("watching what rank %u writes (epoll_ctl)", rank);
	c->streams++;
	return 0;
}

int output_add(struct output *o, uint32_t rank, int out, int err)
{
	struct stream *s = o->stream + 2 * (size_t)rank;
	int rc = stream_open(s, &o->channel[0], o->first + rank, out);
	if (!rc)
		rc = stream_open(s + 1, &o->channel[o->channels - 1], o->first + rank, err);
	s[0].taken = s[1].taken = out < 0;
	return rc;
}

static void stream_unplug(struct stream *s)
{
	if (s->fd < 0)
		return;
	epoll_ctl(s->channel->ready, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	s->fd = -1;
}

/* What an ended rank wrote last may lack its newline; the writer adds it if it must. */
static void stream_close(struct stream *s)
{
	if (!s->channel)
		return;
	writer_put(&s->channel->writer, s->rank, s->text, s->len);
	s->channel->streams--;
	stream_unplug(s);
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

static bool stream_has_room(struct stream *s)
{
	return s->channel && (s->text || (s->text = malloc(LINE_LONGEST)));
}

/* `fresh` bytes have come behind those that were there. */
static void stream_pass(struct stream *s, size_t fresh, bool eager)
{
	s->len += fresh;
	size_t cut = stream_cut(s, fresh, eager);
	writer_put(&s->channel->writer, s->rank, s->text, cut);
	s->len -= cut;
	memmove(s->text, s->text + cut, s->len);
	if (!s->len) {
		free(s->text); /* of many ranks few are in the middle of a line */
		s->text = NULL;
	}
}

static void stream_read(struct stream *s, bool eager)
{
	if (s->fd < 0 || !stream_has_room(s))
		return;
	ssize_t n = read(s->fd, s->text + s->len, LINE_LONGEST - s->len);
	if (n > 0)
		stream_pass(s, (size_t)n, eager);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		s->taken ? stream_unplug(s) : stream_close(s);
}

/* Nobody reads this writer any more: the ranks find out as they would without us, by SIGPIPE. */
static void output_abandon(struct output *o, struct channel *c)
{
	for (uint32_t i = 0; i < 2 * o->ranks; i++)
		if (o->stream[i].channel == c)
			stream_close(&o->stream[i]);
}

static bool channel_flush(struct output *o, struct channel *c)
{
	bool written = writer_flush(&c->writer);
	if (c->writer.error && c->streams)
		output_abandon(o, c);
	return written;
}

static void channel_serve(struct output *o, struct channel *c)
{
	struct epoll_event event[BATCH];
	if (!channel_flush(o, c))
		return;
	int n = epoll_wait(c->ready, event, BATCH, 0);
	for (int i = 0; i < n; i++) {
		stream_read(event[i].data.ptr, o->eager);
		if (writer_backlog(&c->writer) > BACKLOG && !channel_flush(o, c))
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
		else if (writer_backlog(&c->writer))
			p[i] = (struct pollfd){ .fd = c->writer.fd, .events = POLLOUT };
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
		while (reads-- && s[i].fd >= 0 && writer_backlog(&s[i].channel->writer) <= BACKLOG)
			stream_read(&s[i], o->eager);
	}
}

void output_take(struct output *o, uint32_t rank, bool error, const char *text, size_t len)
{
	struct stream *s = o->stream + 2 * (size_t)rank + error;
	while (len && stream_has_room(s)) {
		size_t n = len < LINE_LONGEST - s->len ? len : LINE_LONGEST - s->len;
		memcpy(s->text + s->len, text, n);
		stream_pass(s, n, o->eager);
		text += n;
		len -= n;
	}
}

bool output_full(const struct output *o)
{
	for (unsigned i = 0; i < o->channels; i++)
		if (writer_backlog(&o->channel[i].writer) > BACKLOG)
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
	writer_put(&c->writer, WRITER_LAUNCHER, line, len + 1);
	channel_flush(o, c);
}

/* True when no stream has anything to read, and none will have. */
static bool output_quiet(const struct output *o)
{
	struct epoll_event event;
	for (unsigned i = 0; i < o->channels; i++)
		if (writer_backlog(&o->channel[i].writer) ||
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
		written &= writer_flush(&o->channel[i].writer);
	return written;
}

int output_error(const struct output *o)
{
	for (unsigned i = 0; i < o->channels; i++)
		if (o->channel[i].writer.error)
			return o->channel[i].writer.error;
	return 0;
}
