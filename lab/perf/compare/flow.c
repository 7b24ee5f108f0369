/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the loads of `tern perf --flow` under each strategy, and prints the comparison. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tern/stats.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench/ranks.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"
#include "net/udp/udp.h"
#include "tools/common/table.h"

enum {
	RANKS = 3, /* the last one receives; of the others, the first sends alone in all loads but
		      the last */
	RECEIVER = RANKS - 1,
	COUNT = 10000, /* short messages in a round; payloads: a tenth */
	ROUNDS = 11,
	QUICK_ROUNDS = 3,
	BUSY_NS = 200000, /* that the slow receiver computes between two polls */
};

static const char *const strategies[] = { "credit", "return", "drop",   "nack",
					  "token",  "permit", "reserve" };
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

enum load { LOAD_SHORT, LOAD_BULK, LOAD_INCAST, LOADS };
static const char *const load_name[LOADS] = { "short", "bulk", "incast" };
static const char *const load_unit[LOADS] = { "M/s", "GB/s", "M/s" };

/*
 * What rank 0 found: a rate, packets that it sent for a thousand messages, and of those, sent
 * again.
 */
enum { ALSO_PACKETS, ALSO_AGAIN, FLOW_ALSO };
struct point {
	double rate, packets, again;
};

/* -- The loads -------------------------------------------------------------------------------- */

static char bytes[TERN_PAYLOAD_MAX];

static tern_stats_net_data counts(const struct bench_rank *p)
{
	tern_stats_net_data d = { .size = sizeof d };
	tern_stats_net(p->t, &d);
	return d;
}

static int send_words(struct bench_rank *p)
{
	return words_send(p->t, RECEIVER, 1, p->count);
}

static REPEATS(send_bulk, tern_request_data(p->t, RECEIVER, WORDS_LAND, bytes, sizeof bytes));

static double measure(struct bench_rank *p, int (*send)(struct bench_rank *p))
{
	tern_stats_net_data before = counts(p);
	uint64_t began = clock_ns();
	p->rc = send(p);
	if (!p->rc)
		p->rc = words_last(p->t, RECEIVER);
	double ns = (double)(clock_ns() - began);
	tern_stats_net_data after = counts(p);
	p->also[ALSO_PACKETS] = (double)(after.sent - before.sent) * 1000 / (double)p->count;
	p->also[ALSO_AGAIN] = (double)(after.again - before.again) * 1000 / (double)p->count;
	return (double)p->count / ns;
}

/* The receiver computes, and looks now and then. */
static int serve_slowly(struct bench_rank *p)
{
	while (!words_over()) {
		for (uint64_t began = clock_ns(); clock_ns() - began < BUSY_NS;)
			raw_sink++;
		int rc = tern_poll(p->t);
		if (rc < 0)
			return rc;
	}
	return words_serve(p->t, RANKS - 1);
}

/* The way is the load. */
static double load_play(struct bench_rank *p)
{
	bool incast = p->way == LOAD_INCAST, bulk = p->way == LOAD_BULK;
	double figure = 0;
	if (p->rank == RECEIVER)
		p->rc = incast ? serve_slowly(p) : words_serve(p->t, 1);
	else if (p->rank == 0 || incast)
		figure = measure(p, bulk ? send_bulk : send_words) * (bulk ? sizeof bytes : 1000);
	/* Where permission is asked for, the last reply needs a sender that still looks. */
	if (!p->rc)
		p->rc = tern_barrier(p->t);
	return figure;
}

/* -- The run ------------------------------------------------------------------------------- */

static int strategy_run(unsigned strategy, uint64_t count, unsigned rounds, struct point *point)
{
	static struct ranks_result result; /* large */
	enum { PARTS = LOADS * (1 + FLOW_ALSO) };
	const struct test test = { .name = "flow",
				   .ranks = RANKS,
				   .warm = 1,
				   .set = { { "TERN_NET", "udp" },
					    { "TERN_FLOW", strategies[strategy] } } };
	struct part parts[PARTS] = { 0 };
	for (unsigned i = 0; i < LOADS; i++)
		parts[i * (1 + FLOW_ALSO)] = (struct part){ { .figure = load_play, .way = (int)i },
							    0,
							    i == LOAD_BULK ? count / 10 + 1 : count,
							    FLOW_ALSO };
	memset(&result, 0, sizeof result);
	int rc = ranks_play(&test, 0, parts, PARTS, rounds, &result);
	for (unsigned i = 0; !rc && i < LOADS; i++) {
		struct series *s = &result.part[i * (1 + FLOW_ALSO)];
		point[i] = (struct point){ series_median(s), series_median(s + 1 + ALSO_PACKETS),
					   series_median(s + 1 + ALSO_AGAIN) };
	}
	return rc;
}

static void print(struct point at[STRATEGIES][LOADS], bool as_json)
{
	struct rows w;
	rows_begin(&w, as_json ? ROWS_JSON : ROWS_TABLE, stdout);
	for (unsigned k = 0; k < STRATEGIES * LOADS; k++) {
		const struct point *p = &at[k / LOADS][k % LOADS];
		rows_text(&w, "strategy", "strategy", -8, strategies[k / LOADS]);
		rows_text(&w, "load", "load", -6, load_name[k % LOADS]);
		rows_real(&w, "rate", "rate", 7, p->rate, "%.3f", p->rate);
		rows_text(&w, "unit", "unit", -4, load_unit[k % LOADS]);
		rows_real(&w, "packets", "packets", 7, p->packets, "%.1f", p->packets);
		rows_real(&w, "again", "again", 6, p->again, "%.1f", p->again);
		rows_end_row(&w);
	}
	rows_end(&w);
	if (!as_json)
		printf("\npackets: those that one sender sent for a thousand messages; again: of "
		       "those, sent again\n"
		       "incast: %u senders, and a receiver that computes %u us between two polls\n",
		       RANKS - 1, BUSY_NS / 1000);
}

int flow_main(const struct perf_options *o)
{
	static struct point at[STRATEGIES][LOADS];
	char why[200];
	unsigned rounds = perf_rounds(o, ROUNDS, QUICK_ROUNDS);
	if (!udp_ops.usable(why, sizeof why))
		return error_set(-ENOTSUP, "--flow: %s", why);
	int rc = 0;
	for (unsigned s = 0; s < STRATEGIES && !rc; s++) {
		progress(s + 1, STRATEGIES, "%s", strategies[s]);
		rc = strategy_run(s, o->count ? o->count : COUNT, rounds, at[s]);
	}
	progress_end();
	if (!rc)
		print(at, o->json);
	return rc;
}
