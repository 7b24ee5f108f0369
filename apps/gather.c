/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index gather: each rank wants the words of a table at a list of random places, and the table is
 * spread over all ranks. Unlike an update, each word has to come back.
 */
#include "frame/app.h"

#include <string.h>
#include <tern/mem.h>
#include <tern/post.h>

enum { GET, MESSAGE, GATHERED, BUCKETS };
enum { ON_ASK, ON_WORD };

static uint64_t table_size = 1 << 14, words = 1 << 14, ahead = 1024;

static const struct app_option options[] = {
	{ "table", "words of the table of all ranks", &table_size, 1, UINT64_C(1) << 32, NULL },
	{ "words", "that each rank gathers", &words, 1, UINT64_C(1) << 32, NULL },
	{ "ahead", "words that a rank may have asked for", &ahead, 1, 1 << 20, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "get", "a split-phase get for each word" },
	{ "message", "a request for each, whose handler replies" },
	{ "gathered", "the same, requests and replies gathered by tern_post()" },
	{ "buckets", "buckets of --ahead places, there and back by tern_team_alltoallv()" },
	{ 0 },
};

static uint64_t *table, *result, first, mine;
static tern_flag answered;
/*
 * Of buckets: places to ask for and where the words go, by rank; what others ask, and the answers
 */
static uint64_t *ask, *slot, *asked, *answer, *counts, *asked_counts, *ends;
static tern_part *parts;

static uint64_t table_word(uint64_t i)
{
	return app_hash(~i);
}

/* The place of the k-th word that a rank wants. */
static uint64_t place(uint32_t rank, uint64_t k)
{
	return app_hash((uint64_t)rank << 40 | k) % table_size;
}

/* -- Communication -------------------------------------------------------------------- */

/* Words: which of its words the owner is asked for, and where the asker wants it. */
static void on_ask(tern *t, const tern_msg *m)
{
	if (tern_reply(t, m, ON_WORD, table[tern_msg_word(m, 0)], tern_msg_word(m, 1)))
		tern_abort(t, "a word cannot be sent");
}

static void on_word(tern *t, const tern_msg *m)
{
	result[tern_msg_word(m, 1)] = tern_msg_word(m, 0);
	tern_signal(t, &answered, 1);
}

static void ask_one(struct app_job *j, uint64_t k, tern_op *op)
{
	uint64_t at = place(j->rank, k);
	uint32_t owner = app_owner(j, table_size, at);
	int rc;
	at -= app_first(j, table_size, owner);
	if (j->variant == GET)
		rc = tern_get_start(j->t, &result[k],
				    tern_addr_at(j->t, owner, table) + at * sizeof *table,
				    sizeof *table, op);
	else if (j->variant == MESSAGE)
		rc = tern_request(j->t, owner, ON_ASK, at, k);
	else
		rc = tern_post(j->t, owner, ON_ASK, at, k);
	app_must(j, rc);
}

static void run_ahead(struct app_job *j)
{
	tern_op op = TERN_OP;
	for (uint64_t k = 0; k < words; k += ahead) {
		uint64_t n = words - k < ahead ? words - k : ahead;
		for (uint64_t i = 0; i < n; i++)
			ask_one(j, k + i, &op);
		app_must(j, j->variant == GET ? tern_op_wait(j->t, &op)
					      : tern_wait(j->t, &answered, n));
	}
}

/* Words k to k + n - 1, behind each other by rank. */
static void bucket_fill(struct app_job *j, uint64_t k, uint64_t n)
{
	memset(counts, 0, j->size * sizeof *counts);
	for (uint64_t i = 0; i < n; i++)
		counts[app_owner(j, table_size, place(j->rank, k + i))]++;
	for (uint32_t r = 0; r < j->size; r++)
		ends[r] = r ? ends[r - 1] + counts[r - 1] : 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = ends[app_owner(j, table_size, place(j->rank, k + i))]++;
		ask[at] = place(j->rank, k + i);
		slot[at] = k + i;
	}
}

/* counts[r] words at `in` for rank r, and come[r] from it to `out`; how many came. */
static uint64_t exchange(struct app_job *j, uint64_t *in, const uint64_t *go, uint64_t *out,
			 const uint64_t *come)
{
	uint64_t gone = 0, here = 0;
	for (uint32_t r = 0; r < j->size; r++) {
		parts[r] = (tern_part){ .base = in + gone, .run = go[r] * sizeof *in };
		parts[j->size + r] =
			(tern_part){ .base = out + here, .run = come[r] * sizeof *out };
		gone += go[r];
		here += come[r];
	}
	app_must(j, tern_team_alltoallv(j->team, parts, parts + j->size));
	return here;
}

static void run_buckets(struct app_job *j)
{
	for (uint64_t k = 0; k < words; k += ahead) {
		uint64_t n = words - k < ahead ? words - k : ahead;
		bucket_fill(j, k, n);
		app_must(j, tern_team_alltoall(j->team, counts, asked_counts, sizeof *counts));
		uint64_t here = exchange(j, ask, counts, asked, asked_counts);
		for (uint64_t i = 0; i < here; i++)
			answer[i] = table[asked[i] - first];
		exchange(j, answer, asked_counts, ask, counts);
		for (uint64_t i = 0; i < n; i++)
			result[slot[i]] = ask[i];
	}
}

static void run(struct app_job *j)
{
	app_work(j, 8 * words, 0, 2 * words);
	if (j->variant == BUCKETS)
		run_buckets(j);
	else
		run_ahead(j);
	app_must(j, tern_barrier(j->t)); /* until then others ask */
}

/* -- Around it ------------------------------------------------------------------------ */

static void open(struct app_job *j)
{
	first = app_first(j, table_size, j->rank);
	mine = app_first(j, table_size, j->rank + 1) - first;
	table = app_shared(j, (double)mine * sizeof *table);
	result = app_memory(j, (double)words * sizeof *result);
	ask = app_memory(j, 2 * (double)ahead * sizeof *ask);
	slot = ask + ahead;
	asked = app_memory(j, 2 * (double)ahead * j->size * sizeof *asked);
	answer = asked + ahead * j->size;
	counts = app_memory(j, 3.0 * j->size * sizeof *counts);
	asked_counts = counts + j->size;
	ends = asked_counts + j->size;
	parts = app_memory(j, 2.0 * j->size * sizeof *parts);
	for (uint64_t i = 0; i < mine; i++)
		table[i] = table_word(first + i);
	app_must(j, tern_on(j->t, ON_ASK, on_ask));
	app_must(j, tern_on(j->t, ON_WORD, on_word));
	app_must(j, tern_barrier(j->t));
	j->amount = 1e-6 * (double)words * j->size;
}

static void reset(struct app_job *j)
{
	(void)j;
	memset(result, 0, words * sizeof *result);
}

static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	for (uint64_t k = 0; k < words; k++)
		n += app_differs_word("result", k, result[k], table_word(place(j->rank, k)));
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, result);
	app_memory_free(j, ask);
	app_memory_free(j, asked);
	app_memory_free(j, counts);
	app_memory_free(j, parts);
	app_shared_free(j, table);
}

const struct app app = {
	.name = "gather",
	.what = "Index gather: each rank gets words of a table from random places; the\n"
		"table is spread over all ranks.",
	.unit = "Mword",
	APP_FUNCTIONS,
};
