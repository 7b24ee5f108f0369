/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads Matrix Market files, and says which line of a file is wrong. */
#include "frame/market.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	FILE *from;
	const char *path;
	unsigned long line;
	char text[1024];
	int pattern; /* no values */
	char *why;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r, const char *format, ...)
{
	va_list list;
	int n = snprintf(r->why, r->room, "%s:%lu: ", r->path, r->line);
	va_start(list, format);
	if (n > 0 && (size_t)n < r->room)
		vsnprintf(r->why + n, r->room - (size_t)n, format, list);
	va_end(list);
	return -1;
}

/* The next line that is neither empty nor a comment. */
static int next_line(struct reader *r)
{
	while (fgets(r->text, sizeof r->text, r->from)) {
		r->line++;
		if (r->text[0] != '%' && r->text[strspn(r->text, " \t\r\n")])
			return 0;
	}
	r->line++;
	return -1;
}

static int read_banner(struct reader *r, struct market *m)
{
	char form[32], field[32], symmetry[32];
	r->line = 1;
	if (!fgets(r->text, sizeof r->text, r->from) ||
	    sscanf(r->text, "%%%%MatrixMarket matrix %31s %31s %31s", form, field, symmetry) != 3)
		return refuse(r, "it does not begin with `%%%%MatrixMarket matrix ...`");
	if (strcmp(form, "coordinate") != 0)
		return refuse(r, "the matrix is %s; only coordinate can be read", form);
	r->pattern = strcmp(field, "pattern") == 0;
	if (!r->pattern && strcmp(field, "real") != 0 && strcmp(field, "integer") != 0)
		return refuse(r, "values are %s; they must be real, integer or pattern", field);
	m->symmetric = strcmp(symmetry, "symmetric") == 0;
	if (!m->symmetric && strcmp(symmetry, "general") != 0)
		return refuse(r, "the matrix is %s; it must be general or symmetric", symmetry);
	return 0;
}

static int read_sizes(struct reader *r, struct market *m)
{
	unsigned long long rows, columns, n;
	char rest;
	if (next_line(r) || sscanf(r->text, "%llu %llu %llu %c", &rows, &columns, &n, &rest) != 3)
		return refuse(r, "rows, columns and the number of entries must stand here");
	if (!rows || !columns || rows > UINT32_MAX || columns > UINT32_MAX || n > rows * columns)
		return refuse(r, "%llu by %llu with %llu entries is no matrix", rows, columns, n);
	m->rows = (uint32_t)rows;
	m->columns = (uint32_t)columns;
	m->n = n;
	return 0;
}

static int read_entry(struct reader *r, const struct market *m, struct market_entry *e)
{
	unsigned long long row, column;
	double value = 1;
	char rest;
	int want = r->pattern ? 2 : 3;
	int got = r->pattern ? sscanf(r->text, "%llu %llu %c", &row, &column, &rest)
			     : sscanf(r->text, "%llu %llu %lf %c", &row, &column, &value, &rest);
	if (got != want || !isfinite(value))
		return refuse(r, "an entry is a row, a column%s", r->pattern ? "" : " and a value");
	if (row < 1 || row > m->rows || column < 1 || column > m->columns)
		return refuse(r, "row %llu, column %llu is outside the matrix", row, column);
	*e = (struct market_entry){ (uint32_t)(row - 1), (uint32_t)(column - 1), value };
	return 0;
}

static int read_all(struct reader *r, struct market *m)
{
	if (read_banner(r, m) || read_sizes(r, m))
		return -1;
	m->entry = calloc(m->n ? m->n : 1, sizeof *m->entry);
	if (!m->entry)
		return refuse(r, "there is no memory for %llu entries", (unsigned long long)m->n);
	for (uint64_t i = 0; i < m->n; i++) {
		if (next_line(r))
			return refuse(r, "the file ends after %llu of %llu entries",
				      (unsigned long long)i, (unsigned long long)m->n);
		if (read_entry(r, m, &m->entry[i]))
			return -1;
	}
	if (!next_line(r))
		return refuse(r, "there are more entries than the %llu announced",
			      (unsigned long long)m->n);
	return 0;
}

int market_read(const char *path, struct market *m, char *why, size_t room)
{
	struct reader r = { .path = path, .why = why, .room = room };
	*m = (struct market){ 0 };
	r.from = fopen(path, "r");
	if (!r.from)
		return refuse(&r, "it cannot be read");
	int rc = read_all(&r, m);
	fclose(r.from);
	if (rc) {
		free(m->entry);
		m->entry = NULL;
	}
	return rc;
}
