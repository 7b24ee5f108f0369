/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/run_hosts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "boot/bulletin.h"
#include "tools/run_order.h"

/* -- The list --------------------------------------------------------------------------- */

/* Cuts a copy of `text` at `between` into words; how many there are. The first one is the copy's memory. */
static uint32_t split(const char *text, const char *between, char ***words)
{
	uint32_t n = 0;
	char *copy = strdup(text);
	*words = copy ? calloc(strlen(text) + 2, sizeof **words) : NULL;
	for (char *word; *words && (word = strsep(&copy, between));)
		(*words)[n++] = word;
	return n;
}

/* A name that begins like an option would be one to the remote shell. */
static int host_check(const struct hosts *h, uint32_t i)
{
	const char *name = h->host[i].name;
	if (!*name || *name == '-' || strpbrk(name, " \t\n"))
		return error_set(-EINVAL,
				 "--hosts: '%s' is no host; the names follow each other with commas between, "
				 "as in --hosts a,b,c",
				 name);
	for (uint32_t before = 0; before < i; before++)
		if (strcmp(name, h->host[before].name) == 0)
			return error_set(-EINVAL, "--hosts: %s is named twice", name);
	return 0;
}

static void hosts_divide(struct hosts *h, uint32_t ranks)
{
	if (h->count > ranks)
		h->count = ranks;
	for (uint32_t i = 0; i < h->count; i++) {
		h->host[i].first = hosts_first(ranks, i, h->count);
		h->host[i].ranks = hosts_first(ranks, i + 1, h->count) - h->host[i].first;
	}
}

/* For the shell of the other host, which takes its command apart: in quotes, whatever is in it. */
static char *quoted(const char *text)
{
	size_t quotes = 0;
	for (const char *c = text; *c; c++)
		quotes += *c == '\'';
	char *copy = malloc(strlen(text) + 3 * quotes + 3), *to = copy;
	if (!copy)
		return NULL;
	*to++ = '\'';
	for (const char *c = text; *c; c++) {
		if (*c == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *c;
	}
	strcpy(to, "'");
	return copy;
}

static int hosts_read(struct hosts *h, const char *list)
{
	char **names;
	h->count = split(list, ",", &names);
	h->host = names ? calloc(h->count, sizeof *h->host) : NULL;
	for (uint32_t i = 0; h->host && i < h->count; i++)
		h->host[i] = (struct host){ .name = names[i], .wire = { .from = -1, .to = -1 } };
	free(names);
	if (!h->host)
		return error_set(-ENOMEM, "--hosts: no memory");
	for (uint32_t i = 0; i < h->count; i++) {
		int rc = host_check(h, i);
		if (rc)
			return rc;
	}
	return 0;
}

static char *self_path(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path);
	return len < 0 ? NULL : strndup(path, (size_t)len);
}

/* The same on all hosts; the key goes to the agents through their input and nowhere else. */
static int job_name(struct run_options *o)
{
	if (getrandom(&o->id, sizeof o->id, 0) == sizeof o->id &&
	    getrandom(o->key, sizeof o->key, 0) == sizeof o->key)
		return 0;
	return error_set(-ENOTSUP, "the kernel has no random bytes for the key of a job");
}

/* Without a word of its own the host's name would be taken for the command. */
static int shell_check(const struct hosts *h)
{
	for (uint32_t w = 0; w < h->shell_words; w++)
		if (*h->shell[w])
			return 0;
	return error_set(-EINVAL, "--ssh: the command that reaches a host is empty; it is a command such as "
				  "'ssh -p 2222', and ssh if neither --ssh nor TERN_SSH is given");
}

int hosts_open(struct hosts *h, struct run_options *o)
{
	*h = (struct hosts){ .ready = epoll_create1(EPOLL_CLOEXEC), .self = self_path() };
	h->quoted = h->self ? quoted(h->self) : NULL;
	h->shell_words = split(o->shell, " ", &h->shell);
	int rc = hosts_read(h, o->hosts);
	if (!rc && (h->ready < 0 || !h->quoted || !h->shell))
		rc = error_set(-ENOMEM, "--hosts: no memory, or no /proc");
	if (!rc)
		rc = shell_check(h);
	if (!rc)
		rc = job_name(o);
	if (rc)
		return rc;
	hosts_divide(h, o->total);
	o->host_count = h->count;
	return 0;
}

void hosts_close(struct hosts *h)
{
	for (uint32_t i = 0; h->host && i < h->count; i++)
		wire_close(&h->host[i].wire);
	close(h->ready);
	if (h->host)
		free(h->host[0].name);
	if (h->shell)
		free(h->shell[0]);
	free(h->host);
	free(h->shell);
	free(h->self);
	free(h->quoted);
}

/* -- Links ------------------------------------------------------------------------------ */

char **hosts_command(const struct hosts *h, uint32_t i, int control)
{
	static char run[] = "run", link[] = "--link", end[] = "--", agent[] = "--agent", number[16];
	char *const before[] = { h->self, run, link, number, end, h->host[i].name };
	char *const behind[] = { h->host[i].name, h->quoted, run, agent };
	char **words = calloc(h->shell_words + 11, sizeof *words), **next = words;
	if (!words)
		return NULL;
	snprintf(number, sizeof number, "%d", control);
	for (size_t w = 0; w < sizeof before / sizeof *before; w++)
		*next++ = before[w];
	for (uint32_t w = 0; w < h->shell_words; w++)
		if (*h->shell[w])
			*next++ = h->shell[w];
	for (size_t w = 0; w < sizeof behind / sizeof *behind; w++)
		*next++ = behind[w];
	return words;
}

/* Level-triggered: for writing only while something is to be written. */
static void host_arm(struct hosts *h, uint32_t i, int how)
{
	struct wire *w = &h->host[i].wire;
	struct epoll_event e = { .events = EPOLLIN | (wire_backlog(w) ? EPOLLOUT : 0), .data.u32 = i };
	epoll_ctl(h->ready, how, w->from, &e);
}

int hosts_begin(struct hosts *h, uint32_t i, int fd, const struct run_options *o)
{
	size_t len;
	struct host *host = &h->host[i];
	char *order = order_write(o, i, &len);
	if (!order)
		return -ENOMEM;
	wire_open(&host->wire, fd, fd);
	wire_send(&host->wire, FRAME_ORDER, order, len);
	host_arm(h, i, EPOLL_CTL_ADD);
	free(order);
	return host->wire.error == ENOMEM ? error_set(-E2BIG, "the program's words are too many to send") : 0;
}

void hosts_signal(struct hosts *h, int signal)
{
	for (uint32_t i = 0; i < h->count; i++)
		if (h->host[i].wire.to >= 0) {
			wire_send_number(&h->host[i].wire, FRAME_SIGNAL, signal);
			host_arm(h, i, EPOLL_CTL_MOD);
		}
}

static void hosts_tell_others(struct hosts *h, uint32_t from, const void *bulletin, size_t len)
{
	for (uint32_t i = 0; i < h->count; i++)
		if (i != from && h->host[i].wire.to >= 0) {
			wire_send(&h->host[i].wire, FRAME_BULLETIN, bulletin, len);
			host_arm(h, i, EPOLL_CTL_MOD);
		}
}

/* Once of each host; when all have said it, or ended, everybody is told. */
static void host_says(struct hosts *h, uint32_t i, bool fabric)
{
	if (h->host[i].said)
		return;
	h->host[i].said = true;
	h->said++;
	h->fabrics += fabric;
	for (uint32_t k = 0; h->said == h->count && k < h->count; k++)
		if (h->host[k].wire.to >= 0) {
			wire_send_number(&h->host[k].wire, FRAME_FABRIC, h->fabrics == h->count);
			host_arm(h, k, EPOLL_CTL_MOD);
		}
}

/* What its ranks had to say last has been said. Those of which nothing was, are lost with it. */
static void host_close(struct hosts *h, uint32_t i)
{
	const struct host *host = &h->host[i];
	struct bulletin b;
	epoll_ctl(h->ready, EPOLL_CTL_DEL, host->wire.from, NULL);
	wire_close(&h->host[i].wire);
	host_says(h, i, false);
	for (uint32_t r = host->first; r < host->first + host->ranks; r++) {
		bulletin_lost(&b, r);
		hosts_tell_others(h, i, &b, sizeof b);
	}
}

/* A record of one of its own ranks; an agent that gets something else takes its launcher for gone. */
static bool host_tells(struct hosts *h, uint32_t i, const struct frame *f)
{
	const struct host *host = &h->host[i];
	struct bulletin b;
	if (f->len != sizeof b)
		return false;
	memcpy(&b, f->data, sizeof b);
	if (b.rank < host->first || b.rank >= host->first + host->ranks)
		return false;
	hosts_tell_others(h, i, &b, sizeof b);
	return true;
}

static void host_serve(struct hosts *h, uint32_t i)
{
	struct wire *w = &h->host[i].wire;
	struct frame f;
	int32_t number;
	wire_flush(w);
	bool there = wire_read(w);
	while (!w->error && wire_next(w, &f))
		if (f.type == FRAME_FABRIC && frame_number(&f, &number))
			host_says(h, i, number);
		else if (f.type != FRAME_BULLETIN || !host_tells(h, i, &f))
			w->error = EPROTO;
	if (there && !w->error)
		host_arm(h, i, EPOLL_CTL_MOD);
	else
		host_close(h, i); /* the link has ended, or will: its exit status says how */
}

void hosts_serve(struct hosts *h)
{
	struct epoll_event e[16];
	int n = epoll_wait(h->ready, e, 16, 0);
	for (int i = 0; i < n; i++)
		if (h->host[e[i].data.u32].wire.from >= 0)
			host_serve(h, e[i].data.u32);
}
