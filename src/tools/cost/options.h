/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of `tern cost` asks for. */
#ifndef TERN_TOOLS_COST_OPTIONS_H
#define TERN_TOOLS_COST_OPTIONS_H

#include "tools/cost/cost.h"

struct cost_options {
	bool listing, json, plain, list;
	uint64_t named; /* bit i: operation i of the table was asked for by name; 0: none was */
	double weight[COST_KINDS]; /* of an instruction of each kind */
	const char *plot;          /* a file to draw into; NULL: none */
};

/*
 * Reads the command line. False: there is nothing to count, because help was asked for or because
 * of a mistake that has been explained; *status is the exit status.
 */
bool cost_options_read(struct cost_options *o, int argc, char **argv, int *status);

#endif
