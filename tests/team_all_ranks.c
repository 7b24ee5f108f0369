/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tern_team_all() takes: `tern run -n 256 team_all_ranks` prints the longest time of a rank,
 * and the CPU time, page faults and waits of all ranks, for the first call and for a second one.
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

int main(void)
{
	tern *t;
	tern_team *all;
	int rc = tern_open(&t, NULL);
	for (int i = 0; !rc && i < 2; i++) {
		double before[FIGURES], after[FIGURES], most[FIGURES], sum[FIGURES];
		rc = tern_barrier(t);
		figures_now(before);
		rc = rc ? rc : tern_team_all(t, &all);
		figures_now(after);
		for (int k = 0; k < FIGURES; k++)
			after[k] -= before[k];
		if (!rc)
			rc = tern_team_allreduce(all, after, most, FIGURES, TERN_TYPE_DOUBLE,
						 TERN_REDUCE_MAX);
		if (!rc)
			rc = tern_team_allreduce(all, after, sum, FIGURES, TERN_TYPE_DOUBLE,
						 TERN_REDUCE_SUM);
		if (!rc && tern_rank(t) == 0)
			printf("%u ranks, call %d: %.1f ms at most; of all: %.1f ms of CPU time, "
			       "%.0f page faults, %.0f waits\n",
			       tern_size(t), i + 1, most[LONGEST], sum[CPU], sum[FAULTS],
			       sum[WAITS]);
	}
	if (rc)
		fprintf(stderr, "%s\n", tern_strerror(rc));
	return rc || tern_close(t);
}
