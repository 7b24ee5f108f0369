/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page: a template (page.html) with a mark where the figures go. Each figure has a panel for
 * each machine, and the records that it was drawn from in tables below. It is XML, too.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <tern/tern.h>

#include "lab/report/report.h"
#include "tools/common/svg.h"

extern const char report_page[];

#define MARK "<!--REPORT-->"

enum { COLUMNS_MOST = 96, MACHINES_MOST = 4 };

static void text_write(FILE *to, const char *before, const char *text, const char *after)
{
	fputs(before, to);
	xml_write(to, text);
	fputs(after, to);
}

/* -- The data of a panel ------------------------------------------------------------------ */

struct column {
	const char *parent, *key, *value;
	bool varies;
};

static const char *column_value(const struct data *d, const struct record *r,
				const struct column *c)
{
	for (unsigned i = r->first; i < r->first + r->fields; i++) {
		const struct field *f = &d->field[i];
		if (strcmp(f->key, c->key) == 0 && !f->parent == !c->parent &&
		    (!f->parent || strcmp(f->parent, c->parent) == 0))
			return f->value ? f->value : "-";
	}
	return "";
}

/* The keys that occur, and whether their values differ. */
static unsigned columns_make(const struct data *d, const struct record *const *row, unsigned rows,
			     struct column *column)
{
	unsigned n = 0;
	for (unsigned i = 0; i < rows; i++)
		for (unsigned k = row[i]->first; k < row[i]->first + row[i]->fields; k++) {
			struct column c = { d->field[k].parent, d->field[k].key, NULL, false };
			unsigned at = 0;
			while (at < n && (strcmp(column[at].key, c.key) != 0 ||
					  !column[at].parent != !c.parent ||
					  (c.parent && strcmp(column[at].parent, c.parent) != 0)))
				at++;
			if (at == n && n < COLUMNS_MOST)
				column[n++] = c;
		}
	for (unsigned k = 0; k < n; k++) {
		column[k].value = column_value(d, row[0], &column[k]);
		for (unsigned i = 1; i < rows && !column[k].varies; i++)
			column[k].varies =
				strcmp(column[k].value, column_value(d, row[i], &column[k])) != 0;
	}
	return n;
}

static void column_name(const struct column *c, FILE *to)
{
	text_write(to, "", c->parent ? c->parent : "", c->parent ? " " : "");
	text_write(to, "", c->key, "");
}

/* What all rows have alike stands above the table. */
static void table_write(const struct data *d, const struct record *const *row, unsigned rows,
			FILE *to)
{
	struct column column[COLUMNS_MOST];
	unsigned n = columns_make(d, row, rows, column);
	const char *before = "<p>In all rows: ";
	for (unsigned k = 0; k < n; k++)
		if (!column[k].varies && strcmp(column[k].value, "-") != 0) {
			fputs(before, to);
			column_name(&column[k], to);
			text_write(to, " ", column[k].value, "");
			before = ", ";
		}
	fprintf(to, "%s<div class=\"wide\"><table><tr>", *before == ',' ? ".</p>\n" : "");
	for (unsigned k = 0; k < n; k++)
		if (column[k].varies) {
			fputs("<th>", to);
			column_name(&column[k], to);
			fputs("</th>", to);
		}
	fputs("<th></th></tr>\n", to);
	for (unsigned i = 0; i < rows; i++) {
		fputs("<tr>", to);
		for (unsigned k = 0; k < n; k++)
			if (column[k].varies)
				text_write(to, "<td>", column_value(d, row[i], &column[k]),
					   "</td>");
		fputs("<td></td></tr>\n", to);
	}
	fputs("</table></div>\n", to);
}

/* The records that a figure is drawn from: those that have the key that it names them by. */
static void data_write(const struct figure *f, const struct data *d, FILE *to)
{
	const struct record *row[4096];
	unsigned rows = 0;
	for (unsigned i = 0; i < d->records && rows < 4096; i++)
		if (!d->record[i].head && data_text(d, &d->record[i], figure_by(f)))
			row[rows++] = &d->record[i];
	fprintf(to, "<details class=\"data\"><summary>Data: %u rows</summary>\n", rows);
	for (unsigned i = 0; i < d->records; i++)
		if (d->record[i].head)
			text_write(to, "<p><code>", data_text(d, &d->record[i], "command"),
				   "</code></p>\n");
	if (rows)
		table_write(d, row, rows, to);
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
	data_write(f, &d, to);
	fputs("</div>\n", to);
	data_free(&d);
	return true;
}

static void peers_write(const struct jobs *s, const struct figure *f, FILE *to)
{
	struct data d = { 0 };
	if (!s->o->peers) {
		fputs("<p class=\"bad\">Not measured: <code>make compare</code> writes "
		      "build/compare/compare.csv, and <code>--peers</code> names it.</p>\n"
		      "<details class=\"data\"><summary>Data: 0 rows</summary></details>\n",
		      to);
		return;
	}
	fputs("<div class=\"panel\">\n", to);
	if (data_add_csv(&d, s->o->peers) || !plot_write(f, &d, f->title, to))
		text_write(to, "<p class=\"bad\">There is nothing to draw in ", s->o->peers,
			   "</p>\n");
	data_write(f, &d, to);
	fputs("</div>\n", to);
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
