/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing JSON, for the commands' --json. Keys are NULL inside an array. */
#ifndef TERN_TOOLS_COMMON_JSON_H
#define TERN_TOOLS_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *to;
	unsigned depth;
	bool more; /* something stands before, so a comma comes next */
};

void json_begin(struct json *j, const char *key, char bracket);     /* '{' or '[' */
void json_end(struct json *j, char bracket);                        /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *value); /* NULL: null */
void json_whole(struct json *j, const char *key, uint64_t value);
void json_real(struct json *j, const char *key, double value); /* null unless finite */
void json_micros(struct json *j, const char *key, int64_t ns); /* in microseconds, exactly */
void json_truth(struct json *j, const char *key, bool value);

#endif
