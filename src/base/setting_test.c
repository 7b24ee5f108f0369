/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: numbers, sizes, words, and what is refused by name. */
#include "base/setting.h"

#include <errno.h>

#include <tern/tern.h>

#include "lib/check.h"

static uint64_t number_of(const char *text)
{
	uint64_t value = 12345;
	setenv("TERN_MEMORY", text, 1);
	return setting_number(SETTING_MEMORY, &value) == 0 ? value : UINT64_MAX;
}

TEST(a_setting_is_the_environments_or_its_fallback)
{
	unsetenv("TERN_GRACE");
	CHECK(!setting_given(SETTING_GRACE));
	CHECK(strcmp(setting_text(SETTING_GRACE), setting_table[SETTING_GRACE].fallback) == 0);
	setenv("TERN_GRACE", "70", 1);
	CHECK(setting_given(SETTING_GRACE));
	CHECK(strcmp(setting_text(SETTING_GRACE), "70") == 0);
}

TEST(numbers_may_end_in_K_M_or_G)
{
	CHECK_IS(number_of("0"), 0);
	CHECK_IS(number_of("17"), 17);
	CHECK_IS(number_of("4K"), 4096);
	CHECK_IS(number_of("4k"), 4096);
	CHECK_IS(number_of("3M"), 3 << 20);
	CHECK_IS(number_of("2G"), 2ll << 30);
}

TEST(what_is_empty_is_not_set)
{
	setenv("TERN_NET", "", 1);
	setenv("TERN_GRACE", "", 1);
	CHECK(strcmp(setting_text(SETTING_NET), "auto") == 0);
	CHECK(!setting_given(SETTING_NET));
	uint64_t grace = 0;
	CHECK_IS(setting_number(SETTING_GRACE, &grace), 0);
	CHECK_IS(grace, 500);
}

TEST(what_is_no_whole_number_is_refused_and_writes_nothing)
{
	static const char *const bad[] = { "x",
					   "-5",
					   " -5",
					   "4T",
					   "4KK",
					   "1.5",
					   "0x10",
					   "99999999999999999999",
					   "18446744073709551615K",
					   "4 K",
					   "K",
					   "+" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!CHECK(number_of(bad[i]) == UINT64_MAX))
			printf("    '%s' passed\n", bad[i]);
		uint64_t value = 99;
		CHECK_IS(setting_number(SETTING_MEMORY, &value), -EINVAL);
		CHECK_IS(value, 99);
		CHECK(strstr(tern_strerror(-EINVAL), "TERN_MEMORY") != NULL);
	}
}

TEST(every_setting_has_a_name_and_a_meaning)
{
	for (int s = 0; s < SETTING_COUNT; s++) {
		CHECK(strncmp(setting_table[s].name, "TERN_", 5) == 0);
		CHECK(setting_table[s].fallback != NULL);
		CHECK(strlen(setting_table[s].meaning) > 10);
		for (int other = 0; other < s; other++)
			CHECK(strcmp(setting_table[s].name, setting_table[other].name) != 0);
	}
}

/* What setting_warn_unknown() writes, called as often as given. */
static const char *warning(int times)
{
	static char text[2000];
	FILE *to = tmpfile();
	REQUIRE(to != NULL);
	int saved = dup(STDERR_FILENO);
	dup2(fileno(to), STDERR_FILENO);
	for (int i = 0; i < times; i++)
		setting_warn_unknown();
	dup2(saved, STDERR_FILENO);
	rewind(to);
	text[fread(text, 1, sizeof text - 1, to)] = '\0';
	fclose(to);
	return text;
}

static unsigned lines_in(const char *text)
{
	unsigned n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

TEST(a_variable_that_nothing_reads_gets_one_warning_with_the_nearest_name)
{
	setenv("TERN_MEMROY", "1G", 1);
	const char *text = warning(3);
	CHECK(strstr(text, "TERN_MEMROY") && strstr(text, "TERN_MEMORY?"));
	CHECK_IS(lines_in(text), 1);
}

TEST(each_unread_variable_is_warned_about_and_the_known_are_not)
{
	char longest[100] = "TERN_";
	memset(longest + 5, 'X', 90);
	setenv("TERN_GRACES", "1", 1);
	setenv("TERN_SPINS", "1", 1);
	setenv("TERN_SPIN", "1", 1);
	setenv("TERNARY", "1", 1);
	setenv(longest, "1", 1);
	const char *text = warning(1);
	CHECK(strstr(text, "TERN_GRACE?") && strstr(text, "TERN_SPIN?") &&
	      !strstr(text, "TERNARY"));
	CHECK_IS(lines_in(text), 3);
}

TEST(without_unread_variables_nothing_is_said)
{
	setenv("TERN_SPIN", "1", 1);
	CHECK_IS(strlen(warning(1)), 0);
}
