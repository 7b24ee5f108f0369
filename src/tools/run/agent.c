/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agent is a front whose terminal is a wire: signals, and the input of rank 0, come in
 * frames, and what the ranks write goes out in frames. The keeper below it does not know the
 * difference.
 *
 * When the wire ends, the launcher or the connection is gone, and everything here is ended
 * at once; if the agent itself is killed, its keeper does that.
 *
 * The agent makes the job's memory on its host, and carries status records in and out.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "boot/link/keepalive.h"
#include "boot/link/wire.h"
#include "job/exchange.h"
#include "open/nets.h"
#include "tools/run/order.h"
#include "tools/run/run.h"

/* -- The job's memory here --------------------------------------------------------------- */

struct status_relay {
	struct job job;
	uint32_t first, ranks; /* that are here */
	int fd;                /* readable when there may be news of them */
	uint64_t *told;        /* the serial of what the others have heard, one for each of those */
};

static int job_open(struct status_relay *h, const struct run_options *o)
{
	uint64_t budget;
	uint32_t *machine = calloc(o->total, sizeof *machine);
	int rc = machine ? setting_number(SETTING_MEMORY, &budget) : -ENOMEM;
	if (!rc)
		rc = job_create(&h->job, o->total, budget);
	if (!rc) {
		for (uint32_t i = 0, r = 0; i < o->host_count; i++)
			for (uint32_t n = 0; n < o->share[i]; n++)
				machine[r++] = i;
		job_spread(&h->job, machine, o->host, o->host_count);
		job_identify(&h->job, o->id, o->key);
	}
	free(machine);
	return rc;
}

static int status_relay_open(struct status_relay *h, struct run_options *o)
{
	uint16_t port = 0;
	*h = (struct status_relay){ .first = o->first, .ranks = o->ranks };
	h->told = calloc(o->ranks, sizeof *h->told);
	h->fd = loopback_listen(&port);
	if (!h->told || h->fd < 0)
		return error_set(h->told ? h->fd : -ENOMEM,
				 "listening for news of the ranks here: %s",
				 strerror(h->told ? -h->fd : ENOMEM));
	int rc = job_open(h, o);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < h->ranks; i++) {
		h->told[i] = atomic_load(&h->job.rank[h->first + i].serial);
		atomic_store(&h->job.rank[h->first + i].notice, port);
	}
	o->job_fd = h->job.fd;
	return 0;
}

static void status_relay_tell(struct status_relay *h, struct wire *w)
{
	struct rank_status b;
	loopback_drain(h->fd);
	for (uint32_t i = 0; i < h->ranks; i++) {
		if (atomic_load(&h->job.rank[h->first + i].serial) == h->told[i])
			continue;
		rank_status_read(&h->job, h->first + i, &b);
		wire_send(w, FRAME_RANK_STATUS, &b, sizeof b);
		h->told[i] = b.serial;
	}
}

static bool status_relay_hear(struct status_relay *h, const struct frame *f)
{
	struct rank_status b;
	if (f->len != sizeof b)
		return false;
	memcpy(&b, f->data, sizeof b);
	return rank_status_take(&h->job, &b) != RANK_STATUS_NONSENSE;
}

enum { TEXT_AT_ONCE = 32 << 10 };

/* -- The agent -------------------------------------------------------------------------- */

struct agent {
	struct wire wire;
	pid_t keeper;
	int status;            /* of the keeper, when it has ended */
	int deaths;            /* signalfd */
	int input, out, err;   /* our ends of its pipes; -1 when closed */
	struct buffer pending; /* input that rank 0 has not taken yet */
	struct status_relay relay;
	struct keepalive silence; /* of the launcher */
	char *order;
};

/* -- Beginning -------------------------------------------------------------------------- */

static int order_missing(void)
{
	return error_set(
		-EPROTO,
		"what comes in is no launcher's order: agents are started by `tern run --hosts`, "
		"and "
		"their input is its own");
}

static int agent_wait_order(struct agent *a, struct run_options *o)
{
	struct frame f;
	struct pollfd p = { .fd = a->wire.from, .events = POLLIN };
	while (!wire_next(&a->wire, &f)) {
		poll(&p, 1, -1);
		bool there = wire_read(&a->wire);
		if (a->wire.error)
			return order_missing();
		if (!there)
			return error_set(-EPROTO,
					 "the launcher has gone before it said what to start");
	}
	if (f.type != FRAME_ORDER)
		return order_missing();
	a->order = malloc(f.len);
	if (!a->order)
		return error_set(-ENOMEM, "reading the launcher's order: no memory");
	memcpy(a->order, f.data, f.len);
	return order_read(o, a->order, f.len);
}

/* What the keeper inherits as its three descriptors. */
static int agent_pipes(struct agent *a)
{
	int in[2], out[2], err[2];
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		return error_system("making pipes for the ranks of this host");
	dup2(in[0], STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	dup2(err[1], STDERR_FILENO);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	a->input = in[1];
	a->out = out[0];
	a->err = err[0];
	return 0;
}

/*
 * Afterwards only the keeper has them, so they end with it. What we say ourselves goes where it
 * did.
 */
static void agent_forget_pipes(int err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(null);
	close(err);
}

static int agent_start(struct agent *a, struct run_options *o, int argc, char **argv)
{
	struct front front;
	sigset_t heard, death;
	int err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int rc = agent_pipes(a);
	if (rc)
		return rc;
	const int own[] = { a->wire.from, a->wire.to, a->input, a->out, a->err };
	front_open(&front, &heard);
	memcpy(front.own, own, sizeof own);
	front.owns = 5;
	a->keeper = front_start(o, &front, argc, argv);
	agent_forget_pipes(err);
	signal(SIGPIPE, SIG_IGN); /* not before: ranks would inherit it */
	sigemptyset(&death);
	sigaddset(&death, SIGCHLD);
	a->deaths = signalfd(-1, &death, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a->deaths < 0)
		return error_system("listening to signals (signalfd)");
	return a->keeper < 0 ? error_set(a->keeper, "starting the ranks of this host: %s",
					 strerror(-a->keeper))
			     : 0;
}

/* -- What comes in ---------------------------------------------------------------------- */

static void input_close(struct agent *a)
{
	if (a->input >= 0)
		close(a->input);
	a->input = -1;
}

/* The launcher sends the next piece when this one is taken, so signals never wait behind input. */
static void input_write(struct agent *a)
{
	struct buffer *b = &a->pending;
	while (a->input >= 0 && b->at < b->len) {
		ssize_t n = write(a->input, b->bytes + b->at, b->len - b->at);
		if (n > 0)
			b->at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n < 0 && errno != EINTR)
			input_close(a); /* rank 0 reads no more */
	}
	if (a->input >= 0 && b->len) {
		b->at = b->len = 0;
		wire_send(&a->wire, FRAME_TAKEN, NULL, 0);
	}
}

static void agent_input(struct agent *a, const struct frame *f)
{
	if (!f->len || a->input < 0) {
		input_close(a);
		return;
	}
	free(a->pending.bytes);
	a->pending = (struct buffer){ .bytes = malloc(f->len), .len = f->len, .room = f->len };
	if (!a->pending.bytes) {
		a->wire.error = ENOMEM;
		return;
	}
	memcpy(a->pending.bytes, f->data, f->len);
	input_write(a);
}

static void agent_frame(struct agent *a, const struct frame *f)
{
	int32_t number;
	if (f->type == FRAME_INPUT)
		agent_input(a, f);
	else if (f->type == FRAME_ALIVE)
		wire_send(&a->wire, FRAME_ALIVE, NULL, 0);
	else if (f->type == FRAME_RANK_STATUS && status_relay_hear(&a->relay, f))
		;
	else if (f->type == FRAME_FABRIC && frame_number(f, &number))
		job_fabric_agreed(&a->relay.job, number);
	else if (f->type == FRAME_SIGNAL && frame_number(f, &number) && number > 0 &&
		 number < SIGRTMIN)
		sigqueue(a->keeper, number, (union sigval){ .sival_int = 0 });
	else if (f->type == FRAME_END)
		kill(a->keeper, KEEPER_END);
	else
		a->wire.error = EPROTO;
}

/* False when the launcher is gone. */
static bool agent_listen(struct agent *a)
{
	struct frame f;
	bool there = wire_read(&a->wire);
	keepalive_heard(&a->silence);
	while (wire_next(&a->wire, &f))
		agent_frame(a, &f);
	return there && !a->wire.error;
}

/* -- What goes out ---------------------------------------------------------------------- */

static void agent_text(struct agent *a, int *fd, enum frame_type type)
{
	char text[TEXT_AT_ONCE];
	ssize_t n = read(*fd, text, sizeof text);
	if (n > 0)
		wire_send(&a->wire, type, text, (size_t)n);
	if (n > 0 || (n < 0 && errno == EINTR))
		return;
	close(*fd);
	*fd = -1;
}

/* -- The loop --------------------------------------------------------------------------- */

enum { LISTEN, SEND, DEATH, OUT, ERR, INPUT, NEWS, POLLS };

static void agent_polls(const struct agent *a, struct pollfd *p)
{
	bool room = !wire_backlog(&a->wire);
	p[LISTEN] = (struct pollfd){ .fd = a->wire.from, .events = POLLIN };
	p[SEND] = (struct pollfd){ .fd = room ? -1 : a->wire.to, .events = POLLOUT };
	p[DEATH] = (struct pollfd){ .fd = a->deaths, .events = POLLIN };
	p[OUT] = (struct pollfd){ .fd = room ? a->out : -1, .events = POLLIN };
	p[ERR] = (struct pollfd){ .fd = room ? a->err : -1, .events = POLLIN };
	p[INPUT] = (struct pollfd){ .fd = a->pending.len ? a->input : -1, .events = POLLOUT };
	p[NEWS] = (struct pollfd){ .fd = a->relay.fd, .events = POLLIN };
}

static bool agent_reap(struct agent *a)
{
	struct signalfd_siginfo info;
	while (read(a->deaths, &info, sizeof info) == sizeof info)
		;
	return front_reap(a->keeper, &a->status);
}

/* One round. True while there is something to wait for: the keeper, and what was written. */
static bool agent_round(struct agent *a, bool *keeper_runs, bool *abandoned)
{
	struct pollfd p[POLLS];
	agent_polls(a, p);
	if (*abandoned)
		p[LISTEN].fd = p[SEND].fd = p[OUT].fd = p[ERR].fd = p[INPUT].fd = p[NEWS].fd = -1;
	poll(p, POLLS, *abandoned ? -1 : KEEPALIVE_LOOK_MS);
	if (p[DEATH].revents && *keeper_runs && agent_reap(a))
		*keeper_runs = false;
	bool there = !p[LISTEN].revents || agent_listen(a);
	if (!*abandoned && (!there || keepalive_expired(&a->silence))) {
		*abandoned = true;
		kill(a->keeper, KEEPER_ALONE);
	}
	if (p[SEND].revents)
		wire_flush(&a->wire);
	if (p[OUT].revents)
		agent_text(a, &a->out, FRAME_OUT);
	if (p[ERR].revents)
		agent_text(a, &a->err, FRAME_ERROR);
	if (p[INPUT].revents)
		input_write(a);
	if (!*abandoned) /* whether or not a byte came: a loopback that is down, or full, loses it
			  */
		status_relay_tell(&a->relay, &a->wire);
	return *keeper_runs ||
	       (!*abandoned && (a->out >= 0 || a->err >= 0 || wire_backlog(&a->wire)));
}

static int agent_serve(struct agent *a)
{
	bool keeper_runs = true, abandoned = false;
	struct frame f;
	wire_send(&a->wire, FRAME_TAKEN, NULL, 0); /* ready for the first piece of input */
	if (a->relay.job.head->machines > 1)
		wire_send_number(&a->wire, FRAME_FABRIC, nets_fabric_here());
	while (wire_next(&a->wire, &f)) /* what came together with the order */
		agent_frame(a, &f);
	while (agent_round(a, &keeper_runs, &abandoned))
		;
	int status = front_finish(a->keeper, a->status);
	status_relay_tell(&a->relay, &a->wire); /* how the last of them ended */
	struct pollfd p = { .fd = a->wire.to, .events = POLLOUT };
	wire_send_number(&a->wire, FRAME_OVER, status);
	while (!abandoned && wire_backlog(&a->wire) && poll(&p, 1, -1) >= 0)
		wire_flush(&a->wire);
	return status;
}

int agent_run(int argc, char **argv)
{
	static struct agent a = { .input = -1,
				  .out = -1,
				  .err = -1 }; /* these live as long as the process */
	static struct run_options o;
	uint64_t keepalive = 0;
	wire_open(&a.wire, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
		  fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
	int rc = agent_wait_order(&a, &o);
	if (!rc)
		rc = setting_number(SETTING_KEEPALIVE, &keepalive);
	if (!rc)
		rc = status_relay_open(&a.relay, &o);
	keepalive_begin(&a.silence, keepalive);
	if (!rc)
		rc = agent_start(&a, &o, argc, argv);
	if (rc) {
		fprintf(stderr, "tern run: %s\n", tern_strerror(rc));
		return 1;
	}
	return agent_serve(&a);
}
