/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bucket sort. Each rank has random keys and sends every key to the rank of its bucket, which sorts
 * what has come. A handler that takes a key in does nothing but append it.
 */
#include "frame/app.h"

#include <stdlib.h>
#include <string.h>
#include <tern/post.h>

enum { MESSAGE, GATHERED, COLLECTIVE };
enum { ON_KEY };

static uint64_t keys = 1 << 13;

static const struct app_option options[] = {
	{ "keys", "of each rank", &keys, 1, UINT64_C(1) << 28, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "message", "a message for each key" },
	{ "gathered", "messages that are gathered by tern_post()" },
	{ "collective", "keys are sorted by rank, and go by tern_team_alltoallv()" },
	{ 0 },
};

static uint64_t *key, *bucket, *expected, *sorted, *counts, *come;
static uint64_t bucket_count, bucket_room, expected_count;
static tern_part *parts;

/* -- Communication -------------------------------------------------------------------- */

static void on_key(tern *t, const tern_msg *m)
{
	if (bucket_count == bucket_room)
		tern_abort(t, "a bucket has more keys than all ranks together have for it");
	bucket[bucket_count++] = tern_msg_word(m, 0);
}

static void run_messages(struct app_job *j)
{
	for (uint64_t i = 0; i < keys; i++) {
		uint32_t to = app_key_bucket(key[i], j->size);
		app_must(j, j->variant == MESSAGE ? tern_request(j->t, to, ON_KEY, key[i])
						  : tern_post(j->t, to, ON_KEY, key[i]));
	}
	app_must(j, tern_barrier(j->t)); /* what was sent before has been handled */
}

static void run_collective(struct app_job *j)
{
	uint64_t gone = 0;
	memset(counts, 0, j->size * sizeof *counts);
	memcpy(sorted, key, keys * sizeof *key);
	qsort(sorted, keys, sizeof *key, app_key_compare);
	for (uint64_t i = 0; i < keys; i++)
		counts[app_key_bucket(key[i], j->size)]++;
	app_must(j, tern_team_alltoall(j->team, counts, come, sizeof *counts));
	bucket_count = 0;
	for (uint32_t r = 0; r < j->size; r++) {
		parts[r] = (tern_part){ .base = sorted + gone, .run = counts[r] * sizeof *key };
		parts[j->size + r] =
			(tern_part){ .base = bucket + bucket_count, .run = come[r] * sizeof *key };
		gone += counts[r];
		bucket_count += come[r];
	}
	app_must(j, tern_team_alltoallv(j->team, parts, parts + j->size));
}

static void run(struct app_job *j)
{
	if (j->variant == COLLECTIVE)
		run_collective(j);
	else
		run_messages(j);
	qsort(bucket, bucket_count, sizeof *bucket, app_key_compare);
	app_work(j, 64 * bucket_count, 0, 32 * bucket_count);
}

/* -- Around it ------------------------------------------------------------------------ */

/* All keys of all ranks, sorted by one; this rank's bucket is a part of them. */
static void expect(struct app_job *j)
{
	uint64_t n = keys * j->size, first = 0;
	double bytes = (double)keys * j->size * sizeof *expected;
	uint64_t *all = app_memory(j, bytes);
	for (uint64_t i = 0; i < n; i++)
		all[i] = app_key(i);
	qsort(all, n, sizeof *all, app_key_compare);
	while (first < n && app_key_bucket(all[first], j->size) < j->rank)
		first++;
	expected_count = 0;
	while (first + expected_count < n &&
	       app_key_bucket(all[first + expected_count], j->size) == j->rank)
		expected_count++;
	expected = app_memory(j, (double)expected_count * sizeof *expected);
	memcpy(expected, all + first, expected_count * sizeof *expected);
	app_memory_free(j, all);
}

static void open(struct app_job *j)
{
	expect(j);
	bucket_room = expected_count;
	key = app_memory(j, (double)keys * sizeof *key);
	sorted = app_memory(j, (double)keys * sizeof *key);
	bucket = app_memory(j, (double)bucket_room * sizeof *bucket);
	counts = app_memory(j, 2.0 * j->size * sizeof *counts);
	come = counts + j->size;
	parts = app_memory(j, 2.0 * j->size * sizeof *parts);
	for (uint64_t i = 0; i < keys; i++)
		key[i] = app_key(j->rank * keys + i);
	app_must(j, tern_on(j->t, ON_KEY, on_key));
	app_must(j, tern_barrier(j->t));
	j->amount = 1e-6 * (double)keys * j->size;
}

static void reset(struct app_job *j)
{
	(void)j;
	bucket_count = 0;
	memset(bucket, 0, bucket_room * sizeof *bucket);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = app_differs_word("length of bucket", j->rank, bucket_count, expected_count);
	for (uint64_t i = 0; i < expected_count; i++)
		n += app_differs_word("bucket", i, bucket[i], expected[i]);
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, key);
	app_memory_free(j, sorted);
	app_memory_free(j, bucket);
	app_memory_free(j, expected);
	app_memory_free(j, counts);
	app_memory_free(j, parts);
}

const struct app app = {
	.name = "sort",
	.what = "Bucket sort: every key goes to the rank of its bucket, and each rank sorts\n"
		"its own.",
	.unit = "Mkey",
	APP_FUNCTIONS,
};
