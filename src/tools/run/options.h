/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of `tern run` asks for. */
#ifndef TERN_TOOLS_RUN_OPTIONS_H
#define TERN_TOOLS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <tern/tern.h>

#include "job/job.h"
#include "tools/common/bind.h"

/* Whether the others go on when a rank fails, and what the launcher returns then. */
enum survive {
	SURVIVE_NOT,
	SURVIVE_FIRST,     /* the status of the first rank that failed */
	SURVIVE_SURVIVORS, /* that of the first that returned another status than 0 instead of dying
			    */
	SURVIVE_ANY,       /* 0 if any rank returned 0 */
};

/*
 * What a host is told, too: the head of FRAME_ORDER (order.h). Version and stamp say whether the
 * other end is this build, which alone has the same struct.
 */
struct order {
	char version[16]; /* first, in every version */
	uint32_t stamp;
	uint32_t host, host_count;      /* on a host: which one this is of how many */
	uint16_t share[TERN_RANKS_MAX]; /* how many ranks each of them has */
	uint64_t id;                    /* what the job is known by on all of them */
	uint8_t key[JOB_KEY];
	uint32_t binding; /* enum binding */
	uint32_t survive; /* enum survive */
	uint32_t tag;     /* each line of output carries its rank */
	int32_t signal;   /* that ends the ranks */
};

struct run_options {
	struct order order;
	uint32_t ranks;        /* that this process starts: all of the job, or those of a host */
	uint32_t first, total; /* the lowest of them, and how many the job has on all hosts */
	const char *hosts;     /* their names with commas between; NULL: this machine */
	const char *shell;     /* the command that reaches them, with its options */
	const char **env; /* NAME or NAME=VALUE, for the ranks; malloced, its strings are argv's */
	uint32_t env_count;
	char **program; /* with its arguments, up to a NULL; points into argv */
};

/*
 * Reads the command line. False: there is nothing to run, because help was asked
 * for or because of a mistake that has been explained; *status is the exit status.
 */
bool run_options_read(struct run_options *o, int argc, char **argv, int *status);

/*
 * Sets the variables of --env in this process, whose children the ranks are. With hosts only what
 * Tern reads: the rest is for the hosts, and would reach the command that reaches them. False
 * without memory.
 */
bool run_options_environment(const struct run_options *o);

#endif
