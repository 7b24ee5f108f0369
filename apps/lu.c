/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LU factorisation stressmark (Lewis' thesis, 6.3). The matrix is cut into square blocks, which
 * are dealt out to a grid of ranks in turns, by rows and by columns. In iteration k the diagonal
 * block is factored, the perimeter (row k and column k of blocks) is divided by it, and each inner
 * block is changed by the perimeter block above it and the one to its left.
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/send.h>

enum { ACTIVE, RENDEZVOUS, READY };
enum { DIAGONAL, ROW, COLUMN }; /* kinds of blocks that are sent */

static uint64_t size = 512, edge = 16;

static const struct app_option options[] = {
	{ "size", "rows and columns of the matrix", &size, 1, 1 << 15, NULL },
	{ "block", "rows and columns of a block, which divide the size", &edge, 1, 1 << 10, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "active", "threads at the owners put blocks here" },
	{ "rendezvous", "owners send blocks, by rendezvous" },
	{ "ready", "owners send blocks at once; a barrier says that the receives are posted" },
	{ 0 },
};

static struct app_grid grid;
static uint64_t blocks;                /* in a row or column of the matrix */
static uint64_t own_rows, own_columns; /* of blocks, of this rank */
static size_t bytes;                   /* of a block */
static double *part, *expected;
/* What an iteration needs of others: the diagonal block, and the perimeter of own blocks. */
static double *diagonal, *above, *left;

/* -- Who has what ----------------------------------------------------------------------- */

static int owns(uint64_t i, uint64_t k)
{
	return i % grid.rows == grid.row && k % grid.columns == grid.column;
}

static uint32_t owner(uint64_t i, uint64_t k)
{
	return (uint32_t)(i % grid.rows * grid.columns + k % grid.columns);
}

/* How many blocks of a row, or rows of blocks, a place of the grid has. */
static uint64_t dealt(uint64_t places, uint64_t place)
{
	return blocks / places + (blocks % places > place);
}

static uint64_t block_place(uint64_t i, uint64_t k)
{
	return (i / grid.rows * dealt(grid.columns, k % grid.columns) + k / grid.columns) * edge *
	       edge;
}

static double *block(uint64_t i, uint64_t k)
{
	return part + block_place(i, k);
}

/* The first block behind k of a place of the grid; `blocks` or more if it has none. */
static uint64_t behind(uint64_t k, uint64_t places, uint64_t place)
{
	return k + 1 + (place + places - (k + 1) % places) % places;
}

/* Where the perimeter block above own column `c`, or left of own row `r`, is in this iteration. */
static double *above_of(uint64_t k, uint64_t c)
{
	return owns(k, c) ? block(k, c) : above + c / grid.columns * edge * edge;
}

static double *left_of(uint64_t k, uint64_t r)
{
	return owns(r, k) ? block(r, k) : left + r / grid.rows * edge * edge;
}

/* -- Blocks ---------------------------------------------------------------------------- */

static void factor(struct app_job *j, double *a)
{
	app_block_factor(a, edge);
	app_work(j, 0, 2 * edge * edge * edge / 3 + 1, 0);
}

static void divide_row(struct app_job *j, double *a, const double *d)
{
	app_block_divide_row(a, d, edge);
	app_work(j, 0, edge * edge * edge, 0);
}

static void divide_column(struct app_job *j, double *a, const double *d)
{
	app_block_divide_column(a, d, edge);
	app_work(j, 0, edge * edge * edge, 0);
}

static void inner(struct app_job *j, double *c, const double *a, const double *b)
{
	app_block_inner(c, a, b, edge);
	app_work(j, 0, 2 * edge * edge * edge, 0);
}

/* -- Communication -------------------------------------------------------------------- */

/* Whether this rank has perimeter blocks of iteration k. */
static int in_perimeter(uint64_t k)
{
	return (k % grid.rows == grid.row && behind(k, grid.columns, grid.column) < blocks) ||
	       (k % grid.columns == grid.column && behind(k, grid.rows, grid.row) < blocks);
}

static tern_id id_of(uint64_t k, uint64_t kind, uint64_t at)
{
	return k << 34 | kind << 32 | at;
}

static int sends(const struct app_job *j)
{
	return j->variant != ACTIVE;
}

/* Asks for a block, or posts the receive for it. */
static void block_get(struct app_job *j, uint64_t k, uint64_t kind, uint64_t r, uint64_t c,
		      double *to, tern_op *op)
{
	tern_match match = { .rank = owner(r, c), .id = id_of(k, kind, kind == ROW ? c : r) };
	if (owns(r, c))
		return;
	if (sends(j))
		app_must(j, tern_recv_start(j->t, &match, to, bytes, NULL, op));
	else
		app_request(j, tern_addr_at(j->t, j->rank, to),
			    tern_addr_at(j->t, owner(r, c), part) +
				    block_place(r, c) * sizeof *part,
			    bytes);
}

static void perimeter_get(struct app_job *j, uint64_t k, tern_op *op)
{
	uint64_t r = behind(k, grid.rows, grid.row), c = behind(k, grid.columns, grid.column);
	if (r >= blocks || c >= blocks)
		return; /* no inner block */
	for (uint64_t at = c; at < blocks; at += grid.columns)
		block_get(j, k, ROW, k, at, above_of(k, at), op);
	for (uint64_t at = r; at < blocks; at += grid.rows)
		block_get(j, k, COLUMN, at, k, left_of(k, at), op);
}

static void block_send(struct app_job *j, uint64_t k, uint64_t kind, uint64_t at, uint32_t to,
		       const double *data, tern_op *op)
{
	unsigned mode = j->variant == READY ? TERN_SEND_READY : TERN_SEND_RENDEZVOUS;
	if (to != j->rank)
		app_must(j, tern_send_start(j->t, to, id_of(k, kind, at), data, bytes, mode, op));
}

/* To those in this rank's row of the grid that have blocks behind column k, and likewise down. */
static void send_along_row(struct app_job *j, uint64_t k, uint64_t kind, uint64_t at,
			   const double *data, tern_op *op)
{
	for (uint32_t c = 0; c < grid.columns; c++)
		if (behind(k, grid.columns, c) < blocks)
			block_send(j, k, kind, at, grid.row * grid.columns + c, data, op);
}

static void send_along_column(struct app_job *j, uint64_t k, uint64_t kind, uint64_t at,
			      const double *data, tern_op *op)
{
	for (uint32_t r = 0; r < grid.rows; r++)
		if (behind(k, grid.rows, r) < blocks)
			block_send(j, k, kind, at, r * grid.columns + grid.column, data, op);
}

static void diagonal_step(struct app_job *j, uint64_t k, tern_op *sent)
{
	if (!owns(k, k))
		return;
	factor(j, block(k, k));
	if (!sends(j))
		return;
	send_along_row(j, k, DIAGONAL, k, block(k, k), sent);
	send_along_column(j, k, DIAGONAL, k, block(k, k), sent);
}

/* Divides the perimeter blocks of this rank, and sends each to those who have inner blocks. */
static void perimeter_step(struct app_job *j, uint64_t k, tern_op *sent)
{
	const double *d = owns(k, k) ? block(k, k) : diagonal;
	uint64_t r = behind(k, grid.rows, grid.row), c = behind(k, grid.columns, grid.column);
	for (; k % grid.rows == grid.row && c < blocks; c += grid.columns) {
		divide_row(j, block(k, c), d);
		if (sends(j))
			send_along_column(j, k, ROW, c, block(k, c), sent);
	}
	for (; k % grid.columns == grid.column && r < blocks; r += grid.rows) {
		divide_column(j, block(r, k), d);
		if (sends(j))
			send_along_row(j, k, COLUMN, r, block(r, k), sent);
	}
}

static void inner_step(struct app_job *j, uint64_t k)
{
	for (uint64_t r = behind(k, grid.rows, grid.row); r < blocks; r += grid.rows)
		for (uint64_t c = behind(k, grid.columns, grid.column); c < blocks;
		     c += grid.columns)
			inner(j, block(r, c), left_of(k, r), above_of(k, c));
}

/* With barriers between requests for the diagonal block, for the perimeter, and iterations. */
static void iterate_active(struct app_job *j, uint64_t k)
{
	diagonal_step(j, k, NULL);
	app_must(j, tern_team_barrier(j->team));
	if (in_perimeter(k))
		block_get(j, k, DIAGONAL, k, k, diagonal, NULL);
	app_requests_wait(j);
	perimeter_step(j, k, NULL);
	app_must(j, tern_team_barrier(j->team));
	perimeter_get(j, k, NULL);
	app_requests_wait(j);
	inner_step(j, k);
}

static void iterate_send(struct app_job *j, uint64_t k)
{
	tern_op got_diagonal = TERN_OP, got_perimeter = TERN_OP, sent = TERN_OP;
	if (in_perimeter(k))
		block_get(j, k, DIAGONAL, k, k, diagonal, &got_diagonal);
	perimeter_get(j, k, &got_perimeter);
	if (j->variant == READY)
		app_must(j, tern_team_barrier(j->team));
	diagonal_step(j, k, &sent);
	app_must(j, tern_op_wait(j->t, &got_diagonal));
	perimeter_step(j, k, &sent);
	app_must(j, tern_op_wait(j->t, &got_perimeter));
	inner_step(j, k);
	app_must(j, tern_op_wait(j->t, &sent));
}

static void run(struct app_job *j)
{
	for (uint64_t k = 0; k < blocks; k++)
		if (sends(j))
			iterate_send(j, k);
		else
			iterate_active(j, k);
	app_must(j, tern_team_barrier(j->team)); /* until then others get blocks from here */
}

/* -- Around it ------------------------------------------------------------------------ */

/* Element (i, k) of the matrix in this rank's blocks; NULL if another rank has it. */
static double *own_element(double *all, uint64_t i, uint64_t k)
{
	if (!owns(i / edge, k / edge))
		return NULL;
	return all + block_place(i / edge, k / edge) + i % edge * edge + k % edge;
}

static void expect(struct app_job *j)
{
	double *a = app_memory(j, (double)size * (double)size * sizeof *a);
	app_serial_lu(a, size);
	for (uint64_t i = 0; i < size * size; i++) {
		double *own = own_element(expected, i / size, i % size);
		if (own)
			*own = a[i];
	}
	app_memory_free(j, a);
}

static void open(struct app_job *j)
{
	if (size % edge)
		app_refuse(j, "--block %llu does not divide --size %llu", (unsigned long long)edge,
			   (unsigned long long)size);
	grid = app_grid(j);
	blocks = size / edge;
	own_rows = dealt(grid.rows, grid.row);
	own_columns = dealt(grid.columns, grid.column);
	bytes = edge * edge * sizeof *part;
	double all = (double)own_rows * (double)own_columns * (double)bytes;
	part = app_shared(j, all);
	diagonal = app_shared(j, (double)bytes);
	above = app_shared(j, (double)own_columns * (double)bytes);
	left = app_shared(j, (double)own_rows * (double)bytes);
	expected = app_memory(j, all);
	expect(j);
	app_requests_open(j);
	j->amount = 2e-6 / 3 * (double)size * (double)size * (double)size;
}

static void reset(struct app_job *j)
{
	(void)j;
	for (uint64_t i = 0; i < size * size; i++) {
		double *own = own_element(part, i / size, i % size);
		if (own)
			*own = app_element(size, i / size, i % size);
	}
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < own_rows * own_columns * edge * edge; i++)
		n += app_differs("part", i, part[i], expected[i], 1e-9 * (1 + fabs(expected[i])));
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, expected);
	app_shared_free(j, left);
	app_shared_free(j, above);
	app_shared_free(j, diagonal);
	app_shared_free(j, part);
}

const struct app app = {
	.name = "lu",
	.what = "The LU factorisation stressmark (Lewis' thesis, 6.3), without pivots, in\n"
		"the style of active messages and in that of send and receive.",
	.unit = "Mflop",
	APP_FUNCTIONS,
};
