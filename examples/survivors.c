/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that loses a rank and goes on. The ranks integrate 4 / (1 + x * x) from 0 to 1, which is
 * pi, in steps; the work of each step is divided among those who live. In the middle the last rank
 * kills itself. The others agree on a team without it and repeat the step that was under way:
 *
 *     tern run -n 4 --survive=survivors survivors
 *
 * Without --survive, tern run ends the job with the rank.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { STEPS = 200, SLICES = 1000 };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "survivors: %s\n", tern_strerror(rc));
	exit(1);
}

/* Told once for each rank that is lost. Waits do not give up because of it any more. */
static void on_lost(tern *t, uint32_t rank, int why, void *arg)
{
	(void)why, (void)arg;
	if (tern_rank(t) == 0)
		printf("rank %u is lost\n", rank);
	must(tern_forgive(t, rank));
}

static int is_death(int rc)
{
	return rc == -EOWNERDEAD || rc == -ESHUTDOWN;
}

/* This member's part of a step: every n-th slice. */
static double area(const tern_team *team, uint64_t step)
{
	double sum = 0, width = 1.0 / STEPS / SLICES;
	for (uint32_t i = tern_team_rank(team); i < SLICES; i += tern_team_size(team)) {
		double x = ((double)step * SLICES + i + 0.5) * width;
		sum += width * 4 / (1 + x * x);
	}
	return sum;
}

/*
 * A team of those who live, and the step that the slowest of them is at. A step ends only when all
 * have begun it, so nobody is ahead by more than one.
 */
static void go_on(tern_team **team, uint64_t *step)
{
	tern_team *left;
	uint64_t slowest;
	int rc;
	do {
		must(tern_team_survivors(*team, &left));
		must(tern_team_free(*team));
		*team = left;
		rc = tern_team_allreduce(left, step, &slowest, 1, TERN_TYPE_UINT64,
					 TERN_REDUCE_MIN);
	} while (is_death(rc));
	must(rc);
	*step = slowest;
}

static void die(tern *t, uint64_t step)
{
	if (tern_size(t) == 1 || tern_rank(t) != tern_size(t) - 1 || step != STEPS / 2)
		return;
	printf("rank %u dies\n", tern_rank(t));
	fflush(stdout);
	raise(SIGKILL);
}

int main(void)
{
	tern *t;
	tern_team *team;
	static double total[STEPS + 1]; /* before each step, so that a step can be repeated */
	must(tern_open(&t, NULL));
	must(tern_lost_on(t, on_lost, NULL));
	must(tern_team_all(t, &team));

	for (uint64_t step = 0; step < STEPS;) {
		double mine = area(team, step), sum;
		die(t, step);
		int rc = tern_team_allreduce(team, &mine, &sum, 1, TERN_TYPE_DOUBLE,
					     TERN_REDUCE_SUM);
		if (is_death(rc)) {
			go_on(&team, &step);
			continue;
		}
		must(rc);
		total[step + 1] = total[step] + sum;
		step++;
	}
	must(tern_lost_on(t, NULL, NULL)); /* those who have finished are no loss */
	double off = total[STEPS] - 3.14159265358979;
	if (tern_team_rank(team) == 0)
		printf("pi is %.9f, by %u of %u ranks\n", total[STEPS], tern_team_size(team),
		       tern_size(t));

	must(tern_team_free(team));
	must(tern_close(t));
	return off < -1e-9 || off > 1e-9;
}
