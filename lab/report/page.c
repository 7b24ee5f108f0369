/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page: a template (page.html) with a mark where the figures go. Each figure has a panel for
 * each machine, and below it the files that it was drawn from. It is XML, too.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <tern/tern.h>

#include "lab/report/report.h"
#include "tools/common/svg.h"

extern const char report_page[];

#define MARK "<!--REPORT-->"

static void text_write(FILE *to, const char *before, const char *text, const char *after)
{
	fputs(before, to);
	xml_write(to, text);
	fputs(after, to);
}

/* -- The data of a panel ------------------------------------------------------------------ */

/* A file as it is. */
static void file_show(const char *path, FILE *to)
{
	char line[4096];
	FILE *from = fopen(path, "re");
	fputs("<pre>", to);
	while (from && fgets(line, sizeof line, from))
		xml_write(to, line);
	fputs("</pre>\n", to);
	if (from)
		fclose(from);
}

/* The runs of one machine as they were kept, each with its command. */
static void data_write(const struct jobs *s, const struct run *run, const char *machine, FILE *to)
{
	fputs("<details class=\"data\"><summary>Data</summary>\n", to);
	for (unsigned i = 0; i < s->n; i++) {
		const struct job *j = &s->job[i];
		if (j->run != run || strcmp(j->machine, machine) != 0 || j->state == JOB_FAILED)
			continue;
		text_write(to, "<p><code>", j->command, "</code></p>\n");
		file_show(j->file, to);
	}
	fputs("</details>\n", to);
}

/* -- Failures ----------------------------------------------------------------------------- */

/* The first figure that is drawn from a run. */
static const char *figure_of(const struct report_options *o, const struct run *run)
{
	size_t i = 0;
	while (i + 1 < figure_count && !(o->chosen[i] && figure_run(&figure_table[i]) == run))
		i++;
	return figure_table[i].id;
}

/* What failed, why, and how to run it again; the name leads to its figure unless that is NULL. */
static void failure_write(const struct job *j, const char *figure, FILE *to)
{
	if (figure)
		fprintf(to, "<a href=\"#%s\">", figure);
	text_write(to, "", j->what, figure ? "</a>: " : ": ");
	text_write(to, "", j->why, "<br/>");
	text_write(to, "<code>", j->command, "</code>");
}

/* -- Figures ------------------------------------------------------------------------------ */

/* The panel of one machine: its picture, its data, and what failed. False: it has none. */
static bool panel_write(const struct jobs *s, const struct figure *f, const char *machine, FILE *to)
{
	struct data d = { 0 };
	char caption[128];
	bool any = false;
	for (unsigned i = 0; i < s->n; i++)
		any |= s->job[i].run == figure_run(f) && strcmp(s->job[i].machine, machine) == 0;
	if (!any)
		return false;
	snprintf(caption, sizeof caption, *machine ? "Simulated: %s" : "This machine%s", machine);
	fprintf(to, "<div class=\"panel\"><h4>%s</h4>\n", caption);
	for (unsigned i = 0; i < s->n; i++) {
		const struct job *j = &s->job[i];
		if (j->run != figure_run(f) || strcmp(j->machine, machine) != 0)
			continue;
		if (j->state != JOB_FAILED && data_add_json(&d, j->file) == 0)
			continue;
		fputs("<p class=\"bad\">Failed: ", to);
		failure_write(j, NULL, to);
		fputs("</p>\n", to);
	}
	if (!plot_write(f, &d, caption, to))
		fputs("<p class=\"bad\">There is nothing to draw.</p>\n", to);
	data_write(s, figure_run(f), machine, to);
	fputs("</div>\n", to);
	data_free(&d);
	return true;
}

static void peers_write(const struct jobs *s, const struct figure *f, FILE *to)
{
	struct data d = { 0 };
	if (!s->o->peers) {
		fputs("<p class=\"bad\">Not measured: <code>make compare</code> writes "
		      "build/compare/compare.csv, and <code>--peers</code> names it.</p>\n",
		      to);
		return;
	}
	fputs("<div class=\"panel\">\n", to);
	if (data_add_csv(&d, s->o->peers) || !plot_write(f, &d, f->title, to))
		text_write(to, "<p class=\"bad\">There is nothing to draw in ", s->o->peers,
			   "</p>\n");
	fputs("<details class=\"data\"><summary>Data</summary>\n", to);
	file_show(s->o->peers, to);
	fputs("</details></div>\n", to);
	data_free(&d);
}

static void figure_write(const struct jobs *s, const struct figure *f, FILE *to)
{
	const struct run *run = figure_run(f);
	char names[128], *at = names, *name;
	fprintf(to, "<figure id=\"%s\"><h3>%s</h3>\n", f->id, f->title);
	text_write(to, "<p class=\"paper\">Answers: ", f->paper, ".</p>\n");
	text_write(to, "<p>", f->text, "</p>\n<div class=\"panels\">\n");
	if (!run) {
		peers_write(s, f, to);
	} else {
		bool any = panel_write(s, f, "", to);
		/* Parameters are measured on every machine that something is predicted for. */
		snprintf(names, sizeof names, "%s",
			 run == &run_table[RUN_LOGP] ? "ncube2,cm5"
			 : run->machines             ? run->machines
						     : "");
		while ((name = strsep(&at, ",")))
			any |= *name && panel_write(s, f, name, to);
		const char *lacks = run_lacks(run);
		if (!any)
			text_write(to, "<p class=\"bad\">Not measured: ",
				   lacks ? lacks : "no number of ranks fits", ".</p>\n");
	}
	fputs("</div></figure>\n", to);
}

/* -- The page ----------------------------------------------------------------------------- */

static void head_write(const struct jobs *s, FILE *to)
{
	char machine[IDENTITY], date[32];
	time_t now = time(NULL);
	double seconds = 0;
	unsigned kept = 0;
	machine_identity(machine, sizeof machine);
	strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime(&now));
	for (unsigned i = 0; i < s->n; i++) {
		seconds += s->job[i].seconds;
		kept += s->job[i].state == JOB_KEPT;
	}
	fprintf(to, "<h1>Tern: report</h1>\n<p class=\"faint\">%s. Tern " TERN_VERSION ", ", date);
	text_write(to, "", machine, "");
	fprintf(to, ". %u runs, %.0f s; %u of them kept from before.%s</p>\n", s->n, seconds, kept,
		s->o->quick ? " Reduced by --quick: small problems and few rounds, to be looked "
			      "at and not quoted."
			    : "");
	fputs("<p>Every figure says which figure of which paper it answers, and has its data "
	      "below it. Points are medians of rounds, with the middle half of them as a line. "
	      "Results of every round were compared with serial ones. Simulated machines have the "
	      "papers' figures, and virtual time.</p>\n",
	      to);
	if (s->failed)
		fprintf(to, "<p class=\"bad\">%u of the runs failed:</p>\n<ul class=\"bad\">\n",
			s->failed);
	for (unsigned i = 0; i < s->n; i++)
		if (s->job[i].state == JOB_FAILED) {
			fputs("<li>", to);
			failure_write(&s->job[i], figure_of(s->o, s->job[i].run), to);
			fputs("</li>\n", to);
		}
	fputs(s->failed ? "</ul>\n" : "", to);
}

static void contents_write(const struct report_options *o, FILE *to)
{
	fputs("<nav>\n", to);
	for (size_t i = 0; i < figure_count; i++)
		if (o->chosen[i])
			fprintf(to, "<a href=\"#%s\">%s</a>\n", figure_table[i].id,
				figure_table[i].title);
	fputs("</nav>\n", to);
}

int page_write(const void *jobs, FILE *to)
{
	const struct jobs *s = jobs;
	const char *mark = strstr(report_page, MARK), *group = NULL, *written = NULL;
	fwrite(report_page, 1, (size_t)(mark - report_page), to);
	head_write(s, to);
	contents_write(s->o, to);
	for (size_t i = 0; i < figure_count; i++) {
		group = figure_table[i].group ? figure_table[i].group : group;
		if (!s->o->chosen[i])
			continue;
		if (group != written)
			fprintf(to, "<h2>%s</h2>\n", group);
		written = group;
		figure_write(s, &figure_table[i], to);
	}
	fputs(mark + strlen(MARK), to);
	return ferror(to) ? -EIO : 0;
}
