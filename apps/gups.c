/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random updates of a table that is spread over all ranks (GUPS), or a histogram, whose bins are
 * not hit equally often. An update adds to a word that may be anywhere; nobody waits for one.
 */
#include "frame/app.h"

#include <string.h>
#include <tern/mem.h>
#include <tern/post.h>

enum { ATOMIC, MESSAGE, GATHERED, BUCKETS };
enum { ON_UPDATE };

static uint64_t table_size = 1 << 14, updates = 1 << 14, ahead = 1024, bell = 0;

static const struct app_option options[] = {
	{ "table", "words of the table of all ranks", &table_size, 1, UINT64_C(1) << 32, NULL },
	{ "updates", "of each rank", &updates, 1, UINT64_C(1) << 32, NULL },
	{ "ahead", "updates that a rank may have under way", &ahead, 1, 1 << 20, NULL },
	{ "bell", "0: all words alike; K: the sum of K throws, as in a histogram", &bell, 0, 64,
	  NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "atomic", "an atomic addition for each update" },
	{ "message", "a message for each" },
	{ "gathered", "messages that are gathered by tern_post()" },
	{ "buckets", "buckets of --ahead updates, by tern_team_alltoallv()" },
	{ 0 },
};

static uint64_t *table, *expected, first, mine;
static struct app_update *made, *bucket, /* `ahead` of them; and sorted by rank */
	*received;                       /* what came of all ranks */
static uint32_t *owners;                 /* of those that were made */
static uint64_t *counts, *received_counts, *ends;
static tern_part *parts;

static struct app_update update_make(uint32_t rank, uint64_t k)
{
	return app_update_of(table_size, bell, rank, k);
}

/* -- Communication -------------------------------------------------------------------- */

static void on_update(tern *t, const tern_msg *m)
{
	(void)t;
	table[tern_msg_word(m, 0)] += tern_msg_word(m, 1);
}

static void run_atomic(struct app_job *j)
{
	tern_op op = TERN_OP;
	for (uint64_t k = 0; k < updates; k++) {
		struct app_update u = update_make(j->rank, k);
		uint32_t to = app_owner(j, table_size, u.index);
		u.index -= app_first(j, table_size, to);
		app_must(j, tern_amo_start(j->t, tern_addr_at(j->t, to, &table[u.index]),
					   TERN_AMO_ADD, u.value, (uint64_t *)NULL, &op));
		if ((k + 1) % ahead == 0)
			app_must(j, tern_op_wait(j->t, &op));
	}
	app_must(j, tern_op_wait(j->t, &op));
}

static void run_messages(struct app_job *j)
{
	for (uint64_t k = 0; k < updates; k++) {
		struct app_update u = update_make(j->rank, k);
		uint32_t to = app_owner(j, table_size, u.index);
		uint64_t at = u.index - app_first(j, table_size, to);
		int rc = j->variant == MESSAGE ? tern_request(j->t, to, ON_UPDATE, at, u.value)
					       : tern_post(j->t, to, ON_UPDATE, at, u.value);
		app_must(j, rc);
		if (j->variant == GATHERED && (k + 1) % ahead == 0)
			app_must(j, tern_post_flush(j->t));
	}
}

/* Updates k to k + n - 1, behind each other by rank. */
static void bucket_fill(struct app_job *j, uint64_t k, uint64_t n)
{
	memset(counts, 0, j->size * sizeof *counts);
	for (uint64_t i = 0; i < n; i++) {
		made[i] = update_make(j->rank, k + i);
		owners[i] = app_owner(j, table_size, made[i].index);
		counts[owners[i]]++;
	}
	for (uint32_t r = 0; r < j->size; r++)
		ends[r] = r ? ends[r - 1] + counts[r - 1] : 0;
	for (uint64_t i = 0; i < n; i++)
		bucket[ends[owners[i]]++] = made[i];
}

static void run_buckets(struct app_job *j)
{
	tern_part *in = parts, *out = parts + j->size;
	for (uint64_t k = 0; k < updates; k += ahead) {
		uint64_t come = 0;
		bucket_fill(j, k, updates - k < ahead ? updates - k : ahead);
		app_must(j, tern_team_alltoall(j->team, counts, received_counts, sizeof *counts));
		for (uint32_t r = 0; r < j->size; r++) {
			in[r] = (tern_part){ .base = bucket + ends[r] - counts[r],
					     .run = counts[r] * sizeof *bucket };
			out[r] = (tern_part){ .base = received + come,
					      .run = received_counts[r] * sizeof *bucket };
			come += received_counts[r];
		}
		app_must(j, tern_team_alltoallv(j->team, in, out));
		for (uint64_t i = 0; i < come; i++)
			table[received[i].index - first] += received[i].value;
	}
}

static void run(struct app_job *j)
{
	app_work(j, 8 * updates, 0, 2 * updates);
	if (j->variant == ATOMIC)
		run_atomic(j);
	else if (j->variant == BUCKETS)
		run_buckets(j);
	else
		run_messages(j);
	app_must(j, tern_barrier(j->t)); /* what was sent before has been handled */
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	first = app_first(j, table_size, j->rank);
	mine = app_first(j, table_size, j->rank + 1) - first;
	table = app_shared(j, (double)mine * sizeof *table);
	expected = app_memory(j, (double)mine * sizeof *table);
	made = app_memory(j, (double)ahead * sizeof *made);
	owners = app_memory(j, (double)ahead * sizeof *owners);
	bucket = app_memory(j, (double)ahead * sizeof *bucket);
	received = app_memory(j, (double)ahead * j->size * sizeof *received);
	counts = app_memory(j, 3.0 * j->size * sizeof *counts);
	received_counts = counts + j->size;
	ends = received_counts + j->size;
	parts = app_memory(j, 2.0 * j->size * sizeof *parts);
	for (uint32_t r = 0; r < j->size; r++)
		for (uint64_t k = 0; k < updates; k++) {
			struct app_update u = update_make(r, k);
			if (u.index - first < mine)
				expected[u.index - first] += u.value;
		}
	app_must(j, tern_on(j->t, ON_UPDATE, on_update));
	app_must(j, tern_barrier(j->t));
	j->amount = 1e-6 * (double)updates * j->size;
}

static void reset(struct app_job *j)
{
	(void)j;
	memset(table, 0, mine * sizeof *table);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t i = 0; i < mine; i++)
		n += app_differs_word("table", i, table[i], expected[i]);
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, expected);
	app_memory_free(j, made);
	app_memory_free(j, owners);
	app_memory_free(j, bucket);
	app_memory_free(j, received);
	app_memory_free(j, counts);
	app_memory_free(j, parts);
	app_shared_free(j, table);
}

const struct app app = {
	.name = "gups",
	.what = "Updates words of a table at random places; the table is spread over all\n"
		"ranks. With --bell 6 it counts samples in a histogram, whose middle bins\n"
		"are hit most.",
	.unit = "Mupdate",
	APP_FUNCTIONS,
};
