/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job, as the keeper sees them: a link to each; and the file that lists them. */
#ifndef TERN_TOOLS_RUN_HOSTS_H
#define TERN_TOOLS_RUN_HOSTS_H

#include <stddef.h>

#include "boot/link/wire.h"
#include "tools/run/options.h"

struct host {
	char *name;
	uint32_t slots;        /* ranks that it takes at most; 0: not said */
	uint32_t first, ranks; /* of the job that are there */
	struct wire wire;      /* to its link */
	bool said;             /* whether it has a fabric, or has ended */
};

struct hosts {
	struct host *host;
	uint32_t count;
	uint32_t said;    /* hosts that have */
	uint32_t fabrics; /* of those that have said so: fabrics */
	uint64_t end;     /* of the job, as a rank has asked for it: job_end_decode(); 0: none */
	int ready;        /* epoll over the wires */
	char **shell;     /* the words of --ssh */
	uint32_t shell_words;
	char *self;   /* where this command lies, */
	char *quoted; /* and the same in quotes, for the shell of another host */
};

/*
 * Takes the list apart and gives each host its part of the ranks: in equal parts, or, if the list
 * has numbers, as many as it says until all have a place. Hosts that would get none are left out.
 * -EINVAL with a sentence for a list that is none, or has too few places.
 */
int hosts_open(struct hosts *h,
	       struct run_options *o); /* o->total, host_count, share, id and key are found here */
void hosts_close(struct hosts *h);     /* also if it could not be opened */

/*
 * The words that become the link to the i-th host: an array to be freed. `control` is its
 * descriptor of the wire.
 */
char **hosts_command(const struct hosts *h, uint32_t i, int control);

/*
 * The link to the i-th host is there: tells its agent what to start. `fd` belongs to it from now
 * on.
 */
int hosts_begin(struct hosts *h, uint32_t i, int fd, const struct run_options *o);

void hosts_signal(struct hosts *h, int signal);
void hosts_end(struct hosts *h); /* each ends its ranks */

/*
 * When `ready` is readable: passes each status record that a host has sent to all the others, and
 * tells all whether each has a fabric.
 */
void hosts_serve(struct hosts *h);

/*
 * *list is the same as one would write after --hosts, malloced; -EINVAL with a sentence that
 * names file and line.
 */
int hostfile_read(const char *path, char **list);

/* The same of the `len` bytes of a file, which end with a 0 behind them and are cut apart. */
int hostfile_take(const char *path, char *text, size_t len, char **list);

#endif
