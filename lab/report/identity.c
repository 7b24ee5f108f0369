/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a kept run must have in common with the one that would be made: the machine, unless it is a
 * simulated one, and the files that are run.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cpu.h"
#include "lab/report/report.h"
#include "tools/common/program.h"

static void processor_name(char *name, size_t len)
{
	char line[256];
	FILE *from = fopen("/proc/cpuinfo", "re");
	snprintf(name, len, "unknown processor");
	while (from && fgets(line, sizeof line, from))
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(name, len, "%s", strchr(line, ':') + 2);
			break;
		}
	if (from)
		fclose(from);
}

void machine_identity(char *text, size_t len)
{
	char processor[200];
	struct utsname system;
	processor_name(processor, sizeof processor);
	uname(&system);
	snprintf(text, len, "%s, %u cores, %s %s", processor, cpu_count(), system.sysname,
		 system.release);
}

/* FNV-1a over the contents, from where another file's ended. */
static uint64_t file_hash(const char *path, uint64_t hash)
{
	unsigned char text[1 << 16];
	size_t n;
	FILE *from = fopen(path, "re");
	while (from && (n = fread(text, 1, sizeof text, from)))
		for (size_t i = 0; i < n; i++)
			hash = (hash ^ text[i]) * UINT64_C(0x100000001b3);
	if (from)
		fclose(from);
	return hash;
}

const char *command_path(void)
{
	static char path[PATH_MAX];
	if (!*path && !program_locate("tern", path))
		strcpy(path, "tern"); /* whose execution fails, and says so */
	return path;
}

void program_identity(const char *path, char *text, size_t len)
{
	static uint64_t command; /* the same for all */
	if (!command)
		command = file_hash(command_path(), UINT64_C(0xcbf29ce484222325));
	snprintf(text, len, "%016" PRIx64, file_hash(path, command));
}
