/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern perf` shows: a table that grows, or records; and how far it is. */
#ifndef TERN_TOOLS_PERF_REPORT_H
#define TERN_TOOLS_PERF_REPORT_H

#include "tools/bench/ranks.h"
#include "tools/common/json.h"
#include "tools/perf/perf.h"

struct report {
	struct json json;
	bool as_json, bold, progress;
	unsigned done, all; /* measurements */
	unsigned remarks, disturbed;
};

struct record {
	const struct test *test;
	uint32_t size;
	uint64_t count;
	unsigned rounds, disturbed;
	double value, spread, limit, limit_spread, ratio; /* NaN where there is none */
	const char *bar;                                  /* NULL without one */
	const char *note;                                 /* NULL without one */
	char crowd[48];                                   /* "8 ranks share 2 cores", or "" */
};

void report_begin(struct report *r, bool as_json, bool plain, unsigned all);
void report_progress(struct report *r, const struct test *test, uint32_t size);
void report_add(struct report *r, const struct record *record);
/* A line under the table, after an empty one. */
__attribute__((format(printf, 3, 4))) void report_remark(struct report *r, const char *name,
							 const char *format, ...);
void report_end(struct report *r);

void record_fill(struct record *record, struct ranks_result *result);

#endif
