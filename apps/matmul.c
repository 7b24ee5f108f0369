/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix multiply, C = A B, by outer products (von Eicken's thesis, 4.2.6.1). A rank has blocks of
 * columns of all three. It gets the columns of A one after another and multiplies each by a row of
 * its part of B. The order begins with its own columns, so that ranks do not all ask rank 0 first.
 */
#include "frame/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tern/mem.h>

enum { BLOCKING, PREFETCH, MESSAGE };
enum { ON_GET, ON_COLUMN };

static uint64_t rows = 128, inner = 0, columns = 16, flops = 1 << 22;

static const struct app_option options[] = {
	{ "rows", "rows of A and C: a message carries a column of A", &rows, 1, 1 << 16, NULL },
	{ "columns", "columns of B and C: the computation for each message", &columns, 1, 1 << 16,
	  NULL },
	{ "inner", "columns of A; 0: so many that all takes --flops", &inner, 0, 1 << 20, NULL },
	{ "flops", "operations of all ranks together, where --inner is 0", &flops, 1,
	  UINT64_C(1) << 40, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "blocking", "get a column, wait for it, use it" },
	{ "prefetch", "get the next column while this one is used" },
	{ "message", "the same by a request, whose handler replies with the column" },
	{ 0 },
};

/* The matrices by columns; of each, those of this rank. */
static double *a, *b, *c, *expected, *fetched[2];
static uint64_t k_all, mine, have;
static double compute;    /* seconds for a column, for the prediction */
static double took;       /* seconds of the last round */
static tern_flag arrived; /* columns that have come by message */

/* -- The input: small whole numbers, so that sums are exact in any order ------------------- */

static double a_element(uint64_t i, uint64_t k)
{
	return (double)(app_hash(i << 32 | k) % 16) - 8;
}

static double b_element(uint64_t k, uint64_t col)
{
	return (double)(app_hash(~(k << 32 | col)) % 16) - 8;
}

/* -- Communication -------------------------------------------------------------------- */

static tern_addr column_at(struct app_job *j, uint64_t k)
{
	uint32_t owner = app_owner(j, k_all, k);
	return tern_addr_at(j->t, owner, a) + (k - app_first(j, k_all, owner)) * rows * sizeof *a;
}

/* At the owner: the words say which of its columns, and where it goes. */
static void on_get(tern *t, const tern_msg *m)
{
	const double *column = a + tern_msg_word(m, 0) * rows;
	if (tern_put_reply(t, m, tern_msg_word(m, 1), ON_COLUMN, column, rows * sizeof *a, NULL))
		tern_abort(t, "a column cannot be sent");
}

static void on_column(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &arrived, 1);
}

/* Begins to get column k into one of the two vectors. */
static void column_get(struct app_job *j, uint64_t k, unsigned v, tern_op *op)
{
	if (j->variant != MESSAGE) {
		app_must(j,
			 tern_get_start(j->t, fetched[v], column_at(j, k), rows * sizeof *a, op));
		return;
	}
	uint32_t owner = app_owner(j, k_all, k);
	app_must(j, tern_request(j->t, owner, ON_GET, k - app_first(j, k_all, owner),
				 tern_addr_at(j->t, j->rank, fetched[v])));
}

static void column_wait(struct app_job *j, tern_op *op)
{
	app_must(j, j->variant == MESSAGE ? tern_wait(j->t, &arrived, 1) : tern_op_wait(j->t, op));
}

/* c += column * row k of b. */
static void outer_product(struct app_job *j, const double *restrict column, uint64_t k)
{
	for (uint64_t col = 0; col < mine; col++) {
		double *restrict to = c + col * rows, factor = b[col * k_all + k];
		for (uint64_t i = 0; i < rows; i++)
			to[i] += column[i] * factor;
	}
	app_work(j, 0, 2 * rows * mine, 0);
}

static void run_blocking(struct app_job *j, uint64_t first)
{
	for (uint64_t n = 0; n < k_all; n++) {
		uint64_t k = (first + n) % k_all;
		tern_op op = TERN_OP;
		column_get(j, k, 0, &op);
		column_wait(j, &op);
		outer_product(j, fetched[0], k);
	}
}

static void run_prefetch(struct app_job *j, uint64_t first)
{
	tern_op op[2] = { TERN_OP, TERN_OP };
	column_get(j, first, 0, &op[0]);
	for (uint64_t n = 0; n < k_all; n++) {
		unsigned now = n % 2;
		column_wait(j, &op[now]);
		if (n + 1 < k_all)
			column_get(j, (first + n + 1) % k_all, !now, &op[!now]);
		outer_product(j, fetched[now], (first + n) % k_all);
	}
}

static void run(struct app_job *j)
{
	uint64_t first = app_first(j, k_all, j->rank) % k_all;
	double begun = app_seconds(j);
	if (j->variant == BLOCKING)
		run_blocking(j, first);
	else
		run_prefetch(j, first);
	app_must(j, tern_barrier(j->t)); /* until then others get columns from here */
	took = app_seconds(j) - begun;
	app_figure(j, "processor %", 100 * (double)k_all * compute / took);
	app_figure(j, "flop a message", 2.0 * (double)(rows * columns) / j->size);
}

/* -- Around it ------------------------------------------------------------------------ */

/* Dot products: another order and another layout than the ranks'. */
static void expect(struct app_job *j)
{
	double *row = app_memory(j, (double)k_all * sizeof *row);
	for (uint64_t i = 0; i < rows; i++) {
		for (uint64_t k = 0; k < k_all; k++)
			row[k] = a_element(i, k);
		for (uint64_t col = 0; col < mine; col++) {
			double sum = 0;
			for (uint64_t k = 0; k < k_all; k++)
				sum += row[k] * b[col * k_all + k];
			expected[col * rows + i] = sum;
		}
	}
	app_memory_free(j, row);
}

static void open(struct app_job *j)
{
	uint64_t first_k, first_col;
	k_all = inner ? inner : flops / (2 * rows * columns);
	if (!k_all)
		app_refuse(j, "--flops %llu is less than one outer product of %llu by %llu takes",
			   (unsigned long long)flops, (unsigned long long)rows,
			   (unsigned long long)columns);
	first_k = app_first(j, k_all, j->rank);
	first_col = app_first(j, columns, j->rank);
	have = app_first(j, k_all, j->rank + 1) - first_k;
	mine = app_first(j, columns, j->rank + 1) - first_col;
	a = app_shared(j, (double)have * (double)rows * sizeof *a);
	for (unsigned v = 0; v < 2; v++)
		fetched[v] = app_shared(j, (double)rows * sizeof *a);
	b = app_memory(j, (double)mine * (double)k_all * sizeof *b);
	c = app_memory(j, (double)mine * (double)rows * sizeof *c);
	expected = app_memory(j, (double)mine * (double)rows * sizeof *c);
	for (uint64_t k = 0; k < have; k++)
		for (uint64_t i = 0; i < rows; i++)
			a[k * rows + i] = a_element(i, first_k + k);
	for (uint64_t col = 0; col < mine; col++)
		for (uint64_t k = 0; k < k_all; k++)
			b[col * k_all + k] = b_element(k, first_col + col);
	expect(j);
	app_must(j, tern_on(j->t, ON_GET, on_get));
	app_must(j, tern_on(j->t, ON_COLUMN, on_column));
	j->amount = 2e-6 * (double)rows * (double)k_all * (double)columns;
	app_must(j, tern_barrier(j->t));
}

/* Also times an outer product, with a column that is here: the second, since caches are warm. */
static void reset(struct app_job *j)
{
	outer_product(j, fetched[0], 0);
	double begun = app_seconds(j);
	outer_product(j, fetched[0], 0);
	compute = app_seconds(j) - begun;
	memset(c, 0, mine * rows * sizeof *c);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < mine * rows; i++)
		n += app_differs("c", i, c[i], expected[i], 0);
	return n;
}

/* Figure 4-12: what is longer, computation or communication, unless one waits for the other. */
static double predict(struct app_job *j)
{
	const struct app_logp *p = j->logp;
	double overheads = 2 * (p->overhead_send + p->overhead_receive);
	double trip = overheads + 2 * p->latency + (double)rows * sizeof *a * p->byte;
	double remote = (double)(k_all - have), own = (double)have;
	/* Of the peak, which is one over the gap for each byte: figure 4-14. */
	app_figure(j, "network %", 100 * remote * (double)rows * sizeof *a * p->byte / took);
	if (j->variant == BLOCKING)
		return remote * (trip + compute) + own * compute;
	return remote * fmax(trip, overheads + compute) + own * compute;
}

static void close(struct app_job *j)
{
	app_memory_free(j, b);
	app_memory_free(j, c);
	app_memory_free(j, expected);
	app_shared_free(j, fetched[1]);
	app_shared_free(j, fetched[0]);
	app_shared_free(j, a);
}

const struct app app = {
	.name = "matmul",
	.what = "Multiplies matrices that are spread over all ranks by columns. Each rank\n"
		"gets every column of A once and multiplies it by its part of B (von\n"
		"Eicken's thesis, 4.2.6.1). --columns 2,4,8,16 varies the computation for\n"
		"each message: figures 4-13 and 4-14.",
	.unit = "Mflop",
	APP_FUNCTIONS,
	.predict = predict,
};
