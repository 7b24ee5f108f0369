/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table that is dealt out to all ranks, written and read a word at a time with gathered messages.
 * First every rank counts words at random places, with items of two kinds. Then it reads words at
 * random places: the owner replies to each item, and since replies come in order, they need not say
 * which word they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>
#include <tern/post.h>

enum { ADD_ONE, ADD, ASK, ANSWER }; /* handlers */
enum { WORDS = 1000, EACH = 20000 };

static uint64_t table[WORDS]; /* word w is table[w] of rank w % size; the others are not used */
static uint64_t answer[EACH];
/* By owner: which of this rank's reads went there, in order, and how many are answered. */
static uint32_t asked[TERN_RANKS_MAX][EACH];
static size_t asked_n[TERN_RANKS_MAX], answered_n[TERN_RANKS_MAX];

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "index_gather: %s\n", tern_strerror(rc));
	exit(1);
}

/* Takes many items in one call. */
static void add_one(tern *t, const tern_msg *m, const uint64_t *word, size_t count)
{
	uint64_t *counts = tern_msg_handler_arg(t, m);
	for (size_t i = 0; i < count; i++)
		counts[word[i]]++;
}

static void add(tern *t, const tern_msg *m)
{
	(void)t;
	table[tern_msg_word(m, 0)] += tern_msg_word(m, 1);
}

static void ask(tern *t, const tern_msg *m)
{
	must(tern_reply(t, m, ANSWER, table[tern_msg_word(m, 0)]));
}

static void on_answer(tern *t, const tern_msg *m)
{
	(void)t;
	uint32_t from = tern_msg_src(m);
	answer[asked[from][answered_n[from]++]] = tern_msg_word(m, 0);
}

static uint64_t word_next(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (*random >> 33) % WORDS;
}

/* Every third word is counted twice, by an item of two words. */
static void count(tern *t, uint64_t random)
{
	for (int i = 0; i < EACH; i++) {
		uint64_t w = word_next(&random);
		uint32_t owner = (uint32_t)w % tern_size(t);
		must(i % 3 ? tern_post(t, owner, ADD_ONE, w) : tern_post(t, owner, ADD, w, 2));
	}
}

static void read_words(tern *t, uint64_t random)
{
	for (uint32_t i = 0; i < EACH; i++) {
		uint64_t w = word_next(&random);
		uint32_t owner = (uint32_t)w % tern_size(t);
		asked[owner][asked_n[owner]++] = i; /* before the post, which may run handlers */
		must(tern_post(t, owner, ASK, w));
	}
}

/* What the words must be: what all ranks have counted, once more. */
static int check(uint32_t ranks, uint64_t random)
{
	static uint64_t expected[WORDS];
	int wrong = 0;
	for (uint64_t rank = 0; rank < ranks; rank++)
		for (uint64_t i = 0, r = rank; i < EACH; i++)
			expected[word_next(&r)] += i % 3 ? 1 : 2;
	for (int i = 0; i < EACH; i++)
		wrong += answer[i] != expected[word_next(&random)];
	return wrong;
}

int main(void)
{
	tern *t;
	tern_team *all;
	must(tern_open(&t, NULL));
	must(tern_post_on(t, ADD_ONE, add_one, table));
	must(tern_post_limit(t, 4096)); /* so many words may wait here to be sent */
	must(tern_on(t, ADD, add));
	must(tern_on(t, ASK, ask));
	must(tern_on(t, ANSWER, on_answer));
	must(tern_team_all(t, &all));

	uint64_t reads = ~(uint64_t)tern_rank(t);
	count(t, tern_rank(t));
	must(tern_team_quiet(all)); /* every word is counted, */
	read_words(t, reads);
	must(tern_team_quiet(all)); /* and every read is answered */
	int wrong = check(tern_size(t), reads);
	printf("rank %u: %d words read, %d wrong\n", tern_rank(t), EACH, wrong);

	must(tern_team_free(all));
	must(tern_close(t));
	return wrong > 0;
}
