/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram by a reduction. Every rank draws its samples and counts them in bins of its own; one
 * call adds the bins of all ranks, at every rank. Compare histogram.c, where each sample is counted
 * at once, wherever its bin lies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { BINS = 16, SAMPLES = 100000, SCALE = 300 };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "tally: %s\n", tern_strerror(rc));
	exit(1);
}

/* Counts the samples of a rank: the sum of five throws, which makes a bell. */
static void count(uint64_t rank, uint64_t bins[BINS])
{
	uint64_t random = rank;
	for (int i = 0; i < SAMPLES; i++) {
		unsigned sum = 0;
		for (int n = 0; n < 5; n++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			sum += (unsigned)(random >> 33) % 4;
		}
		bins[sum]++;
	}
}

static void draw(const uint64_t bins[BINS], uint64_t all)
{
	for (unsigned b = 0; b < BINS; b++) {
		printf("%2u ", b);
		for (uint64_t i = 0; i < bins[b] * SCALE / all; i++)
			putchar('#');
		printf(" %llu\n", (unsigned long long)bins[b]);
	}
}

/* Whether the sums are those of all ranks, counted again. */
static uint64_t wrong_bins(uint32_t ranks, const uint64_t sums[BINS])
{
	uint64_t expected[BINS] = { 0 }, wrong = 0;
	for (uint32_t rank = 0; rank < ranks; rank++)
		count(rank, expected);
	for (unsigned b = 0; b < BINS; b++)
		wrong += sums[b] != expected[b];
	return wrong;
}

int main(void)
{
	tern *t;
	tern_team *all;
	uint64_t bins[BINS] = { 0 }, sums[BINS], wrong;
	must(tern_open(&t, NULL));
	must(tern_team_all(t, &all));

	count(tern_rank(t), bins);
	must(tern_team_allreduce(all, bins, sums, BINS, TERN_TYPE_UINT64, TERN_REDUCE_SUM));

	/* Every rank has the sums; each checks them, and all hear of the worst. */
	wrong = wrong_bins(tern_size(t), sums);
	must(tern_team_allreduce(all, &wrong, &wrong, 1, TERN_TYPE_UINT64, TERN_REDUCE_MAX));
	if (tern_rank(t) == 0) {
		draw(sums, (uint64_t)SAMPLES * tern_size(t));
		printf("%llu samples, %llu bins wrong\n",
		       (unsigned long long)SAMPLES * tern_size(t), (unsigned long long)wrong);
	}

	must(tern_team_free(all));
	must(tern_close(t));
	return wrong != 0;
}
