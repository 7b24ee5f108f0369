/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEAR = PROGRAM_FOLDERS - 1 };

/* Relative to the program that asks: bin/tern, or libexec/tern/tern-NAME. */
static const char *const near[NEAR] = { "", "/../libexec/tern", "/../../bin" };

static bool own_folder(char folder[PATH_MAX], const char *behind)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return snprintf(folder, PATH_MAX, "%s%s", path, behind) < PATH_MAX;
}

static bool path_folder(int i, char folder[PATH_MAX])
{
	const char *at = getenv("PATH");
	while (at && i-- > 0 && (at = strchr(at, ':')) != NULL)
		at++;
	return at && *at &&
	       snprintf(folder, PATH_MAX, "%.*s", (int)strcspn(at, ":"), at) < PATH_MAX;
}

bool program_folder(int i, char folder[PATH_MAX])
{
	if (i < NEAR)
		return own_folder(folder, near[i]);
	if (i == NEAR)
		return snprintf(folder, PATH_MAX, "%s", TERN_LIBEXEC "/tern") < PATH_MAX;
	return path_folder(i - NEAR - 1, folder);
}

bool program_locate(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX];
	for (int i = 0; program_folder(i, folder); i++)
		if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}
