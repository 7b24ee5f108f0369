/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tern_team_all() takes, and an allreduce behind it: `tern run -n 256 team_all_ranks` prints
 * the longest time of a rank, and the CPU time, page faults and waits of all ranks, for the first
 * calls and for second ones. A barrier lies between the two: a rank that is ready would otherwise
 * take the core from one that is not.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <tern/coll.h>
#include <time.h>

enum { LONGEST, CPU, FAULTS, WAITS, FIGURES };

static void figures_now(double at[FIGURES])
{
	struct timespec now;
	struct rusage u;
	clock_gettime(CLOCK_MONOTONIC, &now);
	getrusage(RUSAGE_SELF, &u);
	at[LONGEST] = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
	at[CPU] = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
		  (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
	at[FAULTS] = (double)u.ru_minflt;
	at[WAITS] = (double)u.ru_nvcsw;
}

/* What `call` takes, told by rank 0 when there is a team to find the longest time with. */
struct measured {
	double took[FIGURES];
};

static int begin(tern *t, double at[FIGURES])
{
	int rc = tern_barrier(t);
	figures_now(at);
	return rc;
}

static void end(struct measured *m, const double before[FIGURES])
{
	figures_now(m->took);
	for (int k = 0; k < FIGURES; k++)
		m->took[k] -= before[k];
}

static int tell(tern *t, tern_team *all, const char *what, int turn, const struct measured *m)
{
	double most[FIGURES], sum[FIGURES];
	int rc =
		tern_team_allreduce(all, m->took, most, FIGURES, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX);
	if (!rc)
		rc = tern_team_allreduce(all, m->took, sum, FIGURES, TERN_TYPE_DOUBLE,
					 TERN_REDUCE_SUM);
	if (!rc && tern_rank(t) == 0)
		printf("%u ranks, %s %d: %.1f ms at most; of all: %.1f ms of CPU time, "
		       "%.0f page faults, %.0f waits\n",
		       tern_size(t), what, turn, most[LONGEST], sum[CPU], sum[FAULTS], sum[WAITS]);
	return rc;
}

int main(void)
{
	tern *t;
	tern_team *all;
	int rc = tern_open(&t, NULL);
	for (int i = 1; !rc && i <= 2; i++) {
		double before[FIGURES], one = 1, ones;
		struct measured making, first;
		rc = begin(t, before);
		rc = rc ? rc : tern_team_all(t, &all);
		end(&making, before);
		rc = rc ? rc : begin(t, before);
		rc = rc ? rc
			: tern_team_allreduce(all, &one, &ones, 1, TERN_TYPE_DOUBLE,
					      TERN_REDUCE_SUM);
		end(&first, before);
		rc = rc ? rc : tell(t, all, "call", i, &making);
		rc = rc ? rc : tell(t, all, "allreduce", i, &first);
	}
	if (rc)
		fprintf(stderr, "%s\n", tern_strerror(rc));
	return rc || tern_close(t);
}
