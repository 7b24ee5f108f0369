/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headings that stand out on a terminal, figures with the digits that count, and the line of
 * progress.
 */
#include "tools/common/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool table_plain;

bool table_bold(void)
{
	return !table_plain && isatty(STDOUT_FILENO);
}

void table_heading(const char *format, ...)
{
	bool bold = table_bold();
	va_list args;
	fputs(bold ? "\033[1m" : "", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts(bold ? "\033[0m" : "");
}

const char *cell_figure(char cell[CELL], double value, int digits, const char *after)
{
	int decimals = 0;
	while (decimals < 3 && fabs(value) < pow(10, digits - 1 - decimals))
		decimals++;
	if (isnan(value))
		return "-";
	snprintf(cell, CELL, "%.*f%s", decimals, value, after);
	return cell;
}

const char *cell_short(char cell[CELL], double v)
{
	static const char unit[] = " kMG";
	unsigned u = 0;
	while (fabs(v) >= (u ? 1000 : 10000) && u + 2 < sizeof unit) {
		v /= 1000;
		u++;
	}
	snprintf(cell, CELL,
		 fabs(v) < 1 ? "%.2g%.1s"
		 : u         ? "%.3g%.1s"
			     : "%.4g%.1s",
		 v, u ? &unit[u] : "");
	return cell;
}

const char *cell_unit(char cell[CELL], double v, const char *unit)
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	unsigned u = 0;
	char number[CELL];
	while (unit && u < 4 && strcmp(times[u], unit) != 0)
		u++;
	for (; u < 3 && unit && v >= 1000; u++)
		v /= 1000;
	for (; u > 0 && u < 4 && v < 1; u--)
		v *= 1000;
	snprintf(cell, CELL, "%.16s%s%.24s", cell_short(number, v), unit ? " " : "",
		 !unit   ? ""
		 : u < 4 ? times[u]
			 : unit);
	return cell;
}

static bool progress_shown(void)
{
	return !table_plain && isatty(STDERR_FILENO);
}

void progress(size_t i, size_t n, const char *format, ...)
{
	va_list args;
	if (!progress_shown())
		return;
	fprintf(stderr, "\r\033[K[%zu/%zu] ", i, n);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(" ...", stderr);
}

void progress_end(void)
{
	if (progress_shown())
		fputs("\r\033[K", stderr);
}
