/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse triangular solve (Rosing and Saltz, section 5): y(i) = rhs(i) - sum of a(i,k) y(k), with
 * a pattern of dependencies that is known only at run time. Row i belongs to rank i mod P. A rank
 * fetches each y(k) when it is ready; or it follows a schedule that was made before; or threads
 * bring values to the ranks that need them.
 */
#include "frame/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tern/send.h>
#include <tern/thread.h>

#include "frame/triangle.h"

enum { FETCH, SCHEDULE, THREADS };
enum { BRING = 1 }; /* the function of a thread; 0 is the frame's */

static uint64_t rows = 1000, degree = 4, span = 200;
static const char *matrix_path;

static const struct app_option options[] = {
	{ "rows", "of the generated matrix", &rows, 1, 1 << 24, NULL },
	{ "degree", "elements of a row left of the diagonal", &degree, 0, 64, NULL },
	{ "span", "they are at most so far from it", &span, 1, 1 << 24, NULL },
	{ "matrix", "the lower triangle of this one instead, in Matrix Market format", NULL, 0, 0,
	  &matrix_path },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "fetch", "each value is fetched from its owner when it is ready there" },
	{ "schedule", "levels were found before; a message for each level and rank" },
	{ "threads", "a thread brings each value to each rank that needs it" },
	{ 0 },
};

static struct triangle m; /* the whole, at every rank */
static char *needs;       /* [k * P + rank]: the rank has a row that needs y(k) */
/* By columns, own rows only: which rows need y(k), and their element. */
static uint64_t *uses_from, *use;
static uint32_t *use_row;

static double *y;              /* all: own ones, and those of others that have come */
static double *expected, *own; /* own ones, for others to fetch, in the order of their rows */
static _Atomic uint64_t *done; /* how many of them there are */
static char *here;             /* y(k) has been fetched */
static uint32_t *left;         /* values that row i still lacks */

static double rhs(uint64_t i)
{
	return 1 + (double)(i * 7 % 11);
}

/* -- Fetch when ready ------------------------------------------------------------------- */

static void fetch_one(struct app_job *j, uint64_t k, tern_op *op)
{
	uint32_t owner = (uint32_t)(k % j->size);
	uint64_t at = k / j->size;
	here[k] = 1;
	app_must(j,
		 tern_get_when_start(
			 j->t, &y[k], tern_addr_at(j->t, owner, own) + at * sizeof *own,
			 sizeof *own,
			 &(tern_when){ .flag = tern_addr_at(j->t, owner, done), .least = at + 1 },
			 op));
}

static void solve_row(struct app_job *j, uint64_t i)
{
	double value = rhs(i);
	for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++)
		value -= m.a[e] * y[m.column[e]];
	y[i] = value;
	app_work(j, 0, 2 * (m.from[i + 1] - m.from[i]) + 1, 3 * (m.from[i + 1] - m.from[i]) + 1);
}

static void run_fetch(struct app_job *j)
{
	for (uint64_t i = j->rank; i < m.rows; i += j->size) {
		tern_op op = TERN_OP;
		unsigned asked = 0;
		for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++)
			if (m.column[e] % j->size != j->rank && !here[m.column[e]]) {
				fetch_one(j, m.column[e], &op);
				if (++asked % (TERN_WHEN_MAX / 2) == 0)
					app_must(j, tern_op_wait(j->t, &op));
			}
		app_must(j, tern_op_wait(j->t, &op));
		solve_row(j, i);
		own[i / j->size] = y[i];
		atomic_store_explicit(done, i / j->size + 1, memory_order_release);
	}
}

/* -- A schedule ------------------------------------------------------------------------- */

/*
 * Own rows by level, and what goes to and comes from each rank after it. Values of a level and a
 * rank lie behind each other; both sides list them by row.
 */
static uint64_t *level_from, *level_row;                /* own rows of level l */
static uint64_t *out_from, *out_row, *in_from, *in_row; /* [l * P + rank] */
static double *out, *in;

static void run_schedule(struct app_job *j)
{
	tern_op sent = TERN_OP;
	for (uint64_t l = 0; l < m.levels; l++) {
		tern_op got = TERN_OP;
		for (uint64_t at = level_from[l]; at < level_from[l + 1]; at++)
			solve_row(j, level_row[at]);
		for (uint32_t r = 0; r < j->size; r++) {
			uint64_t o = l * j->size + r, n = out_from[o + 1] - out_from[o];
			uint64_t come = in_from[o + 1] - in_from[o];
			tern_match match = { .rank = r, .id = l };
			for (uint64_t i = out_from[o]; i < out_from[o + 1]; i++)
				out[i] = y[out_row[i]];
			if (come)
				app_must(j, tern_recv_start(j->t, &match, in + in_from[o],
							    come * sizeof *in, NULL, &got));
			if (n)
				app_must(j,
					 tern_send_start(j->t, r, l, out + out_from[o],
							 n * sizeof *out, TERN_SEND_AUTO, &sent));
		}
		app_must(j, tern_op_wait(j->t, &got));
		for (uint64_t i = in_from[l * j->size]; i < in_from[(l + 1) * j->size]; i++)
			y[in_row[i]] = in[i];
	}
	app_must(j, tern_op_wait(j->t, &sent));
}

/* -- Threads ---------------------------------------------------------------------------- */

static uint32_t *ready; /* own rows that lack nothing, a stack */
static uint64_t ready_count;
static struct app_job *job;

/* y(k) is known: subtracts it in own rows. Threads take turns, but not under a hold. */
static void value_use(tern *t, uint64_t k, double value)
{
	tern_hold(t);
	for (uint64_t u = uses_from[k]; u < uses_from[k + 1]; u++) {
		y[use_row[u]] -= m.a[use[u]] * value;
		if (--left[use_row[u]] == 0)
			ready[ready_count++] = use_row[u];
	}
	tern_release(t);
}

static int ready_take(tern *t, uint32_t *i)
{
	tern_hold(t);
	int some = ready_count > 0;
	if (some)
		*i = ready[--ready_count];
	tern_release(t);
	return some;
}

/* Brings the values that are known now to every other rank that needs them. */
static void rows_finish(tern *t)
{
	uint32_t i;
	while (ready_take(t, &i)) {
		double value = y[i];
		app_work(job, 0, 2 * (m.from[i + 1] - m.from[i]) + 1, 3);
		value_use(t, i, value);
		for (uint32_t r = 0; r < job->size; r++)
			if (r != job->rank && needs[(uint64_t)i * job->size + r])
				app_must(job, tern_spawn(t, r, BRING, NULL, NULL, i, value));
	}
}

/* Words: which value, and its bits. */
static uint64_t bring(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	double value;
	memcpy(&value, &word[1], sizeof value);
	value_use(t, word[0], value);
	rows_finish(t);
	return 0;
}

static void run_threads(struct app_job *j)
{
	tern_hold(j->t);
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		if (m.from[i] == m.from[i + 1])
			ready[ready_count++] = (uint32_t)i;
	tern_release(j->t);
	rows_finish(j->t);
	app_must(j, tern_team_quiet(j->team));
}

static void run(struct app_job *j)
{
	if (j->variant == FETCH)
		run_fetch(j);
	else if (j->variant == SCHEDULE)
		run_schedule(j);
	else
		run_threads(j);
	app_must(j, tern_barrier(j->t)); /* until then others fetch from here */
}

/* -- The schedule is made --------------------------------------------------------------- */

/* The list that row k stands in, or -1: of values that come, or go to rank r. */
static int64_t list_of(const struct app_job *j, uint64_t k, uint32_t r, int comes)
{
	uint32_t owner = (uint32_t)(k % j->size), other = comes ? owner : r;
	if (comes ? owner == j->rank || !needs[k * j->size + j->rank] || r != j->rank
		  : owner != j->rank || !needs[k * j->size + r])
		return -1;
	return (int64_t)m.level[k] * j->size + other;
}

/* Rows of each list behind each other, in their order; the first pass counts. */
static void lists_make(struct app_job *j, int comes, uint64_t **begin, uint64_t **list)
{
	uint64_t n = (uint64_t)m.levels * j->size, *at;
	*begin = at = app_memory(j, ((double)n + 2) * sizeof *at);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t k = 0; k < m.rows; k++)
			for (uint32_t r = 0; r < j->size; r++) {
				int64_t l = list_of(j, k, r, comes);
				if (l >= 0 && pass)
					(*list)[at[l + 1]++] = k;
				else if (l >= 0)
					at[l + 2]++;
			}
		if (pass)
			break;
		for (uint64_t l = 0; l < n; l++)
			at[l + 2] += at[l + 1];
		*list = app_memory(j, (double)at[n + 1] * sizeof **list);
	}
}

static void levels_make(struct app_job *j)
{
	level_from = app_memory(j, ((double)m.levels + 2) * sizeof *level_from);
	level_row = app_memory(j, (double)m.rows * sizeof *level_row);
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		level_from[m.level[i] + 2]++;
	for (uint64_t l = 0; l < m.levels; l++)
		level_from[l + 2] += level_from[l + 1];
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		level_row[level_from[m.level[i] + 1]++] = i;
}

static void uses_make(struct app_job *j)
{
	uses_from = app_memory(j, ((double)m.rows + 2) * sizeof *uses_from);
	use = app_memory(j, (double)m.from[m.rows] * sizeof *use);
	use_row = app_memory(j, (double)m.from[m.rows] * sizeof *use_row);
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++)
			uses_from[m.column[e] + 2]++;
	for (uint64_t k = 0; k < m.rows; k++)
		uses_from[k + 2] += uses_from[k + 1];
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++) {
			uint64_t u = uses_from[m.column[e] + 1]++;
			use[u] = e;
			use_row[u] = (uint32_t)i;
		}
}

/* -- Around it ------------------------------------------------------------------------ */

/* The loop of the paper. */
static void expect(void)
{
	for (uint64_t i = 0; i < m.rows; i++) {
		expected[i] = rhs(i);
		for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++)
			expected[i] -= m.a[e] * expected[m.column[e]];
	}
}

static void open(struct app_job *j)
{
	job = j;
	if (matrix_path)
		triangle_read(j, matrix_path, &m);
	else
		triangle_generate(j, rows, degree, span, &m);
	double all = (double)m.rows;
	needs = app_memory(j, all * j->size);
	y = app_memory(j, all * sizeof *y);
	expected = app_memory(j, all * sizeof *y);
	here = app_memory(j, all);
	left = app_memory(j, all * sizeof *left);
	ready = app_memory(j, all * sizeof *ready);
	own = app_shared(j, (all / j->size + 1) * sizeof *own);
	done = app_shared(j, sizeof *done);
	for (uint64_t i = 0; i < m.rows; i++)
		for (uint64_t e = m.from[i]; e < m.from[i + 1]; e++)
			if (m.column[e] % j->size != i % j->size)
				needs[m.column[e] * (uint64_t)j->size + i % j->size] = 1;
	levels_make(j);
	lists_make(j, 0, &out_from, &out_row);
	lists_make(j, 1, &in_from, &in_row);
	out = app_memory(j, (double)out_from[(uint64_t)m.levels * j->size] * sizeof *out);
	in = app_memory(j, (double)in_from[(uint64_t)m.levels * j->size] * sizeof *in);
	uses_make(j);
	expect();
	app_must(j, tern_thread_on(j->t, BRING, bring, NULL));
	app_must(j, tern_barrier(j->t));
	j->amount = 2e-6 * (double)m.from[m.rows];
}

static void reset(struct app_job *j)
{
	memset(y, 0, m.rows * sizeof *y);
	memset(here, 0, m.rows);
	atomic_store(done, 0);
	ready_count = 0;
	for (uint64_t i = j->rank; i < m.rows && j->variant == THREADS; i += j->size) {
		y[i] = rhs(i);
		left[i] = (uint32_t)(m.from[i + 1] - m.from[i]);
	}
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	app_figure(j, "levels", m.levels);
	for (uint64_t i = j->rank; i < m.rows; i += j->size)
		n += app_differs("y", i, y[i], expected[i], 1e-9 * (1 + fabs(expected[i])));
	return n;
}

static void close(struct app_job *j)
{
	void *const local[] = { needs,      y,         expected,  here,    left,    ready,
				level_from, level_row, out_from,  out_row, in_from, in_row,
				out,        in,        uses_from, use,     use_row };
	for (unsigned i = 0; i < sizeof local / sizeof *local; i++)
		app_memory_free(j, local[i]);
	app_shared_free(j, (void *)done);
	app_shared_free(j, own);
	triangle_free(j, &m);
}

const struct app app = {
	.name = "sparse",
	.what = "Solves a sparse triangular system whose pattern of dependencies is known\n"
		"only at run time (Rosing and Saltz, section 5).",
	.unit = "Mflop",
	APP_FUNCTIONS,
};
