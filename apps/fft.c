/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast Fourier transform with one remap (von Eicken's thesis, 4.3.6). The butterfly of n rows
 * is computed in a cyclic layout while partners are P or more rows apart, then in a blocked layout.
 * Between the two every point goes to another rank: n/P^2 from each rank to each other one.
 */
#include "frame/app.h"

#include <complex.h>
#include <math.h>
#include <string.h>
#include <tern/post.h>

enum { STAGGERED, NAIVE, SYNCHRONISED, DOUBLE, GATHERED, COLLECTIVE };
enum { ON_POINT, ON_POINT_REPLY };

static uint64_t points = 4096;

static const struct app_option options[] = {
	{ "points", "of the transform: a power of 2, at least the square of the ranks", &points, 1,
	  1 << 24, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "staggered", "a message for each point; rank i begins with those for rank i" },
	{ "naive", "the same, but every rank begins with those for rank 0" },
	{ "synchronised", "staggered, with a barrier after the points for each rank" },
	{ "double", "staggered, requests and replies in turns: two networks" },
	{ "gathered", "staggered, gathered by tern_post()" },
	{ "collective", "tern_team_alltoallv()" },
	{ 0 },
};

static double complex *cyclic, *blocked, *expected, *root;
static tern_part *parts; /* of the collective: to and from each rank */
static uint64_t local;   /* points of a rank: n / P */
static tern_flag arrived;
static double computed, remapped; /* seconds of the last round */

/* -- Communication -------------------------------------------------------------------- */

/* Words: the place in the block, and the point. */
static void on_point(tern *t, const tern_msg *m)
{
	blocked[tern_msg_word(m, 0)] = tern_msg_double(m, 1) + I * tern_msg_double(m, 2);
	tern_signal(t, &arrived, 1);
}

/* Point l of this rank is row l * P + rank. */
static void send_point(struct app_job *j, uint64_t l)
{
	uint64_t row = l * j->size + j->rank, at = row % local;
	uint32_t to = (uint32_t)(row / local);
	double re = creal(cyclic[l]), im = cimag(cyclic[l]);
	int rc = 0;
	if (to == j->rank)
		blocked[at] = cyclic[l];
	else if (j->variant == GATHERED)
		rc = tern_post(j->t, to, ON_POINT, at, re, im);
	else if (j->variant == DOUBLE && l % 2)
		rc = tern_reply_to(j->t, to, ON_POINT_REPLY, at, re, im);
	else
		rc = tern_request(j->t, to, ON_POINT, at, re, im);
	app_must(j, rc);
}

/* A rank gets every P-th point of its block from each rank. */
static void remap_collective(struct app_job *j)
{
	tern_part *in = parts, *out = parts + j->size;
	size_t each = local / j->size;
	ptrdiff_t stride = (ptrdiff_t)(j->size * sizeof *blocked);
	for (uint32_t r = 0; r < j->size; r++) {
		in[r] = (tern_part){ .base = cyclic + r * each, .run = each * sizeof *cyclic };
		out[r] = (tern_part){ .base = blocked + r,
				      .run = sizeof *blocked,
				      .dims = 1,
				      .count = &each,
				      .stride = &stride };
	}
	app_must(j, tern_team_alltoallv(j->team, in, out));
}

static void remap(struct app_job *j)
{
	uint64_t each = local / j->size, first = j->variant == NAIVE ? 0 : j->rank * each;
	if (j->variant == COLLECTIVE) {
		remap_collective(j);
		return;
	}
	for (uint64_t l = 0; l < local; l++) {
		send_point(j, (first + l) % local);
		if (j->variant == SYNCHRONISED && (l + 1) % each == 0)
			app_must(j, tern_team_barrier(j->team));
	}
	app_must(j, tern_wait(j->t, &arrived, local - each));
}

/* -- Computation ---------------------------------------------------------------------- */

/*
 * A column of the butterfly: x[i] and x[i + apart] for local places. The exponent of a row's root
 * depends on its place in the group of 2 * apart * step rows.
 */
static void column(struct app_job *j, double complex *x, uint64_t apart, uint64_t step,
		   uint64_t offset)
{
	uint64_t turns = points / (2 * apart * step);
	for (uint64_t group = 0; group < local; group += 2 * apart)
		for (uint64_t i = 0; i < apart; i++) {
			double complex a = x[group + i], b = x[group + i + apart];
			x[group + i] = a + b;
			x[group + i + apart] = (a - b) * root[(i * step + offset) * turns];
		}
	app_work(j, 0, 10 * (local / 2), 4 * (local / 2));
}

static void run(struct app_job *j)
{
	double begun = app_seconds(j);
	for (uint64_t apart = local / 2; apart >= 1; apart /= 2)
		column(j, cyclic, apart, j->size, j->rank);
	computed = app_seconds(j) - begun;
	app_must(j, tern_barrier(j->t));
	begun = app_seconds(j);
	remap(j);
	remapped = app_seconds(j) - begun;
	app_must(j, tern_barrier(j->t));
	begun = app_seconds(j);
	for (uint64_t apart = j->size / 2; apart >= 1; apart /= 2)
		column(j, blocked, apart, 1, 0);
	computed += app_seconds(j) - begun;
	app_figure(j, "compute us", computed * 1e6);
	app_figure(j, "remap us", remapped * 1e6);
	app_figure(j, "remap MB/s", 16e-6 * (double)local / remapped);
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	if (points & (points - 1))
		app_refuse(j, "--points %llu is no power of 2", (unsigned long long)points);
	if (j->size & (j->size - 1))
		app_refuse(j, "the butterfly is for 1, 2, 4, 8, ... ranks, not %u", j->size);
	if (points < (uint64_t)j->size * j->size)
		app_refuse(j, "--points %llu is less than the square of %u ranks",
			   (unsigned long long)points, j->size);
	local = points / j->size;
	cyclic = app_memory(j, (double)local * sizeof *cyclic);
	blocked = app_memory(j, (double)local * sizeof *blocked);
	root = app_memory(j, (double)points * sizeof *root);
	expected = app_memory(j, (double)points * sizeof *expected);
	for (uint64_t k = 0; k < points; k++)
		root[k] = cexp(-2 * M_PI * I * (double)k / (double)points);
	parts = app_memory(j, 2.0 * j->size * sizeof *parts);
	app_serial_fft(expected, points);
	app_must(j, tern_on(j->t, ON_POINT, on_point));
	app_must(j, tern_on(j->t, ON_POINT_REPLY, on_point));
	j->amount = 5e-6 * (double)points * log2((double)points);
	app_must(j, tern_barrier(j->t));
}

static void reset(struct app_job *j)
{
	for (uint64_t l = 0; l < local; l++)
		cyclic[l] = app_point(l * j->size + j->rank);
	memset(blocked, 0, local * sizeof *blocked);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	for (uint64_t l = 0; l < local; l++) {
		uint64_t at = app_fft_place(j->rank * local + l, points);
		double complex is = blocked[l], should = expected[at];
		double within = 1e-12 * (double)points;
		n += app_differs("real part of y", at, creal(is), creal(should), within) ||
		     app_differs("imaginary part of y", at, cimag(is), cimag(should), within);
	}
	return n;
}

/* (n/P) max(2 o, g) + L for the remap, and the computation as measured. */
static double predict(struct app_job *j)
{
	const struct app_logp *p = j->logp;
	double each = fmax(p->overhead_send + p->overhead_receive, p->gap);
	double moved = (double)(local - local / j->size) * each + p->latency;
	app_figure(j, "predicted remap MB/s", 16e-6 * (double)local / moved);
	return computed + moved;
}

static void close(struct app_job *j)
{
	app_memory_free(j, cyclic);
	app_memory_free(j, blocked);
	app_memory_free(j, root);
	app_memory_free(j, parts);
	app_memory_free(j, expected);
}

const struct app app = {
	.name = "fft",
	.what = "Transforms points by the butterfly algorithm, in a cyclic and then in a\n"
		"blocked layout (von Eicken's thesis, 4.3.6). Between the two all points\n"
		"are sent to other ranks, in one of several orders: figures 4-25 to 4-27.",
	.unit = "Mflop",
	APP_FUNCTIONS,
	.predict = predict,
};
