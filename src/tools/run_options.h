/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of `tern run` asks for. */
#ifndef TERN_TOOLS_RUN_OPTIONS_H
#define TERN_TOOLS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/shm/job.h"

enum binding { BINDING_UNSAID, BINDING_NONE, BINDING_CORE };

struct run_options {
	uint32_t ranks;        /* that this process starts: all of the job, unless it is an agent */
	uint32_t first, total; /* the lowest of them, and how many the job has on all hosts */
	enum binding binding;
	bool tag;                  /* each line of output carries its rank */
	bool survive;              /* a rank's failure does not end the others */
	const char *hosts;         /* their names with commas between, or NULL: this machine */
	const char *shell;         /* the command that reaches them, with its options */
	uint32_t host, host_count; /* for an agent: which host this is of how many */
	uint64_t id;               /* and what the job is known by on all of them */
	uint8_t key[JOB_KEY];
	int job_fd;     /* the job's memory, if it is there already; 0: it is not */
	bool agent;     /* on another host: the rest comes through standard input */
	int link;       /* the descriptor that leads to the launcher; 0: this is no link */
	char **program; /* with its arguments, up to a NULL; points into argv */
};

/*
 * Reads the command line. False: there is nothing to run, because help was asked
 * for or because of a mistake that has been explained; *status is the exit status.
 */
bool run_options_read(struct run_options *o, int argc, char **argv, int *status);

#endif
