/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs have measured: records of named values, from JSON and from CSV files. Every object in
 * an array is a record, wherever the array stands; the fields of a file's outermost object are a
 * record too, its head. A field of an object within a record has that object's name before a dot.
 */
#ifndef TERN_LAB_REPORT_DATA_H
#define TERN_LAB_REPORT_DATA_H

#include <stdbool.h>
#include <stdio.h>

enum { DATA_FILES = 64 };

/* They point into the file's text. */
struct field {
	const char *parent, *key; /* parent is NULL outside of an inner object */
	const char *value;        /* NULL: null */
};

struct record {
	unsigned first, fields; /* of data.field */
	bool head;
};

struct data {
	char *text[DATA_FILES];
	unsigned files, fields, records;
	struct field *field;
	struct record *record;
};

/* Adds the records of a file; 0, or a negative code with its sentence. */
int data_add_json(struct data *d, const char *path);
int data_add_csv(struct data *d, const char *path); /* the first line has the keys */
void data_free(struct data *d);

/* A field's number, NaN if it is none. */
double data_value(const struct field *f);
/* A value's text, NULL if there is none; and its number, NaN if there is none. */
const char *data_text(const struct data *d, const struct record *r, const char *key);
/* "*.base" adds up the fields `base` of all inner objects. */
double data_number(const struct data *d, const struct record *r, const char *key);

#endif
