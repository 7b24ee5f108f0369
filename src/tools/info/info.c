/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern info`: what there is on this machine, and what stands in the way of the rest. */
#include <errno.h>
#include <stdio.h>

#include <tern/mem.h>
#include <tern/tern.h>

#include "base/address.h"
#include "base/cpu.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/wrap.h"
#include "boot/link/program.h"
#include "boot/pmi/pmi.h"
#include "core/core.h"
#include "core/delivery.h"
#include "job/job.h"
#include "net/fault/fault.h"
#include "net/packet/terms.h"
#include "net/talk.h"
#include "open/nets.h"
#include "ring/ring.h"
#include "service/service.h"
#include "tools/common/json.h"
#include "tools/common/option.h"
#include "tools/common/single_copy.h"
#include "tools/tools.h"

static int faults_judge(void)
{
	struct plan plan;
	enum guard_mode mode = GUARD_AUTH; /* which auto is where there are faults */
	int rc = plan_read(&plan, setting_text(SETTING_FAULT));
	if (!rc && guard_mode_read(&mode) == 0)
		rc = plan_judge(&plan, mode != GUARD_NONE);
	return rc;
}

static int protect_judge(void)
{
	enum guard_mode mode;
	return guard_mode_read(&mode);
}

static int bind_judge(void)
{
	struct sockaddr_in6 address;
	return address_choose(&address, false);
}

static int stats_judge(void)
{
	uint64_t print;
	return stats_read(&print);
}

/* Those whose values are more than any number or any text: what reads them judges them. */
static int (*const judges[SETTING_COUNT])(void) = {
	[SETTING_DELIVERY] = delivery_judge,
	[SETTING_STATS] = stats_judge,
	[SETTING_NET] = nets_judge,
	[SETTING_UDP_BIND] = bind_judge,
	[SETTING_SERVICE] = service_judge,
	[SETTING_FLOW] = flow_judge,
	[SETTING_FAULT] = faults_judge,
	[SETTING_PROTECT] = protect_judge,
	[SETTING_UNREACHABLE] = unreachable_judge,
	[SETTING_WRAP] = wrap_judge,
};

static bool is_number(enum setting s)
{
	return !setting_is_text(s) && (setting_given(s) || *setting_table[s].fallback);
}

/*
 * What is wrong with the value, in a sentence that lasts until the next call; NULL if nothing is.
 */
static const char *setting_problem(enum setting s)
{
	uint64_t value;
	int rc = judges[s] ? judges[s]() : is_number(s) ? setting_number(s, &value) : 0;
	return rc ? tern_strerror(rc) : NULL;
}

struct limit {
	const char *name;
	uint64_t value;
	const char *meaning;
};

static const struct limit mem_limits[] = {
	{ "ops", TERN_OPS_MAX, "transfers under way from one rank" },
	{ "regions", JOB_REGIONS_OWN, "of private memory that one rank registers" },
	{ "segments", TERN_SEGMENTS_MAX, "communication segments that one rank has open" },
	{ "names", TERN_BLOCKS_MAX, "blocks that one rank publishes under a number" },
	{ "when", TERN_WHEN_MAX, "requests that one rank holds until a flag is reached" },
	{ "dims", TERN_DIMS_MAX, "dimensions of a part" },
};

enum { MEM_LIMITS = sizeof mem_limits / sizeof *mem_limits };

/* The heap's bytes; 0 for a setting that is wrong, which the settings' section explains. */
static uint64_t heap_bytes(void)
{
	uint64_t bytes;
	return setting_number(SETTING_HEAP, &bytes) ? 0 : bytes;
}

static void text_limits(const struct limit *limit, int n)
{
	for (int i = 0; i < n; i++)
		printf("  %-14s %6llu  %s\n", limit[i].name, (unsigned long long)limit[i].value,
		       limit[i].meaning);
}

static void text_mem(void)
{
	char why[400] = "";
	puts("\nmemory");
	printf("  %-14s %.0f MiB of addresses for each rank, half of it for tern_alloc_all(); "
	       "TERN_HEAP sets it\n",
	       "heap", (double)heap_bytes() / (1 << 20));
	if (single_copy_usable(why, sizeof why))
		printf("  %-14s yes: the kernel copies between registered memory of two ranks "
		       "(process_vm_readv)\n",
		       "single-copy");
	else
		printf("  %-14s no, registered memory of two ranks is copied through messages, "
		       "twice: %s\n",
		       "single-copy", why);
	text_limits(mem_limits, MEM_LIMITS);
}

static void json_mem(struct json *j)
{
	char why[400] = "";
	bool usable = single_copy_usable(why, sizeof why);
	json_begin(j, "mem", '{');
	json_whole(j, "heap", heap_bytes());
	json_truth(j, "single_copy", usable);
	json_text(j, "single_copy_why", usable ? NULL : why);
	for (int i = 0; i < MEM_LIMITS; i++)
		json_whole(j, mem_limits[i].name, mem_limits[i].value);
	json_end(j, '}');
}

static const struct {
	unsigned bit;
	const char *name, *phrase;
} capabilities[] = {
	{ PROVIDES_ORDER, "order", "keeps order" },
	{ PROVIDES_ROOM, "room", "never overflows" },
	{ PROVIDES_RELIABLE, "reliable", "loses nothing" },
	{ PROVIDES_SHARED, "shared", "maps the memory of peers" },
};

static const struct limit limits[] = {
	{ "ranks", TERN_RANKS_MAX, "in a job" },
	{ "words", TERN_WORDS_MAX, "of 8 bytes in a message" },
	{ "payload", TERN_PAYLOAD_MAX, "bytes of it in a short block" },
	{ "request", TERN_REQUEST_MAX, "bytes besides the words, in a reply too" },
	{ "handlers", TERN_HANDLER_MAX, "numbered from 0" },
	{ "pool-blocks", TERN_POOL_BLOCKS,
	  "payloads under way from one rank, to near ones; and as many longer ones" },
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
	w.futex_waitv = futex_wait_many(words, 2, 0, 0) !=
			-ENOSYS; /* the value is another: returns at once */
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
		printf("  %-14s %s: %s\n", net_table[i]->name,
		       usable ? "usable" : "not usable here", usable ? net_table[i]->reach : why);
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
		printf("  %-14s %s: %s\n", pmi_table[i]->name,
		       usable ? "usable" : "not usable here",
		       usable ? pmi_table[i]->starters : why);
	}
	char path[PATH_MAX];
	int rc = program_find(path);
	printf("  %-14s %s: %s\n", "tern-link", rc ? "not usable here" : "usable",
	       rc ? tern_strerror(rc) : path);
}

/* Where the memory of a job goes. */
static const struct part {
	const char *name;
	size_t bytes;
	const char *when;
} memory_parts[] = {
	{ "pair", 2 * SMALL_TALK_BYTES, "small rings of two ranks, when they first talk" },
	{ "request-ring", RING_LEAVES *REQUEST_LEAF_LINES *TERN_LINE,
	  "a ring of a pair that has grown: it was full, or went through TERN_GROW leaves" },
	{ "reply-ring", RING_LEAVES *REPLY_LEAF_LINES *TERN_LINE, "the same, of replies" },
	{ "spares", SPARES * sizeof(struct block),
	  "blocks of a rank for replies, when it opens; as many more when all are taken" },
	{ "pool", sizeof(struct pool), "blocks of a rank, with its first payload" },
	{ "large-block", sizeof(struct large_block),
	  "of a rank, for one more request above 8 KiB under way than before" },
};
enum { MEMORY_PARTS = sizeof memory_parts / sizeof *memory_parts };

static void text_memory(void)
{
	puts("\nshared memory by part, KiB");
	for (int i = 0; i < MEMORY_PARTS; i++)
		printf("  %-14s %10.1f  %s\n", memory_parts[i].name,
		       (double)memory_parts[i].bytes / 1024, memory_parts[i].when);
	puts("\nshared memory of a job, MiB");
	printf("  %-14s %10s %16s %16s %16s\n", "ranks", "at start", "neighbours talk",
	       "all say a word", "all pairs talk");
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		printf("  %-14u %10.2f %16.2f %16.2f %16.2f\n", job_sizes[i],
		       (double)n.start / (1 << 20), (double)n.neighbours / (1 << 20),
		       (double)n.few_words / (1 << 20), (double)n.all_pairs / (1 << 20));
	}
}

static void text_waiting(void)
{
	struct waiting w = waiting_find();
	puts("\nwaiting");
	printf("  %-14s %u that this process may use\n", "cores", w.cores);
	printf("  %-14s %s\n", "membarrier",
	       w.membarrier
		       ? "yes: a rank that waits sleeps until it is woken"
		       : "refused (Linux 4.16 has it; a container's seccomp rules must allow it): "
			 "a rank that waits takes naps instead");
	printf("  %-14s %s\n", "futex_waitv",
	       w.futex_waitv
		       ? "yes: a thread with several endpoints sleeps on all of them"
		       : "not in this kernel (Linux 5.16 has it): a thread with several endpoints "
			 "takes naps");
}

static void text_settings(void)
{
	for (int s = 0; s < SETTING_COUNT; s++) {
		if (s == 0 || s == SETTING_DEVELOPERS)
			puts(s ? "\nsettings for developers, see tern-developer(7)" : "\nsettings");
		const char *value = setting_text((enum setting)s),
			   *problem = setting_problem((enum setting)s);
		printf("  %-17s %-8s %-12s %s\n", setting_table[s].name, *value ? value : "-",
		       setting_given((enum setting)s) ? "environment" : "default",
		       setting_table[s].meaning);
		if (problem)
			printf("  %-17s wrong: %s\n", "", problem);
	}
}

static void text(void)
{
	printf("tern %s, layout %u\n\n", TERN_VERSION, TERN_LAYOUT);
	text_networks();
	text_launchers();
	puts("\nlimits");
	text_limits(limits, LIMITS);
	text_memory();
	text_mem();
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
	json_begin(j, "memory_parts", '{');
	for (int i = 0; i < MEMORY_PARTS; i++)
		json_whole(j, memory_parts[i].name, memory_parts[i].bytes);
	json_end(j, '}');
	json_begin(j, "memory", '[');
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		json_begin(j, NULL, '{');
		json_whole(j, "ranks", job_sizes[i]);
		json_whole(j, "start", n.start);
		json_whole(j, "neighbours", n.neighbours);
		json_whole(j, "few_words", n.few_words);
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
		json_truth(j, "developer", s >= SETTING_DEVELOPERS);
		json_text(j, "problem", setting_problem((enum setting)s));
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
	json_mem(&j);
	json_waiting(&j);
	json_settings(&j);
	json_end(&j, '}');
}

/* -- The command ------------------------------------------------------------------------ */

int info_main(int argc, char **argv)
{
	bool as_json = false;
	int status;
	const struct choice choices[] = { { .name = "--json", .flag = &as_json },
					  { .name = "--help" },
					  { 0 } };
	const struct options options = {
		"info",  help_info,
		choices, "'%s' cannot be used here; did you mean %s? `tern info --help` says more",
		false,   NULL
	};
	if (!options_read(&options, argc, argv, &status) ||
	    (optind < argc && !option_unknown(&options, argv[optind])))
		return status;
	setting_warn_unknown();
	if (as_json)
		json();
	else
		text();
	return 0;
}
