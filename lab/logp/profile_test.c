/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile is read back as it was written, and what is none is refused. */
#include "lab/logp/profile.h"

#include <errno.h>
#include <math.h>

#include <tern/tern.h>

#include "lib/check.h"

static struct series_estimate estimate(double median)
{
	return (struct series_estimate){ median, median * 0.5, median * 2 };
}

static struct logp_model model_made(void)
{
	struct logp_model m = { .ranks = 16, .words = 4, .n = 3, .large_gap = 125 };
	static const uint32_t sizes[] = { 0, 4, 8192 };
	for (unsigned i = 0; i < 3; i++) {
		m.size[i].bytes = sizes[i] > TERN_WORDS_MAX;
		m.size[i].size = sizes[i];
		for (unsigned k = 0; k < LOGP_NAMES; k++)
			m.size[i].is[k] = estimate(1 << (5 * i + k));
	}
	m.per_byte = estimate(0.125);
	m.latency = estimate(175.25);
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		m.burst[i] = estimate(10 + i);
	return m;
}

static bool same(struct series_estimate a, struct series_estimate b)
{
	return a.median == b.median && a.low == b.low && a.high == b.high;
}

static FILE *file_of(const char *text)
{
	FILE *f = tmpfile();
	REQUIRE(f != NULL);
	fputs(text, f);
	rewind(f);
	return f;
}

static FILE *file_written(const struct logp_model *m, const char *more)
{
	FILE *f = tmpfile();
	REQUIRE(f != NULL);
	CHECK_IS(profile_write(m, f), 0);
	fputs(more, f);
	rewind(f);
	return f;
}

TEST(a_profile_is_read_back_as_it_was_written)
{
	struct logp_model m = model_made(), back;
	FILE *f = file_written(&m, "");
	REQUIRE(profile_read(&back, f, "x") == 0);
	CHECK_IS(back.ranks, 16);
	CHECK_IS(back.words, 4);
	REQUIRE(back.n == m.n);
	for (unsigned i = 0; i < m.n; i++) {
		CHECK_IS(back.size[i].bytes, m.size[i].bytes);
		CHECK_IS(back.size[i].size, m.size[i].size);
		for (unsigned k = 0; k < LOGP_NAMES; k++)
			CHECK(same(back.size[i].is[k], m.size[i].is[k]));
	}
	CHECK(same(back.per_byte, m.per_byte) && same(back.latency, m.latency));
	CHECK(back.large_gap == m.large_gap);
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		CHECK(same(back.burst[i], m.burst[i]));
	fclose(f);
}

TEST(both_predict_the_same)
{
	struct logp_model m = model_made(), back;
	FILE *f = file_written(&m, "");
	REQUIRE(profile_read(&back, f, "x") == 0);
	for (uint32_t n = 1; n <= 128; n++)
		CHECK(model_burst(&m, n) == model_burst(&back, n));
	CHECK(model_exchange(&m, 4) == model_exchange(&back, 4));
	CHECK(model_ring(&m, 16) == model_ring(&back, 16));
	CHECK(model_blocks(&m, 3000, 16) == model_blocks(&back, 3000, 16));
	fclose(f);
}

TEST(comments_empty_lines_and_unknown_keys_are_passed_over)
{
	struct logp_model m = model_made(), back;
	FILE *f = file_written(
		&m, "\n  # more\nwheels = 4\nwords.4.colour = 7 # red\nburst.77 = 1\n\tL\t=\t5\n");
	CHECK_IS(profile_read(&back, f, "x"), 0);
	CHECK(same(back.latency, (struct series_estimate){ 5, 5, 5 })); /* the last one counts */
	fclose(f);
}

TEST(what_is_no_profile_is_refused_with_the_line)
{
	static const char *const texts[] = {
		"L",           "L = ",          "L = fast",    "L = 1 2",
		"L = 1 2 3 4", "ranks = 1",     "ranks = 2.5", "profile = 2",
		"words = 9",   "words.x.L = 1", "L = nan"
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct logp_model m;
		FILE *f = file_of(texts[i]);
		CHECK_IS(profile_read(&m, f, "some.profile"), -EINVAL);
		CHECK(strstr(tern_strerror(-EINVAL), "some.profile, line 1") != NULL);
		fclose(f);
	}
}

TEST(what_is_missing_is_named)
{
	struct logp_model m;
	FILE *f = file_of("profile = 1\nranks = 2\nwords = 4\n");
	CHECK_IS(profile_read(&m, f, "some.profile"), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "has no L") != NULL);
	fclose(f);
}

TEST(a_model_without_payloads_has_no_G_and_is_whole)
{
	struct logp_model m = model_made(), back;
	m.n = 2;
	m.per_byte = estimate(NAN);
	m.large_gap = NAN;
	FILE *f = file_written(&m, "");
	CHECK_IS(profile_read(&back, f, "x"), 0);
	CHECK(isnan(back.per_byte.median) && isnan(model_blocks(&back, 3000, 2)));
	fclose(f);
}
