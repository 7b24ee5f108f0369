/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern info`: what there is on this machine, and what stands in the way of the rest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tern/tern.h>

#include "base/cpu.h"
#include "base/kernel.h"
#include "base/nearest.h"
#include "base/setting.h"
#include "boot/pmi.h"
#include "job/job.h"
#include "open/nets.h"
#include "ring/ring.h"
#include "tools/common/json.h"
#include "tools/info/memory.h"
#include "tools/info/setting.h"
#include "tools/tools.h"

static const char help[] =
	"usage: tern info [--json]\n"
	"\n"
	"Shows each network and what it provides, or why it cannot be used here and what to do;\n"
	"whose jobs programs can join besides those of `tern run`, or what is missing for that;\n"
	"the limits of messages and jobs; the shared memory that jobs take; the heap, and how data\n"
	"gets from one process to another; what waiting can use;\n"
	"and every TERN_* setting, with its value and where that comes from. A TERN_* variable\n"
	"that nothing reads gets a warning.\n"
	"\n"
	"  --json              one object on standard output, and nothing else there\n"
	"  --help              print this\n";

static const struct {
	unsigned bit;
	const char *name, *phrase;
} capabilities[] = {
	{ PROVIDES_ORDER, "order", "keeps order" },
	{ PROVIDES_ROOM, "room", "never overflows" },
	{ PROVIDES_RELIABLE, "reliable", "loses nothing" },
	{ PROVIDES_SHARED, "shared", "maps the memory of peers" },
};

static const struct {
	const char *name;
	uint64_t value;
	const char *meaning;
} limits[] = {
	{ "ranks", TERN_RANKS_MAX, "in a job" },
	{ "words", TERN_WORDS_MAX, "of 8 bytes in a message" },
	{ "payload", TERN_PAYLOAD_MAX, "bytes besides the words" },
	{ "handlers", TERN_HANDLER_MAX, "numbered from 0" },
	{ "pool-blocks", TERN_POOL_BLOCKS, "payloads under way from one rank, to near ones" },
	{ "keep", TERN_KEEP_MAX, "messages kept by one rank" },
	{ "defer", TERN_DEFER_MAX, "deferred functions waiting in one rank" },
	{ "request-lines", RING_LEAVES *REQUEST_LEAF_LINES,
	  "of 64 bytes in the ring from one rank to another" },
	{ "reply-lines", RING_LEAVES *REPLY_LEAF_LINES, "of 64 bytes in the ring back" },
};

static const uint32_t job_sizes[] = { 2, 16, 64, 256 };

enum {
	CAPABILITIES = sizeof capabilities / sizeof *capabilities,
	LIMITS = sizeof limits / sizeof *limits,
	JOB_SIZES = sizeof job_sizes / sizeof *job_sizes,
};

/* -- What has to be found out --------------------------------------------------------- */

struct waiting {
	uint32_t cores;
	bool membarrier, futex_waitv;
};

static struct waiting waiting_find(void)
{
	_Atomic uint64_t word[2] = { 1, 1 };
	_Atomic uint64_t *const words[2] = { &word[0], &word[1] };
	struct waiting w = { .cores = cpu_count(), .membarrier = barrier_register() };
	w.futex_waitv =
		futex_wait_many(words, 2, 0, 0) != -ENOSYS; /* the value is another: returns at once */
	return w;
}

/* -- Text ----------------------------------------------------------------------------- */

static void text_provides(unsigned provides)
{
	const char *between = "";
	printf("  %-14s ", "");
	for (int c = 0; c < CAPABILITIES; c++)
		if (provides & capabilities[c].bit) {
			printf("%s%s", between, capabilities[c].phrase);
			between = ", ";
		}
	puts(provides ? "" : "promises nothing by itself");
}

static void text_networks(void)
{
	puts("networks");
	for (int i = 0; net_table[i]; i++) {
		char why[400] = "";
		bool usable = net_table[i]->usable(why, sizeof why);
		printf("  %-14s %s: %s\n", net_table[i]->name, usable ? "usable" : "not usable here",
		       usable ? net_table[i]->reach : why);
		if (usable && *why)
			printf("  %-14s %s\n", "", why);
		text_provides(net_table[i]->provides);
	}
}

static void text_launchers(void)
{
	puts("\nlaunchers");
	printf("  %-14s usable: needs nothing\n", "tern run");
	for (int i = 0; i < PMI_PROTOCOLS; i++) {
		char why[400] = "";
		bool usable = pmi_table[i]->usable(why, sizeof why);
		printf("  %-14s %s: %s\n", pmi_table[i]->name, usable ? "usable" : "not usable here",
		       usable ? pmi_table[i]->starters : why);
	}
}

static void text_limits(void)
{
	puts("\nlimits");
	for (int i = 0; i < LIMITS; i++)
		printf("  %-14s %6llu  %s\n", limits[i].name, (unsigned long long)limits[i].value,
		       limits[i].meaning);
}

static void text_memory(void)
{
	puts("\nshared memory of a job, MiB");
	printf("  %-14s %10s %16s %16s\n", "ranks", "at start", "neighbours talk", "all pairs talk");
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		printf("  %-14u %10.2f %16.2f %16.2f\n", job_sizes[i], (double)n.start / (1 << 20),
		       (double)n.neighbours / (1 << 20), (double)n.all_pairs / (1 << 20));
	}
}

static void text_waiting(void)
{
	struct waiting w = waiting_find();
	puts("\nwaiting");
	printf("  %-14s %u that this process may use\n", "cores", w.cores);
	printf("  %-14s %s\n", "membarrier",
	       w.membarrier ? "yes: a rank that waits sleeps until it is woken"
			    : "refused (Linux 4.16 has it; a container's seccomp rules must allow it): "
			      "a rank that waits takes naps instead");
	printf("  %-14s %s\n", "futex_waitv",
	       w.futex_waitv
		       ? "yes: a thread with several endpoints sleeps on all of them"
		       : "not in this kernel (Linux 5.16 has it): a thread with several endpoints takes naps");
}

static void text_settings(void)
{
	puts("\nsettings");
	for (int s = 0; s < SETTING_COUNT; s++) {
		const char *value = setting_text((enum setting)s),
			   *problem = info_setting_problem((enum setting)s);
		printf("  %-17s %-8s %-12s %s\n", setting_table[s].name, *value ? value : "-",
		       setting_given((enum setting)s) ? "environment" : "default", setting_table[s].meaning);
		if (problem)
			printf("  %-17s wrong: %s\n", "", problem);
	}
}

static void text(void)
{
	printf("tern %s, layout %u\n\n", TERN_VERSION, TERN_LAYOUT);
	text_networks();
	text_launchers();
	text_limits();
	text_memory();
	info_memory_text();
	text_waiting();
	text_settings();
}

/* -- JSON ----------------------------------------------------------------------------- */

static void json_networks(struct json *j)
{
	json_begin(j, "networks", '[');
	for (int i = 0; net_table[i]; i++) {
		char why[400] = "";
		bool usable = net_table[i]->usable(why, sizeof why);
		json_begin(j, NULL, '{');
		json_text(j, "name", net_table[i]->name);
		json_text(j, "reach", net_table[i]->reach);
		json_truth(j, "usable", usable);
		json_text(j, "why", usable ? NULL : why);
		json_begin(j, "provides", '[');
		for (int c = 0; c < CAPABILITIES; c++)
			if (net_table[i]->provides & capabilities[c].bit)
				json_text(j, NULL, capabilities[c].name);
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_launchers(struct json *j)
{
	json_begin(j, "launchers", '[');
	for (int i = 0; i < PMI_PROTOCOLS; i++) {
		char why[400] = "";
		bool usable = pmi_table[i]->usable(why, sizeof why);
		json_begin(j, NULL, '{');
		json_text(j, "name", pmi_table[i]->name);
		json_text(j, "starters", pmi_table[i]->starters);
		json_truth(j, "usable", usable);
		json_text(j, "why", usable ? NULL : why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_memory(struct json *j)
{
	json_begin(j, "memory", '[');
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		json_begin(j, NULL, '{');
		json_whole(j, "ranks", job_sizes[i]);
		json_whole(j, "start", n.start);
		json_whole(j, "neighbours", n.neighbours);
		json_whole(j, "all_pairs", n.all_pairs);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json_waiting(struct json *j)
{
	struct waiting w = waiting_find();
	json_begin(j, "waiting", '{');
	json_whole(j, "cores", w.cores);
	json_truth(j, "membarrier", w.membarrier);
	json_truth(j, "futex_waitv", w.futex_waitv);
	json_end(j, '}');
}

static void json_settings(struct json *j)
{
	json_begin(j, "settings", '[');
	for (int s = 0; s < SETTING_COUNT; s++) {
		json_begin(j, NULL, '{');
		json_text(j, "name", setting_table[s].name);
		json_text(j, "value", setting_text((enum setting)s));
		json_text(j, "from", setting_given((enum setting)s) ? "environment" : "default");
		json_text(j, "meaning", setting_table[s].meaning);
		json_text(j, "problem", info_setting_problem((enum setting)s));
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void json(void)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '{');
	json_text(&j, "version", TERN_VERSION);
	json_whole(&j, "layout", TERN_LAYOUT);
	json_networks(&j);
	json_launchers(&j);
	json_begin(&j, "limits", '{');
	for (int i = 0; i < LIMITS; i++)
		json_whole(&j, limits[i].name, limits[i].value);
	json_end(&j, '}');
	json_memory(&j);
	info_memory_json(&j);
	json_waiting(&j);
	json_settings(&j);
	json_end(&j, '}');
}

/* -- The command ------------------------------------------------------------------------ */

static int refuse(const char *word)
{
	static const char *const names[] = { "--json", "--help" };
	fprintf(stderr,
		"tern info: '%s' cannot be used here; did you mean %s? `tern info --help` says more\n", word,
		nearest_name(word, names, 2));
	return 2;
}

int info_main(int argc, char **argv)
{
	bool as_json = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help, stdout);
			return 0;
		}
		if (strcmp(argv[i], "--json") != 0)
			return refuse(argv[i]);
		as_json = true;
	}
	setting_warn_unknown();
	if (as_json)
		json();
	else
		text();
	return 0;
}
