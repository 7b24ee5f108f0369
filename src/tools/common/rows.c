/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tools/common/table.h"

enum { TEXT = 256 };

void rows_begin(struct rows *r, enum rows_as as, FILE *to)
{
	*r = (struct rows){ .as = as, .json.to = to, .bold = table_bold() };
	if (as == ROWS_JSON)
		json_begin(&r->json, NULL, '[');
}

void rows_end(struct rows *r)
{
	if (r->as == ROWS_JSON)
		json_end(&r->json, ']');
	fflush(r->json.to);
}

void rows_end_row(struct rows *r)
{
	r->inside = false;
	if (r->as == ROWS_JSON) {
		json_end(&r->json, '}');
	} else {
		if (!r->headed)
			fprintf(r->json.to, "%s%s%s\n", r->bold ? "\033[1m" : "", r->head,
				r->bold ? "\033[0m" : "");
		fprintf(r->json.to, "%s\n", r->line);
		r->headed = true;
		r->head[0] = r->line[0] = '\0';
	}
	fflush(r->json.to);
}

static void line_add(char *line, size_t room, const char *between, int width, const char *text)
{
	size_t used = strlen(line);
	snprintf(line + used, room - used, "%s%*s", between, width, text);
}

/* Whether JSON wants the value itself. */
static bool cell_begin(struct rows *r, const char *key)
{
	if (r->as != ROWS_JSON)
		return false;
	if (!r->inside)
		json_begin(&r->json, NULL, '{');
	r->inside = true;
	return key != NULL;
}

static void cell_write(struct rows *r, const char *head, int width, const char *text)
{
	const char *between = r->inside ? "  " : "";
	if (r->as == ROWS_JSON || !head)
		return;
	line_add(r->head, sizeof r->head, between, width, head);
	line_add(r->line, sizeof r->line, between, width, text);
	r->inside = true;
}

void rows_text(struct rows *r, const char *key, const char *head, int width, const char *value)
{
	if (cell_begin(r, key))
		json_text(&r->json, key, value);
	cell_write(r, head, width, value ? value : "");
}

void rows_truth(struct rows *r, const char *key, const char *head, int width, bool value)
{
	if (cell_begin(r, key))
		json_truth(&r->json, key, value);
	cell_write(r, head, width, value ? "yes" : "no");
}

void rows_whole(struct rows *r, const char *key, const char *head, int width, uint64_t value,
		const char *format, ...)
{
	char text[TEXT];
	va_list args;
	if (cell_begin(r, key))
		json_whole(&r->json, key, value);
	snprintf(text, sizeof text, "%" PRIu64, value);
	va_start(args, format);
	if (format)
		vsnprintf(text, sizeof text, format, args);
	va_end(args);
	cell_write(r, head, width, text);
}

void rows_real(struct rows *r, const char *key, const char *head, int width, double value,
	       const char *format, ...)
{
	char text[TEXT], cell[CELL];
	va_list args;
	if (cell_begin(r, key))
		json_real(&r->json, key, value);
	va_start(args, format);
	if (format)
		vsnprintf(text, sizeof text, format, args);
	va_end(args);
	cell_write(r, head, width, format ? text : cell_figure(cell, value, 4, ""));
}
