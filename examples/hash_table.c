/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table that is dealt out to all ranks. First each rank fills it with gathered messages:
 * an insertion is an item of two words. Then several threads of each rank look keys up and insert
 * others, each through a worker of its own, while the rank's first thread lends its endpoint and
 * waits for them. Only handlers touch the table, and one handler of a rank runs at a time, so it
 * needs no lock.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>
#include <tern/post.h>

enum { INSERT, LOOK_UP, FOUND }; /* handlers */
enum { THREADS = 3, EACH = 3000, KEYS = THREADS * EACH, SLOTS = 1 << 16 };

static struct slot {
	uint64_t key, value; /* key 0: empty */
} table[SLOTS];

struct searcher {
	pthread_t thread;
	tern *worker;
	uint64_t first, value[EACH]; /* its first key, and what was found for each */
	tern_flag found;
	int wrong;
};

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "hash_table: %s\n", tern_strerror(rc));
	exit(1);
}

static uint64_t hash(uint64_t key)
{
	return (key ^ key >> 29) * 0x9e3779b97f4a7c15 >> 20;
}

static uint32_t owner(const tern *t, uint64_t key)
{
	return (uint32_t)(hash(key) % tern_size(t));
}

/* Where the key is, or would be. */
static struct slot *slot_of(uint64_t key)
{
	uint64_t i = hash(key) >> 16;
	while (table[i % SLOTS].key && table[i % SLOTS].key != key)
		i++;
	return &table[i % SLOTS];
}

static void on_insert(tern *t, const tern_msg *m)
{
	(void)t;
	*slot_of(tern_msg_word(m, 0)) = (struct slot){ tern_msg_word(m, 0), tern_msg_word(m, 1) };
}

/* The words: the key, who asks, and which of its questions this is. */
static void on_look_up(tern *t, const tern_msg *m)
{
	uint64_t value = slot_of(tern_msg_word(m, 0))->value;
	must(tern_reply(t, m, FOUND, value, tern_msg_word(m, 1), tern_msg_word(m, 2)));
}

static void on_found(tern *t, const tern_msg *m)
{
	struct searcher *s = (struct searcher *)(uintptr_t)tern_msg_word(m, 1);
	s->value[tern_msg_word(m, 2)] = tern_msg_word(m, 0);
	tern_signal(t, &s->found, 1);
}

/* Looks up keys that a rank has posted, and inserts one more for each. */
static void *search(void *arg)
{
	struct searcher *s = arg;
	tern *t = s->worker;
	for (uint64_t i = 0; i < EACH; i++) {
		uint64_t key = s->first + i, other = key << 32;
		must(tern_request(t, owner(t, key), LOOK_UP, key, (uintptr_t)s, i));
		must(tern_request(t, owner(t, other), INSERT, other, ~other));
	}
	must(tern_wait(t, &s->found, EACH)); /* and serves the rank's endpoint meanwhile */
	for (uint64_t i = 0; i < EACH; i++)
		s->wrong += s->value[i] != ~(s->first + i);
	return NULL;
}

/* The threads of this rank together: how many answers were wrong. */
static int search_all(tern *t, uint64_t first)
{
	static struct searcher searcher[THREADS];
	int wrong = 0;
	for (int i = 0; i < THREADS; i++) {
		searcher[i].first = first + (uint64_t)i * EACH;
		must(tern_worker_open(t, &searcher[i].worker));
		pthread_create(&searcher[i].thread, NULL, search, &searcher[i]);
	}
	must(tern_detach(t)); /* to the workers: this thread does not serve it in pthread_join() */
	for (int i = 0; i < THREADS; i++) {
		pthread_join(searcher[i].thread, NULL);
		must(tern_close(searcher[i].worker));
		wrong += searcher[i].wrong;
	}
	tern_attach(t);
	return wrong;
}

int main(void)
{
	tern *t;
	tern_team *all;
	must(tern_open(&t, NULL));
	must(tern_on(t, INSERT, on_insert));
	must(tern_on(t, LOOK_UP, on_look_up));
	must(tern_on(t, FOUND, on_found));
	must(tern_team_all(t, &all));

	const uint64_t first = 1 + (uint64_t)tern_rank(t) * KEYS;
	for (uint64_t key = first; key < first + KEYS; key++)
		must(tern_post(t, owner(t, key), INSERT, key, ~key));
	must(tern_team_quiet(all)); /* every key is in its place, */
	int used = 0, wrong = search_all(t, first);
	must(tern_barrier(t)); /* and so are those of the threads */
	for (int i = 0; i < SLOTS; i++)
		used += table[i].key != 0;
	printf("rank %u: %d keys looked up, %d wrong; %d are kept here\n", tern_rank(t), KEYS,
	       wrong, used);

	must(tern_team_free(all));
	must(tern_close(t));
	return wrong > 0;
}
