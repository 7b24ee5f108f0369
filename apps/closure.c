/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transitive closure stressmark (Lewis' thesis, 6.2.3): shortest paths between all vertices of
 * a directed graph, by Floyd and Warshall. The matrix of distances is spread over a grid of ranks
 * in blocks. In iteration k a rank needs its part of row k, which a rank of its column of the grid
 * has, and its part of column k, which a rank of its row has.
 */
#include "frame/app.h"

#include <string.h>
#include <tern/send.h>

enum { ACTIVE, SEND, BROADCAST };

static uint64_t vertices = 500, density = 10;

static const struct app_option options[] = {
	{ "vertices", "of the graph", &vertices, 1, 1 << 14, NULL },
	{ "density", "of 100 possible edges are there", &density, 0, 100, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "active", "threads at the owners put the parts of row and column here" },
	{ "send", "the owners send their parts, by rendezvous" },
	{ "broadcast", "the owners broadcast them in teams of the grid" },
	{ 0 },
};

static struct app_grid grid;
static uint64_t first_row, row_count, first_column, column_count;
static uint32_t *part, *expected;       /* row_count by column_count distances */
static uint32_t *row, *column, *copied; /* what an iteration needs; columns, for others to take */
static tern_team *in_row, *in_column;   /* ranks of the same row and of the same column */

/* -- Communication -------------------------------------------------------------------- */

static uint32_t rank_at(uint32_t r, uint32_t c)
{
	return r * grid.columns + c;
}

/* Where row k is in the part of a rank that has it. */
static uint64_t row_place(uint64_t k)
{
	uint64_t from = app_part(vertices, grid.rows, app_part_of(vertices, grid.rows, k));
	return (k - from) * column_count;
}

/* Columns take turns in two places: a slow rank may still get the one before. */
static uint64_t copied_place(uint64_t k)
{
	return k % 2 * row_count;
}

static void column_copy(uint64_t k)
{
	for (uint64_t i = 0; i < row_count; i++)
		copied[copied_place(k) + i] = part[i * column_count + k - first_column];
}

static void get_active(struct app_job *j, uint64_t k, uint32_t r, uint32_t c)
{
	app_must(j, tern_team_barrier(j->team)); /* the owners have finished the iteration before */
	if (r != grid.row)
		app_request(j, tern_addr_at(j->t, j->rank, row),
			    tern_addr_at(j->t, rank_at(r, grid.column), part) +
				    row_place(k) * sizeof *part,
			    column_count * sizeof *part);
	if (c != grid.column)
		app_request(j, tern_addr_at(j->t, j->rank, column),
			    tern_addr_at(j->t, rank_at(grid.row, c), copied) +
				    copied_place(k) * sizeof *copied,
			    row_count * sizeof *copied);
	app_requests_wait(j);
}

/* To or from the other ranks of a row or column of the grid; `self` is our place in it. */
static void send_all(struct app_job *j, uint64_t id, const uint32_t *data, uint64_t n,
		     uint32_t self, uint32_t others, tern_op *op)
{
	for (uint32_t i = 1; i < others; i++) {
		uint32_t at = (self + i) % others;
		uint32_t to = id % 2 ? rank_at(grid.row, at) : rank_at(at, grid.column);
		app_must(j, tern_send_start(j->t, to, id, data, n * sizeof *data,
					    TERN_SEND_RENDEZVOUS, op));
	}
}

static void get_send(struct app_job *j, uint64_t k, uint32_t r, uint32_t c)
{
	tern_op op = TERN_OP;
	tern_match from_row = { .rank = rank_at(r, grid.column), .id = k * 2 };
	tern_match from_column = { .rank = rank_at(grid.row, c), .id = k * 2 + 1 };
	if (r == grid.row)
		send_all(j, k * 2, part + row_place(k), column_count, r, grid.rows, &op);
	else
		app_must(j, tern_recv_start(j->t, &from_row, row, column_count * sizeof *row, NULL,
					    &op));
	if (c == grid.column)
		send_all(j, k * 2 + 1, copied + copied_place(k), row_count, c, grid.columns, &op);
	else
		app_must(j, tern_recv_start(j->t, &from_column, column, row_count * sizeof *column,
					    NULL, &op));
	app_must(j, tern_op_wait(j->t, &op));
}

static void get_broadcast(struct app_job *j, uint32_t r, uint32_t c)
{
	app_must(j, tern_team_broadcast(in_column, r, row, column_count * sizeof *row));
	app_must(j, tern_team_broadcast(in_row, c, column, row_count * sizeof *column));
}

static void run(struct app_job *j)
{
	for (uint64_t k = 0; k < vertices; k++) {
		uint32_t r = app_part_of(vertices, grid.rows, k);
		uint32_t c = app_part_of(vertices, grid.columns, k);
		if (c == grid.column) {
			column_copy(k);
			memcpy(column, copied + copied_place(k), row_count * sizeof *column);
		}
		if (r == grid.row)
			memcpy(row, part + row_place(k), column_count * sizeof *row);
		if (j->variant == ACTIVE)
			get_active(j, k, r, c);
		else if (j->variant == SEND)
			get_send(j, k, r, c);
		else
			get_broadcast(j, r, c);
		for (uint64_t i = 0; i < row_count; i++)
			for (uint64_t l = 0; l < column_count; l++) {
				uint32_t by = column[i] + row[l], *d = &part[i * column_count + l];
				*d = by < *d ? by : *d;
			}
		app_work(j, 2 * row_count * column_count, 0, 3 * row_count * column_count);
	}
	app_must(j, tern_team_barrier(j->team)); /* until then others get parts from here */
}

/* -- Around it ------------------------------------------------------------------------ */

static void expect(struct app_job *j)
{
	uint32_t *d = app_memory(j, (double)vertices * (double)vertices * sizeof *d);
	app_serial_paths(d, vertices, density);
	for (uint64_t i = 0; i < row_count; i++)
		memcpy(expected + i * column_count, d + (first_row + i) * vertices + first_column,
		       column_count * sizeof *d);
	app_memory_free(j, d);
}

static void open(struct app_job *j)
{
	grid = app_grid(j);
	first_row = app_part(vertices, grid.rows, grid.row);
	row_count = app_part(vertices, grid.rows, grid.row + 1) - first_row;
	first_column = app_part(vertices, grid.columns, grid.column);
	column_count = app_part(vertices, grid.columns, grid.column + 1) - first_column;
	double bytes = (double)row_count * (double)column_count * sizeof *part;
	part = app_shared(j, bytes);
	row = app_shared(j, (double)column_count * sizeof *row);
	column = app_shared(j, (double)row_count * sizeof *column);
	copied = app_shared(j, 2 * (double)row_count * sizeof *copied);
	expected = app_memory(j, bytes);
	app_must(j, tern_team_split(j->team, (int)grid.row, (int)grid.column, &in_row));
	app_must(j, tern_team_split(j->team, (int)grid.column, (int)grid.row, &in_column));
	expect(j);
	app_requests_open(j);
	j->amount = 1e-6 * (double)vertices * (double)vertices * (double)vertices;
}

static void reset(struct app_job *j)
{
	(void)j;
	for (uint64_t i = 0; i < row_count; i++)
		for (uint64_t l = 0; l < column_count; l++)
			part[i * column_count + l] =
				app_edge(density, first_row + i, first_column + l);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < row_count * column_count; i++)
		n += app_differs_word("part", i, part[i], expected[i]);
	return n;
}

static void close(struct app_job *j)
{
	app_must(j, tern_team_free(in_row));
	app_must(j, tern_team_free(in_column));
	app_memory_free(j, expected);
	app_shared_free(j, copied);
	app_shared_free(j, column);
	app_shared_free(j, row);
	app_shared_free(j, part);
}

const struct app app = {
	.name = "closure",
	.what = "The transitive closure stressmark (Lewis' thesis, 6.2.3): shortest paths\n"
		"between all vertices of a graph, by Floyd and Warshall, in the style of\n"
		"active messages and in that of send and receive.",
	.unit = "Mpath",
	APP_FUNCTIONS,
};
