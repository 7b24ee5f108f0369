/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows are the same in a table and in JSON, but for what a form leaves out. */
#include "tools/common/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check.h"

static void row_write(struct rows *w, const char *name, uint64_t size, double ns)
{
	rows_text(w, "name", "name", -6, name);
	rows_whole(w, "size", "size", 7, size, "%u B", (unsigned)size);
	rows_text(w, "unit", NULL, 0, "ns");
	rows_real(w, "ns", "ns", 6, ns, NULL);
	rows_text(w, NULL, "remark", 0, "seen");
	rows_end_row(w);
}

static void written(enum rows_as as, bool bold, const char *expected)
{
	struct rows w;
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	rows_begin(&w, as, to);
	w.bold = bold;
	row_write(&w, "put", 8, 12.25);
	row_write(&w, "get", 16, NAN);
	rows_end(&w);
	fclose(to);
	if (strcmp(text, expected) != 0)
		printf("    it has written:\n%s", text);
	CHECK(strcmp(text, expected) == 0);
	free(text);
}

TEST(a_table_has_one_heading_and_no_cell_without_a_head)
{
	written(ROWS_TABLE, false,
		"name       size      ns  remark\n"
		"put         8 B   12.25  seen\n"
		"get        16 B       -  seen\n");
}

TEST(a_heading_is_set_off_where_it_is_bold)
{
	written(ROWS_TABLE, true,
		"\033[1mname       size      ns  remark\033[0m\n"
		"put         8 B   12.25  seen\n"
		"get        16 B       -  seen\n");
}

TEST(json_has_the_values_and_null_for_none)
{
	written(ROWS_JSON, false,
		"[\n"
		"  {\"name\": \"put\", \"size\": 8, \"unit\": \"ns\", \"ns\": 12.25},\n"
		"  {\"name\": \"get\", \"size\": 16, \"unit\": \"ns\", \"ns\": null}\n"
		"]\n");
}
