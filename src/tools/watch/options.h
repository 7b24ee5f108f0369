/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern top` and `tern why` have in common on their command lines. */
#ifndef TERN_TOOLS_WATCH_OPTIONS_H
#define TERN_TOOLS_WATCH_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/common/option.h"

struct watch_options {
	pid_t job; /* 0: not given */
	bool json, once;
	double interval;
};

/*
 * Reads the options, and the job behind them. False: there is nothing to do, because help was
 * asked for or a mistake has been explained; *status is the exit status.
 */
bool watch_options_read(struct watch_options *o, const struct options *options, int argc,
			char **argv, int *status);

#endif
