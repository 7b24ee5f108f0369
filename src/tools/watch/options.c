/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/watch/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static bool has(const char *const *names, const char *word)
{
	for (; *names; names++)
		if (strcmp(*names, word) == 0)
			return true;
	return false;
}

static bool refuse(const char *command, const char *const *names, const char *word)
{
	int count = 0;
	while (names[count])
		count++;
	fprintf(stderr, "%s: '%s' cannot be used here; did you mean %s? `%s --help` says more\n", command,
		word, nearest_name(word, names, count), command);
	return false;
}

static bool read_job(struct watch_options *o, const char *word, const char *command)
{
	char *end;
	long pid = strtol(word, &end, 10);
	if (end == word || *end || pid < 1 || pid > 0x7fffffff || o->job) {
		fprintf(stderr,
			"%s: '%s' is not one process: a job is named by the pid of its launcher or of a rank\n",
			command, word);
		return false;
	}
	o->job = (pid_t)pid;
	return true;
}

static bool read_interval(struct watch_options *o, const char *text, const char *command)
{
	char *end = NULL;
	double seconds = text ? strtod(text, &end) : 0;
	if (!text || end == text || *end || !(seconds >= 0.05 && seconds <= 3600)) {
		fprintf(stderr, "%s: --interval %s: it is a number of seconds, 0.05 to 3600\n", command,
			text ? text : "");
		return false;
	}
	o->interval = seconds;
	return true;
}

bool watch_options(struct watch_options *o, int argc, char **argv, const char *command,
		   const char *const *names)
{
	*o = (struct watch_options){ .interval = 1 };
	bool good = true;
	for (int i = 1; good && i < argc; i++) {
		const char *word = argv[i];
		if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
			o->help = true;
		else if (*word != '-')
			good = read_job(o, word, command);
		else if (!has(names, word))
			good = refuse(command, names, word);
		else if (strcmp(word, "--json") == 0)
			o->json = true;
		else if (strcmp(word, "--once") == 0)
			o->once = true;
		else
			good = read_interval(o, argv[++i], command);
	}
	return good;
}
