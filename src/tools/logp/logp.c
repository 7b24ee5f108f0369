/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern logp`: measures or reads, then shows, writes and draws. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"
#include "tools/logp/options.h"
#include "tools/logp/profile.h"
#include "tools/logp/report.h"
#include "tools/tools.h"

static int outcome_profile(const void *outcome, FILE *to)
{
	const struct logp_outcome *o = outcome;
	return profile_write(&o->model, to);
}

static int outcome_read(const char *name, struct logp_outcome *o)
{
	FILE *from = fopen(name, "re");
	if (!from)
		return error_set(-errno, "reading %s: %s", name, strerror(errno));
	*o = (struct logp_outcome){ 0 };
	int rc = profile_read(&o->model, from, name);
	fclose(from);
	if (!rc)
		forecasts_make(&o->model, o->forecast);
	return rc;
}

static int outcome_measure(const struct logp_options *options, struct logp_outcome *o)
{
	bool shown = !options->plain && isatty(STDERR_FILENO);
	if (shown)
		fputs("measuring ...", stderr);
	int rc = logp_run(&options->wish, o);
	progress_end(shown);
	return rc;
}

static int logp_do(const struct logp_options *options)
{
	static struct logp_outcome o;
	int rc = options->read ? outcome_read(options->read, &o) : outcome_measure(options, &o);
	if (rc)
		return rc;
	if (options->json)
		logp_report_json(&o);
	else
		logp_report_tables(&o, !options->plain && isatty(STDOUT_FILENO));
	rc = file_write(options->profile, outcome_profile, &o);
	return rc ? rc : file_write(options->plot, logp_plot_write, &o);
}

int logp_main(int argc, char **argv)
{
	struct logp_options options;
	int status;
	if (!logp_options_read(&options, argc, argv, &status))
		return status;
	if (options.list) {
		logp_report_list();
		return 0;
	}
	setting_warn_unknown(); /* here, once, instead of in each process */
	int rc = logp_do(&options);
	if (rc)
		fprintf(stderr, "tern logp: %s\n", tern_strerror(rc));
	return rc ? 1 : 0;
}
