/* SPDX-License-Identifier: BSD-3-Clause */
/* Hexadecimal digits, and the nearest of several names. */
#include "base/text.h"

#include "lib/check.h"

TEST(bytes_are_written_as_digits_and_read_again)
{
	static const unsigned char bytes[] = { 0x00, 0x09, 0x0a, 0x5f, 0xa0, 0xff };
	unsigned char back[sizeof bytes + 1];
	char text[2 * sizeof bytes + 2];
	for (size_t len = 0; len <= sizeof bytes; len++) {
		memset(text, '#', sizeof text);
		memset(back, 0x77, sizeof back);
		hex_write(text, bytes, len);
		CHECK_IS(strlen(text), 2 * len);
		CHECK(strncmp(text, "00090a5fa0ff", 2 * len) == 0);
		CHECK(text[2 * len + 1] == '#');
		CHECK(hex_read(text, back, len));
		CHECK(memcmp(back, bytes, len) == 0);
		CHECK(back[len] == 0x77);
	}
}

TEST(what_is_no_digit_too_short_or_too_long_is_refused)
{
	static const char *const texts[] = { "",     "1",    "123",  "12345", "12g4",
					     "1z34", "g234", "1 34", "12 4",  "12-4",
					     "AB12", "abCD", "-123", "0x12",  "12345678" };
	unsigned char bytes[2];
	CHECK(hex_read("12ab", bytes, 2) && bytes[0] == 0x12 && bytes[1] == 0xab);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!CHECK(!hex_read(texts[i], bytes, 2)))
			printf("    %s\n", texts[i]);
}

static const char *const names[] = { "TERN_NET", "TERN_HEAP", "TERN_FLOW", "TERN_FAULT" };

static const char *nearest(const char *word)
{
	return nearest_name(word, names, sizeof names / sizeof *names);
}

TEST(the_nearest_name_takes_the_fewest_edits)
{
	CHECK(nearest("TERN_NET") == names[0]);
	CHECK(nearest("TERN_NETS") == names[0]);
	CHECK(nearest("TERN_NT") == names[0]);
	CHECK(nearest("TERN_HEEP") == names[1]);
	CHECK(nearest("HEAP") == names[1]);
	CHECK(nearest("TERN_FOLW") == names[2]);
	CHECK(nearest("TERN_SLOW") == names[2]);
	CHECK(nearest("FAULTS") == names[3]);
	CHECK(nearest("") == names[0]);     /* the shortest */
	CHECK(nearest("????") == names[0]); /* and of several the first */
}

/* Names of 63 letters are compared; longer ones are never the nearest. */
TEST(names_that_are_too_long_to_compare_are_passed_over)
{
	char longest[64], longer[65];
	memset(longest, 'a', 63);
	longest[63] = '\0';
	memset(longer, 'a', 64);
	longer[64] = '\0';
	const char *const two[] = { longer, longest, "b" };
	CHECK(nearest_name(longer, two, 3) == longest);
	CHECK(nearest_name(longest, two, 3) == longest);
}
