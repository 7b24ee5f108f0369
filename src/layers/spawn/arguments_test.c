/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads with more arguments than their words hold. */
#include "lib/threads.h"

enum { SUM, STAY };

static struct ending ended;
static unsigned char bytes[TERN_SPAWN_DATA_MAX + 1];
static _Atomic uint64_t gate; /* of all threads that stay */

/* The sum of the data, weighted by place; the words count as well, from a million on. */
static uint64_t sum_of(const unsigned char *data, size_t len, const uint64_t *word)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += (i % 97 + 1) * data[i];
	for (unsigned i = 0; i < TERN_WORDS_MAX; i++)
		sum += word[i] * 1000000;
	return sum;
}

static uint64_t sum(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_thread_info self = tern_thread_self(t);
	CHECK((self.data == NULL) == (self.len == 0));
	return sum_of(self.data, self.len, word) + self.len * 1000;
}

static uint64_t stay(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	CHECK_IS(tern_wait(t, &gate, 1), 0);
	return sum(t, word, arg);
}

static void open_all(uint32_t n)
{
	threads_open(n);
	threads_on(SUM, sum);
	threads_on(STAY, stay);
	ended.count = 0;
	gate = 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 256);
}

static uint64_t total;

static void add_up(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	total += result;
	note_ending(t, rank, rc, result, arg);
}

/* The data may be changed as soon as the call returns. Returns what the thread will. */
static uint64_t spawn_and_change(uint32_t rank, unsigned id, size_t len, unsigned n,
				 const uint64_t *words)
{
	unsigned char copy[sizeof bytes];
	memcpy(copy, bytes, sizeof copy);
	const tern_spawn_args a = { .rank = rank,
				    .id = id,
				    .n = n,
				    .words = words,
				    .done = add_up,
				    .arg = &ended,
				    .data = copy,
				    .len = len };
	CHECK_IS(tern_spawn_with(local[0], &a), 0);
	memset(copy, 0xee, sizeof copy);
	return sum_of(bytes, len, words) + len * 1000;
}

static int spawn_data(uint32_t rank, uint32_t count, size_t len)
{
	return tern_spawn_with(local[0], &(tern_spawn_args){ .rank = rank,
							     .count = count,
							     .id = SUM,
							     .done = note_ending,
							     .arg = &ended,
							     .data = bytes,
							     .len = len });
}

TEST(data_of_any_length_are_there_when_the_thread_starts)
{
	static const size_t lengths[] = { 0, 1, 8, 24, 25, 1000, TERN_SPAWN_DATA_MAX };
	unsigned threads = 0;
	open_all(2);
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++)
		for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			uint64_t word[TERN_WORDS_MAX] = { 0 };
			for (unsigned k = 0; k < n; k++)
				word[k] = 5 + k;
			uint64_t expected = spawn_and_change(i % 2, SUM, lengths[i], n, word);
			await(&ended, ++threads);
			CHECK_IS(ended.rc, 0);
			CHECK_IS(ended.result, expected);
		}
	CHECK_IS(spawn_data(TERN_RANK_ALL, 0, 3), 0); /* the same to each */
	threads += 2;
	await(&ended, threads);
	CHECK_IS(ended.result, 3000 + bytes[0] + 2 * bytes[1] + 3 * bytes[2]);
	local_close();
}

TEST(without_data_there_is_nothing_and_too_much_is_refused)
{
	open_all(1);
	CHECK(tern_thread_self(local[0]).data == NULL && tern_thread_self(local[0]).len == 0);
	CHECK_IS(tern_spawn(local[0], 0, SUM, note_ending, &ended, 1, 2, 3, 4, 5, 6, 7, 8), 0);
	await(&ended, 1);
	CHECK_IS(ended.result, 36000000);
	int rc = spawn_data(0, 1, TERN_SPAWN_DATA_MAX + 1);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "8129 bytes of data; it gets at most 8128"));
	CHECK_IS(spawn_data(1, 1, 8), -ERANGE);
	CHECK_IS(tern_spawn_with(local[0], &(tern_spawn_args){ .id = SUM,
							       .n = 9,
							       .words = (uint64_t[9]){ 0 },
							       .data = bytes,
							       .len = 8 }),
		 -E2BIG);
	local_close();
}

/* More than there are credits and blocks for: copies wait at the creator, and in the inbox. */
TEST(data_of_creations_that_wait_are_kept_for_them)
{
	enum { MANY = 3 * TERN_SPAWN_CREDITS };
	uint64_t all = 0;
	open_all(2);
	total = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		const uint64_t word[TERN_WORDS_MAX] = { 1, 0, 0, 0, 0, i };
		all += spawn_and_change(1, STAY, 100 + 40 * i, 6, word);
	}
	tern_signal(local[1], &gate, MANY);
	await(&ended, MANY);
	CHECK_IS(ended.rc, 0);
	CHECK_IS(total, all);
	local_close();
}

/* The sanitizers' builds see that nothing is left. */
TEST(data_that_were_never_sent_go_with_their_endpoint)
{
	open_all(2);
	for (unsigned i = 0; i < 2 * TERN_SPAWN_CREDITS; i++)
		CHECK_IS(spawn_data(1, 1, 3000), 0);
	CHECK_IS(tern_close(local[0]), 0);
	local[0] = NULL;
	local_close();
}
