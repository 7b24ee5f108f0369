/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line of `tern perf`. */
#include "tools/perf/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "tools/bench/series.h"
#include "tools/common/option.h"
#include "tools/tools.h"

static const char help[] =
	"usage: tern perf [OPTIONS]\n"
	"\n"
	"Measures messages and transfers on this machine and, in the same run and between the same\n"
	"processes, what the hardware can do without Tern. Each figure is the median of many short\n"
	"rounds in which the two take turns; the ratio is the figure over its limit. A bar is what\n"
	"the project wants: it is shown, not judged.\n"
	"\n"
	"  --quick             a summary, within some seconds\n"
	"  --test NAME,...     only these tests; --list names them\n"
	"  --size LIST         only these sizes (words, bytes, ranks, us), in each test that they fit\n"
	"  --count N           messages or transfers in a round, instead of what the test likes\n"
	"  --repeat N          rounds, 1 to 1000\n"
	"  --paper             the rows of tables 4-1, 4-7 and 4-8 of von Eicken's thesis, measured\n"
	"                      here, beside the nCUBE/2 and the CM-5\n"
	"  --delivery          how the ways of delivery compare, by the time between two messages; --count is\n"
	"                      the milliseconds that each phase computes\n"
	"  --flow              how the strategies of TERN_FLOW compare, over UDP\n"
	"  --plot FILE         with --delivery: a picture of that, as SVG\n"
	"  --json              an array of records on standard output, and nothing else\n"
	"  --plain             no progress and no highlighting, on a terminal too\n"
	"  --list              what can be measured\n"
	"  --help              print this\n"
	"\n"
	"Let nothing else run meanwhile: a build beside it shows in the spread, which is what the\n"
	"middle half of the rounds spans, as a part of the median.\n"
	"\n"
	"examples:\n"
	"  tern perf --quick\n"
	"  tern perf --test round-trip,rate --size 1,4 --repeat 101\n"
	"  tern perf --test payload,put,get --size 4096 --json\n"
	"  tern perf --paper\n"
	"  tern perf --delivery --plot delivery.svg\n";

static bool read_size(struct perf_options *o, const char *text)
{
	uint64_t size;
	if (!option_number("perf", "--size", text, 0, UINT32_MAX, &size))
		return false;
	if (o->sizes.n == sizeof o->sizes.at / sizeof o->sizes.at[0])
		return option_refuse("perf", "--size: at most %u sizes at a time", o->sizes.n);
	o->sizes.at[o->sizes.n++] = (uint32_t)size;
	return true;
}

static bool read_test(struct perf_options *o, const struct test *const *tests, const char *name)
{
	const char *names[PERF_TESTS_MOST];
	size_t n = 0;
	for (; tests[n]; n++) {
		names[n] = tests[n]->name;
		if (strcmp(names[n], name) == 0) {
			o->names += !o->named[n];
			o->named[n] = true;
			return true;
		}
	}
	return option_refuse(
		"perf",
		"--test %s: there is no such test; did you mean %s? `tern perf --list` names them all", name,
		nearest_name(name, names, n));
}

bool perf_size_fits(const struct test *test, uint32_t size)
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
		if (perf_size_fits(tests[i], size))
			return true;
		only = tests[i];
	}
	if (o->names != 1)
		return option_refuse(
			"perf",
			"--size %u: none of the tests takes that size; `tern perf --list` shows what they take",
			size);
	return option_refuse("perf", "--size %u: %s takes %u to %u %s", size, only->name, only->size_least,
			     only->size_most, only->size_name);
}

static bool check(const struct perf_options *o, const struct test *const *tests, int argc, char **argv)
{
	if (optind < argc)
		return option_refuse(
			"perf",
			"'%s' is not an option; tests are named with --test, as in `tern perf --test rate`",
			argv[optind]);
	unsigned own = (unsigned)o->paper + o->delivery + o->flow;
	if (own && (own > 1 || o->names || o->sizes.n || o->list))
		return option_refuse(
			"perf",
			"%s has its own operations and sizes: --test, --size, --list and the like "
			"cannot stand beside it",
			o->paper  ? "--paper"
			: o->flow ? "--flow"
				  : "--delivery");
	if (o->plot && !o->delivery)
		return option_refuse("perf",
				     "--plot draws what --delivery measures, and cannot be used without");
	for (unsigned i = 0; i < o->sizes.n; i++)
		if (!check_size(o, tests, o->sizes.at[i]))
			return false;
	return true;
}

/* What the options are read into, and against. */
struct reading {
	struct perf_options *o;
	const struct test *const *tests;
};

static bool read_tests(void *to, char *text)
{
	const struct reading *r = to;
	char *part;
	while ((part = strsep(&text, ",")) != NULL)
		if (!read_test(r->o, r->tests, part))
			return false;
	return true;
}

static bool read_sizes(void *to, char *text)
{
	char *part;
	while ((part = strsep(&text, ",")) != NULL)
		if (!read_size(to, part))
			return false;
	return true;
}

bool perf_options_read(struct perf_options *o, const struct test *const *tests, int argc, char **argv,
		       int *status)
{
	struct reading reading = { o, tests };
	const struct choice choices[] = {
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &o->plain },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ .name = "--test", .read = read_tests, .to = &reading },
		{ .name = "--size", .read = read_sizes, .to = o },
		{ .name = "--count", .number = &o->count, .least = 1, .most = UINT64_C(1000000000000) },
		{ .name = "--repeat", .small = &o->rounds, .least = 1, .most = SERIES_MOST },
		{ .name = "--paper", .flag = &o->paper },
		{ .name = "--delivery", .flag = &o->delivery },
		{ .name = "--plot", .text = &o->plot },
		{ .name = "--flow", .flag = &o->flow },
		{ 0 },
	};
	const struct options options = { .command = "perf", .help = help, .choice = choices };
	*o = (struct perf_options){ 0 };
	return options_read(&options, argc, argv, status) && check(o, tests, argc, argv);
}
