/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern cost`: what the instructions of a message are for. */
#include "tools/cost/cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/setting.h"
#include "tools/cost/options.h"
#include "tools/cost/show.h"
#include "tools/tools.h"

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
	bool bold = !o->plain && isatty(STDOUT_FILENO);
	if (o->json) {
		cost_json(s, o->listing);
		return;
	}
	if (!o->named) {
		table_all(s, bold);
		return;
	}
	table_named(s, bold);
	for (size_t i = 0; o->listing && i < operation_count; i++)
		if (s->result[i].op)
			listing_text(s, &s->result[i]);
}

static int plot_refused(const char *path)
{
	fprintf(stderr, "tern cost: --plot %s: the file cannot be written: %s; name another\n",
		path, strerror(errno));
	return 1;
}

static int cost_count(const struct cost_options *o, FILE *picture)
{
	struct cost_study s = { 0 };
	char why[400];
	memcpy(s.weight, o->weight, sizeof s.weight);
	int rc = study_open(&s, o->named, !o->plain && isatty(STDERR_FILENO), why, sizeof why);
	if (rc)
		fprintf(stderr, "tern cost: %s\n", why);
	else
		cost_show(&s, o);
	if (!rc && picture)
		cost_plot_write(&s, picture);
	study_close(&s);
	return rc ? 1 : 0;
}

int cost_main(int argc, char **argv)
{
	struct cost_options o;
	int status;
	FILE *picture = NULL;
	if (!cost_options_read(&o, argc, argv, &status))
		return status;
	if (o.list)
		return cost_list();
	setting_warn_unknown();
	if (o.plot &&
	    !(picture = fopen(o.plot, "w"))) /* before the work, which takes some seconds */
		return plot_refused(o.plot);
	status = cost_count(&o, picture);
	if (picture && fclose(picture))
		return plot_refused(o.plot);
	return status;
}
