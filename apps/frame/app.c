/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of every program: rounds of each variant for each combination of sizes. */
#include "frame/app.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/stats.h>

enum { ROUNDS_MOST = 1000 };

/* The figures of the rounds of one variant, at rank 0. */
static struct {
	const char *name;
	unsigned n;
	double at[ROUNDS_MOST];
} figures[APP_FIGURES];
static unsigned figure_count;
static double seconds[ROUNDS_MOST];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The value below which `part` of them lie; sorts them. */
static double quantile(double *x, unsigned n, double part)
{
	qsort(x, n, sizeof *x, compare);
	double at = part * (n - 1);
	unsigned i = (unsigned)at;
	return i + 1 < n ? x[i] + (at - i) * (x[i + 1] - x[i]) : x[n - 1];
}

void app_figure(struct app_job *j, const char *name, double value)
{
	unsigned i = 0;
	if (j->rank)
		return;
	while (i < figure_count && strcmp(figures[i].name, name) != 0)
		i++;
	if (i == APP_FIGURES)
		return;
	if (i == figure_count) {
		figures[i].name = name;
		figures[i].n = 0;
		figure_count++;
	}
	if (figures[i].n < ROUNDS_MOST)
		figures[i].at[figures[i].n++] = value;
}

static uint64_t messages_sent(struct app_job *j)
{
	tern_stats_data stats;
	app_must(j, tern_stats(j->t, &stats));
	return stats.sent;
}

/* What a rank has handled, by layer: messages and bytes. All 0 unless TERN_STATS is set. */
struct kinds {
	unsigned layers;
	const char *name[TERN_STATS_LAYERS];
	uint64_t messages[TERN_STATS_LAYERS], bytes[TERN_STATS_LAYERS];
};

static struct kinds kinds_handled(struct app_job *j)
{
	struct kinds k = { 0 };
	tern_stats_handler_data d;
	for (; tern_stats_handler(j->t, TERN_STATS_LAYER + k.layers, &d) == 0; k.layers++) {
		k.name[k.layers] = d.name;
		k.messages[k.layers] = d.count;
		k.bytes[k.layers] = d.bytes;
	}
	return k;
}

/* Reports what all ranks have handled since `before`. */
static void kinds_report(struct app_job *j, const struct kinds *before)
{
	static char name[TERN_STATS_LAYERS][2][32];
	struct kinds now = kinds_handled(j);
	for (unsigned i = 0; i < now.layers; i++) {
		uint64_t sum[2] = { now.messages[i] - before->messages[i],
				    now.bytes[i] - before->bytes[i] };
		app_must(j, tern_team_allreduce(j->team, sum, sum, 2, TERN_TYPE_UINT64,
						TERN_REDUCE_SUM));
		if (!sum[0])
			continue;
		snprintf(name[i][0], sizeof name[i][0], "%s messages", now.name[i]);
		snprintf(name[i][1], sizeof name[i][1], "%s bytes", now.name[i]);
		app_figure(j, name[i][0], (double)sum[0]);
		app_figure(j, name[i][1], (double)sum[1]);
	}
}

/* What all ranks say of a round: the longest time, the sums of messages and mistakes. */
struct round {
	double seconds;
	uint64_t sum[2];
};

static struct round play(struct app_job *j, int spoil)
{
	struct round r;
	app.reset(j);
	app_must(j, tern_barrier(j->t));
	struct kinds before = kinds_handled(j);
	uint64_t sent = messages_sent(j);
	double begun = app_seconds(j);
	app.run(j);
	r.seconds = app_seconds(j) - begun;
	r.sum[0] = messages_sent(j) - sent;
	app_must(j, tern_barrier(j->t));
	kinds_report(j, &before);
	app_wrong_begin(spoil && j->rank == 0);
	r.sum[1] = app.wrong(j);
	app_must(j, tern_team_allreduce(j->team, &r.seconds, &r.seconds, 1, TERN_TYPE_DOUBLE,
					TERN_REDUCE_MAX));
	app_must(j,
		 tern_team_allreduce(j->team, r.sum, r.sum, 2, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	return r;
}

/* All rounds of a variant. How many elements were wrong. */
static uint64_t play_variant(struct app_job *j, const struct app_settings *s,
			     const struct app_logp *logp)
{
	struct app_result result = { .variant = app.variants[j->variant].name,
				     .ranks = j->size,
				     .predicted = NAN };
	figure_count = 0;
	for (unsigned i = 0; i < s->repeat; i++) {
		if (j->rank == 0)
			app_progress(s, "%s, round %u of %u", result.variant, i + 1,
				     (unsigned)s->repeat);
		struct round r = play(j, s->spoil);
		if (r.sum[1] && !result.wrong)
			app_wrong_report(j, r.sum[1]);
		seconds[i] = r.seconds;
		result.messages = (double)r.sum[0];
		result.wrong += r.sum[1];
	}
	result.rounds = (unsigned)s->repeat;
	result.amount = j->amount;
	result.seconds = quantile(seconds, result.rounds, 0.5);
	result.low = quantile(seconds, result.rounds, 0.25);
	result.high = quantile(seconds, result.rounds, 0.75);
	j->logp = logp;
	if (logp && app.predict)
		result.predicted = app.predict(j);
	for (unsigned i = 0; i < figure_count; i++) {
		result.figure[i].name = figures[i].name;
		result.figure[i].value = quantile(figures[i].at, figures[i].n, 0.5);
	}
	result.figures = figure_count;
	if (j->rank == 0) {
		app_progress(s, NULL);
		app_report(s, &result);
	}
	return result.wrong;
}

static int skip(struct app_job *j, const struct app_settings *s)
{
	const char *why = app.lacks ? app.lacks(j) : NULL;
	if (why && j->rank == 0)
		app_report_skipped(s, app.variants[j->variant].name, why);
	return why != NULL;
}

static uint64_t play_all(struct app_job *j, const struct app_settings *s,
			 const struct app_logp *logp)
{
	uint64_t wrong = 0;
	if (j->rank == 0)
		app_report_begin(s);
	for (uint64_t i = 0; app_options_set(i); i++) {
		app.open(j);
		for (j->variant = 0; app.variants[j->variant].name; j->variant++)
			if (app_variant_wanted(s, j->variant) && !skip(j, s))
				wrong += play_variant(j, s, logp);
		app_must(j, tern_barrier(j->t));
		app.close(j);
	}
	if (j->rank == 0)
		app_report_end(s);
	return wrong;
}

int main(int argc, char **argv)
{
	struct app_settings s = { .repeat = 5 };
	struct app_logp logp;
	struct app_job j = { 0 };
	/* The programs rely on polls; the signal is for variants that ask for interrupts. */
	tern_options o = { .delivery = TERN_DELIVERY_POLL, .signal = SIGRTMIN + 6 };
	app_must(&j, tern_open(&j.t, &o));
	j.rank = tern_rank(j.t);
	j.size = tern_size(j.t);
	app_must(&j, tern_team_all(j.t, &j.team));
	uint64_t wrong = 0;
	if (!app_options_read(&j, argc, argv, &s)) {
		const char *trouble = s.logp ? app_logp_read(s.logp, &logp) : NULL;
		if (trouble)
			app_refuse(&j, "--logp %s: %s", s.logp, trouble);
		wrong = play_all(&j, &s, s.logp ? &logp : NULL);
	}
	app_must(&j, tern_barrier(j.t));
	app_must(&j, tern_team_free(j.team));
	app_must(&j, tern_close(j.t));
	return wrong != 0;
}
