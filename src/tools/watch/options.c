/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the job that `tern top` and `tern why` look at, behind their options. */
#include "tools/watch/options.h"

#include <stdlib.h>

#include "tools/common/option.h"

static bool read_job(struct watch_options *o, const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);
	if (end == word || *end || pid < 1 || pid > 0x7fffffff || o->job)
		return option_refuse(
			"'%s' is not one process: a job is named by the pid of its launcher or of a rank",
			word);
	o->job = (pid_t)pid;
	return true;
}

bool watch_options_read(struct watch_options *o, const struct options *options, int argc,
			char **argv, int *status)
{
	if (!options_read(options, argc, argv, status))
		return false;
	for (int i = optind; i < argc; i++)
		if (!read_job(o, argv[i]))
			return false;
	return true;
}
