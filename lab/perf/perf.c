/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern perf`: which tests, at which sizes, one after another. */
#include "lab/perf/perf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/setting.h"
#include "lab/lab.h"
#include "net/udp/udp.h"
#include "tools/common/option.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

/* -- The command line --------------------------------------------------------------------- */

static bool read_size(void *to, char *text)
{
	struct perf_options *o = to;
	uint64_t size;
	if (!option_number("--size", text, 0, UINT32_MAX, &size))
		return false;
	if (o->sizes.n == sizeof o->sizes.at / sizeof o->sizes.at[0])
		return option_refuse("--size: at most %u sizes at a time", o->sizes.n);
	o->sizes.at[o->sizes.n++] = (uint32_t)size;
	return true;
}

/* What --test is read into, and against. */
struct reading {
	struct perf_options *o;
	const struct test *const *tests;
};

static bool read_test(void *to, char *name)
{
	const struct reading *r = to;
	const char *names[PERF_TESTS_MOST];
	size_t n = 0;
	for (; r->tests[n]; n++) {
		names[n] = r->tests[n]->name;
		if (strcmp(names[n], name) == 0) {
			r->o->names += !r->o->named[n];
			r->o->named[n] = true;
			return true;
		}
	}
	return option_unnamed("--test", "test", name, names, n);
}

static bool size_fits(const struct test *test, uint32_t size)
{
	return size >= test->size_least && size <= test->size_most;
}

/* A size that no test takes was meant for one of them: say what those take. */
static bool check_size(const struct perf_options *o, const struct test *const *tests, uint32_t size)
{
	const struct test *only = NULL;
	for (size_t i = 0; tests[i]; i++) {
		if (o->names && !o->named[i])
			continue;
		if (size_fits(tests[i], size))
			return true;
		only = tests[i];
	}
	if (o->names != 1)
		return option_refuse(
			"--size %u: none of the tests takes that size; `tern perf --list` shows "
			"what they take",
			size);
	return option_refuse("--size %u: %s takes %u to %u %s", size, only->name, only->size_least,
			     only->size_most, only->size_name);
}

static bool check(const struct perf_options *o, const struct test *const *tests, int argc,
		  char **argv)
{
	if (optind < argc)
		return option_refuse(
			"'%s' is not an option; tests are named with --test, as in `tern perf "
			"--test rate`",
			argv[optind]);
	unsigned own = (unsigned)o->paper + o->delivery + o->flow;
	if (own && (own > 1 || o->names || o->sizes.n || o->list))
		return option_refuse(
			"%s has its own operations and sizes: --test, --size, --list and the like "
			"cannot stand beside it",
			o->paper  ? "--paper"
			: o->flow ? "--flow"
				  : "--delivery");
	if (o->plot && (o->paper || o->flow || o->list))
		return option_refuse("--plot draws tests and --delivery, and cannot be used with "
				     "anything else");
	for (unsigned i = 0; i < o->sizes.n; i++)
		if (!check_size(o, tests, o->sizes.at[i]))
			return false;
	return true;
}

/*
 * `tests` is the table, NULL at its end. False: there is nothing to measure, because help was asked
 * for or a mistake has been explained; *status is the exit status.
 */
static bool perf_options_read(struct perf_options *o, const struct test *const *tests, int argc,
			      char **argv, int *status)
{
	struct reading reading = { o, tests };
	const struct choice choices[] = {
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &table_plain },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ .name = "--test", .each = read_test, .to = &reading },
		{ .name = "--size", .each = read_size, .to = o },
		{ .name = "--count",
		  .number = &o->count,
		  .least = 1,
		  .most = UINT64_C(1000000000000) },
		{ .name = "--repeat", .small = &o->rounds, .least = 1, .most = SERIES_MOST },
		{ .name = "--paper", .flag = &o->paper },
		{ .name = "--delivery", .flag = &o->delivery },
		{ .name = "--plot", .text = &o->plot },
		{ .name = "--flow", .flag = &o->flow },
		{ 0 },
	};
	const struct options options = { .command = "perf", .help = help_perf, .choice = choices };
	*o = (struct perf_options){ 0 };
	return options_read(&options, argc, argv, status) && check(o, tests, argc, argv);
}

/* -- The tests ------------------------------------------------------------------------------ */

static const struct test *const groups[] = {
	message_tests, memory_tests, start_tests, send_tests, typed_tests,
	chan_tests,    async_tests,  spawn_tests, udp_tests,  sequence_tests,
	coll_tests,    many_tests,   parts_tests,
};

static struct test complete[PERF_TESTS_MOST];
static const struct test *tests[PERF_TESTS_MOST + 1]; /* up to a NULL */

/* In the order of the table; a row is like one before it. */
static void tests_complete(void)
{
	unsigned n = 0, shown = 0;
	for (unsigned g = 0; g < sizeof groups / sizeof *groups; g++)
		for (const struct test *row = groups[g]; row->name && n < PERF_TESTS_MOST; row++) {
			unsigned like = 0;
			while (row->like && strcmp(complete[like].name, row->like) != 0)
				like++;
			complete[n] = test_complete(row, row->like ? &complete[like] : NULL);
			if (row->purpose)
				tests[shown++] = &complete[n];
			n++;
		}
}

static bool test_unusable(unsigned i, char *why, size_t len)
{
	const struct test *t = tests[i];
	if (t->usable && !t->usable(why, len))
		return true;
	return t->set[0].name && strcmp(t->set[0].name, "TERN_NET") == 0 &&
	       !udp_ops.usable(why, len); /* the one network that tests set */
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
		if (size_fits(test, o->sizes.at[i]))
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

static int test_run(const struct perf_options *o, struct report *r, const struct test *test,
		    uint32_t size)
{
	static struct ranks_result result; /* large */
	struct record record = { .test = test, .size = size };
	record.count = test_count(o, test, size);
	record.rounds = o->rounds ? o->rounds : test->rounds;
	memset(&result, 0, sizeof result);
	report_progress(r, test, size);
	int rc = ranks_run(test, size, record.count, record.rounds, &result);
	if (rc)
		return rc;
	record_fill(&record, &result);
	report_add(r, &record);
	plot_add(&record);
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
		report_remark(
			r, t->name,
			"left out: it wants %u cores and there are %u; --test %s runs it all the "
			"same",
			t->cores, cores, t->name);
		return;
	}
	if (t->limit_name)
		report_remark(r, t->name, "limit: %s", t->limit_name);
	if (t->note)
		report_remark(r, t->name, "%s", t->note);
	if (t->cores > cores)
		report_remark(r, t->name, "%u ranks share %u core%s: this says little", t->ranks,
			      cores, cores == 1 ? "" : "s");
}

/* Under the table: what each limit is, and what to know about this run. */
static void tests_remark(const struct perf_options *o, struct report *r)
{
	for (unsigned i = 0; tests[i]; i++)
		if (test_selected(o, i) && test_sizes(o, tests[i]).n)
			test_remark(o, r, i);
	report_remark(r, "ratio",
		      "value over limit: of times less is better, of rates (M/s, GB/s) more");
	report_remark(r, "bar", "what the project wants on two cores; shown, not judged");
	if (r->disturbed)
		report_remark(
			r, "disturbed",
			"%u times another program took a core during a round, which was played "
			"again",
			r->disturbed);
}

static int list(void)
{
	for (unsigned i = 0; tests[i]; i++) {
		printf("%-17s  %s, in %s;", tests[i]->name, tests[i]->purpose, tests[i]->unit);
		for (unsigned k = 0; k < tests[i]->sizes.n; k++)
			printf("%s%u", k ? "," : " ", tests[i]->sizes.at[k]);
		printf(" %s (%u to %u)\n", tests[i]->size_name, tests[i]->size_least,
		       tests[i]->size_most);
	}
	return 0;
}

static int tests_main(const struct perf_options *o)
{
	struct report r;
	report_begin(&r, o->json, tests_count(o));
	int rc = tests_run(o, &r);
	report_end(&r);
	if (!rc)
		tests_remark(o, &r);
	return rc ? rc : file_write(o->plot, plot_write, NULL);
}

int perf_main(int argc, char **argv)
{
	struct perf_options o;
	int status;
	tests_complete();
	if (!perf_options_read(&o, tests, argc, argv, &status))
		return status;
	if (o.list)
		return list();
	setting_warn_unknown(); /* here, once, instead of in each process */
	int rc = o.paper      ? paper_main(&o)
		 : o.flow     ? flow_main(&o)
		 : o.delivery ? sweep_main(&o)
			      : tests_main(&o);
	if (rc)
		fprintf(stderr, "tern perf: %s\n", tern_strerror(rc));
	return rc ? 1 : 0;
}
