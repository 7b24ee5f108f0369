/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of `tern perf`: its tests, what is asked for, what is shown, and its other modes. */
#ifndef TERN_LAB_PERF_PERF_H
#define TERN_LAB_PERF_PERF_H

#include "lab/bench/ranks.h"
#include "tools/common/rows.h"

/* Each up to a row without a name. */
typedef const struct test test_rows[];
extern test_rows message_tests, memory_tests, send_tests, typed_tests;
extern test_rows chan_tests, async_tests, spawn_tests, udp_tests, sequence_tests, start_tests;
extern test_rows coll_tests, many_tests, parts_tests;

enum { PERF_TESTS_MOST = 128 };

/* What the command line asks for. */
struct perf_options {
	bool quick, json, list, paper, delivery, flow;
	const char *plot;            /* a file for the picture of tests or of --delivery, or NULL */
	bool named[PERF_TESTS_MOST]; /* which tests of the table were asked for by name, */
	unsigned names;              /* and how many; 0: all are meant */
	struct sizes sizes;          /* n is 0 unless given */
	uint64_t count;              /* 0: as the test likes */
	unsigned rounds;             /* 0: as the test likes */
};

/* What is shown: a table that grows, or records; and how far it is. */
struct report {
	struct rows rows;
	bool as_json;
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
};

void report_begin(struct report *r, bool as_json, unsigned all);
void report_progress(struct report *r, const struct test *test, uint32_t size);
void report_add(struct report *r, const struct record *record);
/* A line under the table, after an empty one. */
__attribute__((format(printf, 3, 4))) void report_remark(struct report *r, const char *name,
							 const char *format, ...);
void report_end(struct report *r);

/* The rounds that were asked for, or those of this mode. */
static inline unsigned perf_rounds(const struct perf_options *o, unsigned usual, unsigned quick)
{
	return o->rounds ? o->rounds : o->quick ? quick : usual;
}

void record_fill(struct record *record, struct ranks_result *result);

/* plot.c: a record to be drawn; and all of them, for file_write(), which has nothing to add. */
void plot_add(const struct record *r);
int plot_write(const void *nothing, FILE *to);

/* -- What runs instead of the tests; each returns 0, or a negative code with a sentence */

/*
 * --paper: tables of von Eicken's thesis and of the paper on FLASH, measured here, beside what they
 * give for their machines.
 */
int paper_main(const struct perf_options *o);

/*
 * --flow: the strategies by which a receiver is not overrun, over UDP on this machine: short
 * messages one way, payloads one way, and several senders to one receiver that is slow. How fast,
 * with how many packets, and how many of those were sent again.
 */
int flow_main(const struct perf_options *o);

/* --delivery: how the ways of delivery compare. */
int sweep_main(const struct perf_options *o);

#endif
