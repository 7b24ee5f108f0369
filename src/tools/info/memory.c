/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/info/memory.h"

#include <stdio.h>

#include <tern/mem.h>

#include "base/setting.h"
#include "job/job.h"
#include "tools/common/single_copy.h"

static const struct {
	const char *name;
	uint64_t value;
	const char *meaning;
} limits[] = {
	{ "ops", TERN_OPS_MAX, "transfers under way from one rank" },
	{ "regions", JOB_REGIONS_OWN, "of private memory that one rank registers" },
	{ "segments", TERN_SEGMENTS_MAX, "communication segments that one rank has open" },
	{ "names", TERN_NAMES_MAX, "blocks that one rank publishes under a number" },
	{ "when", TERN_WHEN_MAX, "requests that one rank holds until a flag is reached" },
	{ "dims", TERN_DIMS_MAX, "dimensions of a strided block" },
};

enum { LIMITS = sizeof limits / sizeof *limits };

/* The heap's bytes; 0 for a setting that is wrong, which the settings' section explains. */
static uint64_t heap_bytes(void)
{
	uint64_t bytes;
	return setting_number(SETTING_HEAP, &bytes) ? 0 : bytes;
}

void info_memory_text(void)
{
	char why[400] = "";
	puts("\nmemory");
	printf("  %-14s %.0f MiB of addresses for each rank, half of it for tern_alloc_all(); TERN_HEAP sets it\n",
	       "heap", (double)heap_bytes() / (1 << 20));
	if (single_copy_usable(why, sizeof why))
		printf("  %-14s yes: the kernel copies between registered memory of two ranks (process_vm_readv)\n",
		       "single-copy");
	else
		printf("  %-14s no, registered memory of two ranks is copied through messages, twice: %s\n",
		       "single-copy", why);
	for (int i = 0; i < LIMITS; i++)
		printf("  %-14s %6llu  %s\n", limits[i].name, (unsigned long long)limits[i].value,
		       limits[i].meaning);
}

void info_memory_json(struct json *j)
{
	char why[400] = "";
	bool usable = single_copy_usable(why, sizeof why);
	json_begin(j, "mem", '{');
	json_whole(j, "heap", heap_bytes());
	json_truth(j, "single_copy", usable);
	json_text(j, "single_copy_why", usable ? NULL : why);
	for (int i = 0; i < LIMITS; i++)
		json_whole(j, limits[i].name, limits[i].value);
	json_end(j, '}');
}
