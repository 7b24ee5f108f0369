/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern top` and `tern why` have in common on their command lines. */
#ifndef TERN_TOOLS_WATCH_OPTIONS_H
#define TERN_TOOLS_WATCH_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

struct watch_options {
	pid_t job; /* 0: not given */
	bool json, once, help;
	double interval;
};

/*
 * Reads them; `names` are the options that the command has, up to NULL. False, after a sentence on
 * standard error that begins with `command`, if something is wrong.
 */
bool watch_options(struct watch_options *o, int argc, char **argv, const char *command,
		   const char *const *names);

#endif
