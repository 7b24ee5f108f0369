/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON: what lies deep shares a line, so that a record is a line. */
#include "tools/common/json.h"

#include <inttypes.h>
#include <math.h>

enum { LINES_TO_DEPTH = 2 }; /* deeper things share a line: one record, one line */

static void json_quoted(struct json *j, const char *text)
{
	fputc('"', j->to);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			fprintf(j->to, "\\%c", c);
		else if (c < 0x20 ||
			 c == '<') /* which may begin a tag, should the text stand in a page */
			fprintf(j->to, "\\u%04x", c);
		else
			fputc(c, j->to);
	}
	fputc('"', j->to);
}

static void json_line(struct json *j)
{
	if (j->depth > LINES_TO_DEPTH)
		return;
	fputc('\n', j->to);
	for (unsigned i = 0; i < j->depth; i++)
		fputs("  ", j->to);
}

static void json_key(struct json *j, const char *key)
{
	if (j->more)
		fputc(',', j->to);
	if (j->depth && j->depth < LINES_TO_DEPTH)
		json_line(j);
	else if (j->more)
		fputc(' ', j->to);
	if (key) {
		json_quoted(j, key);
		fputs(": ", j->to);
	}
	j->more = true;
}

void json_begin(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	fputc(bracket, j->to);
	j->depth++;
	j->more = false;
}

void json_end(struct json *j, char bracket)
{
	j->depth--;
	if (j->depth + 1 < LINES_TO_DEPTH)
		json_line(j);
	fputc(bracket, j->to);
	j->more = true;
	if (!j->depth)
		fputc('\n', j->to);
}

void json_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	if (value)
		json_quoted(j, value);
	else
		fputs("null", j->to);
}

void json_whole(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	fprintf(j->to, "%" PRIu64, value);
}

void json_real(struct json *j, const char *key, double value)
{
	json_key(j, key);
	if (isfinite(value))
		fprintf(j->to, "%.6g", value);
	else
		fputs("null", j->to);
}

void json_micros(struct json *j, const char *key, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	json_key(j, key);
	fprintf(j->to, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000,
		(unsigned)(size % 1000));
}

void json_truth(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	fputs(value ? "true" : "false", j->to);
}
