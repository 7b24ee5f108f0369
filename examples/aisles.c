/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks in a grid, each in two teams: its row and its column. Everybody tells both teams its number
 * at the same time. A receive of any id of a team takes what was sent in that team, and nothing of
 * the other one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>
#include <tern/send.h>

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "aisles: %s\n", tern_strerror(rc));
	exit(1);
}

/* What a team is told, and what it hears. */
struct aisle {
	tern_team *team;
	uint32_t n, expected, heard[TERN_RANKS_MAX];
	tern_op op;
};

/* The ranks that lie along one dimension of the grid, this one among them. */
static void open_aisle(struct aisle *a, tern_team *all, const tern_grid *grid, unsigned dim)
{
	static uint32_t ranks[TERN_RANKS_MAX];
	int64_t at[2];
	tern_grid_coords(grid, tern_team_rank(all), at);
	a->n = grid->size[dim];
	for (uint32_t i = 0; i < a->n; i++) {
		at[dim] = i;
		ranks[i] = tern_grid_member(grid, at);
		a->expected += ranks[i];
	}
	must(tern_team_list(all, ranks, a->n, &a->team));
}

static void tell_and_hear(tern *t, struct aisle *a)
{
	static uint32_t mine;
	mine = tern_rank(t);
	tern_match any = { .rank = TERN_RANK_ANY, .id = tern_team_id(a->team, 0) };
	any.any = TERN_ID_ANY; /* of the team's ids */
	for (uint32_t i = 0; i < a->n; i++)
		must(tern_recv_start(t, &any, &a->heard[i], sizeof mine, NULL, &a->op));
	for (uint32_t i = 0; i < a->n; i++)
		must(tern_send_start(t, tern_team_member(a->team, i), tern_team_id(a->team, i),
				     &mine, sizeof mine, TERN_SEND_AUTO, &a->op));
}

int main(void)
{
	static struct aisle row, column;
	struct aisle *both[] = { &row, &column };
	tern *t;
	tern_team *all, *machine;
	tern_grid grid = { .dims = 2 };
	must(tern_open(&t, NULL));
	must(tern_team_all(t, &all));
	must(tern_team_machine(all, &machine));
	must(tern_grid_fit(&grid, tern_size(t)));
	open_aisle(&row, all, &grid, 1);
	open_aisle(&column, all, &grid, 0);
	tell_and_hear(t, &row);
	tell_and_hear(t, &column);
	unsigned wrong = 0;
	for (int k = 0; k < 2; k++) {
		uint32_t sum = 0;
		must(tern_op_wait(t, &both[k]->op));
		for (uint32_t i = 0; i < both[k]->n; i++)
			sum += both[k]->heard[i];
		wrong += sum != both[k]->expected;
		must(tern_team_free(both[k]->team));
	}
	printf("rank %u, one of %u on machine %u of %u: %u and %u heard, %u wrong\n", tern_rank(t),
	       tern_team_size(machine), tern_machine(t, tern_rank(t)), tern_machines(t), row.n,
	       column.n, wrong);
	must(tern_team_free(machine));
	must(tern_team_free(all));
	must(tern_close(t));
	return wrong != 0;
}
