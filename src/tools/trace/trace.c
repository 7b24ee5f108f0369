/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern trace`: the files of a job's ranks, merged and shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/file.h"
#include "tools/common/option.h"
#include "tools/tools.h"
#include "tools/trace/show.h"

struct trace_options {
	bool json;
	const char *html;
};

/* The tracks that have been read: they live as long as the process. */
static struct tracks {
	struct track at[TERN_RANKS_MAX];
	uint32_t n;
} tracks;

/* False when there is nothing left to do but to return `status`. */
static bool trace_options_read(struct trace_options *o, int argc, char **argv, int *status)
{
	const struct choice choices[] = {
		{ .name = "--json", .flag = &o->json },
		{ .name = "--html", .text = &o->html },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "trace",
					 .help = help_trace,
					 .choice = choices };
	if (!options_read(&options, argc, argv, status))
		return false;
	if (optind == argc)
		return option_refuse(
			"no file was named; TERN_TRACE=FILE tern run ... makes them, as "
			"FILE.0, FILE.1 ...");
	return true;
}

/* -- Files --------------------------------------------------------------------------------- */

static int tracks_add(const char *path)
{
	if (tracks.n == TERN_RANKS_MAX)
		return error_set(-E2BIG, "%s is more than a job has: %d ranks at most", path,
				 TERN_RANKS_MAX);
	return track_read(&tracks.at[tracks.n++], path);
}

static int tracks_add_rank(const char *prefix, uint32_t rank)
{
	char *path;
	if (asprintf(&path, "%s.%u", prefix, rank) < 0)
		return error_set(-ENOMEM, "no memory for the file of rank %u", rank);
	if (!rank || access(path, F_OK) == 0)
		return tracks_add(path);
	free(path); /* the others can be shown without it */
	return 0;
}

/* FILE, or if there is no such file but FILE.0, the files of all ranks. */
static int tracks_add_named(const char *name)
{
	if (access(name, F_OK) == 0)
		return tracks_add(name);
	uint32_t first = tracks.n;
	int rc = tracks_add_rank(name, 0);
	if (rc == -ENOENT)
		return error_set(rc, "there is neither %s nor %s.0", name, name);
	for (uint32_t r = 1; !rc && r < tracks.at[first].head.size; r++)
		rc = tracks_add_rank(name, r);
	return rc;
}

/* -- Output -------------------------------------------------------------------------------- */

static int write_to(const struct merged *m, const char *path,
		    void (*show)(const struct merged *m, FILE *to))
{
	FILE *to = path ? file_private_stream(path) : stdout;
	if (to)
		show(m, to);
	if (!to || ferror(to) || fflush(to) != 0 || (path && fclose(to) != 0))
		return error_set(-EIO, "%s cannot be written: %s", path ? path : "standard output",
				 file_why(errno));
	return 0;
}

static int show(const struct trace_options *o, const struct merged *m)
{
	if (!o->json && !o->html)
		return write_to(m, NULL, show_summary);
	int rc = o->html ? write_to(m, o->html, show_html) : 0;
	if (!rc && o->json)
		rc = write_to(m, NULL, show_json);
	if (!rc)
		show_remarks(m, stderr);
	return rc;
}

int trace_main(int argc, char **argv)
{
	static struct merged m;
	struct trace_options o = { 0 };
	int status, rc = 0;
	if (!trace_options_read(&o, argc, argv, &status))
		return status;
	for (int i = optind; !rc && i < argc; i++)
		rc = tracks_add_named(argv[i]);
	if (!rc)
		rc = merge(&m, tracks.at, tracks.n);
	if (!rc)
		rc = show(&o, &m);
	if (rc)
		option_refuse("%s", tern_strerror(rc));
	return rc != 0;
}
