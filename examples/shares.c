/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work that is spread unevenly is shared out evenly. Each rank begins with some tasks, rank 0
 * collects them, deals them out in equal shares, and every rank numbers its own; then all count how
 * long the tasks are, a part of the table at each rank. One collective call for each step.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { BINS = 4 }; /* for each rank, of the table */

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "shares: %s\n", tern_strerror(rc));
	exit(1);
}

static void *zeros(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);
	must(p ? 0 : -ENOMEM);
	return p;
}

/* A list of as many as a team has members: count[i] tasks each, one behind the other. */
static tern_part *parts(uint64_t *tasks, const uint64_t *count, uint32_t n)
{
	tern_part *list = zeros(n, sizeof *list);
	for (uint32_t i = 0; i < n; tasks += count[i++])
		list[i] = (tern_part){ .base = tasks, .run = count[i] * sizeof *tasks };
	return list;
}

/* What member i has at first, and its share of `all`. */
static uint64_t first_count(uint32_t i)
{
	return 3 + (uint64_t)i * i;
}

static uint64_t share(uint64_t all, uint32_t i, uint32_t n)
{
	return all * (i + 1) / n - all * i / n;
}

int main(void)
{
	tern *t;
	tern_team *team;
	must(tern_open(&t, NULL));
	must(tern_team_all(t, &team));
	uint32_t n = tern_team_size(team), me = tern_team_rank(team);
	uint64_t mine = first_count(me), all = 0, *count = zeros(n, sizeof *count);
	uint64_t *fair = zeros(n, sizeof *fair), *had = zeros(mine, sizeof *had);
	for (uint64_t i = 0; i < mine; i++)
		had[i] = me + i; /* how long the task is */

	must(tern_team_gather(team, 0, &mine, count, sizeof mine));
	must(tern_team_allreduce(team, &mine, &all, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	uint64_t *tasks = zeros(all, sizeof *tasks), *every = zeros(all, sizeof *every);
	tern_part own = { .base = had, .run = mine * sizeof *had }, *list = parts(tasks, count, n);
	must(tern_team_gatherv(team, 0, &own, list));

	for (uint32_t i = 0; i < n; i++)
		fair[i] = share(all, i, n);
	must(tern_team_scatter(team, 0, fair, &mine, sizeof mine));
	uint64_t *has = zeros(mine, sizeof *has), before = 0, upto;
	tern_part *deal = parts(tasks, fair, n), *wide = parts(every, fair, n);
	own = (tern_part){ .base = has, .run = mine * sizeof *has };
	must(tern_team_scatterv(team, 0, deal, &own));
	must(tern_team_exscan(team, &mine, &before, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	must(tern_team_scan(team, &mine, &upto, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	must(tern_team_allgatherv(team, &own, wide));

	uint64_t *table = zeros(n * BINS, sizeof *table), bins[BINS], wrong = 0;
	size_t *each = zeros(n, sizeof *each);
	for (uint64_t i = 0; i < mine; i++) {
		wrong += has[i] != every[before + i]; /* everybody has all of them, in order */
		table[has[i] % (n * BINS)]++;
	}
	for (uint32_t i = 0; i < n; i++)
		each[i] = BINS;
	must(tern_team_reduce_scatter(team, table, bins, each, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	uint64_t counted = bins[0] + bins[1] + bins[2] + bins[3];
	must(tern_team_allreduce(team, &counted, &counted, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	printf("rank %u: tasks %u to %u of %u, %u wrong\n", me, (unsigned)before, (unsigned)upto,
	       (unsigned)all, (unsigned)(wrong + (counted != all)));
	free(had), free(has), free(tasks), free(every), free(table), free(each);
	free(list), free(deal), free(wide), free(count), free(fair);
	must(tern_team_free(team));
	must(tern_close(t));
	return wrong || counted != all;
}
