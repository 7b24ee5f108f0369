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
	bool summary, json;
	const char *out, *html;
};

/* The tracks that have been read. */
struct tracks {
	struct track at[TERN_RANKS_MAX];
	char *path[TERN_RANKS_MAX]; /* of those whose names were put together here */
	uint32_t n;
};

/* False when there is nothing left to do but to return `status`. */
static bool trace_options_read(struct trace_options *o, int argc, char **argv, int *status)
{
	const struct choice choices[] = {
		{ .name = "--summary", .flag = &o->summary },
		{ .name = "--json", .flag = &o->json },
		{ .name = "--html", .text = &o->html },
		{ .name = "--help" },
		{ .name = "-o", .text = &o->out },
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
	if (o->summary && o->json)
		return option_refuse("--summary and --json both want the output: ask for one at a "
				     "time");
	return true;
}

/* -- Files --------------------------------------------------------------------------------- */

static int tracks_add(struct tracks *s, const char *path)
{
	if (s->n == TERN_RANKS_MAX)
		return error_set(-E2BIG, "%s is more than a job has: %d ranks at most", path,
				 TERN_RANKS_MAX);
	return track_read(&s->at[s->n++], path);
}

static int tracks_add_rank(struct tracks *s, const char *prefix, uint32_t rank)
{
	char *path = NULL;
	if (s->n == TERN_RANKS_MAX || asprintf(&path, "%s.%u", prefix, rank) < 0)
		return error_set(-ENOMEM, "no memory for the file of rank %u", rank);
	if (rank && access(path, F_OK) != 0) { /* the others can be shown without it */
		free(path);
		return 0;
	}
	s->path[s->n] = path;
	return tracks_add(s, path);
}

/* FILE, or if there is no such file but FILE.0, the files of all ranks. */
static int tracks_add_named(struct tracks *s, const char *name)
{
	if (access(name, F_OK) == 0)
		return tracks_add(s, name);
	uint32_t first = s->n;
	int rc = tracks_add_rank(s, name, 0);
	if (rc == -ENOENT)
		return error_set(rc, "there is neither %s nor %s.0", name, name);
	for (uint32_t r = 1; !rc && r < s->at[first].head.size; r++)
		rc = tracks_add_rank(s, name, r);
	return rc;
}

static void tracks_free(struct tracks *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		track_free(&s->at[i]);
	for (uint32_t i = 0; i < TERN_RANKS_MAX; i++)
		free(s->path[i]);
	free(s);
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
	int rc = 0;
	bool json = o->json || (o->out && !o->summary);
	if (o->html)
		rc = write_to(m, o->html, show_html);
	if (!rc && json)
		rc = write_to(m, o->out, show_json);
	if (!rc && (o->summary || (!json && !o->html)))
		rc = write_to(m, o->out, show_summary);
	else if (!rc)
		show_remarks(m, stderr);
	return rc;
}

int trace_main(int argc, char **argv)
{
	struct trace_options o = { 0 };
	struct merged m = { 0 };
	int status;
	if (!trace_options_read(&o, argc, argv, &status))
		return status;
	struct tracks *s = calloc(1, sizeof *s);
	int rc = s ? 0 : error_set(-ENOMEM, "no memory");
	for (int i = optind; !rc && i < argc; i++)
		rc = tracks_add_named(s, argv[i]);
	if (!rc)
		rc = merge(&m, s->at, s->n);
	if (!rc)
		rc = show(&o, &m);
	merge_free(&m);
	if (s)
		tracks_free(s);
	if (rc)
		option_refuse("%s", tern_strerror(rc));
	return rc != 0;
}
