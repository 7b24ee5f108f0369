/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix transpose by words, rows and blocks (von Eicken's thesis, 4.2.6.2, table 4-6). A rank has
 * a block of columns of the matrix and of its transposition. It walks through its columns and
 * stores what belongs to other ranks there; each rank waits until as much has come as it lacks.
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/mem.h>

enum { WORD, WORD_NAIVE, ROW, ROW_NAIVE, BLOCK, BLOCK_NAIVE, COLLECTIVE };
enum { ON_BLOCK };

static uint64_t rows = 128, columns = 96;

static const struct app_option options[] = {
	{ "rows", "rows of the matrix", &rows, 1, 1 << 16, NULL },
	{ "columns", "its columns", &columns, 1, 1 << 16, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "word", "a store for each element; rank i begins with rank i" },
	{ "word-naive", "the same, but every rank begins with rank 0" },
	{ "row", "a store for each row of a block" },
	{ "row-naive", "the same in that order" },
	{ "block", "a message for each block, whose handler lays its rows down" },
	{ "block-naive", "the same in that order" },
	{ "collective", "tern_team_transpose()" },
	{ 0 },
};

/*
 * By columns: in[c * rows + i] has element (i, first_column + c), and out[i * columns + c] has
 * element (first_row + i, c).
 */
static uint64_t *in, *out, *packed, *landing;
static uint64_t first_column, column_count, first_row, row_count;
static tern_flag blocks; /* that have come */
static struct app_job *job;

static uint64_t element(uint64_t i, uint64_t c)
{
	return app_hash(i << 32 | c);
}

/* -- Communication -------------------------------------------------------------------- */

/* Where the run of row i that this rank has belongs. */
static tern_addr row_at(struct app_job *j, uint32_t to, uint64_t i)
{
	uint64_t row = i - app_first(j, rows, to);
	return tern_addr_at(j->t, to, out) + (row * columns + first_column) * sizeof *out;
}

static void send_words(struct app_job *j, uint32_t to)
{
	for (uint64_t i = app_first(j, rows, to); i < app_first(j, rows, to + 1); i++)
		for (uint64_t c = 0; c < column_count; c++)
			app_must(j, tern_store(j->t, row_at(j, to, i) + c * sizeof *out,
					       &in[c * rows + i], sizeof *in));
}

static void gather_row(uint64_t i, uint64_t *row)
{
	for (uint64_t c = 0; c < column_count; c++)
		row[c] = in[c * rows + i];
}

static void send_rows(struct app_job *j, uint32_t to)
{
	for (uint64_t i = app_first(j, rows, to); i < app_first(j, rows, to + 1); i++) {
		gather_row(i, packed);
		app_must(j,
			 tern_store(j->t, row_at(j, to, i), packed, column_count * sizeof *packed));
	}
}

/* Blocks land behind each other, in the order of their sources' columns. */
static void send_block(struct app_job *j, uint32_t to)
{
	uint64_t first = app_first(j, rows, to), n = app_first(j, rows, to + 1) - first;
	for (uint64_t i = 0; i < n; i++)
		gather_row(first + i, packed + i * column_count);
	app_must(j, tern_put_request(j->t,
				     tern_addr_at(j->t, to, landing) +
					     first_column * n * sizeof *landing,
				     ON_BLOCK, packed, n * column_count * sizeof *packed));
}

static void on_block(tern *t, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	uint64_t first = app_first(job, columns, src), n = app_first(job, columns, src + 1) - first;
	for (uint64_t i = 0; i < row_count; i++)
		memcpy(out + i * columns + first, landing + first * row_count + i * n,
		       n * sizeof *out);
	tern_signal(t, &blocks, 1);
}

static void transpose_all(struct app_job *j)
{
	tern_matrix from = { in, columns, rows, sizeof *in, 0 };
	tern_matrix to = { out, rows, columns, sizeof *out, 0 };
	app_must(j, tern_team_transpose(j->team, &from, &to));
}

static void send_to(struct app_job *j, uint32_t to)
{
	if (j->variant <= WORD_NAIVE)
		send_words(j, to);
	else if (j->variant <= ROW_NAIVE)
		send_rows(j, to);
	else
		send_block(j, to);
}

static void run(struct app_job *j)
{
	int naive =
		j->variant == WORD_NAIVE || j->variant == ROW_NAIVE || j->variant == BLOCK_NAIVE;
	app_work(j, 0, 0, 2 * rows * column_count);
	if (j->variant == COLLECTIVE) {
		transpose_all(j);
		return;
	}
	for (uint32_t k = 0; k < j->size; k++)
		send_to(j, naive ? k : (j->rank + k) % j->size);
	if (j->variant < BLOCK)
		app_must(j, tern_store_sync(j->t, row_count * columns * sizeof *out));
	else
		app_must(j, tern_wait(j->t, &blocks, j->size));
	app_must(j, tern_barrier(j->t));
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	job = j;
	first_column = app_first(j, columns, j->rank);
	column_count = app_first(j, columns, j->rank + 1) - first_column;
	first_row = app_first(j, rows, j->rank);
	row_count = app_first(j, rows, j->rank + 1) - first_row;
	out = app_shared(j, (double)row_count * (double)columns * sizeof *out);
	landing = app_shared(j, (double)row_count * (double)columns * sizeof *out);
	in = app_memory(j, (double)column_count * (double)rows * sizeof *in);
	packed = app_memory(j, (double)column_count * (double)rows * sizeof *in);
	for (uint64_t c = 0; c < column_count; c++)
		for (uint64_t i = 0; i < rows; i++)
			in[c * rows + i] = element(i, first_column + c);
	app_must(j, tern_on(j->t, ON_BLOCK, on_block));
	app_must(j, tern_barrier(j->t));
	j->amount = 8e-6 * (double)rows * (double)columns;
}

static void reset(struct app_job *j)
{
	(void)j;
	memset(out, 0, row_count * columns * sizeof *out);
	memset(landing, 0, row_count * columns * sizeof *out);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < row_count; i++)
		for (uint64_t c = 0; c < columns; c++)
			n += app_differs_word("out", (first_row + i) * columns + c,
					      out[i * columns + c], element(first_row + i, c));
	return n;
}

/* A rank sends and receives so many messages, one every max(2 o, g). */
static double predict(struct app_job *j)
{
	const struct app_logp *p = j->logp;
	double messages = j->variant <= WORD_NAIVE  ? (double)rows * (double)column_count
			  : j->variant <= ROW_NAIVE ? (double)rows
						    : j->size;
	double bytes = (double)rows * (double)column_count * sizeof *in;
	double each = fmax(p->overhead_send + p->overhead_receive, p->gap);
	return messages * each + bytes * p->byte + p->latency;
}

static void close(struct app_job *j)
{
	app_memory_free(j, in);
	app_memory_free(j, packed);
	app_shared_free(j, landing);
	app_shared_free(j, out);
}

const struct app app = {
	.name = "transpose",
	.what = "Transposes a matrix that is spread over all ranks by columns (von Eicken's\n"
		"thesis, 4.2.6.2), in messages of a word, of a row of a block, and of a\n"
		"whole block.",
	.unit = "MB",
	APP_FUNCTIONS,
	.predict = predict,
};
