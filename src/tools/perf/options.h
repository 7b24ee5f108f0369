/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line of `tern perf` asks for. */
#ifndef TERN_TOOLS_PERF_OPTIONS_H
#define TERN_TOOLS_PERF_OPTIONS_H

#include "tools/perf/perf.h"

enum { PERF_TESTS_MOST = 96 };

struct perf_options {
	bool quick, json, plain, list, paper, delivery, flow;
	const char *plot;            /* a file for the picture of --delivery, or NULL */
	bool named[PERF_TESTS_MOST]; /* which tests of the table were asked for by name, */
	unsigned names;              /* and how many; 0: all are meant */
	struct sizes sizes;          /* n is 0 unless given */
	uint64_t count;              /* 0: as the test likes */
	unsigned rounds;             /* 0: as the test likes */
};

/*
 * Reads the command line; `tests` is the table, NULL at its end. False: there is
 * nothing to measure, because help was asked for or because of a mistake that has
 * been explained; *status is the exit status.
 */
bool perf_options_read(struct perf_options *o, const struct test *const *tests, int argc,
		       char **argv, int *status);

bool perf_size_fits(const struct test *test, uint32_t size);

#endif
