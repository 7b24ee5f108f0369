/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern cost`: what the instructions of a message are for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/setting.h"
#include "lab/cost/study.h"
#include "lab/lab.h"
#include "tools/common/option.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

struct cost_options {
	bool listing, json, list;
	uint64_t named; /* bit i: operation i of the table was asked for by name; 0: none was */
	double weight[COST_KINDS]; /* of an instruction of each kind */
	const char *plot;          /* a file to draw into; NULL: none */
};

/* -- The command line --------------------------------------------------------------------- */

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
				"--weights %s: three numbers are needed, 0 to 1000000, as in "
				"1,1,5: for an "
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
			"--listing lists the operations that --operation names: all of them "
			"together "
			"would be some ten thousand lines");
	if (o->plot && o->named)
		return option_refuse(
			"--plot draws the sequences and streams of the tables, and --operation "
			"names "
			"others: use one of the two");
	return true;
}

/* False: nothing is to be counted, and *status is the exit status. */
static bool cost_options_read(struct cost_options *o, int argc, char **argv, int *status)
{
	const struct choice choices[] = {
		{ .name = "--operation", .each = read_operation, .to = o },
		{ .name = "--listing", .flag = &o->listing },
		{ .name = "--weights", .read = read_weights, .to = o },
		{ .name = "--plot", .text = &o->plot },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &table_plain },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "cost", .help = help_cost, .choice = choices };
	*o = (struct cost_options){ .weight = { 1, 1, 5 } };
	return options_read(&options, argc, argv, status) && check(o, argc, argv);
}

/* -- The command --------------------------------------------------------------------------- */

static int cost_list(void)
{
	for (size_t i = 0; i < operation_count; i++)
		printf("%-25s %4u words, %3u packet%s  %s\n", operation_table[i].name,
		       operation_table[i].words, operation_table[i].packets,
		       operation_table[i].packets == 1 ? ", " : "s,", operation_table[i].what);
	return 0;
}

static void cost_show(const struct cost_study *s, const struct cost_options *o)
{
	if (o->json) {
		cost_json(s, o->listing);
		return;
	}
	if (!o->named) {
		table_all(s);
		return;
	}
	table_named(s);
	for (size_t i = 0; o->listing && i < operation_count; i++)
		if (s->result[i].op)
			listing_text(s, &s->result[i]);
}

static int cost_count(const struct cost_options *o)
{
	struct cost_study s = { 0 };
	char why[400];
	memcpy(s.weight, o->weight, sizeof s.weight);
	int rc = study_open(&s, o->named, why, sizeof why);
	if (rc)
		fprintf(stderr, "tern cost: %s\n", why);
	else
		cost_show(&s, o);
	if (!rc && (rc = file_write(o->plot, cost_plot_write, &s)) != 0)
		fprintf(stderr, "tern cost: --plot: %s\n", tern_strerror(rc));
	study_close(&s);
	return rc ? 1 : 0;
}

static int net_refused(const char *net)
{
	fprintf(stderr,
		"tern cost: TERN_NET=%s: instructions are counted on shared memory alone; unset "
		"TERN_NET\n",
		net);
	return 1;
}

int cost_main(int argc, char **argv)
{
	struct cost_options o;
	int status;
	if (!cost_options_read(&o, argc, argv, &status))
		return status;
	if (o.list)
		return cost_list();
	setting_warn_unknown();
	const char *net = setting_text(SETTING_NET);
	if (strcmp(net, "auto") != 0 && strcmp(net, "shm") != 0)
		return net_refused(net);
	return cost_count(&o);
}
