/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line of `tern cost`. */
#include "tools/cost/options.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/option.h"
#include "tools/cost/operation.h"
#include "tools/tools.h"

enum { NAMES_MOST = 64 };

static bool read_operation(void *to, char *name)
{
	struct cost_options *o = to;
	const char *names[NAMES_MOST];
	for (size_t i = 0; i < operation_count; i++) {
		names[i] = operation_table[i].name;
		if (strcmp(names[i], name) == 0) {
			o->named |= UINT64_C(1) << i;
			return true;
		}
	}
	return option_unnamed("--operation", "operation", name, names, operation_count);
}

static bool read_weights(void *to, char *text)
{
	struct cost_options *o = to;
	const char *at = text;
	char *end;
	for (int kind = 0; kind < COST_KINDS; kind++) {
		o->weight[kind] = strtod(at, &end);
		bool last = kind == COST_KINDS - 1;
		if (end == at || *end != (last ? '\0' : ',') || !(o->weight[kind] >= 0) ||
		    o->weight[kind] > 1e6)
			return option_refuse(
				"--weights %s: three numbers are needed, 0 to 1000000, as in 1,1,5: for an "
				"instruction on registers, on memory, on shared memory",
				text);
		at = end + 1;
	}
	return true;
}

static bool check(const struct cost_options *o, int argc, char **argv)
{
	if (optind < argc)
		return option_refuse(
			"'%s' is not an option; operations are named with --operation, as in "
			"`tern cost --operation request-4`",
			argv[optind]);
	if (o->listing && !o->named)
		return option_refuse(
			"--listing lists the operations that --operation names: all of them together "
			"would be some ten thousand lines");
	if (o->plot && o->named)
		return option_refuse(
			"--plot draws the sequences and streams of the tables, and --operation names "
			"others: use one of the two");
	return true;
}

bool cost_options_read(struct cost_options *o, int argc, char **argv, int *status)
{
	const struct choice choices[] = {
		{ .name = "--operation", .each = read_operation, .to = o },
		{ .name = "--listing", .flag = &o->listing },
		{ .name = "--weights", .read = read_weights, .to = o },
		{ .name = "--plot", .text = &o->plot },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &o->plain },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "cost", .help = help_cost, .choice = choices };
	*o = (struct cost_options){ .weight = { 1, 1, 5 } };
	return options_read(&options, argc, argv, status) && check(o, argc, argv);
}
