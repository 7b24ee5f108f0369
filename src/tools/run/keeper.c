/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One loop over signals, a deadline and the ranks' output; nothing in it blocks. A
 * job goes through these states:
 *
 *   running   a rank failed or ended the job, or all have ended and left processes behind -> ending
 *   ending    --signal was sent to every process of the job; a second later -> killing
 *   killing   SIGKILL is sent to every process of the job until none is left
 *
 * and is over when no process is left and its output has been written.
 */
#include "tools/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "job/job.h"
#include "tools/run/hosts.h"
#include "tools/run/output.h"
#include "tools/run/overdue.h"
#include "tools/run/rank.h"
#include "tools/run/tree.h"
#include "tools/run/up.h"

enum {
	GRACE_MS = 1000,  /* between --signal and SIGKILL */
	HOSTS_MS = 5000,  /* for hosts to do that and say so; their shells are killed then */
	RETRY_MS = 100,   /* between looks for processes that SIGKILL has missed */
	RETRIES = 10,     /* with nobody left whom we may kill */
	SECOND_MS = 100,  /* timeout(1) sends its signal twice at once; a person does not */
	CANNOT_RUN = 126, /* what shells return for a program they cannot run, or cannot find */
	CANNOT_FIND = 127,
	DIED = 128,   /* and the signal's number */
	MISTAKEN = 2, /* on the command line */
};

enum phase { RUNNING, ENDING, KILLING };

struct keeper {
	struct run_options *options;
	const struct front *front;
	struct up *up;       /* to the launcher of our ranks on another host; NULL: that is us */
	struct hosts *hosts; /* NULL: the ranks are ours */
	struct job job;      /* if they are */
	struct rank *rank;   /* our ranks, or the remote shells that lead to the hosts */
	uint32_t count, running;
	struct output output;
	enum phase phase;
	bool childless;
	bool alone;     /* no process of the job is left */
	int futile;     /* looks that found nobody to kill */
	int refused;    /* what the launcher returns if a rank could not be started; 0: all were */
	bool ended;     /* a rank has ended the job, */
	int decreed;    /* with this status */
	int status;     /* of the first rank that failed */
	int returned;   /* of the first that returned another than 0, if it did not die */
	uint32_t good;  /* ranks that returned 0, and */
	uint32_t dead;  /* that died */
	uint64_t asked; /* when somebody first asked the job to end, in ms */
	uint64_t over;  /* when the last process had ended, in ms */
	uint64_t due;   /* when the phase has lasted long enough, in ms; 0: it lasts */
	int signals;
	struct overdue overdue;
	struct pollfd *polls;
	int news; /* readable when a rank may have ended the job; -1: only its own end tells */
};

static uint64_t now_ms(void)
{
	return clock_ns() / 1000000;
}

/* -- Ending the job ----------------------------------------------------------- */

/* Without /proc there is no telling who descends from us; the ranks at least are known. */
static unsigned keeper_signal_all(struct keeper *k, int signal)
{
	unsigned sent = tree_signal(signal);
	for (uint32_t r = 0; !sent && r < k->count; r++)
		if (k->rank[r].pid)
			kill(k->rank[r].pid, signal);
	return sent;
}

static void keeper_over(struct keeper *k)
{
	if (!k->alone)
		k->over = now_ms();
	k->alone = true;
}

static void keeper_kill(struct keeper *k)
{
	k->phase = KILLING;
	k->futile = keeper_signal_all(k, SIGKILL) ? 0 : k->futile + 1;
	if (k->futile > RETRIES) {
		output_say(
			&k->output,
			"tern run: a process of the job could not be ended: it belongs to another "
			"user, "
			"or /proc is not mounted");
		keeper_over(k);
	}
	k->due = now_ms() + RETRY_MS;
}

static void keeper_end(struct keeper *k)
{
	if (k->phase != RUNNING)
		return;
	k->phase = ENDING;
	if (k->hosts) {
		hosts_end(k->hosts);
	} else {
		keeper_signal_all(k, k->options->order.signal);
		keeper_signal_all(k, SIGCONT); /* a stopped process gets it too */
	}
	k->due = now_ms() + (k->hosts ? HOSTS_MS : GRACE_MS);
}

/* -- Ranks that end ----------------------------------------------------------- */

static int status_code(int status)
{
	return WIFSIGNALED(status) ? DIED + WTERMSIG(status) : WEXITSTATUS(status);
}

static void status_text(int status, char *text, size_t room)
{
	if (WIFSIGNALED(status))
		snprintf(text, room, "was killed by signal %d (%s%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(text, room, "ended with status %d", WEXITSTATUS(status));
}

/* What the launcher returns, as far as it is known. */
static int keeper_verdict(const struct keeper *k)
{
	if (k->refused)
		return k->refused;
	if (k->ended)
		return k->decreed;
	if (k->options->order.survive == SURVIVE_SURVIVORS && k->dead < k->count)
		return k->returned;
	if (k->options->order.survive == SURVIVE_ANY && k->good)
		return 0;
	return k->status;
}

static void keeper_report(struct keeper *k, uint32_t rank, pid_t pid, int status)
{
	char what[96];
	const char *others = !k->running                 ? ""
			     : k->options->order.survive ? "; the others go on"
							 : "; ending the others";
	status_text(status, what, sizeof what);
	output_take_last(&k->output, rank);
	if (!k->hosts)
		output_say(&k->output, "tern run: rank %u (pid %d) %s%s", k->options->first + rank,
			   (int)pid, what, others);
	else if (k->count > 1) /* which rank it was, its keeper has said */
		output_say(&k->output, "tern run: host %s %s%s", k->hosts->host[rank].name, what,
			   others);
}

/*
 * DIED and above: shells report so that what they ran was killed, and the keeper of a host that all
 * its ranks were.
 */
static void keeper_count(struct keeper *k, int code)
{
	k->good += !code;
	k->dead += code >= DIED;
	if (!k->status)
		k->status = code;
	if (!k->returned && code < DIED)
		k->returned = code;
}

/*
 * Whether a rank has ended the job. It has said so itself, on standard error. The others are not
 * told that it is dead: they wait for it, if they do, until SIGTERM comes.
 */
static void keeper_look(struct keeper *k)
{
	struct job_end end;
	if (k->phase != RUNNING ||
	    !(k->hosts ? job_end_decode(k->hosts->end, k->options->total, &end)
		       : job_end_read(&k->job, &end)))
		return;
	k->ended = true;
	k->decreed = end.status;
	if (!k->hosts) /* for other machines: the rank may have been ended before it told them */
		job_tell(&k->job, k->options->first);
	keeper_end(k);
}

static void keeper_lost(struct keeper *k, uint32_t rank, int status)
{
	pid_t pid = k->rank[rank].pid;
	keeper_look(k);
	k->rank[rank].pid = 0;
	k->running--;
	if (!k->hosts && !k->ended)
		job_rank_ended(&k->job, k->options->first + rank, status);
	keeper_count(k, status_code(status));
	if (!status_code(status))
		return;
	if (k->phase != RUNNING)
		return; /* by our hand */
	keeper_report(k, rank, pid, status);
	if (!k->options->order.survive)
		keeper_end(k);
}

static void keeper_left(struct keeper *k, pid_t pid, int status)
{
	for (uint32_t r = 0; r < k->count; r++)
		if (k->rank[r].pid == pid) {
			if (k->hosts)
				hosts_left(k->hosts, r, status);
			else
				keeper_lost(k, r, status);
			return;
		}
}

/* A host is lost when its shell has ended, and what came through it was taken. */
static void keeper_check(struct keeper *k)
{
	int code;
	for (uint32_t i = 0; k->hosts && i < k->count; i++)
		if (hosts_ended(k->hosts, i, &code))
			keeper_lost(k, i, W_EXITCODE(code, 0));
	if (k->childless)
		keeper_over(k);
	else if (!k->running)
		keeper_end(k);
}

/* The dead are ranks, or orphans that we have inherited. */
static void keeper_reap(struct keeper *k)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		keeper_left(k, pid, status);
	k->childless = pid < 0 && errno == ECHILD;
	keeper_check(k);
}

/* -- Signals ------------------------------------------------------------------ */

/* What the terminal sends reaches its whole process group, so those ranks have it already. */
static void keeper_pass(struct keeper *k, int signal, bool from_terminal)
{
	if (k->hosts) {
		hosts_signal(k->hosts, signal);
		return;
	}
	for (uint32_t r = 0; r < k->count; r++) {
		pid_t pid = k->rank[r].pid;
		if (pid && !(from_terminal && getpgid(pid) == k->front->group))
			kill(pid, signal);
	}
}

/*
 * With no rank left to pass it to, only unread output keeps us, and that is given
 * up; but not for the very signal that ended the ranks, which may reach us last.
 */
static void keeper_asked(struct keeper *k, int signal)
{
	uint64_t now = now_ms();
	if (k->alone && now - k->over > SECOND_MS)
		_exit(keeper_verdict(k) ? keeper_verdict(k) : 128 + signal);
	if (!k->asked)
		k->asked = now;
	else if (!k->alone && now - k->asked > SECOND_MS)
		keeper_kill(k);
}

static void keeper_take(struct keeper *k, int signal, bool from_terminal)
{
	if (signal == SIGINT || signal == SIGTERM)
		keeper_asked(k, signal);
	/* Whoever ends this command with SIGTERM ends the ranks; with hosts, there it is replaced.
	 */
	if (signal == SIGTERM && !k->hosts)
		signal = k->options->order.signal;
	keeper_pass(k, signal, from_terminal);
}

/* Nobody waits for us any more. */
static void keeper_abandoned(void)
{
	tree_end();
	_exit(1);
}

static void keeper_signal(struct keeper *k)
{
	struct signalfd_siginfo info;
	while (read(k->signals, &info, sizeof info) == sizeof info)
		if (info.ssi_signo == (uint32_t)KEEPER_ALONE)
			keeper_abandoned();
		else if (info.ssi_signo == SIGCHLD)
			keeper_reap(k);
		else
			keeper_take(k, (int)info.ssi_signo, info.ssi_int);
}

/* -- The loop ----------------------------------------------------------------- */

static void keeper_overdue(struct keeper *k)
{
	char text[OVERDUE_TEXT];
	struct job_end end;
	uint32_t rank;
	if (k->phase != RUNNING || !overdue_look(&k->overdue, &rank, text))
		return;
	output_say(&k->output, "tern run: %s", text);
	if (!k->overdue.ends)
		return;
	job_end_write(&k->job, rank, EX_SOFTWARE, &end);
	keeper_look(k);
}

/* That a rank has ended the job comes before the end of its host. */
static void keeper_hear(struct keeper *k)
{
	hosts_serve(k->hosts);
	keeper_look(k);
	keeper_check(k);
}

static void keeper_obey(struct keeper *k)
{
	int signal;
	if (!up_serve(k->up))
		keeper_abandoned();
	while (up_signal(k->up, &signal))
		if (signal) {
			keeper_take(k, signal, false);
		} else {
			keeper_look(k); /* a rank may have ended the job, which came before */
			keeper_end(k);
		}
}

/* The sooner of two; -1 is never. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int keeper_wait(const struct keeper *k)
{
	uint64_t now = now_ms();
	int due = !k->due || k->alone ? -1 : k->due > now ? (int)(k->due - now) : 0;
	if (k->hosts)
		return sooner(due, hosts_wait(k->hosts));
	if (k->up)
		return sooner(due, KEEPALIVE_LOOK_MS);
	return k->phase == RUNNING ? overdue_wait(&k->overdue) : due;
}

enum { SIGNALS, NEWS, OUTPUT, UP = OUTPUT + OUTPUT_POLLS, HOSTS = UP + UP_POLLS };

static unsigned keeper_polls(const struct keeper *k, struct pollfd *p)
{
	p[SIGNALS] = (struct pollfd){ .fd = k->signals, .events = POLLIN };
	p[NEWS] = (struct pollfd){ .fd = k->news, .events = POLLIN };
	output_polls(&k->output, p + OUTPUT);
	if (k->up)
		up_polls(k->up, p + UP);
	return HOSTS + (k->hosts ? hosts_polls(k->hosts, p + HOSTS) : 0);
}

static void keeper_loop(struct keeper *k)
{
	struct pollfd *p = k->polls;
	while (!k->alone || !output_finished(&k->output)) {
		poll(p, keeper_polls(k, p), keeper_wait(k));
		if (p[SIGNALS].revents)
			keeper_signal(k);
		if (k->due && !k->alone && now_ms() >= k->due)
			keeper_kill(k);
		if (p[NEWS].revents)
			loopback_drain(k->news);
		if (k->up)
			keeper_obey(k);
		if (k->hosts)
			keeper_hear(k);
		else if (p[NEWS].revents)
			keeper_look(k);
		keeper_overdue(k);
		output_serve(&k->output);
	}
}

/* -- Starting the job --------------------------------------------------------- */

static void keeper_cannot_start(struct keeper *k, uint32_t rank, int rc)
{
	char text[512];
	const char *program = k->hosts ? k->hosts->shell[0] : k->options->program[0];
	k->refused = rc == -ENOENT ? CANNOT_FIND : CANNOT_RUN;
	rank_refused(program, rank, k->options->ranks, rc, text, sizeof text);
	output_say(&k->output, "tern run: cannot start %s", text);
}

/* In a group of its own: what the terminal sends reaches the ranks through the wire, in order. */
static int keeper_shell(struct keeper *k, struct launch *l, uint32_t i)
{
	int to[2];
	if (pipe2(to, O_CLOEXEC) != 0)
		return -errno;
	l->input = to[0];
	l->group = 0;
	l->program = hosts_command(k->hosts, i);
	struct rank *r = &k->rank[i];
	int rc = l->program ? rank_start(l, i, r) : -ENOMEM;
	free(l->program);
	close(to[0]);
	if (rc) {
		close(to[1]);
		return rc;
	}
	rc = hosts_begin(k->hosts, i, r->pid, r->out, to[1], k->options);
	r->out = -1; /* it is the wire's */
	return rc;
}

static int keeper_start(struct keeper *k)
{
	const struct run_options *o = k->options;
	struct launch l = { .program = o->program,
			    .job_fd = k->hosts ? -1 : k->job.fd,
			    .first = k->hosts ? 0 : o->first,
			    .total = o->total,
			    .group = k->front->group,
			    .mask = k->front->mask };
	int rc = launch_open(&l, k->count, k->hosts ? BINDING_NONE : o->order.binding);
	int input = k->up && !o->first ? up_input(k->up) : STDIN_FILENO;
	if (rc)
		return rc;
	for (uint32_t r = 0; r < k->count; r++) {
		l.input = o->first + r ? l.null : input;
		rc = k->hosts ? keeper_shell(k, &l, r) : rank_start(&l, r, &k->rank[r]);
		k->running += !rc;
		if (rc) {
			keeper_cannot_start(k, r, rc);
		} else if ((rc = output_add(&k->output, r, k->rank[r].out, k->rank[r].err))) {
			output_say(&k->output, "tern run: %s", tern_strerror(rc));
			k->status = 1;
		}
		if (rc) {
			keeper_end(k);
			break;
		}
	}
	if (!k->hosts) /* it is rank 0's alone: who feeds it must see when that has gone */
		dup2(l.null, input);
	launch_close(&l);
	if (k->up)
		up_begin(k->up);
	keeper_reap(k); /* if nothing started, nothing will wake the loop */
	return 0;
}

static int keeper_watch(struct keeper *k)
{
	sigset_t set = k->front->passed;
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, KEEPER_ALONE);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return k->signals < 0 ? error_system("listening to signals (signalfd)") : 0;
}

/* For a rank that ends the job and is not our child, but that of a shell. */
static void keeper_listen(struct keeper *k)
{
	uint16_t port = 0;
	k->news = loopback_listen(&port);
	if (k->news >= 0)
		atomic_store(&k->job.head->end_port, port);
}

static int keeper_job(struct keeper *k)
{
	uint64_t budget, keepalive;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc) /* which one machine does not need, but a mistake is one everywhere */
		rc = setting_number(SETTING_KEEPALIVE, &keepalive);
	if (!rc)
		rc = job_create(&k->job, k->options->total, budget);
	if (!rc)
		k->job.head->end_signal = (uint32_t)k->options->order.signal;
	if (!rc && k->up)
		rc = up_open(k->up, &k->job, k->options);
	if (!rc)
		rc = overdue_open(&k->overdue, &k->job);
	if (!rc)
		keeper_listen(k);
	return rc;
}

static int keeper_open(struct keeper *k)
{
	const struct run_options *o = k->options;
	int rc = k->hosts ? hosts_open(k->hosts, k->options, &k->output) : keeper_job(k);
	k->count = k->hosts ? k->hosts->count : o->ranks;
	if (!rc)
		rc = keeper_watch(k);
	if (!rc)
		rc = output_open(&k->output, k->count, k->hosts ? 0 : o->first,
				 k->hosts ? k->count : o->total, o->order.tag && !k->hosts,
				 k->up ? &k->up->wire : NULL);
	if (rc)
		return rc;
	k->rank = calloc(k->count, sizeof *k->rank);
	k->polls = calloc(HOSTS + (k->hosts ? hosts_polls_most(k->hosts) : 0), sizeof *k->polls);
	return k->rank && k->polls ? 0 : -ENOMEM;
}

static int keeper_status(const struct keeper *k)
{
	int error = output_error(&k->output), status = keeper_verdict(k);
	if (status || !error)
		return status;
	if (error == EPIPE)
		return 128 + SIGPIPE;
	fprintf(stderr, "tern run: output was lost: %s\n", strerror(error));
	return 1;
}

int keeper_run(struct run_options *options, const struct front *front, struct up *up)
{
	struct hosts hosts;
	struct keeper k = { .options = options,
			    .front = front,
			    .up = up,
			    .news = -1,
			    .hosts = options->hosts ? &hosts : NULL };
	int rc = keeper_open(&k);
	if (!rc)
		rc = keeper_start(&k);
	if (rc) {
		fprintf(stderr, "tern run: %s\n", tern_strerror(rc));
		return k.hosts && rc == -EINVAL ? MISTAKEN : 1;
	}
	keeper_loop(&k);
	int status = keeper_status(&k);
	if (up)
		up_end(up, status);
	return status;
}
