/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram whose bins are dealt out to all ranks. Every rank draws its samples and
 * counts each with one atomic addition, wherever the bin lies: no messages, and nobody
 * at the bin's rank takes part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/mem.h>

enum { BINS = 31, SAMPLES = 20000, SCALE = 400 };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "histogram: %s\n", tern_strerror(rc));
	exit(1);
}

/* The bin of the next sample: the sum of six throws, which makes a bell. */
static unsigned sample(uint64_t *random)
{
	unsigned sum = 0;
	for (int i = 0; i < 6; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		sum += (unsigned)(*random >> 33) % 6;
	}
	return sum;
}

/* Bin b is the (b / size)-th word of the table at rank b % size. */
static tern_addr bin_at(tern *t, const uint64_t *table, unsigned bin)
{
	return tern_addr_at(t, bin % tern_size(t), &table[bin / tern_size(t)]);
}

static void count_samples(tern *t, const uint64_t *table)
{
	uint64_t random = tern_rank(t);
	for (int i = 0; i < SAMPLES; i++)
		must(tern_amo(t, bin_at(t, table, sample(&random)), TERN_AMO_ADD, 1,
			      (uint64_t *)NULL));
}

/* What the bins must hold: the samples of all ranks, drawn again. */
static void expect(uint32_t ranks, uint64_t bins[BINS])
{
	for (uint64_t rank = 0; rank < ranks; rank++) {
		uint64_t random = rank;
		for (int i = 0; i < SAMPLES; i++)
			bins[sample(&random)]++;
	}
}

/* Gets every bin, draws it, and compares. */
static int report(tern *t, const uint64_t *table)
{
	uint64_t bins[BINS], expected[BINS] = { 0 };
	uint64_t all = (uint64_t)SAMPLES * tern_size(t);
	int wrong = 0;
	expect(tern_size(t), expected);
	for (unsigned b = 0; b < BINS; b++) {
		must(tern_get(t, &bins[b], bin_at(t, table, b), sizeof bins[b]));
		wrong += bins[b] != expected[b];
		printf("%2u ", b);
		for (uint64_t i = 0; i < bins[b] * SCALE / all; i++)
			putchar('#');
		printf(" %llu\n", (unsigned long long)bins[b]);
	}
	printf("%llu samples, %d bins wrong\n", (unsigned long long)all, wrong);
	return wrong > 0;
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	void *bins;
	must(tern_alloc_all(t, (BINS / tern_size(t) + 1) * sizeof(uint64_t), &bins));

	count_samples(t, bins);
	must(tern_barrier(t)); /* everybody has counted */
	int failed = tern_rank(t) == 0 ? report(t, bins) : 0;

	must(tern_free_all(t, bins));
	must(tern_close(t));
	return failed;
}
