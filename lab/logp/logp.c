/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern logp`: measures, then shows and writes. */
#include <stdio.h>

#include "base/cpu.h"
#include "base/setting.h"
#include "lab/bench/pair.h"
#include "lab/lab.h"
#include "lab/logp/profile.h"
#include "lab/logp/run.h"
#include "tools/common/option.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

struct logp_options {
	bool quick, json;
	struct logp_wish wish; /* complete, with what is usual where nothing was said */
	const char *profile;   /* a file; NULL unless named */
};

/* -- The command line --------------------------------------------------------------------- */

enum { USUAL_COUNT = 20000, USUAL_ROUNDS = 101, QUICK_ROUNDS = 31 };
/* Over a network, where a message takes a hundred times as long. */
enum { NET_COUNT = 200, NET_ROUNDS = 21, NET_QUICK_ROUNDS = 11 };

enum { SIZES_MOST = LOGP_SIZES_MOST - TERN_WORDS_MAX - 1 };

/* Each size once. */
static bool sizes_add(struct sizes *s, uint32_t size)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->at[i] == size)
			return true;
	if (s->n == SIZES_MOST)
		return option_refuse("--bytes: at most %u sizes at a time", s->n);
	s->at[s->n++] = size;
	return true;
}

/* What was not said. */
static void wish_complete(struct logp_wish *w, bool quick)
{
	static const struct sizes words = { 7, { 0, 1, 2, 3, 4, 5, 6 } }, few_words = { 1, { 4 } };
	static const struct sizes bytes = { 8, { 64, 128, 256, 512, 1024, 2048, 4096, 8192 } },
				  few_bytes = { 3, { 1024, 4096, 8192 } };
	if (!w->words.n)
		w->words = quick ? few_words : words;
	if (!w->bytes.n)
		w->bytes = quick ? few_bytes : bytes;
	if (!w->ranks)
		w->ranks = cpu_count() < 2                 ? 2
			   : cpu_count() < PERF_RANKS_MOST ? cpu_count()
							   : PERF_RANKS_MOST;
	bool net = pair_networked();
	if (!w->count)
		w->count = net ? NET_COUNT : USUAL_COUNT;
	if (!w->rounds && net)
		w->rounds = quick ? NET_QUICK_ROUNDS : NET_ROUNDS;
	else if (!w->rounds)
		w->rounds = quick ? QUICK_ROUNDS : USUAL_ROUNDS;
}

static bool read_words(void *to, char *text)
{
	uint64_t words;
	return option_number("--words", text, 0, TERN_WORDS_MAX, &words) &&
	       sizes_add(to, (uint32_t)words);
}

static bool read_bytes(void *to, char *text)
{
	uint64_t bytes;
	return option_number("--bytes", text, 1, TERN_PAYLOAD_MAX, &bytes) &&
	       sizes_add(to, (uint32_t)bytes);
}

/* False: nothing is to be done, and *status is the exit status. */
static bool logp_options_read(struct logp_options *o, int argc, char **argv, int *status)
{
	struct logp_wish *w = &o->wish;
	const struct choice choices[] = {
		{ .name = "--words", .each = read_words, .to = &w->words },
		{ .name = "--bytes", .each = read_bytes, .to = &w->bytes },
		{ .name = "--ranks", .small = &w->ranks, .least = 2, .most = PERF_RANKS_MOST },
		{ .name = "--count", .number = &w->count, .least = 1, .most = 1000000000 },
		{ .name = "--repeat", .small = &w->rounds, .least = 1, .most = SERIES_MOST },
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &table_plain },
		{ .name = "--profile", .text = &o->profile },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "logp", .help = help_logp, .choice = choices };
	*o = (struct logp_options){ 0 };
	if (!options_read(&options, argc, argv, status))
		return false;
	if (optind < argc) {
		*status = 2;
		return option_refuse("'%s' is not an option; `tern logp --help` lists them",
				     argv[optind]);
	}
	wish_complete(&o->wish, o->quick);
	return true;
}

/* -- The command --------------------------------------------------------------------------- */

static int outcome_profile(const void *outcome, FILE *to)
{
	const struct logp_outcome *o = outcome;
	return profile_write(&o->model, to);
}

static int outcome_measure(const struct logp_options *options, struct logp_outcome *o)
{
	progress(1, 1, "measuring");
	int rc = logp_run(&options->wish, o);
	progress_end();
	return rc;
}

static int logp_do(const struct logp_options *options)
{
	static struct logp_outcome o;
	int rc = outcome_measure(options, &o);
	if (rc)
		return rc;
	if (options->json)
		logp_report_json(&o);
	else
		logp_report_tables(&o);
	return file_write(options->profile, outcome_profile, &o);
}

int logp_main(int argc, char **argv)
{
	struct logp_options options;
	int status;
	if (!logp_options_read(&options, argc, argv, &status))
		return status;
	setting_warn_unknown(); /* here, once, instead of in each process */
	int rc = logp_do(&options);
	if (rc)
		fprintf(stderr, "tern logp: %s\n", tern_strerror(rc));
	return rc ? 1 : 0;
}
