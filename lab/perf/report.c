/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern perf` shows: the table, the records, the progress. */
#include "lab/perf/perf.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "tools/common/table.h"

/* -- Records ---------------------------------------------------------------------- */

static const char *record_bar(const struct test *test, uint32_t size)
{
	for (size_t i = 0; i < sizeof test->bar / sizeof test->bar[0] && test->bar[i].text; i++)
		if (test->bar[i].size == size)
			return test->bar[i].text;
	return NULL;
}

static bool test_is_rate(const struct test *test)
{
	return strstr(test->unit, "/s") != NULL;
}

static void record_limit(struct record *record, struct ranks_result *result)
{
	record->limit = NAN;
	record->limit_spread = NAN;
	for (int l = 0; l < PERF_LIMITS; l++) {
		double median = series_median(&result->part[PART_LIMIT + l]);
		bool better = test_is_rate(record->test) ? median > record->limit
							 : median < record->limit;
		if (isnan(median) || !(isnan(record->limit) || better))
			continue;
		record->limit = median;
		record->limit_spread = series_spread(&result->part[PART_LIMIT + l]);
	}
}

void record_fill(struct record *record, struct ranks_result *result)
{
	record->value = series_median(&result->part[PART_MEASURED]);
	record->spread = series_spread(&result->part[PART_MEASURED]);
	record_limit(record, result);
	record->ratio = record->value / record->limit;
	record->bar = record_bar(record->test, record->size);
	record->disturbed = result->disturbed;
}

/* -- A row ------------------------------------------------------------------------- */

/* The unit's place is as wide as the widest, so that numbers stand under each other. */
static const char *figure_unit(char *cell, double value, const char *unit)
{
	char wide[8];
	snprintf(wide, sizeof wide, " %-4s", unit);
	return isnan(value) ? "-    " : cell_figure(cell, value, 4, wide);
}

/* As the format says, or a dash. */
static const char *figure_text(char *cell, const char *format, double value)
{
	if (isnan(value))
		return "-";
	snprintf(cell, CELL, format, value);
	return cell;
}

static const char *figure_size(char *cell, const struct test *test, uint32_t size)
{
	bool one = size == 1;
	bool mega = size >= 1 << 20 && size % (1 << 20) == 0;
	if (strcmp(test->size_name, "bytes") == 0 && size >= 10000 && size % 1024 == 0) {
		snprintf(cell, CELL, "%u %s", size >> (mega ? 20 : 10), mega ? "MiB" : "KiB");
		return cell;
	}
	snprintf(cell, CELL, "%u %.*s", size, (int)strlen(test->size_name) - one, test->size_name);
	return cell;
}

static void record_write(struct rows *w, const struct record *r)
{
	const struct test *t = r->test;
	char cell[CELL];
	rows_text(w, "test", "test", -17, t->name);
	rows_whole(w, "size", "size", -10, r->size, "%s", figure_size(cell, t, r->size));
	rows_text(w, "size_unit", NULL, 0, t->size_name);
	rows_whole(w, "ranks", NULL, 0, test_ranks(t, r->size), NULL);
	rows_real(w, "value", "value    ", 13, r->value, "%s",
		  figure_unit(cell, r->value, t->unit));
	rows_text(w, "unit", NULL, 0, t->unit);
	rows_text(w, NULL, "spread", 7, figure_text(cell, "%.0f %%", 100 * r->spread));
	rows_real(w, "limit", "limit    ", 13, r->limit, "%s",
		  figure_unit(cell, r->limit, t->unit));
	rows_real(w, "ratio", "ratio", 6, r->ratio, "%s", figure_text(cell, "%.2f", r->ratio));
	rows_text(w, "better", NULL, 0, test_is_rate(t) ? "higher" : "lower");
	rows_text(w, "bar", "bar", 0, r->bar);
	rows_real(w, "spread", NULL, 0, r->spread, NULL);
	rows_real(w, "limit_spread", NULL, 0, r->limit_spread, NULL);
	rows_whole(w, "count", NULL, 0, r->count, NULL);
	rows_whole(w, "rounds", NULL, 0, r->rounds, NULL);
	rows_text(w, "limit_name", NULL, 0, t->limit_name);
	rows_whole(w, "disturbed", NULL, 0, r->disturbed, NULL);
	rows_text(w, "note", NULL, 0, t->note);
	rows_end_row(w);
}

/* -- The report ------------------------------------------------------------------- */

void report_begin(struct report *r, bool as_json, unsigned all)
{
	*r = (struct report){ .as_json = as_json, .all = all };
	rows_begin(&r->rows, as_json ? ROWS_JSON : ROWS_TABLE, stdout);
}

void report_progress(struct report *r, const struct test *test, uint32_t size)
{
	char cell[CELL];
	progress(++r->done, r->all, "%s, %s", test->name, figure_size(cell, test, size));
}

void report_add(struct report *r, const struct record *record)
{
	progress_end();
	r->disturbed += record->disturbed;
	record_write(&r->rows, record);
}

void report_remark(struct report *r, const char *name, const char *format, ...)
{
	va_list args;
	if (r->as_json)
		return;
	printf("%s%-17s  ", r->remarks++ ? "" : "\n", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void report_end(struct report *r)
{
	progress_end();
	rows_end(&r->rows);
}
