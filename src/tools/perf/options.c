/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line of `tern perf`. */
#include "tools/perf/options.h"

#include <string.h>

#include "tools/bench/series.h"
#include "tools/common/option.h"
#include "tools/tools.h"

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
			"--size %u: none of the tests takes that size; `tern perf --list` shows what they take",
			size);
	return option_refuse("--size %u: %s takes %u to %u %s", size, only->name, only->size_least,
			     only->size_most, only->size_name);
}

static bool check(const struct perf_options *o, const struct test *const *tests, int argc,
		  char **argv)
{
	if (optind < argc)
		return option_refuse(
			"'%s' is not an option; tests are named with --test, as in `tern perf --test rate`",
			argv[optind]);
	unsigned own = (unsigned)o->paper + o->delivery + o->flow;
	if (own && (own > 1 || o->names || o->sizes.n || o->list))
		return option_refuse(
			"%s has its own operations and sizes: --test, --size, --list and the like "
			"cannot stand beside it",
			o->paper  ? "--paper"
			: o->flow ? "--flow"
				  : "--delivery");
	if (o->plot && !o->delivery)
		return option_refuse(
			"--plot draws what --delivery measures, and cannot be used without");
	for (unsigned i = 0; i < o->sizes.n; i++)
		if (!check_size(o, tests, o->sizes.at[i]))
			return false;
	return true;
}

bool perf_options_read(struct perf_options *o, const struct test *const *tests, int argc,
		       char **argv, int *status)
{
	struct reading reading = { o, tests };
	const struct choice choices[] = {
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &o->plain },
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
