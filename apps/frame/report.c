/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program prints: a table for people or an array of records, and progress. */
#include "frame/app.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CELL = 32 };

static int records; /* that have been printed */
static char sizes_before[256];

/* -- A table ------------------------------------------------------------------------- */

static const char *cell_time(char *cell, double seconds)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	unsigned u = 0;
	double v = seconds * 1e9;
	if (isnan(seconds))
		return "-";
	for (; u < 3 && v >= 1000; u++)
		v /= 1000;
	snprintf(cell, CELL, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit[u]);
	return cell;
}

static const char *cell_number(char *cell, double v)
{
	if (isnan(v))
		return "-";
	snprintf(cell, CELL, fabs(v) >= 1e6 || (v && fabs(v) < 1e-3) ? "%.3g" : "%.4g", v);
	return cell;
}

/* A heading when the sizes change. */
static void heading(uint32_t ranks)
{
	char sizes[256];
	int n = snprintf(sizes, sizeof sizes, "%s on %u rank%s:", app.name, ranks,
			 ranks == 1 ? "" : "s");
	for (const struct app_option *o = app.options; o->name; o++)
		if (!o->text && n < (int)sizeof sizes)
			n += snprintf(sizes + n, sizeof sizes - (size_t)n, " %s %llu", o->name,
				      (unsigned long long)*o->value);
	if (strcmp(sizes, sizes_before) == 0)
		return;
	printf("%s%s\n%-12s %9s %19s %12s/s %9s %9s %6s\n", *sizes_before ? "\n" : "", sizes,
	       "variant", "time", "middle half", app.unit, "predicted", "messages", "wrong");
	memcpy(sizes_before, sizes, sizeof sizes);
}

static void table_row(const struct app_result *r)
{
	char time[CELL], low[CELL], high[CELL], rate[CELL], predicted[CELL], messages[CELL];
	char range[2 * CELL + 4];
	heading(r->ranks);
	snprintf(range, sizeof range, "%s .. %s", cell_time(low, r->low), cell_time(high, r->high));
	printf("%-12s %9s %19s %*s %9s %9s %6llu", r->variant, cell_time(time, r->seconds), range,
	       14, cell_number(rate, r->amount / r->seconds), cell_time(predicted, r->predicted),
	       cell_number(messages, r->messages), (unsigned long long)r->wrong);
	for (unsigned i = 0; i < r->figures; i++)
		printf("%s %s %s", i ? "," : " ", r->figure[i].name,
		       cell_number(rate, r->figure[i].value));
	putchar('\n');
	fflush(stdout);
}

/* -- JSON ---------------------------------------------------------------------------- */

static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 0x20)
			printf("\\u%04x", c);
		else if (c == '"' || c == '\\')
			printf("\\%c", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void json_number(const char *key, double v)
{
	printf(", ");
	json_text(key);
	if (isfinite(v))
		printf(": %.9g", v);
	else
		printf(": null");
}

static void json_record(const struct app_result *r)
{
	printf("%s\n  {\"program\": \"%s\", \"variant\": \"%s\"", records++ ? "," : "", app.name,
	       r->variant);
	json_number("ranks", r->ranks);
	for (const struct app_option *o = app.options; o->name; o++)
		if (!o->text)
			json_number(o->name, (double)*o->value);
		else if (*o->text) {
			printf(", \"%s\": ", o->name);
			json_text(*o->text);
		}
	json_number("rounds", r->rounds);
	json_number("seconds", r->seconds);
	json_number("low", r->low);
	json_number("high", r->high);
	json_number("amount", r->amount);
	printf(", \"unit\": \"%s\"", app.unit);
	json_number("predicted", r->predicted);
	json_number("messages", r->messages);
	for (unsigned i = 0; i < r->figures; i++)
		json_number(r->figure[i].name, r->figure[i].value);
	printf(", \"wrong\": %llu}", (unsigned long long)r->wrong);
}

/* -- For the frame --------------------------------------------------------------------- */

void app_report_begin(const struct app_settings *s)
{
	if (s->json)
		putchar('[');
}

void app_report(const struct app_settings *s, const struct app_result *r)
{
	if (s->json)
		json_record(r);
	else
		table_row(r);
}

void app_report_skipped(const struct app_settings *s, const char *variant, const char *why)
{
	if (!s->json)
		printf("%-12s skipped: %s\n", variant, why);
}

void app_report_end(const struct app_settings *s)
{
	if (s->json)
		puts("\n]");
	fflush(stdout);
}

/* On a terminal one line that is written over; NULL clears it. Elsewhere lines, where asked for. */
void app_progress(const struct app_settings *s, const char *format, ...)
{
	int terminal = isatty(STDERR_FILENO) && !s->plain;
	if (!terminal && (!s->progress || !format))
		return;
	if (terminal)
		fputs("\r\033[K", stderr);
	if (format) {
		va_list list;
		va_start(list, format);
		fprintf(stderr, "%s: ", app.name);
		vfprintf(stderr, format, list);
		va_end(list);
		if (!terminal)
			putc('\n', stderr);
	}
	fflush(stderr);
}
