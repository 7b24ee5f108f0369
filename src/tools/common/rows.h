/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows with named columns, written as a table for people or as JSON. A row is a call for each cell,
 * which names its column: the key that JSON has (NULL: the cell is in the table alone), the head of
 * the table (NULL: it is not there) and its width (negative: to the left; 0: as wide as it is). The
 * heading comes with the first row.
 */
#ifndef TERN_TOOLS_COMMON_ROWS_H
#define TERN_TOOLS_COMMON_ROWS_H

#include "tools/common/json.h"

enum rows_as { ROWS_TABLE, ROWS_JSON };

struct rows {
	enum rows_as as;
	bool bold;   /* the heading of a table is set off */
	bool headed; /* it has been written */
	bool inside; /* a row has begun */
	struct json json;
	char head[512], line[2048];
};

/* Begins an array of JSON. */
void rows_begin(struct rows *r, enum rows_as as, FILE *to);
/* Ends a row. */
void rows_end_row(struct rows *r);
void rows_end(struct rows *r);

/* A cell; `format` is what the table has instead of the value, unless it is NULL. */
void rows_text(struct rows *r, const char *key, const char *head, int width, const char *value);
void rows_truth(struct rows *r, const char *key, const char *head, int width, bool value);
__attribute__((format(printf, 6, 7))) void rows_whole(struct rows *r, const char *key,
						      const char *head, int width, uint64_t value,
						      const char *format, ...);
__attribute__((format(printf, 6, 7))) void rows_real(struct rows *r, const char *key,
						     const char *head, int width, double value,
						     const char *format, ...);

#endif
