/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wires to the hosts of a job. The launcher passes on what one host says and the others need.
 * Nothing here blocks: a signal for the ranks gets through when nobody reads what they write.
 */
#include "tools/run/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/exchange.h"
#include "tools/run/order.h"

enum { INPUT_AT_ONCE = 32 << 10, UNREACHED = 255, NOISE = 60 };

/* -- Beginning -------------------------------------------------------------------------- */

int hosts_begin(struct hosts *h, uint32_t i, pid_t shell, int from, int to,
		const struct run_options *o)
{
	size_t len;
	struct host *host = &h->host[i];
	char *order = order_write(o, i, &len);
	host->shell = shell;
	host->running = true;
	host->asked = clock_ns();
	keepalive_begin(&host->silence, h->keepalive);
	wire_open(&host->wire, from, to);
	if (!order)
		return -ENOMEM;
	wire_send(&host->wire, FRAME_ORDER, order, len);
	free(order);
	return host->wire.error == ENOMEM ? -E2BIG : 0;
}

/* -- Down ------------------------------------------------------------------------------- */

void hosts_signal(struct hosts *h, int signal)
{
	for (uint32_t i = 0; i < h->count; i++)
		wire_send_number(&h->host[i].wire, FRAME_SIGNAL, signal);
}

void hosts_end(struct hosts *h)
{
	for (uint32_t i = 0; i < h->count; i++)
		wire_send(&h->host[i].wire, FRAME_END, NULL, 0);
}

static void hosts_tell_others(struct hosts *h, uint32_t from, const void *record, size_t len)
{
	for (uint32_t i = 0; i < h->count; i++)
		if (i != from)
			wire_send(&h->host[i].wire, FRAME_RANK_STATUS, record, len);
}

/* For rank 0, whose keeper asks for the next piece when it has taken the last one. */
static void hosts_input(struct hosts *h)
{
	char text[INPUT_AT_ONCE];
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	struct host *host = &h->host[0];
	if (!host->wants_input || poll(&p, 1, 0) != 1)
		return;
	ssize_t n = read(STDIN_FILENO, text, sizeof text);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	wire_send(&host->wire, FRAME_INPUT, text, n > 0 ? (size_t)n : 0);
	host->wants_input = false; /* behind the end nothing is wanted */
}

/* Whoever feeds us is to see that rank 0 has gone. */
static void input_close(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	close(null);
}

/* -- Up --------------------------------------------------------------------------------- */

/* Once of each host; when all have said it, or ended, everybody is told. */
static void host_says(struct hosts *h, uint32_t i, bool fabric)
{
	if (h->host[i].said)
		return;
	h->host[i].said = true;
	h->said++;
	h->fabrics += fabric;
	for (uint32_t k = 0; h->said == h->count && k < h->count; k++)
		wire_send_number(&h->host[k].wire, FRAME_FABRIC, h->fabrics == h->count);
}

/*
 * What its ranks had to say last has been said. Those of which nothing was, are lost with it; but
 * in a job that a rank has ended, whoever hears of a dead rank would end before SIGTERM comes.
 */
static void host_close(struct hosts *h, uint32_t i)
{
	struct host *host = &h->host[i];
	struct rank_status b;
	wire_close(&host->wire);
	host->wants_input = false;
	if (i == 0)
		input_close();
	host_says(h, i, false);
	for (uint32_t r = host->first; !h->end && r < host->first + host->ranks; r++) {
		rank_status_lost(&b, r);
		hosts_tell_others(h, i, &b, sizeof b);
	}
}

static uint32_t hosts_ranks(const struct hosts *h)
{
	const struct host *last = &h->host[h->count - 1];
	return last->first + last->ranks;
}

/*
 * A record of one of its own ranks; a host that gets something else takes its launcher for
 * gone.
 */
static bool host_tells(struct hosts *h, uint32_t i, const struct frame *f)
{
	const struct host *host = &h->host[i];
	struct rank_status b;
	struct job_end end;
	if (f->len != sizeof b)
		return false;
	memcpy(&b, f->data, sizeof b);
	if (b.rank < host->first || b.rank >= host->first + host->ranks)
		return false;
	if (!h->end && job_end_decode(b.end, hosts_ranks(h), &end))
		h->end = b.end;
	hosts_tell_others(h, i, &b, sizeof b);
	return true;
}

/* The beginning of the line that nobody but tern-link should have written, as far as it is text. */
static int host_noise(const struct wire *w, const char **text)
{
	const struct buffer *b = &w->in;
	int len = 0;
	*text = b->len ? b->bytes + b->at : "";
	while (len < NOISE && (size_t)len < buffer_backlog(b) &&
	       isprint((unsigned char)(*text)[len]))
		len++;
	return len;
}

static void host_misled(struct hosts *h, struct host *host)
{
	const char *text;
	int len = host_noise(&host->wire, &text);
	host->code = UNREACHED;
	output_say(h->output,
		   "tern run: what host %s wrote is not tern-link's%s%.*s%s: something there, such "
		   "as a start-up file of the shell, writes to standard output; let it do so only "
		   "at a terminal, as in `[ -t 1 ] && echo ...`",
		   host->name, len ? " ('" : "", len, text, len ? "')" : "");
}

static bool host_frame(struct hosts *h, uint32_t i, const struct frame *f)
{
	struct host *host = &h->host[i];
	int32_t number;
	host->begun = true;
	switch (f->type) {
	case FRAME_OUT:
	case FRAME_ERROR:
		output_take(h->output, i, f->type == FRAME_ERROR, f->data, f->len);
		host->held = output_full(h->output);
		return true;
	case FRAME_TAKEN:
		host->wants_input = true;
		return true;
	case FRAME_RANK_STATUS:
		return host_tells(h, i, f);
	case FRAME_FABRIC:
		if (frame_number(f, &number))
			host_says(h, i, number);
		return f->len == sizeof number;
	case FRAME_OVER:
		host->over = frame_number(f, &host->code);
		return host->over;
	default:
		return f->type == FRAME_ALIVE;
	}
}

/* What a shell that has ended wrote is there, and is taken though the output may be full. */
static void host_hear(struct hosts *h, uint32_t i)
{
	struct host *host = &h->host[i];
	struct wire *w = &host->wire;
	struct frame f;
	host->held = host->shell && host->held && output_full(h->output);
	if (host->held)
		return;
	size_t before = buffer_backlog(&w->in);
	bool there = wire_read(w);
	if (buffer_backlog(&w->in) > before)
		keepalive_heard(&host->silence);
	else if (!host->shell)
		there = false; /* somebody else holds its output, or nobody does */
	while (!host->over && !w->error && (!host->held || !host->shell) && wire_next(w, &f))
		if (!host_frame(h, i, &f))
			w->error = EPROTO;
	if (w->error == EPROTO)
		host_misled(h, host);
	if (host->over || w->error || (!there && !host->held))
		host_close(h, i);
}

/* Nothing is heard of a host that is held, so that is no silence. */
static void host_listen(struct hosts *h, uint32_t i)
{
	struct host *host = &h->host[i];
	uint64_t now = clock_ns(), limit = host->silence.limit;
	if (host->held)
		keepalive_heard(&host->silence);
	if (limit && now - host->asked >= limit / 3) {
		wire_send(&host->wire, FRAME_ALIVE, NULL, 0);
		host->asked = now;
	}
	if (!keepalive_expired(&host->silence))
		return;
	host->code = UNREACHED;
	output_say(h->output, "tern run: nothing was heard of host %s for %llu s (TERN_KEEPALIVE)",
		   host->name, (unsigned long long)h->keepalive);
	kill(host->shell, SIGKILL); /* it waits for the same host */
	host_close(h, i);
}

/* -- Serving all ------------------------------------------------------------------------ */

size_t hosts_polls_most(const struct hosts *h)
{
	return 2 * (size_t)h->count + 1;
}

unsigned hosts_polls(const struct hosts *h, struct pollfd *p)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < h->count; i++) {
		const struct host *host = &h->host[i];
		if (host->wire.from >= 0 && !host->held)
			p[n++] = (struct pollfd){ .fd = host->wire.from, .events = POLLIN };
		if (wire_backlog(&host->wire))
			p[n++] = (struct pollfd){ .fd = host->wire.to, .events = POLLOUT };
	}
	if (h->host[0].wants_input)
		p[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return n;
}

int hosts_wait(const struct hosts *h)
{
	for (uint32_t i = 0; i < h->count; i++)
		if (h->host[i].held && !output_full(h->output))
			return 0;
	return h->keepalive ? KEEPALIVE_LOOK_MS : -1;
}

void hosts_serve(struct hosts *h)
{
	for (uint32_t i = 0; i < h->count; i++) {
		struct wire *w = &h->host[i].wire;
		wire_flush(w);
		if (w->from >= 0)
			host_hear(h, i);
		if (w->from >= 0)
			host_listen(h, i);
	}
	hosts_input(h);
}

/* -- Ending ----------------------------------------------------------------------------- */

void hosts_left(struct hosts *h, uint32_t i, int status)
{
	h->host[i].shell = 0;
	h->host[i].shell_status = status;
	while (h->host[i].wire.from >= 0)
		host_hear(h, i);
}

/* How the shell ended, where its keeper has not told how its ranks did. */
static int host_lost(struct hosts *h, uint32_t i)
{
	const struct host *host = &h->host[i];
	int s = host->shell_status, code = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);
	output_take_last(h->output, i);
	output_say(h->output, "tern run: host %s: '%s' ended with status %d %s", host->name,
		   h->shell[0], code,
		   host->begun
			   ? "before the job did: the connection was lost"
			   : "and tern-link did not answer: the host cannot be reached, or has no "
			     "Tern under this path");
	return code ? code : UNREACHED;
}

bool hosts_ended(struct hosts *h, uint32_t i, int *code)
{
	struct host *host = &h->host[i];
	if (!host->running || host->shell || host->wire.from >= 0)
		return false;
	host->running = false;
	*code = host->over || host->code ? host->code : host_lost(h, i);
	return true;
}
