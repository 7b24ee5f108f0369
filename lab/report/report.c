/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern report`: reads the options, has the runs made and the page written. */
#include "lab/report/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/cpu.h"
#include "base/file.h"
#include "lab/lab.h"
#include "tools/common/option.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

/* -- The options -------------------------------------------------------------------------- */

static bool read_count(void *to, char *word)
{
	struct counts *c = to;
	uint64_t n;
	if (strcmp(word, "none") == 0) {
		c->given = true;
		return true;
	}
	if (!option_number(c->option, word, 1, TERN_RANKS_MAX, &n))
		return false;
	if (c->n == COUNTS_MOST)
		return option_refuse("%s takes at most %d numbers", c->option, COUNTS_MOST);
	c->given = true;
	for (unsigned i = 0; i < c->n; i++)
		if (c->at[i] == n)
			return true;
	c->at[c->n++] = (uint32_t)n;
	return true;
}

static bool read_only(void *to, char *word)
{
	struct report_options *o = to;
	const char *names[FIGURES_MOST];
	for (size_t i = 0; i < figure_count; i++) {
		names[i] = figure_table[i].id;
		if (strcmp(word, names[i]) == 0) {
			o->chosen[i] = o->some = true;
			return true;
		}
	}
	return option_unnamed("--only", "figure", word, names, figure_count);
}

/* Powers of 2 from 1; with --quick only some. */
static void counts_fill(struct counts *c, uint32_t most, uint32_t factor)
{
	for (uint32_t n = 1; !c->given && n <= most && c->n < COUNTS_MOST; n *= factor)
		c->at[c->n++] = n;
}

/* Beside the command: bin/tern and bin/apps. */
static const char *apps_folder(void)
{
	static char path[PATH_MAX + 8];
	strcpy(path, command_path());
	char *slash = strrchr(path, '/');
	strcpy(slash ? slash : path, "/apps");
	return path;
}

static void defaults_fill(struct report_options *o)
{
	uint32_t cores = cpu_count() < 2 ? 2 : cpu_count();
	counts_fill(&o->ranks, o->quick && cores > 4 ? 4 : cores, 2);
	counts_fill(&o->sim, o->quick ? 16 : 64, o->quick ? 4 : 2);
	for (size_t i = 0; i < figure_count; i++)
		o->chosen[i] |= !o->some;
	if (!o->apps)
		o->apps = apps_folder();
}

static const struct report_options usual = {
	.ranks.option = "-n",
	.sim.option = "--sim",
	.output = "report.html",
	.data = "report-data",
	.patience = 600,
};

/* False: nothing is to be done, and *status is the exit status. */
static bool report_options_read(struct report_options *o, int argc, char **argv, int *status)
{
	const struct choice choices[] = {
		{ .name = "-n", .each = read_count, .to = &o->ranks },
		{ .name = "--sim", .each = read_count, .to = &o->sim },
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--only", .each = read_only, .to = o },
		{ .name = "--output", .text = &o->output },
		{ .name = "--data", .text = &o->data },
		{ .name = "--fresh", .flag = &o->fresh },
		{ .name = "--peers", .text = &o->peers },
		{ .name = "--points", .text = &o->points },
		{ .name = "--apps", .text = &o->apps },
		{ .name = "--patience", .small = &o->patience, .least = 1, .most = 86400 },
		{ .name = "--plain", .flag = &table_plain },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "report",
					 .help = help_report,
					 .choice = choices };
	*o = usual;
	if (!options_read(&options, argc, argv, status))
		return false;
	*status = 2;
	if (optind < argc)
		return option_refuse("'%s' is not an option; figures are named with --only, as in "
				     "`tern report --only lu`",
				     argv[optind]);
	defaults_fill(o);
	return true;
}

/* -- The command -------------------------------------------------------------------------- */

static int report_list(void)
{
	for (size_t i = 0; i < figure_count; i++)
		printf("%-16s %s\n%16s %s\n", figure_table[i].id, figure_table[i].title, "",
		       figure_table[i].paper);
	return 0;
}

/* What would only be found out after the runs. */
static bool report_check(const struct report_options *o, const struct jobs *s)
{
	struct data peers = { 0 };
	int rc = o->peers ? data_add_csv(&peers, o->peers) : 0;
	data_free(&peers);
	if (rc)
		return option_refuse("--peers: %s", tern_strerror(rc));
	if (!jobs_check(s))
		return false;
	if (strlen(o->data) > FOLDER_MOST || strlen(o->apps) > FOLDER_MOST)
		return option_refuse("--data and --apps take names of up to %d bytes", FOLDER_MOST);
	int page = file_private(o->output, 0);
	if (page < 0)
		return option_refuse("--output %s: %s", o->output, file_why(errno));
	close(page);
	if (mkdir(o->data, 0777) && errno != EEXIST)
		return option_refuse("--data %s: %s", o->data, strerror(errno));
	return true;
}

int report_main(int argc, char **argv)
{
	static struct jobs s; /* large */
	struct report_options o;
	int status;
	if (!report_options_read(&o, argc, argv, &status))
		return status;
	if (o.list)
		return report_list();
	int rc = o.points ? points_plot(o.points) : 0;
	if (rc)
		option_refuse("--points: %s", tern_strerror(rc));
	if (o.points)
		return rc ? 2 : 0;
	jobs_plan(&s, &o);
	if (!report_check(&o, &s))
		return 2;
	jobs_play(&s);
	rc = file_write(o.output, page_write, &s);
	if (rc) {
		option_refuse("%s", tern_strerror(rc));
		return 1;
	}
	printf("%s: %u runs, %u failed\n", o.output, s.n, s.failed);
	return s.failed > 0;
}
