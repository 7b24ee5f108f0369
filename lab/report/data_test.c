/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of JSON and of CSV are found, and what is neither is refused. */
#include "lab/report/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/check.h"

/* Reads the text as a file; the result of `add`. */
static int read_text(struct data *d, const char *text, int (*add)(struct data *, const char *))
{
	char name[] = "/tmp/data_test_XXXXXX";
	int fd = mkstemp(name);
	REQUIRE(fd >= 0);
	REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	int rc = add(d, name);
	unlink(name);
	return rc;
}

TEST(every_object_in_an_array_is_a_record_and_the_outermost_one_is_the_head)
{
	struct data d = { 0 };
	CHECK_IS(
		read_text(&d,
			  "{\"command\": \"tern x\", \"seconds\": 1.5, \"data\": {\"ranks\": 2,\n"
			  " \"a\": [{\"k\": 1 }, {\"k\":2}], \"b\": [{\"z\": null}], \"late\": 3}}",
			  data_add_json),
		0);
	REQUIRE(d.records == 4);
	CHECK(d.record[0].head && !d.record[1].head);
	CHECK(strcmp(data_text(&d, &d.record[0], "command"), "tern x") == 0);
	CHECK(data_number(&d, &d.record[0], "seconds") == 1.5);
	CHECK(data_number(&d, &d.record[0], "data.ranks") == 2);
	CHECK(data_number(&d, &d.record[1], "k") == 1 && data_number(&d, &d.record[2], "k") == 2);
	CHECK(isnan(data_number(&d, &d.record[3], "z")));
	CHECK(data_text(&d, &d.record[3], "late") == NULL);
	data_free(&d);
}

TEST(fields_of_inner_objects_have_their_name_and_can_be_added_up)
{
	struct data d = { 0 };
	CHECK_IS(read_text(&d,
			   "[{\"op\": \"a\", \"source\": {\"base\": 3, \"flow\": 1}, "
			   "\"destination\": {\"base\": 4}}]",
			   data_add_json),
		 0);
	REQUIRE(d.records == 1);
	CHECK(data_number(&d, &d.record[0], "source.base") == 3);
	CHECK(data_number(&d, &d.record[0], "*.base") == 7);
	CHECK(data_number(&d, &d.record[0], "*.flow") == 1);
	CHECK(isnan(data_number(&d, &d.record[0], "*.none")));
	CHECK(data_text(&d, &d.record[0], "base") == NULL);
	data_free(&d);
}

TEST(escapes_are_decoded)
{
	struct data d = { 0 };
	CHECK_IS(read_text(&d, "[{\"a\\\"b\": \"x\\u000a\\u003c\\\\\"}]", data_add_json), 0);
	REQUIRE(d.records == 1);
	CHECK(strcmp(data_text(&d, &d.record[0], "a\"b"), "x\n<\\") == 0);
	data_free(&d);
}

TEST(records_of_several_files_and_of_thousands_stay_where_they_are_found)
{
	struct data d = { 0 };
	char text[40];
	for (int i = 0; i < 60; i++) {
		snprintf(text, sizeof text, "[{\"i\": %d}, {\"i\": %d}]", i, -i);
		CHECK_IS(read_text(&d, text, data_add_json), 0);
	}
	REQUIRE(d.records == 120);
	for (int i = 0; i < 60; i++)
		CHECK(data_number(&d, &d.record[2 * i], "i") == i);
	data_free(&d);
}

TEST(what_is_no_json_is_refused)
{
	static const char *const wrong[] = {
		"",
		"x",
		"[{\"a\": 1}",
		"[{\"a\" 1}]",
		"[{\"a\": }]",
		"[{a: 1}]",
		"[] []",
		"{\"a\": \"b}",
		"[{\"a\": 1,}]",
		"[1, 2",
		"[\"\\q\"]",
		"[\"\\u12\"]",
		"{\"a\": \"\\u0000\"}",
		"[{\"a\": 1 2}]",
		"[\"\\u20ac\"]",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct data d = { 0 };
		CHECK_IS(read_text(&d, wrong[i], data_add_json), -EINVAL);
		data_free(&d);
	}
	char deep[4001];
	struct data d = { 0 };
	memset(deep, '[', 4000);
	deep[4000] = '\0';
	CHECK_IS(read_text(&d, deep, data_add_json), -EINVAL);
	data_free(&d);
	CHECK_IS(data_add_json(&d, "/nowhere/at/all"), -ENOENT);
	data_free(&d);
}

TEST(lines_of_csv_are_records_with_the_names_of_the_first)
{
	struct data d = { 0 };
	CHECK_IS(read_text(&d, "a,b,c\n1,,x\n2,3\n\n", data_add_csv), 0);
	REQUIRE(d.records == 2);
	CHECK(data_number(&d, &d.record[0], "a") == 1);
	CHECK(data_text(&d, &d.record[0], "b") == NULL);
	CHECK(strcmp(data_text(&d, &d.record[0], "c"), "x") == 0);
	CHECK(data_number(&d, &d.record[1], "b") == 3);
	CHECK(data_text(&d, &d.record[1], "c") == NULL);
	data_free(&d);
	CHECK_IS(read_text(&d, "nothing\n", data_add_csv), -EINVAL);
	data_free(&d);
}
