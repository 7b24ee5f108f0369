/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line of `tern logp`, and completes what it leaves open. */
#include "tools/logp/options.h"

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/nearest.h"
#include "tools/common/option.h"

static const char help[] =
	"usage: tern logp [OPTIONS]\n"
	"\n"
	"Measures the LogP parameters of this machine: the overhead of a message at its sender\n"
	"(o_s) and at its receiver (o_r), the latency between (L), the gap between two messages (g)\n"
	"and for each byte of a large one (G), with as many ranks as there are cores (P). Then\n"
	"predicts from them what was not used to find them, and shows what was measured beside it.\n"
	"Every figure is a median over many short rounds, in which all measurements take turns,\n"
	"with its 95 % interval.\n"
	"\n"
	"  --words LIST        numbers of words, 0 to 6 (usually all)\n"
	"  --bytes LIST        sizes of payloads, 1 to 8192 (usually 64 to 8192, by powers of two)\n"
	"  --ranks N           P: ranks of the all-to-all and the ring (usually as many as cores)\n"
	"  --count N           messages of a stream in a round; everything else follows it\n"
	"  --repeat N          rounds, 1 to 1000\n"
	"  --quick             fewer sizes and rounds: within some seconds\n"
	"  --profile FILE      write the parameters there, as lines `key = number`\n"
	"  --read FILE         take them from a profile, and measure nothing\n"
	"  --plot FILE         draw predictions and parameters there, as SVG\n"
	"  --json              an object on standard output, and nothing else\n"
	"  --plain             no highlighting and no progress, on a terminal too\n"
	"  --list              what is measured and predicted, and how\n"
	"  --help              print this\n"
	"\n"
	"Let nothing else run meanwhile: rounds in which another program took a core are played\n"
	"again, but not for ever.\n"
	"\n"
	"examples:\n"
	"  tern logp --quick\n"
	"  tern logp --profile this.profile --plot this.svg\n"
	"  tern logp --words 1,4 --bytes 1024,4096,8192 --repeat 201 --json\n"
	"  tern logp --read this.profile\n";

enum { USUAL_COUNT = 20000, USUAL_ROUNDS = 101, QUICK_ROUNDS = 31 };

enum { SIZES_MOST = LOGP_SIZES_MOST - TERN_WORDS_MAX - 1 };

/* Each size once. */
static bool sizes_add(struct sizes *s, uint32_t size)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->at[i] == size)
			return true;
	if (s->n == SIZES_MOST)
		return option_refuse("logp", "--bytes: at most %u sizes at a time", s->n);
	s->at[s->n++] = size;
	return true;
}

/* The text is cut up. */
static bool read_sizes(struct sizes *s, const char *option, char *text, uint64_t least, uint64_t most)
{
	char *rest = text, *part;
	uint64_t size;
	while ((part = strsep(&rest, ",")) != NULL)
		if (!option_number("logp", option, part, least, most, &size) || !sizes_add(s, (uint32_t)size))
			return false;
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
	if (!w->count)
		w->count = USUAL_COUNT;
	if (!w->rounds)
		w->rounds = quick ? QUICK_ROUNDS : USUAL_ROUNDS;
}

static bool check(const struct logp_options *o, int argc, char **argv)
{
	const struct logp_wish *w = &o->wish;
	if (optind < argc)
		return option_refuse("logp", "'%s' is not an option; `tern logp --help` lists them",
				     argv[optind]);
	if (o->read &&
	    (w->words.n || w->bytes.n || w->ranks || w->count || w->rounds || o->quick || o->profile))
		return option_refuse("logp",
				     "with --read nothing is measured: --json, --plot and --plain are all "
				     "that can stand beside it");
	return true;
}

static bool read_words(void *to, char *text)
{
	return read_sizes(to, "--words", text, 0, TERN_WORDS_MAX);
}

static bool read_bytes(void *to, char *text)
{
	return read_sizes(to, "--bytes", text, 1, TERN_PAYLOAD_MAX);
}

bool logp_options_read(struct logp_options *o, int argc, char **argv, int *status)
{
	struct logp_wish *w = &o->wish;
	const struct choice choices[] = {
		{ .name = "--words", .read = read_words, .to = &w->words },
		{ .name = "--bytes", .read = read_bytes, .to = &w->bytes },
		{ .name = "--ranks", .small = &w->ranks, .least = 2, .most = PERF_RANKS_MOST },
		{ .name = "--count", .number = &w->count, .least = 1, .most = 1000000000 },
		{ .name = "--repeat", .small = &w->rounds, .least = 1, .most = SERIES_MOST },
		{ .name = "--quick", .flag = &o->quick },
		{ .name = "--read", .text = &o->read },
		{ .name = "--plot", .text = &o->plot },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--plain", .flag = &o->plain },
		{ .name = "--profile", .text = &o->profile },
		{ .name = "--list", .flag = &o->list },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "logp", .help = help, .choice = choices };
	*o = (struct logp_options){ 0 };
	if (!options_read(&options, argc, argv, status) || !check(o, argc, argv))
		return false;
	wish_complete(&o->wish, o->quick);
	return true;
}
