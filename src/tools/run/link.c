/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link is a process so that the keeper can treat a host like a rank: it writes, it ends with
 * a status, it can be killed. Whatever it is killed by, the remote shell's input ends, and the
 * agent at its other end ends everything there.
 *
 * Nothing blocks here but poll(): a signal for the ranks must get through when nobody
 * reads what they write.
 */
#include "tools/run/run.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/setting.h"
#include "boot/link/keepalive.h"
#include "boot/link/wire.h"

enum { INPUT_AT_ONCE = 32 << 10, UNREACHED = 255, NOISE = 60 };

struct link {
	struct wire launcher, agent;
	pid_t shell;
	const char *host;  /* as the command names it */
	struct frame text; /* that our output has not taken yet; lies in the agent's wire */
	bool wanted;       /* the agent has room for input */
	bool begun;        /* it has said something */
	bool over;
	int32_t status;
	uint64_t keepalive; /* s; 0: the agent may be silent for ever */
	uint64_t asked;     /* when it was, ns */
	struct keepalive silence;
	bool silent; /* for too long */
};

static int link_connect(struct link *l, char **command)
{
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		return -errno;
	l->shell = fork();
	if (l->shell < 0)
		return -errno;
	if (l->shell == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execvp(command[0], command);
		fprintf(stderr, "tern run: host %s: cannot start '%s': %s\n", l->host, command[0],
			strerror(errno));
		_exit(UNREACHED);
	}
	close(to[0]);
	close(from[1]);
	wire_open(&l->agent, from[0], to[1]);
	return 0;
}

/* -- From the agent --------------------------------------------------------------------- */

static void link_write(struct link *l)
{
	int fd = l->text.type == FRAME_OUT ? STDOUT_FILENO : STDERR_FILENO;
	while (l->text.len) {
		ssize_t n = write(fd, l->text.data, l->text.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			n = (ssize_t)l->text.len; /* nobody reads it any more: the keeper knows what
						     to do */
		l->text.data += n;
		l->text.len -= (size_t)n;
	}
}

static void link_frame(struct link *l, const struct frame *f)
{
	l->begun = true;
	switch (f->type) {
	case FRAME_OUT:
	case FRAME_ERROR:
		l->text = *f;
		link_write(l);
		break;
	case FRAME_TAKEN:
		l->wanted = true;
		break;
	case FRAME_RANK_STATUS:
	case FRAME_FABRIC:
		wire_send(&l->launcher, f->type, f->data, f->len);
		break;
	case FRAME_ALIVE:
		break;
	case FRAME_OVER:
		l->over = frame_number(f, &l->status);
		break;
	default:
		l->agent.error = EPROTO;
	}
}

/* Stops at a text that cannot be written yet. */
static void link_frames(struct link *l)
{
	struct frame f;
	while (!l->text.len && wire_next(&l->agent, &f))
		link_frame(l, &f);
}

/* -- To the agent ----------------------------------------------------------------------- */

/* False when the launcher is gone. */
static bool link_obey(struct link *l)
{
	struct frame f;
	bool there = wire_read(&l->launcher);
	while (wire_next(&l->launcher, &f))
		wire_send(&l->agent, f.type, f.data, f.len);
	return there;
}

static void link_input(struct link *l)
{
	char text[INPUT_AT_ONCE];
	ssize_t n = read(STDIN_FILENO, text, sizeof text);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	wire_send(&l->agent, FRAME_INPUT, text, n > 0 ? (size_t)n : 0);
	l->wanted = false; /* until it has taken that; behind the end nothing is wanted */
}

/* -- The loop --------------------------------------------------------------------------- */

enum { OBEY, TELL, HEAR, SAY, INPUT, WRITE, POLLS };

static void link_polls(const struct link *l, struct pollfd *p)
{
	int writer = l->text.type == FRAME_OUT ? STDOUT_FILENO : STDERR_FILENO;
	p[OBEY] = (struct pollfd){ .fd = l->launcher.from, .events = POLLIN };
	p[TELL] = (struct pollfd){ .fd = wire_backlog(&l->launcher) ? l->launcher.to : -1,
				   .events = POLLOUT };
	p[HEAR] = (struct pollfd){ .fd = l->text.len ? -1 : l->agent.from, .events = POLLIN };
	p[SAY] = (struct pollfd){ .fd = wire_backlog(&l->agent) ? l->agent.to : -1,
				  .events = POLLOUT };
	p[INPUT] = (struct pollfd){ .fd = l->wanted ? STDIN_FILENO : -1, .events = POLLIN };
	p[WRITE] = (struct pollfd){ .fd = l->text.len ? writer : -1, .events = POLLOUT };
}

/*
 * Nothing can be heard while our own output takes none, so that is no silence. False if there was
 * too much of it.
 */
static bool link_listen(struct link *l, bool heard)
{
	uint64_t now = clock_ns(), limit = l->silence.limit;
	if (heard || l->text.len)
		keepalive_heard(&l->silence);
	if (limit && now - l->asked >= limit / 3) {
		wire_send(&l->agent, FRAME_ALIVE, NULL, 0);
		l->asked = now;
	}
	return !keepalive_expired(&l->silence);
}

static bool link_round(struct link *l)
{
	struct pollfd p[POLLS];
	link_polls(l, p);
	poll(p, POLLS, l->keepalive ? KEEPALIVE_LOOK_MS : -1);
	if (!link_listen(l, p[HEAR].revents)) {
		l->silent = true;
		return false;
	}
	if (p[OBEY].revents && !link_obey(l))
		return false;
	if (p[TELL].revents)
		wire_flush(&l->launcher);
	if (p[SAY].revents)
		wire_flush(&l->agent);
	if (p[INPUT].revents)
		link_input(l);
	if (p[WRITE].revents)
		link_write(l);
	bool there = !p[HEAR].revents || wire_read(&l->agent);
	link_frames(l);
	return (there || l->text.len) && !l->over && l->agent.error != EPROTO;
}

/* The beginning of the line that nobody but an agent should have written, as far as it is text. */
static int link_noise(const struct link *l, const char **text)
{
	const struct buffer *b = &l->agent.in;
	int len = 0;
	*text = b->len ? b->bytes + b->at : "";
	while (len < NOISE && (size_t)len < b->len - b->at && isprint((unsigned char)(*text)[len]))
		len++;
	return len;
}

static int link_misled(const struct link *l)
{
	const char *text;
	int len = link_noise(l, &text);
	fprintf(stderr,
		"tern run: what host %s wrote is not its agent's%s%.*s%s: something there, such "
		"as a start-up file of "
		"the shell, writes to standard output; let it do so only at a terminal, as in `[ "
		"-t 1 ] && echo ...`\n",
		l->host, len ? " ('" : "", len, text, len ? "')" : "");
	return UNREACHED;
}

static int link_status(struct link *l, const char *shell)
{
	int status = 0, misled = l->agent.error == EPROTO && !l->over ? link_misled(l) : 0;
	struct pollfd p = { .fd = l->launcher.to, .events = POLLOUT };
	while (wire_backlog(&l->launcher) &&
	       poll(&p, 1, -1) >= 0) /* what its ranks had to say last */
		wire_flush(&l->launcher);
	wire_close(&l->agent);
	if (l->silent)
		kill(l->shell, SIGKILL); /* it waits for the same host */
	while (waitpid(l->shell, &status, 0) < 0 && errno == EINTR)
		;
	if (l->over)
		return l->status;
	if (misled)
		return misled;
	if (l->silent) {
		fprintf(stderr,
			"tern run: nothing was heard of host %s for %llu s (TERN_KEEPALIVE)\n",
			l->host, (unsigned long long)l->keepalive);
		return UNREACHED;
	}
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	fprintf(stderr, "tern run: host %s: '%s' ended with status %d %s\n", l->host, shell, code,
		l->begun ? "before the job did: the connection was lost"
			 : "and no agent answered: the host cannot be reached, or has no Tern "
			   "under this path");
	return code ? code : UNREACHED;
}

int link_run(int control, char **words)
{
	static struct link l = { .status = 1 }; /* it lives as long as the process */
	char **command = words + 1;
	l.asked = clock_ns();
	l.host = words[0];
	if (setting_number(SETTING_KEEPALIVE, &l.keepalive) != 0)
		l.keepalive = 0; /* the agent, which reads it too, says what is wrong with it */
	keepalive_begin(&l.silence, l.keepalive);
	fcntl(control, F_SETFD, FD_CLOEXEC);
	wire_open(&l.launcher, control, control);
	int rc = link_connect(&l, command);
	if (rc) {
		fprintf(stderr, "tern run: cannot start '%s': %s\n", command[0], strerror(-rc));
		return UNREACHED;
	}
	signal(SIGPIPE, SIG_IGN);
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK); /* pipes of our own, to the keeper */
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (link_round(&l))
		;
	return link_status(&l, command[0]);
}
