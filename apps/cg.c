/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The matrix stressmark (Lewis' thesis, 6.2.2): conjugate gradients for a sparse system A x = b.
 * Rows of A and parts of the vectors are dealt out to the ranks in turns. Every rank needs the
 * whole direction p in each iteration: ranks first share their parts in their column of the grid,
 * and then what each has of its column with their row.
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/send.h>

enum { ACTIVE, SEND, COLLECTIVE };

static uint64_t rows = 10000, offsets = 4, most = 200, naive;

static const struct app_option options[] = {
	{ "rows", "of the system", &rows, 1, 1 << 24, NULL },
	{ "offsets", "a row has twice as many elements beside the diagonal", &offsets, 0, 16,
	  NULL },
	{ "iterations", "at most", &most, 1, 10000, NULL },
	{ "naive", "1: every rank begins with the first of its row or column; 0: with the next",
	  &naive, 0, 1, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "active", "threads at the owners put parts of the direction here" },
	{ "send", "ranks send their parts, by rendezvous" },
	{ "collective", "tern_team_allgather() in columns and in rows of the grid" },
	{ 0 },
};

static struct app_grid grid;
static tern_team *in_row, *in_column;
static uint64_t room; /* elements of a part, as many as the largest has */
static uint64_t mine;
static uint64_t *starts, *place; /* elements of own row l beside the diagonal: their places in p */
/* Parts of this rank; and p of all ranks, those of a column of the grid behind each other. */
static double *x, *r, *ap, *p;
static uint64_t iterations;

/* -- Communication -------------------------------------------------------------------- */

/* The place of a rank's part in p. */
static uint64_t slot(uint32_t row, uint32_t column)
{
	return (column * grid.rows + row) * room;
}

static uint32_t rank_at(uint32_t row, uint32_t column)
{
	return row * grid.columns + column;
}

/* The place of element k in p. */
static uint64_t place_of(const struct app_job *j, uint64_t k)
{
	uint32_t rank = (uint32_t)(k % j->size);
	return slot(rank / grid.columns, rank % grid.columns) + k / j->size;
}

/* The i-th of the others of `n` in a row or column of the grid, from 1 on; we are at `self`. */
static uint32_t other_of(uint32_t i, uint32_t self, uint32_t n)
{
	return naive ? i - (i <= self) : (self + i) % n;
}

/* Part of p that rank `from` has: `n` elements at the same place here and there. */
static void part_request(struct app_job *j, uint32_t from, uint64_t at, uint64_t n)
{
	app_request(j, tern_addr_at(j->t, j->rank, p) + at * sizeof *p,
		    tern_addr_at(j->t, from, p) + at * sizeof *p, n * sizeof *p);
}

static void share_active(struct app_job *j)
{
	app_must(j, tern_team_barrier(j->team)); /* everybody has its part of the new direction */
	for (uint32_t i = 1; i < grid.rows; i++) {
		uint32_t row = other_of(i, grid.row, grid.rows);
		part_request(j, rank_at(row, grid.column), slot(row, grid.column), room);
	}
	app_requests_wait(j);
	app_must(j, tern_team_barrier(j->team)); /* everybody has its column */
	for (uint32_t i = 1; i < grid.columns; i++) {
		uint32_t column = other_of(i, grid.column, grid.columns);
		part_request(j, rank_at(grid.row, column), slot(0, column), room * grid.rows);
	}
	app_requests_wait(j);
}

/* Sends `n` elements of ours to a rank, and receives as many at `to` from it. */
static void exchange(struct app_job *j, uint32_t with, uint64_t id, uint64_t ours, uint64_t to,
		     uint64_t n, tern_op *op)
{
	tern_match match = { .rank = with, .id = id };
	app_must(j, tern_recv_start(j->t, &match, p + to, n * sizeof *p, NULL, op));
	app_must(j, tern_send_start(j->t, with, id, p + ours, n * sizeof *p, TERN_SEND_RENDEZVOUS,
				    op));
}

static void share_send(struct app_job *j)
{
	tern_op op = TERN_OP;
	for (uint32_t i = 1; i < grid.rows; i++) {
		uint32_t row = other_of(i, grid.row, grid.rows);
		exchange(j, rank_at(row, grid.column), 0, slot(grid.row, grid.column),
			 slot(row, grid.column), room, &op);
	}
	app_must(j, tern_op_wait(j->t, &op));
	for (uint32_t i = 1; i < grid.columns; i++) {
		uint32_t column = other_of(i, grid.column, grid.columns);
		exchange(j, rank_at(grid.row, column), 1, slot(0, grid.column), slot(0, column),
			 room * grid.rows, &op);
	}
	app_must(j, tern_op_wait(j->t, &op));
}

static void share_collective(struct app_job *j)
{
	size_t part = room * sizeof *p;
	memcpy(ap, p + slot(grid.row, grid.column), part);
	app_must(j, tern_team_allgather(in_column, ap, p + slot(0, grid.column), part));
	memcpy(ap, p + slot(0, grid.column), part * grid.rows);
	app_must(j, tern_team_allgather(in_row, ap, p, part * grid.rows));
}

static double sum(struct app_job *j, double value)
{
	app_must(j, tern_team_allreduce(j->team, &value, &value, 1, TERN_TYPE_DOUBLE,
					TERN_REDUCE_SUM));
	return value;
}

static double dot(struct app_job *j, const double *a, const double *b)
{
	double value = 0;
	for (uint64_t l = 0; l < mine; l++)
		value += a[l] * b[l];
	app_work(j, 0, 2 * mine, 2 * mine);
	return sum(j, value);
}

/* -- The iteration, equations 6.4 to 6.7 ----------------------------------------------------- */

static void share(struct app_job *j)
{
	if (j->variant == ACTIVE)
		share_active(j);
	else if (j->variant == SEND)
		share_send(j);
	else
		share_collective(j);
}

static double iterate(struct app_job *j, double rr)
{
	double *own = p + slot(grid.row, grid.column);
	share(j);
	for (uint64_t l = 0; l < mine; l++) {
		ap[l] = (double)(2 * offsets + 1) * own[l];
		for (uint64_t e = starts[l]; e < starts[l + 1]; e++)
			ap[l] -= p[place[e]];
	}
	app_work(j, 4 * offsets * mine, 2 * (2 * offsets + 1) * mine, 2 * offsets * mine);
	double alpha = rr / dot(j, own, ap);
	for (uint64_t l = 0; l < mine; l++) {
		x[l] += alpha * own[l];
		r[l] -= alpha * ap[l];
	}
	double next = dot(j, r, r), beta = next / rr;
	for (uint64_t l = 0; l < mine; l++)
		own[l] = r[l] + beta * own[l];
	app_work(j, 0, 6 * mine, 6 * mine);
	return next;
}

static void run(struct app_job *j)
{
	double *own = p + slot(grid.row, grid.column), rr = dot(j, r, r), least = 1e-24 * rr;
	memcpy(own, r, mine * sizeof *own);
	for (iterations = 0; iterations < most && rr > least; iterations++)
		rr = iterate(j, rr);
	app_must(j, tern_team_barrier(j->team)); /* until then others get parts from here */
	app_figure(j, "iterations", (double)iterations);
	j->amount = 1e-6 * (double)iterations * (double)rows * (double)(4 * offsets + 12);
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	grid = app_grid(j);
	room = rows / j->size + 1;
	mine = rows / j->size + (rows % j->size > j->rank);
	p = app_shared(j, (double)room * j->size * sizeof *p);
	x = app_memory(j, (double)room * sizeof *x);
	r = app_memory(j, (double)room * sizeof *r);
	ap = app_memory(j, (double)room * grid.rows * sizeof *ap);
	starts = app_memory(j, (double)(mine + 1) * sizeof *starts);
	place = app_memory(j, (double)mine * 2 * APP_OFFSETS_MOST * sizeof *place);
	for (uint64_t l = 0; l < mine; l++) {
		uint64_t column[2 * APP_OFFSETS_MOST];
		unsigned n = app_row_columns(rows, offsets, l * j->size + j->rank, column);
		starts[l + 1] = starts[l] + n;
		for (unsigned e = 0; e < n; e++)
			place[starts[l] + e] = place_of(j, column[e]);
	}
	app_must(j, tern_team_split(j->team, (int)grid.row, (int)grid.column, &in_row));
	app_must(j, tern_team_split(j->team, (int)grid.column, (int)grid.row, &in_column));
	app_requests_open(j);
}

/* b is made from a known solution. */
static void reset(struct app_job *j)
{
	memset(p, 0, room * j->size * sizeof *p);
	memset(x, 0, room * sizeof *x);
	for (uint64_t l = 0; l < mine; l++) {
		uint64_t column[2 * APP_OFFSETS_MOST], i = l * j->size + j->rank;
		r[l] = (double)(2 * offsets + 1) * app_solution(i);
		for (unsigned e = app_row_columns(rows, offsets, i, column); e-- > 0;)
			r[l] -= app_solution(column[e]);
	}
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	for (uint64_t l = 0; l < mine; l++) {
		uint64_t i = l * j->size + j->rank;
		n += app_differs("x", i, x[l], app_solution(i), 1e-8);
	}
	return n;
}

static void close(struct app_job *j)
{
	app_must(j, tern_team_free(in_row));
	app_must(j, tern_team_free(in_column));
	app_memory_free(j, starts);
	app_memory_free(j, place);
	app_memory_free(j, x);
	app_memory_free(j, r);
	app_memory_free(j, ap);
	app_shared_free(j, p);
}

const struct app app = {
	.name = "cg",
	.what = "The matrix stressmark (Lewis' thesis, 6.2.2): solves a sparse system by\n"
		"conjugate gradients, in the style of active messages and in that of send\n"
		"and receive. The system is made from a known solution.",
	.unit = "Mflop",
	APP_FUNCTIONS,
};
