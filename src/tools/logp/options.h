/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of `tern logp` asks for. */
#ifndef TERN_TOOLS_LOGP_OPTIONS_H
#define TERN_TOOLS_LOGP_OPTIONS_H

#include "tools/logp/run.h"

struct logp_options {
	bool quick, json, plain, list;
	struct logp_wish wish;             /* complete, with what is usual where nothing was said */
	const char *profile, *plot, *read; /* files; NULL unless named */
};

/*
 * False: there is nothing to do, because help was asked for or because of a mistake that
 * has been explained; *status is the exit status.
 */
bool logp_options_read(struct logp_options *o, int argc, char **argv, int *status);

#endif
