/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelined solve of a banded triangular system (Rosing and Saltz, section 4), of the five-point
 * discretization of a grid of N by M: y(i) = rhs(i) - a1 y(i-1) - aN y(i-N), where every N-th a1 is
 * zero. Unknown i = m N + n belongs to rank n mod P, so y(i-N) is there, and the product a1 y(i-1)
 * comes from the rank before: one number a message, four floating-point operations between two.
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/chan.h>
#include <tern/send.h>

enum { SEND, MESSAGE, CHANNEL, FETCH, INTERRUPT };
enum { ON_PRODUCT };
enum { NEXT = 1 }; /* the channel's name, and the id of messages */

static uint64_t length = 2048, width = 0;

static const struct app_option options[] = {
	{ "n", "N: unknowns in a row of the grid, spread over the ranks", &length, 1, 1 << 20,
	  NULL },
	{ "m", "M: rows of the grid, one behind another in the pipeline; 0: as many as ranks",
	  &width, 0, 1024, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "send", "send and receive" },
	{ "message", "a bare message, whose handler puts the product where it is needed" },
	{ "channel", "a channel that stays open" },
	{ "fetch", "a fetch of each product when it is ready; owners serve in their own waits" },
	{ "interrupt", "the same; owners are interrupted to serve" },
	{ 0 },
};

static const double near = 0.25, far = 0.5; /* the coefficients a1 and aN */

static uint64_t rows, count; /* M, and the values of n of this rank */
static double *y, *expected;
static double *product; /* what the next rank needs, in the order that it is computed */
static double *came;    /* by bare messages, in that order */
static uint64_t came_count;
static tern_flag came_flag;
static _Atomic uint64_t *ready; /* how many products there are */
static tern_chan *to_next, *from_before;
static tern_op sent; /* sends: a rank that waited for each might wait around the ring */
static double compute;

static double rhs(uint64_t m, uint64_t n)
{
	return 1 + (double)((m * 7 + n * 3) % 11);
}

/* -- Communication -------------------------------------------------------------------- */

static void on_product(tern *t, const tern_msg *m)
{
	came[came_count++] = tern_msg_double(m, 0);
	tern_signal(t, &came_flag, 1);
}

static uint32_t next(const struct app_job *j)
{
	return (j->rank + 1) % j->size;
}

static uint32_t before(const struct app_job *j)
{
	return (j->rank + j->size - 1) % j->size;
}

/* The k-th product that this rank takes; `place` is which one it is of those of the rank before. */
static double product_take(struct app_job *j, tern_in *in, uint64_t k, uint64_t place)
{
	uint64_t word = 0;
	double value = 0;
	switch (j->variant) {
	case SEND:
		app_must(j, tern_recv(j->t, before(j), NEXT, &value, sizeof value, NULL));
		return value;
	case MESSAGE:
		app_must(j, tern_wait(j->t, &came_flag, 1));
		return came[k];
	case CHANNEL:
		app_must(j, tern_chan_get(in, &word, sizeof word));
		memcpy(&value, &word, sizeof value);
		return value;
	default:
		app_must(j, tern_get_when(
				    j->t, &value,
				    tern_addr_at(j->t, before(j), product) + place * sizeof value,
				    sizeof value,
				    &(tern_when){ .flag = tern_addr_at(j->t, before(j), ready),
						  .least = place + 1 }));
		return value;
	}
}

static void product_give(struct app_job *j, tern_out *out, uint64_t k, double value)
{
	uint64_t word;
	switch (j->variant) {
	case SEND:
		product[k] = value;
		app_must(j, tern_send_start(j->t, next(j), NEXT, &product[k], sizeof value,
					    TERN_SEND_AUTO, &sent));
		break;
	case MESSAGE:
		app_must(j, tern_request(j->t, next(j), ON_PRODUCT, value));
		break;
	case CHANNEL:
		memcpy(&word, &value, sizeof word);
		app_must(j, tern_chan_put(out, &word, sizeof word));
		break;
	default:
		product[k] = value;
		atomic_store_explicit(ready, k + 1, memory_order_release);
	}
}

/* For each n of this rank all m. The ends of channels are local, so that they live in registers. */
static void solve(struct app_job *j)
{
	tern_in in = j->size > 1 ? tern_chan_in(from_before) : (tern_in){ 0 };
	tern_out out = j->size > 1 ? tern_chan_out(to_next) : (tern_out){ 0 };
	uint64_t taken = 0, given = 0;
	for (uint64_t l = 0; l < count; l++) {
		uint64_t n = l * j->size + j->rank;
		double above = 0;
		for (uint64_t m = 0; m < rows; m++) {
			double left = 0;
			uint64_t place = (n ? (n - 1) / j->size : 0) * rows + m;
			if (n > 0 && j->size > 1)
				left = product_take(j, &in, taken++, place);
			else if (n > 0)
				left = near * y[(l - 1) * rows + m];
			above = rhs(m, n) - left - far * above;
			y[l * rows + m] = above;
			app_work(j, 0, 4, 4);
			if (n + 1 < length && j->size > 1)
				product_give(j, &out, given++, near * above);
		}
	}
	if (j->size > 1) {
		tern_chan_in_back(&in);
		tern_chan_out_back(&out);
	}
}

static void run(struct app_job *j)
{
	double begun = app_seconds(j);
	solve(j);
	app_must(j, tern_op_wait(j->t, &sent));
	double each = (app_seconds(j) - begun) * 1e9 / fmax(1, (double)(count * rows));
	if (j->variant >= FETCH) /* until then others fetch from here */
		app_must(j, tern_barrier(j->t));
	app_figure(j, "compute ns a value", compute);
	app_figure(j, "communicate ns a value", fmax(0, each - compute));
}

/* -- Around it ------------------------------------------------------------------------ */

/* Row after row of the matrix, as one rank would; this rank keeps what is its own. */
static void expect(struct app_job *j)
{
	double *all = app_memory(j, (double)rows * (double)length * sizeof *all);
	for (uint64_t i = 0; i < rows * length; i++) {
		uint64_t m = i / length, n = i % length;
		all[i] = rhs(m, n);
		if (n > 0)
			all[i] -= near * all[i - 1];
		if (m > 0)
			all[i] -= far * all[i - length];
		if (n % j->size == j->rank)
			expected[n / j->size * rows + m] = all[i];
	}
	app_memory_free(j, all);
}

static void open(struct app_job *j)
{
	rows = width ? width : j->size;
	count = length / j->size + (length % j->size > j->rank);
	double bytes = (double)rows * ((double)length / j->size + 1) * sizeof *y;
	y = app_memory(j, bytes);
	expected = app_memory(j, bytes);
	came = app_memory(j, bytes);
	product = app_shared(j, bytes);
	ready = app_shared(j, sizeof *ready);
	expect(j);
	app_must(j, tern_on(j->t, ON_PRODUCT, on_product));
	app_must(j, tern_barrier(j->t));
	if (j->size > 1) {
		app_must(j, tern_chan_to(j->t, next(j), NEXT, &to_next));
		app_must(j, tern_chan_from(j->t, before(j), NEXT, &from_before));
	}
	j->amount = 1e-6 * (double)rows * (double)length;
}

/* Also times the computation of this rank alone, without the numbers of the others. */
static void reset(struct app_job *j)
{
	double begun = app_seconds(j);
	for (uint64_t l = 0; l < count; l++) {
		double above = 0;
		for (uint64_t m = 0; m < rows; m++) {
			above = rhs(m, l) - near * y[l * rows + m] - far * above;
			came[l * rows + m] = above;
			app_work(j, 0, 4, 4);
		}
	}
	compute = (app_seconds(j) - begun) * 1e9 / fmax(1, (double)(count * rows));
	memset(y, 0, count * rows * sizeof *y);
	memset(product, 0, count * rows * sizeof *product);
	came_count = 0;
	atomic_store(ready, 0);
	app_delivery(j, j->variant == INTERRUPT ? TERN_DELIVERY_INTERRUPT : TERN_DELIVERY_POLL);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	app_delivery(j, TERN_DELIVERY_POLL);
	for (uint64_t i = 0; i < count * rows; i++)
		n += app_differs("y", i, y[i], expected[i], 1e-9 * fabs(expected[i]) + 1e-12);
	return n;
}

/* A value needs its message, and what the rank computes. */
static double predict(struct app_job *j)
{
	const struct app_logp *p = j->logp;
	double each = compute * 1e-9 + fmax(p->overhead_send + p->overhead_receive, p->gap);
	double fill = (double)(j->size - 1) * (each + p->latency);
	return (double)(count * rows) * each + fill;
}

static void close(struct app_job *j)
{
	if (j->size > 1) {
		app_must(j, tern_chan_close(to_next));
		app_must(j, tern_chan_close(from_before));
	}
	app_memory_free(j, y);
	app_memory_free(j, expected);
	app_memory_free(j, came);
	app_shared_free(j, (void *)ready);
	app_shared_free(j, product);
}

static const char *lacks(struct app_job *j)
{
	return j->variant == INTERRUPT ? app_interrupt_lacks(j) : NULL;
}

const struct app app = {
	.name = "banded",
	.what = "Solves a banded triangular system in a pipeline (Rosing and Saltz, section\n"
		"4): each rank sends one number for each that it gets. The time is that of\n"
		"the last rank.",
	.unit = "Mvalue",
	APP_FUNCTIONS,
	.predict = predict,
	.lacks = lacks,
};
