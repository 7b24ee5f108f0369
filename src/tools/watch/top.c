/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern top`: what the ranks of a running job do. */
#include "tools/watch/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/tools.h"
#include "tools/watch/options.h"

static void nap(double seconds)
{
	nanosleep(
		&(struct timespec){ .tv_sec = (time_t)seconds,
				    .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) },
		NULL);
}

static void top_lines(struct top *t, const struct watch_options *o)
{
	top_look(t);
	do {
		nap(o->interval);
		top_look(t);
		(o->json ? top_json : top_print)(t);
	} while (!o->once && !top_over(t));
}

static bool read_interval(void *to, char *text)
{
	struct watch_options *o = to;
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.05 && seconds <= 3600))
		return option_refuse("--interval %s: it is a number of seconds, 0.05 to 3600",
				     text);
	o->interval = seconds;
	return true;
}

int top_main(int argc, char **argv)
{
	struct watch_options o = { .interval = 1 };
	int status;
	const struct choice choices[] = {
		{ .name = "--once", .flag = &o.once },
		{ .name = "--interval", .read = read_interval, .to = &o },
		{ .name = "--json", .flag = &o.json },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = {
		.command = "top",
		.help = help_top,
		.choice = choices,
		.unknown = "'%s' cannot be used here; did you mean %s? `tern top --help` says more",
		.mixed = true,
	};
	if (!watch_options_read(&o, &options, argc, argv, &status))
		return status;
	struct top *t = calloc(1, sizeof *t);
	bool found = t && top_open(t, o.job);
	if (found) {
		if (o.once || o.json || !top_screen(t, o.interval))
			top_lines(t, &o);
		top_close(t);
	}
	free(t);
	return found ? 0 : 1;
}
