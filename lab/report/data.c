/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads JSON and CSV in place: strings are decoded where they stand, and end with a zero that is
 * written over the character behind them once that has been read.
 */
#include "lab/report/data.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { DEPTH_MOST = 16, NO_RECORD = -1 };

/* -- Records ----------------------------------------------------------------------------- */

/* Room for one more; arrays double. */
static void *grown(void *array, unsigned n, size_t each)
{
	if (n & (n - 1) || (n && n < 16))
		return array;
	void *more = realloc(array, (n ? 2 * (size_t)n : 16) * each);
	if (!more)
		abort(); /* the records of a report are some hundred kilobytes */
	return more;
}

static int record_add(struct data *d, bool head)
{
	d->record = grown(d->record, d->records, sizeof *d->record);
	d->record[d->records] = (struct record){ .first = d->fields, .head = head };
	return (int)d->records++;
}

/* Fields behind an inner array are not those of the last record, and are passed over. */
static void field_add(struct data *d, int record, struct field f)
{
	if (record == NO_RECORD || record + 1 != (int)d->records)
		return;
	d->field = grown(d->field, d->fields, sizeof *d->field);
	d->field[d->fields++] = f;
	d->record[record].fields++;
}

static bool field_is(const struct field *f, const char *key)
{
	size_t n = f->parent ? strlen(f->parent) : 0;
	if (!f->parent)
		return strcmp(f->key, key) == 0;
	return strncmp(key, f->parent, n) == 0 && key[n] == '.' && strcmp(key + n + 1, f->key) == 0;
}

const char *data_text(const struct data *d, const struct record *r, const char *key)
{
	for (unsigned i = r->first; i < r->first + r->fields; i++)
		if (field_is(&d->field[i], key))
			return d->field[i].value;
	return NULL;
}

static double number_of(const char *text)
{
	char *end;
	double v = text ? strtod(text, &end) : NAN;
	return text && end != text && !*end && isfinite(v) ? v : NAN;
}

double data_value(const struct field *f)
{
	return number_of(f->value);
}

double data_number(const struct data *d, const struct record *r, const char *key)
{
	double sum = 0;
	bool any = false;
	if (strncmp(key, "*.", 2) != 0)
		return number_of(data_text(d, r, key));
	for (unsigned i = r->first; i < r->first + r->fields; i++)
		if (d->field[i].parent && strcmp(d->field[i].key, key + 2) == 0) {
			sum += number_of(d->field[i].value);
			any = true;
		}
	return any ? sum : NAN;
}

void data_free(struct data *d)
{
	for (unsigned i = 0; i < d->files; i++)
		free(d->text[i]);
	free(d->field);
	free(d->record);
	*d = (struct data){ 0 };
}

/* -- JSON -------------------------------------------------------------------------------- */

struct reader {
	char *at;
	char *cut; /* where a number ended: a zero goes there when the character has been read */
	struct data *d;
	unsigned depth;
};

/* The next character that is no space, taken. */
static char next(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
	char c = *r->at;
	if (c)
		r->at++;
	if (r->cut)
		*r->cut = '\0';
	r->cut = NULL;
	return c;
}

/*
 * An escape as Tern's commands write it, of a quote, a backslash or an unusual character of ASCII.
 * NULL: it is none.
 */
static char *escape_read(struct reader *r, char *to)
{
	char digits[5] = "", *end;
	if (*r->at == '"' || *r->at == '\\') {
		*to = *r->at++;
		return to + 1;
	}
	if (*r->at != 'u')
		return NULL;
	strncpy(digits, r->at + 1, 4);
	unsigned long c = strtoul(digits, &end, 16);
	if (end != digits + 4 || !c || c > 127)
		return NULL;
	r->at += 5;
	*to = (char)c;
	return to + 1;
}

/* The string whose quote has been taken; NULL: it does not end. */
static char *string_read(struct reader *r)
{
	char *begin = r->at, *to = begin;
	while (*r->at && *r->at != '"') {
		if (*r->at != '\\') {
			*to++ = *r->at++;
			continue;
		}
		r->at++;
		to = escape_read(r, to);
		if (!to)
			return NULL;
	}
	if (!*r->at)
		return NULL;
	r->at++;
	*to = '\0';
	return begin;
}

/* A number or a word, whose first character has been taken. */
static char *literal_read(struct reader *r)
{
	char *begin = r->at - 1;
	r->at = begin + strcspn(begin, ",]} \t\r\n");
	r->cut = r->at;
	return r->at > begin ? begin : NULL;
}

/* What is between two brackets: members of a record, or elements. */
static bool list_read(struct reader *r, char end, int record, const char *parent);

static bool member_read(struct reader *r, int record, const char *parent)
{
	char *key = string_read(r), *value = NULL;
	if (!key || next(r) != ':')
		return false;
	char c = next(r);
	if (c == '{')
		return list_read(r, '}', record, key);
	if (c == '[')
		return list_read(r, ']', NO_RECORD, NULL);
	value = c == '"' ? string_read(r) : literal_read(r);
	if (!value)
		return false;
	if (c == 'n' && strncmp(value, "null", 4) == 0)
		value = NULL;
	field_add(r->d, record, (struct field){ parent, key, value });
	return true;
}

static bool element_read(struct reader *r, char c)
{
	if (c == '{')
		return list_read(r, '}', record_add(r->d, false), NULL);
	if (c == '[')
		return list_read(r, ']', NO_RECORD, NULL);
	return c == '"' ? string_read(r) != NULL : literal_read(r) != NULL;
}

static bool list_read(struct reader *r, char end, int record, const char *parent)
{
	char c = next(r);
	if (c == end)
		return true;
	if (++r->depth > DEPTH_MOST)
		return false;
	for (;; c = next(r)) {
		if (end == ']' ? !element_read(r, c) : c != '"' || !member_read(r, record, parent))
			return false;
		c = next(r);
		if (c != ',')
			break;
	}
	r->depth--;
	return c == end;
}

/* -- Files ------------------------------------------------------------------------------- */

static int file_read(struct data *d, const char *path, char **text)
{
	FILE *from = fopen(path, "re");
	long length = -1;
	if (!from)
		return error_set(-errno, "reading %s: %s", path, strerror(errno));
	if (d->files == DATA_FILES) {
		fclose(from);
		return error_set(-E2BIG, "reading %s: more than %d files", path, DATA_FILES);
	}
	if (!fseek(from, 0, SEEK_END))
		length = ftell(from);
	rewind(from);
	*text = length < 0 ? NULL : calloc(1, (size_t)length + 1);
	bool whole = *text && fread(*text, 1, (size_t)length, from) == (size_t)length;
	fclose(from);
	if (!whole || strlen(*text) != (size_t)length) {
		free(*text);
		return error_set(-EIO, "reading %s: it is not a text", path);
	}
	d->text[d->files++] = *text;
	return 0;
}

int data_add_json(struct data *d, const char *path)
{
	struct reader r = { .d = d };
	int rc = file_read(d, path, &r.at);
	if (rc)
		return rc;
	char *begin = r.at;
	char c = next(&r);
	bool read = c == '{'   ? list_read(&r, '}', record_add(d, true), NULL)
		    : c == '[' ? list_read(&r, ']', NO_RECORD, NULL)
			       : false;
	if (!read || next(&r))
		return error_set(-EINVAL, "reading %s: this is no JSON, at byte %td", path,
				 r.at - begin);
	return 0;
}

/* A line of CSV whose keys are `key`; cells are not quoted. */
static void csv_row(struct data *d, char *line, char *const *key, unsigned keys)
{
	int record = record_add(d, false);
	char *cell;
	for (unsigned i = 0; i < keys && (cell = strsep(&line, ",")); i++)
		field_add(d, record, (struct field){ NULL, key[i], *cell ? cell : NULL });
}

int data_add_csv(struct data *d, const char *path)
{
	enum { KEYS_MOST = 32 };
	char *text, *line, *cell, *key[KEYS_MOST];
	unsigned keys = 0;
	int rc = file_read(d, path, &text);
	if (rc)
		return rc;
	line = strsep(&text, "\n");
	while (keys < KEYS_MOST && (cell = strsep(&line, ",")))
		key[keys++] = cell;
	if (keys < 2)
		return error_set(-EINVAL, "reading %s: its first line has no names between commas",
				 path);
	while ((line = strsep(&text, "\n")))
		if (*line)
			csv_row(d, line, key, keys);
	return 0;
}
