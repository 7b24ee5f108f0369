/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern perf` shows: the table, the records, the progress. */
#include "lab/perf/perf.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
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

static void record_crowd(struct record *record)
{
	uint32_t ranks = test_ranks(record->test, record->size), cores = cpu_count();
	record->crowd[0] = '\0';
	if (ranks > cores)
		snprintf(record->crowd, sizeof record->crowd, "%u ranks share %u core%s", ranks,
			 cores, cores == 1 ? "" : "s");
}

void record_fill(struct record *record, struct ranks_result *result)
{
	record->value = series_median(&result->part[PART_MEASURED]);
	record->spread = series_spread(&result->part[PART_MEASURED]);
	record_limit(record, result);
	record->ratio = record->value / record->limit;
	record->bar = record_bar(record->test, record->size);
	record->note = record->test->note;
	record->disturbed = result->disturbed;
	record_crowd(record);
}

/* -- The table -------------------------------------------------------------------- */

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

static void table_row(const struct record *record)
{
	char size[CELL], value[CELL], limit[CELL], ratio[CELL], spread[CELL];
	const char *unit = record->test->unit;
	printf("%-17s  %-10s  %13s  %7s  %13s  %6s  %s\n", record->test->name,
	       figure_size(size, record->test, record->size),
	       figure_unit(value, record->value, unit),
	       figure_text(spread, "%.0f %%", 100 * record->spread),
	       figure_unit(limit, record->limit, unit), figure_text(ratio, "%.2f", record->ratio),
	       record->bar ? record->bar : "");
	fflush(stdout);
}

static void table_begin(const struct report *r)
{
	table_heading(r->bold, "%-17s  %-10s  %13s  %7s  %13s  %6s  %s", "test", "size",
		      "value    ", "spread", "limit    ", "ratio", "bar");
	fflush(stdout);
}

/* -- JSON ------------------------------------------------------------------------- */

static void json_record(struct json *j, const struct record *record)
{
	const struct test *t = record->test;
	json_begin(j, NULL, '{');
	json_text(j, "test", t->name);
	json_whole(j, "size", record->size);
	json_text(j, "size_unit", t->size_name);
	json_whole(j, "ranks", test_ranks(t, record->size));
	json_real(j, "value", record->value);
	json_text(j, "unit", t->unit);
	json_real(j, "limit", record->limit);
	json_real(j, "ratio", record->ratio);
	json_text(j, "better", test_is_rate(t) ? "higher" : "lower");
	json_text(j, "bar", record->bar);
	json_real(j, "spread", record->spread);
	json_real(j, "limit_spread", record->limit_spread);
	json_whole(j, "count", record->count);
	json_whole(j, "rounds", record->rounds);
	json_text(j, "limit_name", t->limit_name);
	json_whole(j, "disturbed", record->disturbed);
	json_text(j, "crowd", *record->crowd ? record->crowd : NULL);
	json_text(j, "note", record->note);
	json_end(j, '}');
	fflush(j->to);
}

/* -- The report ------------------------------------------------------------------- */

void report_begin(struct report *r, bool as_json, bool plain, unsigned all)
{
	*r = (struct report){ .json.to = stdout, .as_json = as_json, .all = all };
	r->bold = !plain && isatty(STDOUT_FILENO);
	r->progress = !plain && isatty(STDERR_FILENO);
	if (as_json)
		json_begin(&r->json, NULL, '[');
	else
		table_begin(r);
}

void report_progress(struct report *r, const struct test *test, uint32_t size)
{
	char cell[CELL];
	progress(r->progress, ++r->done, r->all, "%s, %s", test->name,
		 figure_size(cell, test, size));
}

void report_add(struct report *r, const struct record *record)
{
	progress_end(r->progress);
	r->disturbed += record->disturbed;
	if (r->as_json)
		json_record(&r->json, record);
	else
		table_row(record);
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
	progress_end(r->progress);
	if (r->as_json)
		json_end(&r->json, ']');
	fflush(stdout);
}
