/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a pool: who may take which buffer, and what comes back. */
#include "typed/bufpool.h"

#include <pthread.h>

#include "lib/chance.h"
#include "lib/check.h"
#include "lib/typed_pool.h"
#include "typed/typed.h"

enum { MOST = 4096, BYTES = 40, NONE = -1 };

static _Alignas(64) char words[64 + MOST * 16];
static _Alignas(64) char buffers[MOST * 64];
static struct type_queue *queue; /* the owner's */

/* A pool all of whose buffers are free, as its owner has it. */
static struct bufpool bufpool_made(uint32_t count, uint32_t generation)
{
	struct bufpool k = { .generation = generation, .count = count, .bytes = BYTES };
	size_t all;
	REQUIRE(bufpool_sizes(BYTES, count, &k.stride, &all) && all <= sizeof buffers);
	REQUIRE(bufpool_words_bytes(count) <= sizeof words);
	bufpool_see(&k, words, buffers);
	free(queue);
	queue = calloc(1, sizeof *queue + count * sizeof *queue->slot);
	REQUIRE(queue);
	queue->pool = k;
	queue->tail = count;
	for (uint32_t i = 0; i < count; i++) {
		queue->slot[i] = (struct buf_slot){ .queue = queue, .at = i };
		bufpool_put(&k, i, i);
		atomic_store(&k.word[count + i], 0);
	}
	return k;
}

static int take(struct bufpool *k, uint32_t rank)
{
	uint32_t c;
	return bufpool_take(k, rank, &c) ? (int)c : NONE;
}

static uint32_t take_all(struct bufpool *k, uint32_t rank)
{
	uint32_t n = 0;
	while (take(k, rank) != NONE)
		n++;
	return n;
}

/* What the owner does with a message: it is announced, received, and its buffer is free. */
static void pass(int index)
{
	queue->slot[index].state = BUF_SLOT_HELD;
	buf_slot_free(queue, &queue->slot[index]);
}

TEST(sizes_are_whole_lines_and_too_large_ones_are_known)
{
	size_t stride, all;
	CHECK(bufpool_sizes(0, 3, &stride, &all) && stride == 64 && all == 192);
	CHECK(bufpool_sizes(64, 3, &stride, &all) && stride == 64);
	CHECK(bufpool_sizes(65, 3, &stride, &all) && stride == 128 && all == 384);
	CHECK(!bufpool_sizes(SIZE_MAX, 1, &stride, &all));
	CHECK(!bufpool_sizes(SIZE_MAX / 4, 4096, &stride, &all));
	CHECK(bufpool_sizes(64, BUFPOOL_MOST, &stride, &all));
	CHECK(!bufpool_sizes(64, BUFPOOL_MOST + 1, &stride, &all));
}

TEST(every_buffer_is_taken_once_and_again_when_it_is_free)
{
	static const uint32_t counts[] = { 1, 2, 3, 7, 8, 9, 63, 64, 65, 100, 4095, 4096 };
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		static bool seen[MOST];
		struct bufpool k = bufpool_made(counts[c], 5);
		memset(seen, 0, sizeof seen);
		for (uint32_t n = 0; n < counts[c]; n++) {
			int i = take(&k, 3);
			REQUIRE(i >= 0 && i < (int)counts[c]);
			CHECK(!seen[i]);
			CHECK(buf_slot_claimed(&queue->slot[i], 3));
			CHECK(!buf_slot_claimed(&queue->slot[i], 4));
			seen[i] = true;
		}
		CHECK_IS(take(&k, 3), NONE);
		pass((int)counts[c] / 2);
		CHECK_IS(take(&k, 4), (int)counts[c] / 2);
		CHECK_IS(take(&k, 4), NONE);
	}
}

TEST(in_a_stream_each_free_buffer_is_found_at_once_in_whatever_order_they_came_back)
{
	struct bufpool k = bufpool_made(20, 5);
	uint32_t c[3];
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 3; i++)
			CHECK(bufpool_take_next(&k, 1, &c[i]));
		pass((int)c[1]);
		pass((int)c[2]);
		pass((int)c[0]);
	}
	CHECK_IS(bufpool_count_free(&k), 20);
}

TEST(an_owner_that_keeps_up_writes_another_line_than_its_sender)
{
	struct bufpool k = bufpool_made(16, 5);
	uint32_t c;
	for (int round = 0; round < 500; round++) {
		uint32_t at = k.next;
		REQUIRE(bufpool_take_next(&k, 1, &c));
		pass((int)c);
		CHECK(queue->slot[c].at / WORDS_OF_LINE != at / WORDS_OF_LINE);
		CHECK(queue->slot[c].at / WORDS_OF_LINE != k.next / WORDS_OF_LINE);
	}
}

TEST(the_word_of_a_claim_that_was_not_announced_is_not_used_again)
{
	struct bufpool k = bufpool_made(4, 5);
	uint32_t dead, c;
	REQUIRE(bufpool_take(&k, 7, &dead));
	for (int round = 0; round < 100; round++) {
		REQUIRE(bufpool_take(&k, 1, &c));
		pass((int)c);
		CHECK(buf_slot_claimed(&queue->slot[dead], 7));
	}
	CHECK_IS(take_all(&k, 1), 3);
	pass((int)dead);
	CHECK_IS(take(&k, 1), (int)dead);
}

TEST(whoever_believes_in_an_earlier_turn_takes_nothing)
{
	struct bufpool old = bufpool_made(70, 5);
	struct bufpool k = bufpool_made(70, 6);
	CHECK_IS(take(&old, 1), NONE);
	CHECK_IS(take_all(&k, 1), 70);
}

TEST(nothing_beyond_the_last_buffer_is_taken_whatever_the_words_say)
{
	struct bufpool k = bufpool_made(10, 1);
	CHECK_IS(take_all(&k, 1), 10);
	for (uint32_t at = 0; at < k.words; at++)
		bufpool_put(&k, at, 10 + at);
	CHECK_IS(take(&k, 1), NONE);
	pass(3); /* all words are used: it ends all the same */
}

/* -- Many at once ------------------------------------------------------------------------------ */

enum { SENDERS = 3, HAVE = 21, LINE = 64 };

/* What a sender has announced, and the owner has not heard of. */
struct line {
	_Atomic unsigned sent;
	_Atomic bool over;
	unsigned heard;
	uint32_t index[LINE];
};

static struct line line[SENDERS];
static struct bufpool shared;

static void *claim_and_announce(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	struct bufpool k = shared;
	uint32_t c;
	k.next = me * WORDS_OF_LINE % k.words;
	for (unsigned round = check_scaled(30000); round;) {
		if (!bufpool_take(&k, me, &c)) {
			sched_yield();
			continue;
		}
		round--;
		memset(bufpool_buffer(&k, c), (int)me, BYTES); /* plain: the pool orders it */
		unsigned sent = atomic_load_explicit(&line[me].sent, memory_order_relaxed);
		line[me].index[sent % LINE] = c; /* there are fewer buffers than places */
		atomic_store_explicit(&line[me].sent, sent + 1, memory_order_release);
	}
	atomic_store(&line[me].over, true);
	return NULL;
}

/* Takes what a sender has announced; false if there is nothing. */
static bool hear(uint32_t sender, uint32_t *index)
{
	struct line *l = &line[sender];
	if (atomic_load_explicit(&l->sent, memory_order_acquire) == l->heard)
		return false;
	*index = l->index[l->heard++ % LINE];
	struct buf_slot *slot = &queue->slot[*index];
	CHECK(buf_slot_claimed(slot, sender));
	slot->state = BUF_SLOT_HELD;
	for (int b = 0; b < BYTES; b++)
		CHECK(bufpool_buffer(&queue->pool, *index)[b] == (char)sender);
	return true;
}

TEST(no_buffer_is_ever_taken_by_two_and_none_is_lost)
{
	pthread_t thread[SENDERS];
	struct chance chance = { check_seed() };
	uint32_t held[HAVE], n = 0, over = 0;
	shared = bufpool_made(HAVE, 9);
	for (uintptr_t i = 0; i < SENDERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, claim_and_announce, (void *)i) == 0);
	while (over < SENDERS || n) {
		over = 0;
		for (uint32_t i = 0; i < SENDERS; i++) {
			bool last = atomic_load(&line[i].over);
			bool heard = hear(i, &held[n]);
			n += heard;
			over += last && !heard;
		}
		if (n > HAVE - SENDERS || (n && chance_one_in(&chance, 2))) {
			uint32_t i = (uint32_t)chance_below(&chance, n);
			buf_slot_free(queue, &queue->slot[held[i]]);
			held[i] = held[--n];
		}
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	CHECK_IS(bufpool_count_free(&shared), HAVE);
	CHECK_IS(take_all(&shared, 1), HAVE);
}
