/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighborhood stressmark (Lewis' thesis, 6.2.1): the texture of an image, as entropy and
 * energy of the sums and differences of pairs of pixels, at four angles and two distances. Ranks
 * have rows of the image. Each counts its pairs in histograms of its own, for which it may need
 * rows of others; then each adds up its section of the histograms of all ranks.
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/send.h>
#include <tern/thread.h>

enum { ACTIVE, SEND, COLLECTIVE };
enum { SENDER = 1 }; /* thread function; that of requests is 0 */
enum { ANGLES = 4, DISTANCES = 2, CLASSES = ANGLES * DISTANCES, KINDS = 2 /* sum, difference */ };
enum { FARTHEST = 5 };

static uint64_t bits = 7, side = 128, naive;

static const struct app_option options[] = {
	{ "bits", "of a pixel; the thesis has 7, 11 and 15", &bits, 1, 15, NULL },
	{ "side", "of the image, in pixels", &side, 1, 1 << 14, NULL },
	{ "naive", "1: every rank begins with the sections of rank 0; 0: of the next rank", &naive,
	  0, 1, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "active", "threads at the owners put rows and sections of histograms here" },
	{ "send", "a thread of each rank sends sections, by rendezvous; rows as before" },
	{ "collective", "tern_get() of all rows at once; sections by tern_team_reduce_scatter()" },
	{ 0 },
};

static const uint64_t distances[DISTANCES] = { 1, FARTHEST };
static const int across[ANGLES] = { 1, 1, 0, -1 }, down[ANGLES] = { 0, 1, 1, 1 };

static uint64_t first_row, row_count, bins, first_bin, bin_count;
static uint16_t *image, *other;    /* own rows; and one of another rank */
static uint16_t *next_rows;        /* those behind our own */
static size_t *counts;             /* bins of each rank's section */
static uint32_t *histogram;        /* sums, and behind them differences */
static uint32_t *sections;         /* of each rank: those of its two histograms that are ours */
static uint32_t *total, *expected; /* of each class: our sections, added up */
static struct app_job *job;
static tern_flag sent; /* by the thread that sends sections */
static double descriptor[CLASSES][2], expected_descriptor[CLASSES][2]; /* entropy, energy */

static void pair_count(uint32_t *h, uint64_t n, uint16_t a, uint16_t b)
{
	h[a + b]++;
	h[n + (uint64_t)(a - b + (1 << bits))]++;
}

/* -- Communication -------------------------------------------------------------------- */

/* A row of the image, here or got from its owner by a thread there. */
static const uint16_t *row_get(struct app_job *j, uint64_t row)
{
	uint32_t owner = app_owner(j, side, row);
	uint64_t at = (row - app_first(j, side, owner)) * side;
	if (owner == j->rank)
		return image + at;
	if (j->variant == COLLECTIVE)
		return next_rows + (row - first_row - row_count) * side;
	app_request(j, tern_addr_at(j->t, j->rank, other),
		    tern_addr_at(j->t, owner, image) + at * sizeof *image, side * sizeof *image);
	app_requests_wait(j);
	return other;
}

/* Those that pairs may need of other ranks. */
static void rows_get(struct app_job *j)
{
	tern_op op = TERN_OP;
	for (uint64_t d = 0; d < FARTHEST && row_count && first_row + row_count + d < side; d++) {
		uint64_t row = first_row + row_count + d;
		uint32_t owner = app_owner(j, side, row);
		uint16_t *at = image + (row - app_first(j, side, owner)) * side;
		app_must(j,
			 tern_get_start(j->t, next_rows + d * side, tern_addr_at(j->t, owner, at),
					side * sizeof *next_rows, &op));
	}
	app_must(j, tern_op_wait(j->t, &op));
}

static void pairs_count(struct app_job *j, unsigned class)
{
	int64_t d = (int64_t)distances[class / ANGLES], right = d * across[class % ANGLES];
	uint64_t apart = (uint64_t)(d * down[class % ANGLES]);
	int64_t first = right < 0 ? -right : 0, end = (int64_t)side - (right > 0 ? right : 0);
	memset(histogram, 0, KINDS * bins * sizeof *histogram);
	app_work(j, 0, 0, KINDS * bins);
	for (uint64_t l = 0; l < row_count && first_row + l + apart < side; l++) {
		const uint16_t *pair_row = row_get(j, first_row + l + apart);
		const uint16_t *own_row = image + l * side;
		for (int64_t c = first; c < end; c++)
			pair_count(histogram, bins, own_row[c], pair_row[c + right]);
		app_work(j, 8 * side, 0, 6 * side);
	}
}

/* Where rank `of` puts section `kind` that comes from `from`: behind each other by rank. */
static uint64_t section_at(uint32_t from, unsigned kind, uint64_t length)
{
	return (from * KINDS + kind) * length;
}

/* The i-th of the other ranks, from 1 on. */
static uint32_t other_of(const struct app_job *j, uint32_t i)
{
	return naive ? i - (i <= j->rank) : (j->rank + i) % j->size;
}

/* Which rank is next, and where its section is. */
static void other_find(struct app_job *j)
{
	app_work(j, 4, 0, 0);
}

static void sections_own(struct app_job *j)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		memcpy(sections + section_at(j->rank, kind, bin_count),
		       histogram + kind * bins + first_bin, bin_count * sizeof *sections);
	app_work(j, 0, 0, 2 * KINDS * bin_count);
}

static void sections_active(struct app_job *j)
{
	app_must(j, tern_team_barrier(j->team)); /* everybody has counted */
	for (uint32_t i = 1; i < j->size; i++)
		for (unsigned kind = 0; kind < KINDS; kind++) {
			uint32_t from = other_of(j, i);
			other_find(j);
			app_request(j,
				    tern_addr_at(j->t, j->rank, sections) +
					    section_at(from, kind, bin_count) * sizeof *sections,
				    tern_addr_at(j->t, from, histogram) +
					    (kind * bins + first_bin) * sizeof *histogram,
				    bin_count * sizeof *histogram);
		}
	app_requests_wait(j);
	app_must(j, tern_team_barrier(j->team)); /* everybody has got */
}

static uint64_t sections_sender(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	struct app_job *j = job;
	tern_op op = TERN_OP;
	(void)word;
	for (uint32_t i = 1; i < j->size; i++)
		for (unsigned kind = 0; kind < KINDS; kind++) {
			uint32_t to = other_of(j, i);
			uint64_t first = app_first(j, bins, to);
			other_find(j);
			app_must(j, tern_send_start(t, to, kind, histogram + kind * bins + first,
						    (app_first(j, bins, to + 1) - first) *
							    sizeof *histogram,
						    TERN_SEND_RENDEZVOUS, &op));
		}
	app_must(j, tern_op_wait(t, &op));
	return 0;
}

static void sections_sent(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	(void)rank, (void)result, (void)arg;
	app_must(job, rc);
	tern_signal(t, &sent, 1);
}

/* A thread sends, while the program receives: so the thesis has it. */
static void sections_send(struct app_job *j)
{
	tern_op op = TERN_OP;
	app_must(j, tern_spawn(j->t, j->rank, SENDER, sections_sent, NULL));
	for (uint32_t i = 1; i < j->size; i++)
		for (unsigned kind = 0; kind < KINDS; kind++) {
			uint32_t from = naive ? other_of(j, i) : (j->rank + j->size - i) % j->size;
			tern_match match = { .rank = from, .id = kind };
			other_find(j);
			app_must(j, tern_recv_start(j->t, &match,
						    sections + section_at(from, kind, bin_count),
						    bin_count * sizeof *sections, NULL, &op));
		}
	app_must(j, tern_op_wait(j->t, &op));
	app_must(j, tern_wait(j->t, &sent, 1));
}

/* Adds up our sections of the histograms of all ranks. */
static void sections_add(struct app_job *j, uint32_t *sum)
{
	for (uint32_t from = 0; from < j->size; from++)
		for (uint64_t i = 0; i < KINDS * bin_count; i++)
			sum[i] += sections[section_at(from, 0, bin_count) + i];
	app_work(j, KINDS * bin_count * j->size, 0, 3 * KINDS * bin_count * j->size);
}

static void sections_collective(struct app_job *j, uint32_t *sum)
{
	for (unsigned kind = 0; kind < KINDS; kind++)
		app_must(j, tern_team_reduce_scatter(j->team, histogram + kind * bins,
						     sum + kind * bin_count, counts,
						     TERN_TYPE_UINT32, TERN_REDUCE_SUM));
}

/* Ours of all ranks' sections, in the way of the variant. */
static void sections_sum(struct app_job *j, uint32_t *sum)
{
	if (j->variant == COLLECTIVE) {
		sections_collective(j, sum);
		return;
	}
	sections_own(j);
	if (j->variant == ACTIVE)
		sections_active(j);
	else
		sections_send(j);
	sections_add(j, sum);
}

static void run(struct app_job *j)
{
	if (j->variant == COLLECTIVE)
		rows_get(j);
	for (unsigned class = 0; class < CLASSES; class ++) {
		uint32_t *sum = total + class * KINDS * bin_count;
		uint64_t pairs = 0;
		pairs_count(j, class);
		sections_sum(j, sum);
		for (uint64_t i = 0; i < bin_count; i++)
			pairs += sum[i];
		app_must(j, tern_team_allreduce(j->team, &pairs, &pairs, 1, TERN_TYPE_UINT64,
						TERN_REDUCE_SUM));
		double part[2] = { 0, 0 };
		app_describe(sum, KINDS * bin_count, (double)pairs, part);
		app_work(j, 0, 20 * KINDS * bin_count, 0);
		app_must(j, tern_team_allreduce(j->team, part, descriptor[class], 2,
						TERN_TYPE_DOUBLE, TERN_REDUCE_SUM));
	}
}

/* -- Around it ------------------------------------------------------------------------ */

/* The whole image by one rank, which keeps its section of the histograms. */
static void expect(struct app_job *j)
{
	static const int right[CLASSES] = { 1, 1, 0, -1, 5, 5, 0, -5 };
	static const int below[CLASSES] = { 0, 1, 1, 1, 0, 5, 5, 5 };
	uint32_t *h = app_memory(j, KINDS * (double)bins * sizeof *h);
	for (unsigned class = 0; class < CLASSES; class ++) {
		memset(h, 0, KINDS * bins * sizeof *h);
		uint64_t pairs = app_serial_pairs(h, bits, side, right[class], below[class]);
		memset(expected_descriptor[class], 0, sizeof *expected_descriptor);
		app_describe(h, KINDS * bins, (double)pairs, expected_descriptor[class]);
		for (unsigned kind = 0; kind < KINDS; kind++)
			memcpy(expected + (class * KINDS + kind) * bin_count,
			       h + kind * bins + first_bin, bin_count * sizeof *h);
	}
	app_memory_free(j, h);
}

static void open(struct app_job *j)
{
	first_row = app_first(j, side, j->rank);
	row_count = app_first(j, side, j->rank + 1) - first_row;
	bins = UINT64_C(2) << bits;
	first_bin = app_first(j, bins, j->rank);
	bin_count = app_first(j, bins, j->rank + 1) - first_bin;
	image = app_shared(j, (double)row_count * (double)side * sizeof *image);
	other = app_shared(j, (double)side * sizeof *other);
	next_rows = app_memory(j, FARTHEST * (double)side * sizeof *next_rows);
	counts = app_memory(j, (double)j->size * sizeof *counts);
	for (uint32_t r = 0; r < j->size; r++)
		counts[r] = app_first(j, bins, r + 1) - app_first(j, bins, r);
	histogram = app_shared(j, KINDS * (double)bins * sizeof *histogram);
	sections = app_shared(j, KINDS * (double)bin_count * j->size * sizeof *sections);
	total = app_memory(j, CLASSES * KINDS * (double)bin_count * sizeof *total);
	expected = app_memory(j, CLASSES * KINDS * (double)bin_count * sizeof *total);
	for (uint64_t l = 0; l < row_count; l++)
		for (uint64_t c = 0; c < side; c++)
			image[l * side + c] = app_pixel(bits, first_row + l, c);
	expect(j);
	job = j;
	app_must(j, tern_thread_on(j->t, SENDER, sections_sender, NULL));
	app_requests_open(j);
	j->amount = CLASSES * 1e-6 * (double)side * (double)side;
}

static void reset(struct app_job *j)
{
	(void)j;
	memset(total, 0, CLASSES * KINDS * bin_count * sizeof *total);
	memset(descriptor, 0, sizeof descriptor);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < CLASSES * KINDS * bin_count; i++)
		n += app_differs_word("histogram", i, total[i], expected[i]);
	for (unsigned i = 0; i < CLASSES * 2; i++) {
		double is = descriptor[i / 2][i % 2], should = expected_descriptor[i / 2][i % 2];
		n += app_differs("descriptor", i, is, should, 1e-9 * (1 + fabs(should)));
	}
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, next_rows);
	app_memory_free(j, counts);
	app_memory_free(j, total);
	app_memory_free(j, expected);
	app_shared_free(j, sections);
	app_shared_free(j, histogram);
	app_shared_free(j, other);
	app_shared_free(j, image);
}

const struct app app = {
	.name = "neighborhood",
	.what = "The neighborhood stressmark (Lewis' thesis, 6.2.1): entropy and energy of\n"
		"sums and differences of pairs of pixels, in the style of active messages\n"
		"and in that of send and receive.",
	.unit = "Mpair",
	APP_FUNCTIONS,
};
