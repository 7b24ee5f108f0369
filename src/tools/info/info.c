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

/* -- One writer for both forms: JSON, or lines for people ------------------------------- */

static struct json json;
static bool as_json;

/* The line is what people see instead. */
static void begin(const char *key, char bracket, const char *line)
{
	if (as_json)
		json_begin(&json, key, bracket);
	else if (line)
		puts(line);
}

static void end(char bracket)
{
	if (as_json)
		json_end(&json, bracket);
}

/* Something that can be used here, or why not; to be ended. */
static void usable_show(const char *name, const char *key, const char *what, bool usable,
			const char *why)
{
	begin(NULL, '{', NULL);
	if (!as_json) {
		printf("  %-14s %s: %s\n", name, usable ? "usable" : "not usable here",
		       usable ? what : why);
		return;
	}
	json_text(&json, "name", name);
	json_text(&json, key, what);
	json_truth(&json, "usable", usable);
	json_text(&json, "why", usable ? NULL : why);
}

static void limits_show(const struct limit *limit, int n)
{
	for (int i = 0; i < n; i++)
		if (as_json)
			json_whole(&json, limit[i].name, limit[i].value);
		else
			printf("  %-14s %7llu  %s\n", limit[i].name,
			       (unsigned long long)limit[i].value, limit[i].meaning);
}

/* A question that the kernel has answered. */
static void answer_show(const char *key, const char *name, bool answer, const char *yes,
			const char *no)
{
	if (as_json)
		json_truth(&json, key, answer);
	else
		printf("  %-14s %s\n", name, answer ? yes : no);
}

/* The heap's bytes; 0 for a setting that is wrong, which the settings' section explains. */
static uint64_t heap_bytes(void)
{
	uint64_t bytes;
	return setting_number(SETTING_HEAP, &bytes) ? 0 : bytes;
}

static void mem_show(void)
{
	char why[400] = "", no[500];
	bool usable = single_copy_usable(why, sizeof why);
	begin("mem", '{', "\nmemory");
	if (as_json)
		json_whole(&json, "heap", heap_bytes());
	else
		printf("  %-14s %.0f MiB of addresses for each rank, half of it for "
		       "tern_alloc_all(); TERN_HEAP sets it\n",
		       "heap", (double)heap_bytes() / (1 << 20));
	snprintf(no, sizeof no,
		 "no, registered memory of two ranks is copied through messages, twice: %s", why);
	answer_show("single_copy", "single-copy", usable,
		    "yes: the kernel copies between registered memory of two ranks "
		    "(process_vm_readv)",
		    no);
	if (as_json)
		json_text(&json, "single_copy_why", usable ? NULL : why);
	limits_show(mem_limits, MEM_LIMITS);
	end('}');
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

static void provides_show(unsigned provides)
{
	const char *between = "";
	begin("provides", '[', NULL);
	if (!as_json)
		printf("  %-14s ", "");
	for (int c = 0; c < CAPABILITIES; c++)
		if (provides & capabilities[c].bit && as_json) {
			json_text(&json, NULL, capabilities[c].name);
		} else if (provides & capabilities[c].bit) {
			printf("%s%s", between, capabilities[c].phrase);
			between = ", ";
		}
	if (!as_json)
		puts(provides ? "" : "promises nothing by itself");
	end(']');
}

static void networks_show(void)
{
	begin("networks", '[', "networks");
	for (int i = 0; net_table[i]; i++) {
		char why[400] = "";
		bool usable = net_table[i]->usable(why, sizeof why);
		usable_show(net_table[i]->name, "reach", net_table[i]->reach, usable, why);
		if (usable && *why && !as_json)
			printf("  %-14s %s\n", "", why);
		provides_show(net_table[i]->provides);
		end('}');
	}
	end(']');
}

static void launchers_show(void)
{
	char path[PATH_MAX];
	begin("launchers", '[', "\nlaunchers");
	if (!as_json)
		printf("  %-14s usable: needs nothing\n", "tern run");
	for (int i = 0; i < PMI_PROTOCOLS; i++) {
		char why[400] = "";
		bool usable = pmi_usable(pmi_table[i], why, sizeof why);
		usable_show(pmi_table[i]->name, "starters", pmi_table[i]->starters, usable, why);
		end('}');
	}
	end(']');
	if (as_json)
		return;
	int rc = program_find(path);
	usable_show("tern-link", NULL, path, !rc, rc ? tern_strerror(rc) : NULL);
}

/* Where the memory of a job goes, in bytes. */
static const struct limit memory_parts[] = {
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

static void memory_show(void)
{
	begin("memory_parts", '{', "\nshared memory by part, bytes");
	limits_show(memory_parts, sizeof memory_parts / sizeof *memory_parts);
	end('}');
	begin("memory", '[', "\nshared memory of a job, MiB");
	if (!as_json)
		printf("  %-14s %10s %16s %16s %16s\n", "ranks", "at start", "neighbours talk",
		       "all say a word", "all pairs talk");
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		if (!as_json) {
			printf("  %-14u %10.2f %16.2f %16.2f %16.2f\n", job_sizes[i],
			       (double)n.start / (1 << 20), (double)n.neighbours / (1 << 20),
			       (double)n.few_words / (1 << 20), (double)n.all_pairs / (1 << 20));
			continue;
		}
		const struct limit needs[] = { { "ranks", job_sizes[i], NULL },
					       { "start", n.start, NULL },
					       { "neighbours", n.neighbours, NULL },
					       { "few_words", n.few_words, NULL },
					       { "all_pairs", n.all_pairs, NULL } };
		begin(NULL, '{', NULL);
		limits_show(needs, sizeof needs / sizeof *needs);
		end('}');
	}
	end(']');
}

static void waiting_show(void)
{
	_Atomic uint64_t word[2] = { 1, 1 };
	_Atomic uint64_t *const words[2] = { &word[0], &word[1] };
	begin("waiting", '{', "\nwaiting");
	const struct limit cores = { "cores", cpu_count(), "that this process may use" };
	limits_show(&cores, 1);
	answer_show("membarrier", "membarrier", barrier_register(),
		    "yes: a rank that waits sleeps until it is woken",
		    "refused (Linux 4.16 has it; a container's seccomp rules must allow it): "
		    "a rank that waits takes naps instead");
	answer_show("futex_waitv", "futex_waitv",
		    futex_wait_many(words, 2, 0, 0) != -ENOSYS, /* another value: returns at once */
		    "yes: a thread with several endpoints sleeps on all of them",
		    "not in this kernel (Linux 5.16 has it): a thread with several endpoints "
		    "takes naps");
	end('}');
}

static void setting_show(enum setting s)
{
	const char *value = setting_text(s), *problem = setting_problem(s),
		   *from = setting_given(s) ? "environment" : "default";
	if (!as_json) {
		printf("  %-17s %-8s %-12s %s\n", setting_table[s].name, *value ? value : "-", from,
		       setting_table[s].meaning);
		if (problem)
			printf("  %-17s wrong: %s\n", "", problem);
		return;
	}
	json_begin(&json, NULL, '{');
	json_text(&json, "name", setting_table[s].name);
	json_text(&json, "value", value);
	json_text(&json, "from", from);
	json_text(&json, "meaning", setting_table[s].meaning);
	json_truth(&json, "developer", s >= SETTING_DEVELOPERS);
	json_text(&json, "problem", problem);
	json_end(&json, '}');
}

static void info_show(void)
{
	begin(NULL, '{', NULL);
	if (as_json) {
		json_text(&json, "version", TERN_VERSION);
		json_whole(&json, "layout", TERN_LAYOUT);
	} else {
		printf("tern %s, layout %u\n\n", TERN_VERSION, TERN_LAYOUT);
	}
	networks_show();
	launchers_show();
	begin("limits", '{', "\nlimits");
	limits_show(limits, LIMITS);
	end('}');
	memory_show();
	mem_show();
	waiting_show();
	begin("settings", '[', "\nsettings");
	for (int s = 0; s < SETTING_COUNT; s++) {
		if (s == SETTING_DEVELOPERS && !as_json)
			puts("\nsettings for developers, see tern-developer(7)");
		setting_show((enum setting)s);
	}
	end(']');
	end('}');
}

/* -- The command ------------------------------------------------------------------------ */

int info_main(int argc, char **argv)
{
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
	json.to = stdout;
	info_show();
	return 0;
}
