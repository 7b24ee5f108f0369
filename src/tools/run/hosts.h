/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts of a job, as the keeper sees them: the list, and a wire to the keeper of each, through
 * a remote shell that stands among the keeper's children as a rank does.
 */
#ifndef TERN_TOOLS_RUN_HOSTS_H
#define TERN_TOOLS_RUN_HOSTS_H

#include <poll.h>
#include <stddef.h>

#include "boot/link/keepalive.h"
#include "boot/link/wire.h"
#include "tools/run/options.h"
#include "tools/run/output.h"

struct host {
	char *name;
	uint32_t slots;        /* ranks that it takes at most; 0: not said */
	uint32_t first, ranks; /* of the job that are there */
	pid_t shell;           /* the remote shell; 0: not started, or ended */
	int shell_status;      /* as from waitpid(), when it has */
	struct wire wire;      /* to its keeper, below tern-link */
	bool running;          /* until its end has been told by hosts_ended() */
	bool said;             /* whether it has a fabric, or has ended */
	bool begun;            /* it has said something */
	bool wants_input;
	bool held;    /* its text has filled our output: nothing is read until that has room */
	bool over;    /* it has told how its part of the job ended, */
	int32_t code; /* with this status; or 255: it cannot be understood, or was silent */
	struct keepalive silence;
	uint64_t asked; /* when it was last asked whether it is there, ns */
};

struct hosts {
	char *text; /* that names them */
	struct host *host;
	uint32_t count;
	uint32_t said;      /* hosts that have */
	uint32_t fabrics;   /* of those that have said so: fabrics */
	uint64_t end;       /* of the job, as a rank has asked for it: job_end_decode(); 0: none */
	uint64_t keepalive; /* s; 0: a host may be silent for ever */
	struct output *output; /* for what the hosts send */
	char **shell;          /* the words of --ssh: one, or more */
	char *shell_text;      /* in which they lie */
	uint32_t shell_words;
	char *quoted; /* where tern-link lies, in quotes for the shell of another host */
};

/*
 * Takes the list apart and gives each host its part of the ranks: in equal parts, or, if the list
 * has numbers, as many as it says until all have a place. Hosts that would get none are left out.
 * Finds o->total, host_count, share, id and key. -EINVAL with a sentence for a list that is none,
 * or has too few places.
 */
int hosts_open(struct hosts *h, struct run_options *o, struct output *output);

/* The words that reach the i-th host and start tern-link there: an array to be freed. */
char **hosts_command(const struct hosts *h, uint32_t i);

/*
 * The remote shell of the i-th host runs: tells tern-link what to start. `from` and `to`, its
 * output and its input, belong to the host from now on.
 */
int hosts_begin(struct hosts *h, uint32_t i, pid_t shell, int from, int to,
		const struct run_options *o);

void hosts_signal(struct hosts *h, int signal);
void hosts_end(struct hosts *h); /* each ends its ranks */

/* What to wait for, at most hosts_polls_most(), and how long: for poll(). */
size_t hosts_polls_most(const struct hosts *h);
unsigned hosts_polls(const struct hosts *h, struct pollfd *p);
int hosts_wait(const struct hosts *h);

/*
 * Takes what has come: text for the output; status records, each of which goes to all the other
 * hosts; whether each has a fabric, which all are told. Passes on our input, and finds out who is
 * silent.
 */
void hosts_serve(struct hosts *h);

/* The remote shell of the i-th host has ended; `status` as from waitpid(). */
void hosts_left(struct hosts *h, uint32_t i, int status);
/* Once, when its shell has ended and all that came was taken: the status of its part of the job. */
bool hosts_ended(struct hosts *h, uint32_t i, int *code);

#endif
