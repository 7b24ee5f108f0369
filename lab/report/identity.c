/* SPDX-License-Identifier: BSD-3-Clause */
/* What this machine is called, and where the command is. */
#include <string.h>
#include <sys/utsname.h>

#include "base/cpu.h"
#include "boot/link/program.h"
#include "lab/report/report.h"

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

const char *command_path(void)
{
	static char path[PATH_MAX];
	if (!*path && !program_locate("tern", path))
		strcpy(path, "tern"); /* whose execution fails, and says so */
	return path;
}
