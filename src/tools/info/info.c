/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern info`: what there is on this machine, and what stands in the way of the rest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
#include "tools/common/option.h"
#include "tools/common/rows.h"
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
	return !setting_table[s].is_text && (setting_given(s) || *setting_table[s].fallback);
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

enum { MEM_LIMITS = sizeof mem_limits / sizeof *mem_limits, NAME = 13, SETTING_NAME = 17 };

/* -- Rows: JSON, or lines for people ------------------------------------------------------ */

static struct rows rows;

static void section(const char *key, const char *title)
{
	rows.headed = true; /* by the title */
	if (rows.as == ROWS_JSON)
		json_begin(&rows.json, key, '[');
	else
		printf("\n%s\n", title);
}

static void section_end(void)
{
	if (rows.as == ROWS_JSON)
		json_end(&rows.json, ']');
}

static void row_begin(const char *name, int width)
{
	rows_text(&rows, NULL, "", 0, "");
	rows_text(&rows, "name", "", -width, name);
}

/* What people read below a row. */
static void row_remark(int width, const char *what, const char *text)
{
	if (rows.as == ROWS_TABLE && text && *text)
		printf("  %-*s  %s%s\n", width, "", what, text);
}

/* Something that can be used here, or why not. */
static void usable_show(const char *name, const char *what, bool usable, const char *why)
{
	char text[PATH_MAX + 32];
	snprintf(text, sizeof text, "%s: %s", usable ? "usable" : "not usable here",
		 usable ? what : why);
	row_begin(name, NAME);
	rows_truth(&rows, "usable", NULL, 0, usable);
	rows_text(&rows, "what", NULL, 0, what);
	rows_text(&rows, "why", NULL, 0, usable ? NULL : why);
	rows_text(&rows, NULL, "", 0, text);
}

static void limits_show(const struct limit *limit, int n)
{
	for (int i = 0; i < n; i++) {
		row_begin(limit[i].name, NAME);
		rows_whole(&rows, "value", "", 7, limit[i].value, NULL);
		rows_text(&rows, "meaning", "", 0, limit[i].meaning);
		rows_end_row(&rows);
	}
}

/* A question that the kernel has answered. */
static void answer_show(const char *name, bool answer, const char *yes, const char *no)
{
	row_begin(name, NAME);
	rows_truth(&rows, "value", NULL, 0, answer);
	rows_text(&rows, "meaning", "", 0, answer ? yes : no);
	rows_end_row(&rows);
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
	section("mem", "memory");
	row_begin("heap", NAME);
	rows_whole(&rows, "value", "", 0, heap_bytes(), "%.0f MiB",
		   (double)heap_bytes() / (1 << 20));
	rows_text(&rows, "meaning", "", 0,
		  "of addresses for each rank, half of it for tern_alloc_all(); TERN_HEAP sets it");
	rows_end_row(&rows);
	snprintf(no, sizeof no,
		 "no, registered memory of two ranks is copied through messages, twice: %s", why);
	answer_show("single-copy", usable,
		    "yes: the kernel copies between registered memory of two ranks "
		    "(process_vm_readv)",
		    no);
	limits_show(mem_limits, MEM_LIMITS);
	section_end();
}

static const struct {
	unsigned bit;
	const char *phrase;
} capabilities[] = {
	{ PROVIDES_ORDER, "keeps order" },
	{ PROVIDES_ROOM, "never overflows" },
	{ PROVIDES_RELIABLE, "loses nothing" },
	{ PROVIDES_SHARED, "maps the memory of peers" },
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

static void provides_text(unsigned provides, char *text, size_t room)
{
	snprintf(text, room, "%s", provides ? "" : "promises nothing by itself");
	for (int c = 0; c < CAPABILITIES; c++)
		if (provides & capabilities[c].bit) {
			size_t used = strlen(text);
			snprintf(text + used, room - used, "%s%s", used ? ", " : "",
				 capabilities[c].phrase);
		}
}

static void networks_show(void)
{
	section("networks", "networks");
	for (int i = 0; net_table[i]; i++) {
		char why[400] = "", provides[128];
		bool usable = net_table[i]->usable(why, sizeof why);
		provides_text(net_table[i]->provides, provides, sizeof provides);
		usable_show(net_table[i]->name, net_table[i]->reach, usable, why);
		rows_text(&rows, "provides", NULL, 0, provides);
		rows_end_row(&rows);
		row_remark(NAME, "", usable ? why : "");
		row_remark(NAME, "", provides);
	}
	section_end();
}

static void launchers_show(void)
{
	char path[PATH_MAX];
	section("launchers", "launchers");
	usable_show("tern run", "needs nothing", true, NULL);
	rows_end_row(&rows);
	for (int i = 0; i < PMI_PROTOCOLS; i++) {
		int rc = pmi_usable(pmi_table[i]);
		usable_show(pmi_table[i]->name, pmi_table[i]->starters, !rc, tern_strerror(rc));
		rows_end_row(&rows);
	}
	int rc = program_find(path);
	usable_show("tern-link", path, !rc, rc ? tern_strerror(rc) : NULL);
	rows_end_row(&rows);
	section_end();
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

static void mebibytes(const char *key, const char *head, int width, uint64_t bytes)
{
	rows_whole(&rows, key, head, width, bytes, "%.2f", (double)bytes / (1 << 20));
}

static void memory_show(void)
{
	section("memory_parts", "shared memory by part, bytes");
	limits_show(memory_parts, sizeof memory_parts / sizeof *memory_parts);
	section_end();
	section("memory", "shared memory of a job, MiB");
	rows.headed = false;
	for (int i = 0; i < JOB_SIZES; i++) {
		struct job_needs n;
		job_needs(job_sizes[i], &n);
		rows_text(&rows, NULL, "", 0, "");
		rows_whole(&rows, "ranks", "ranks", -NAME, job_sizes[i], NULL);
		mebibytes("start", "at start", 10, n.start);
		mebibytes("neighbours", "neighbours talk", 15, n.neighbours);
		mebibytes("few_words", "all say a word", 15, n.few_words);
		mebibytes("all_pairs", "all pairs talk", 15, n.all_pairs);
		rows_end_row(&rows);
	}
	section_end();
}

static void waiting_show(void)
{
	_Atomic uint64_t word[2] = { 1, 1 };
	_Atomic uint64_t *const words[2] = { &word[0], &word[1] };
	section("waiting", "waiting");
	const struct limit cores = { "cores", cpu_count(), "that this process may use" };
	limits_show(&cores, 1);
	answer_show("membarrier", barrier_register(),
		    "yes: a rank that waits sleeps until it is woken",
		    "refused (Linux 4.16 has it; a container's seccomp rules must allow it): "
		    "a rank that waits takes naps instead");
	answer_show("futex_waitv",
		    futex_wait_many(words, 2, 0, 0) != -ENOSYS, /* another value: returns at once */
		    "yes: a thread with several endpoints sleeps on all of them",
		    "not in this kernel (Linux 5.16 has it): a thread with several endpoints "
		    "takes naps");
	section_end();
}

static void setting_show(enum setting s)
{
	const char *value = setting_text(s), *problem = setting_problem(s),
		   *from = setting_given(s) ? "environment" : "default";
	row_begin(setting_table[s].name, SETTING_NAME);
	rows_text(&rows, "value", NULL, 0, value);
	rows_text(&rows, NULL, "", -8, *value ? value : "-");
	rows_text(&rows, "from", "", -12, from);
	rows_text(&rows, "meaning", "", 0, setting_table[s].meaning);
	rows_truth(&rows, "developer", NULL, 0, s >= SETTING_DEVELOPERS);
	rows_text(&rows, "problem", NULL, 0, problem);
	rows_end_row(&rows);
	row_remark(SETTING_NAME, "wrong: ", problem);
}

static void info_show(void)
{
	if (rows.as == ROWS_JSON) {
		json_begin(&rows.json, NULL, '{');
		json_text(&rows.json, "version", TERN_VERSION);
		json_whole(&rows.json, "layout", TERN_LAYOUT);
	} else {
		printf("tern %s, layout %u\n", TERN_VERSION, TERN_LAYOUT);
	}
	networks_show();
	launchers_show();
	section("limits", "limits");
	limits_show(limits, LIMITS);
	section_end();
	memory_show();
	mem_show();
	waiting_show();
	section("settings", "settings");
	for (int s = 0; s < SETTING_COUNT; s++) {
		if (s == SETTING_DEVELOPERS && rows.as == ROWS_TABLE)
			puts("\nsettings for developers, see tern-developer(7)");
		setting_show((enum setting)s);
	}
	section_end();
	if (rows.as == ROWS_JSON)
		json_end(&rows.json, '}');
}

/* -- The command ------------------------------------------------------------------------ */

int info_main(int argc, char **argv)
{
	int status;
	bool as_json = false;
	const struct choice choices[] = { { .name = "--json", .flag = &as_json },
					  { .name = "--help" },
					  { 0 } };
	const struct options options = { .command = "info", .help = help_info, .choice = choices };
	if (!options_read(&options, argc, argv, &status) ||
	    (optind < argc && !option_unknown(&options, argv[optind])))
		return status;
	setting_warn_unknown();
	rows = (struct rows){ .as = as_json ? ROWS_JSON : ROWS_TABLE, .json.to = stdout };
	info_show();
	return 0;
}
