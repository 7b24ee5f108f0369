/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern perf`: which tests, at which sizes, one after another. */
#include "tools/perf/perf.h"

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/setting.h"
#include "tools/bench/ranks.h"
#include "tools/perf/compare/flow.h"
#include "tools/perf/compare/paper.h"
#include "tools/perf/compare/sweep.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"
#include "tools/tools.h"

static const struct test *const tests[] = {
	&test_round_trip,
	&test_rate,
	&test_payload,
	&test_memcpy,
	&test_send_overhead,
	&test_handling_overhead,
	&test_two_receivers,
	&test_two_senders,
	&test_injection,
	&test_poll,
	&test_barrier,
	&test_idle,
	&test_start,
	&test_memory,
	&test_put,
	&test_get,
	&test_put_read,
	&test_r_infinity,
	&test_n_half,
	&test_private_put,
	&test_private_get,
	&test_fallback_put,
	&test_fallback_get,
	&test_atomic,
	&test_during,
	&test_during_private,
	&test_chunk,
	&test_chunk_trip,
	&test_copy_clean,
	&test_copy_dirty,
	&test_ready_trip,
	&test_auto_trip,
	&test_rendezvous,
	&test_typed,
	&test_chan_trip,
	&test_chan_rate,
	&test_multicast,
	&test_async_trip,
	&test_turn,
	&test_overlap,
	&test_no_overlap,
	&test_spawn_trip,
	&test_spawn_rate,
	&test_yield,
	&test_trace,
	&test_served_thread,
	&test_served_interrupt,
	&test_slow_thread,
	&test_slow_interrupt,
	&test_hold_poll,
	&test_hold_thread,
	&test_hold_interrupt,
	&test_barrier_thread,
	&test_udp_trip,
	&test_udp_auth_trip,
	&test_udp_rate,
	&test_udp_bulk,
	&test_udp_claim,
	&test_udp_lossy,
	&test_ofi_trip,
	&test_ofi_wait_trip,
	&test_ofi_nap_trip,
	&test_ofi_shm_trip,
	&test_ofi_bulk,
	&test_ofi_shm_bulk,
	&test_block,
	&test_stream,
	&test_stream_group,
	NULL,
};
_Static_assert(sizeof tests / sizeof *tests <= PERF_TESTS_MOST, "options can name every test");

static bool test_unusable(unsigned i, char *why, size_t len)
{
	return tests[i]->usable && !tests[i]->usable(why, len);
}

/* With two ranks on one core the figures are a scheduler's, but still figures. */
static bool test_skipped(const struct perf_options *o, unsigned i)
{
	char why[400];
	if (test_unusable(i, why, sizeof why))
		return true;
	return !o->names && tests[i]->cores > 2 && tests[i]->cores > cpu_count();
}

static bool test_selected(const struct perf_options *o, unsigned i)
{
	if (o->names)
		return o->named[i];
	if (o->quick && !o->sizes.n)
		return tests[i]->quick.n > 0;
	return true;
}

static struct sizes test_sizes(const struct perf_options *o, const struct test *test)
{
	struct sizes fit = { 0 };
	if (!o->sizes.n)
		return o->quick && test->quick.n ? test->quick : test->sizes;
	for (unsigned i = 0; i < o->sizes.n; i++)
		if (perf_size_fits(test, o->sizes.at[i]))
			fit.at[fit.n++] = o->sizes.at[i];
	return fit;
}

static uint64_t test_count(const struct perf_options *o, const struct test *test, uint32_t size)
{
	if (o->count)
		return o->count;
	if (test->bytes && size && test->bytes / size < test->count)
		return test->bytes / size ? test->bytes / size : 1;
	return test->count;
}

static int test_run(const struct perf_options *o, struct report *r, const struct test *test, uint32_t size)
{
	static struct crew_result result; /* large */
	struct record record = { .test = test, .size = size };
	record.count = test_count(o, test, size);
	record.rounds = o->rounds ? o->rounds : test->rounds;
	memset(&result, 0, sizeof result);
	report_progress(r, test, size);
	int rc = crew_run(test, size, record.count, record.rounds, &result);
	if (rc)
		return rc;
	record_fill(&record, &result);
	report_add(r, &record);
	return 0;
}

static int tests_run(const struct perf_options *o, struct report *r)
{
	for (unsigned i = 0; tests[i]; i++) {
		struct sizes s = test_sizes(o, tests[i]);
		if (!test_selected(o, i) || test_skipped(o, i))
			continue;
		for (unsigned k = 0; k < s.n; k++) {
			int rc = test_run(o, r, tests[i], s.at[k]);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static unsigned tests_count(const struct perf_options *o)
{
	unsigned count = 0;
	for (unsigned i = 0; tests[i]; i++)
		if (test_selected(o, i) && !test_skipped(o, i))
			count += test_sizes(o, tests[i]).n;
	return count;
}

static void test_remark(const struct perf_options *o, struct report *r, unsigned i)
{
	const struct test *t = tests[i];
	uint32_t cores = cpu_count();
	char why[400];
	if (test_unusable(i, why, sizeof why)) {
		report_remark(r, t->name, "left out: %s", why);
		return;
	}
	if (test_skipped(o, i)) {
		report_remark(r, t->name,
			      "left out: it wants %u cores and there are %u; --test %s runs it all the same",
			      t->cores, cores, t->name);
		return;
	}
	if (t->limit_name)
		report_remark(r, t->name, "limit: %s", t->limit_name);
	if (t->note)
		report_remark(r, t->name, "%s", t->note);
	if (t->cores > cores)
		report_remark(r, t->name, "%u ranks share %u core%s: this says little", t->ranks, cores,
			      cores == 1 ? "" : "s");
}

/* Under the table: what each limit is, and what to know about this run. */
static void tests_remark(const struct perf_options *o, struct report *r)
{
	for (unsigned i = 0; tests[i]; i++)
		if (test_selected(o, i) && test_sizes(o, tests[i]).n)
			test_remark(o, r, i);
	report_remark(r, "ratio", "value over limit: of times less is better, of rates (M/s, GB/s) more");
	report_remark(r, "bar", "what the project wants on two cores; shown, not judged");
	if (r->disturbed)
		report_remark(r, "disturbed",
			      "%u times another program took a core during a round, which was played again",
			      r->disturbed);
}

static int list(void)
{
	for (unsigned i = 0; tests[i]; i++) {
		printf("%-17s  %s, in %s;", tests[i]->name, tests[i]->purpose, tests[i]->unit);
		for (unsigned k = 0; k < tests[i]->sizes.n; k++)
			printf("%s%u", k ? "," : " ", tests[i]->sizes.at[k]);
		printf(" %s (%u to %u)\n", tests[i]->size_name, tests[i]->size_least, tests[i]->size_most);
	}
	return 0;
}

/* How this command starts itself; see start.c. */
static bool hidden_main(int argc, char **argv, int *status)
{
	if (argc == 3 && strcmp(argv[1], "--first-trip") == 0)
		*status = start_first_trip(argv[2]);
	else if (argc == 2 && strcmp(argv[1], "--bare") == 0)
		*status = start_bare();
	else
		return false;
	return true;
}

static int paper_run(const struct perf_options *o)
{
	enum { COUNT = 10000, ROUNDS = 101, QUICK_ROUNDS = 21 };
	unsigned rounds = o->rounds ? o->rounds : o->quick ? QUICK_ROUNDS : ROUNDS;
	return paper_main(o->json, o->plain, rounds, o->count ? o->count : COUNT);
}

int perf_main(int argc, char **argv)
{
	struct perf_options o;
	struct report r;
	int status;
	if (hidden_main(argc, argv, &status) || !perf_options_read(&o, tests, argc, argv, &status))
		return status;
	if (o.list)
		return list();
	setting_warn_unknown(); /* here, once, instead of in each process */
	if (o.paper)
		return paper_run(&o);
	if (o.flow)
		return perf_flow_main(&o);
	if (o.delivery)
		return sweep_main(&o);
	report_begin(&r, o.json, o.plain, tests_count(&o));
	int rc = tests_run(&o, &r);
	report_end(&r);
	if (rc) {
		fprintf(stderr, "tern perf: %s\n", tern_strerror(rc));
		return 1;
	}
	tests_remark(&o, &r);
	return 0;
}
