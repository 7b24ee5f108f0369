/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait: for whatever can be waited for, in any order, while others run. */
#include "lib/threads.h"

#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/send.h>
#include <tern/sequence.h>

enum { RECEIVE, GET, COUNT, LOCK, JOIN, BARRIER, REQUESTER };

static struct ending ended;

static uint64_t receive(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	uint64_t value = 0;
	CHECK_IS(tern_recv(t, TERN_RANK_ANY, word[0], &value, sizeof value, NULL), 0);
	return value;
}

TEST(a_thread_waits_for_a_message_and_others_run_meanwhile)
{
	threads_open(2);
	threads_on(RECEIVE, receive);
	for (uint64_t id = 0; id < 10; id++)
		CHECK_IS(tern_spawn(local[0], 1, RECEIVE, note_ending, &ended, id), 0);
	for (unsigned i = 0; i < 20; i++)
		everybody();
	CHECK_IS(tern_thread_self(local[1]).threads, 10);
	/* The last one that began to wait is the first that ends. */
	for (uint64_t id = 10; id-- > 0;) {
		CHECK_IS(tern_send(local[0], 1, id, &(uint64_t){ id * id }, sizeof(uint64_t)), 0);
		await(&ended, (unsigned)(10 - id));
		CHECK_IS(ended.result, id * id);
	}
	local_close();
}

static uint64_t get(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_chan *c;
	uint64_t value = 0, sum = 0;
	CHECK_IS(tern_chan_from(t, 0, word[0], &c), 0);
	tern_in in = tern_chan_in(c);
	for (unsigned i = 0; i < 10; i++) {
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
		sum += value;
	}
	tern_chan_in_back(&in);
	CHECK_IS(tern_chan_close(c), 0);
	return sum;
}

TEST(a_thread_waits_for_a_channel)
{
	tern_chan *c[4];
	tern_out out[4];
	threads_open(2);
	threads_on(GET, get);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_IS(tern_spawn(local[0], 1, GET, note_ending, &ended, i), 0);
	everybody();
	for (uint64_t i = 0; i < 4; i++) {
		CHECK_IS(tern_chan_to(local[0], 1, i, &c[i]), 0);
		out[i] = tern_chan_out(c[i]);
	}
	for (uint64_t k = 0; k < 10; k++)
		for (uint64_t i = 0; i < 4; i++) {
			await(&ended, k < 9 ? 0 : i);
			CHECK_IS(ended.count, k < 9 ? 0 : i);
			CHECK_IS(tern_chan_put(&out[i], &k, sizeof k), 0);
			everybody();
		}
	await(&ended, 4);
	CHECK_IS(ended.result, 45);
	for (uint64_t i = 0; i < 4; i++) {
		tern_chan_out_back(&out[i]);
		CHECK_IS(tern_chan_close(c[i]), 0);
	}
	local_close();
}

static _Atomic uint64_t counter[2];

static uint64_t count_down(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	CHECK_IS(tern_wait(t, &counter[word[0]], word[1]), 0);
	return word[1];
}

TEST(a_thread_waits_for_a_counter)
{
	threads_open(1);
	threads_on(COUNT, count_down);
	CHECK_IS(tern_spawn(local[0], 0, COUNT, note_ending, &ended, 0, 5), 0);
	CHECK_IS(tern_spawn(local[0], 0, COUNT, note_ending, &ended, 1, 7), 0);
	everybody();
	tern_signal(local[0], &counter[1], 7);
	await(&ended, 1);
	CHECK_IS(ended.result, 7);
	tern_signal(local[0], &counter[0], 5);
	await(&ended, 2);
	local_close();
}

/* -- Locks ------------------------------------------------------------------------------ */

static tern_mutex mutex;
static uint64_t order[16];
static unsigned inside, entered;

static uint64_t lock(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	CHECK_IS(tern_mutex_take(t, &mutex), 0);
	CHECK_IS(inside++, 0);
	order[entered++] = word[0];
	for (uint64_t i = 0; i < word[1]; i++)
		tern_thread_yield(t);
	CHECK_IS(tern_mutex_take(t, &mutex), -EDEADLK);
	CHECK_IS(--inside, 0);
	CHECK_IS(tern_mutex_release(t, &mutex), 0);
	return 0;
}

TEST(a_lock_is_had_by_one_thread_and_who_comes_first_gets_it_first)
{
	threads_open(1);
	threads_on(LOCK, lock);
	CHECK_IS(tern_mutex_take(local[0], &mutex), 0);
	for (uint64_t i = 0; i < 16; i++)
		CHECK_IS(tern_spawn(local[0], 0, LOCK, note_ending, &ended, i, i % 3), 0);
	for (unsigned i = 0; i < 10; i++)
		everybody();
	CHECK_IS(entered, 0);
	CHECK_IS(tern_mutex_release(local[0], &mutex), 0);
	CHECK(mutex.holder != 0); /* it has been handed on */
	await(&ended, 16);
	for (uint64_t i = 0; i < 16; i++)
		CHECK_IS(order[i], i);
	CHECK_IS(mutex.holder, 0);
	CHECK_IS(tern_mutex_take(local[0], &mutex), 0);
	CHECK_IS(tern_mutex_release(local[0], &mutex), 0);
	CHECK_IS(tern_mutex_release(local[0], &mutex), -EPERM);
	CHECK(!mutex.first && !mutex.last);
	local_close();
}

TEST(a_lock_that_is_taken_cannot_be_waited_for_under_a_hold)
{
	threads_open(1);
	threads_on(LOCK, lock);
	CHECK_IS(tern_spawn(local[0], 0, LOCK, note_ending, &ended, 0, 1000000), 0);
	everybody();
	tern_hold(local[0]);
	CHECK_IS(tern_mutex_take(local[0], &mutex), -EDEADLK);
	tern_release(local[0]);
	CHECK(!mutex.first);
	static tern *kept; /* not closed: the thread yields for long */
	kept = local[0];
	CHECK(kept != NULL);
	local[0] = NULL;
}

static void hold_here(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
}

/* Has the lock until the counter counts. */
static uint64_t keep(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	CHECK_IS(tern_mutex_take(t, &mutex), 0);
	count_down(t, word, arg);
	CHECK_IS(tern_mutex_release(t, &mutex), 0);
	return 0;
}

TEST(whoever_waits_for_a_lock_and_fails_is_not_waited_for)
{
	threads_open(1);
	threads_on(LOCK, keep);
	local_on(0, hold_here);
	for (unsigned i = 0; i < 2; i++) /* the one has it, the other waits */
		CHECK_IS(tern_spawn(local[0], 0, LOCK, note_ending, &ended, 0, 1), 0);
	while (!mutex.first)
		everybody();
	CHECK_IS(tern_request(local[0], 0, 0), 0);
	CHECK_IS(tern_mutex_take(local[0], &mutex), -EDEADLK);
	CHECK(mutex.first && mutex.first == mutex.last);
	tern_release(local[0]);
	tern_signal(local[0], &counter[0], 2);
	await(&ended, 2);
	CHECK(!mutex.holder && !mutex.first && !mutex.last);
	local_close();
}

/* -- Order of waits, deferred functions, barriers --------------------------------------------- */

static uint64_t join_other(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_thread thread;
	uint64_t result = 0;
	CHECK_IS(tern_thread_start(t, (uint32_t)word[0], COUNT, &thread, 0, 1), 0);
	CHECK_IS(tern_thread_join(t, &thread, &result), 0);
	return result + 10;
}

TEST(a_thread_waits_for_another_thread)
{
	threads_open(2);
	threads_on(JOIN, join_other);
	threads_on(COUNT, count_down);
	for (unsigned i = 0; i < 8; i++)
		CHECK_IS(tern_spawn(local[0], 1, JOIN, note_ending, &ended, i % 2), 0);
	for (unsigned i = 0; i < 20; i++)
		everybody();
	CHECK_IS(ended.count, 0);
	tern_signal(local[0], &counter[0], 8);
	await(&ended, 8);
	CHECK_IS(ended.result, 11);
	local_close();
}

static unsigned deferred_begun, deferred_over;

static void wait_deferred(tern *t, void *arg)
{
	deferred_begun++;
	CHECK_IS(tern_wait(t, arg, 1), 0);
	deferred_over++;
}

static uint64_t defer_two(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	CHECK_IS(tern_defer(t, wait_deferred, &counter[0]), 0);
	CHECK_IS(tern_defer(t, wait_deferred, &counter[0]), 0);
	CHECK(tern_poll(t) >= 0);
	return deferred_over;
}

TEST(a_deferred_function_that_waits_stops_its_thread_and_those_deferred_after_it_and_nobody_else)
{
	threads_open(1);
	threads_on(COUNT, count_down);
	threads_on(REQUESTER, defer_two);
	CHECK_IS(tern_spawn(local[0], 0, REQUESTER, note_ending, &ended), 0);
	while (!deferred_begun)
		everybody();
	CHECK_IS(tern_spawn(local[0], 0, COUNT, note_ending, &ended, 1, 5), 0);
	tern_signal(local[0], &counter[1], 5);
	await(&ended, 1);
	CHECK_IS(ended.result, 5);
	CHECK_IS(deferred_begun, 1);
	tern_signal(local[0], &counter[0], 1);
	while (deferred_begun < 2)
		everybody();
	CHECK_IS(deferred_over, 1);
	tern_signal(local[0], &counter[0], 1);
	await(&ended, 2);
	CHECK_IS(ended.result, 2);
	local_close();
}

static int barrier_rc[2];

static uint64_t barrier(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	barrier_rc[word[0]] = tern_barrier(t);
	return 0;
}

TEST(a_rank_takes_part_in_a_barrier_once)
{
	threads_open(2);
	threads_on(BARRIER, barrier);
	CHECK_IS(tern_spawn(local[0], 0, BARRIER, note_ending, &ended, 0), 0);
	CHECK_IS(tern_spawn(local[0], 0, BARRIER, note_ending, &ended, 1), 0);
	await(&ended, 1);
	CHECK_IS(barrier_rc[1], -EBUSY);
	CHECK_IS(tern_spawn(local[1], 1, BARRIER, note_ending, &ended, 1), 0);
	await(&ended, 3);
	CHECK_IS(barrier_rc[0], 0);
	CHECK_IS(barrier_rc[1], 0);
	local_close();
}

static unsigned got_requests;

static void count_request(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	got_requests++;
}

static uint64_t request(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < word[1]; i++)
		CHECK_IS(tern_request(t, (uint32_t)word[0], 0, i, 2), 0);
	return 0;
}

TEST(threads_whose_requests_find_a_full_ring_wait_and_the_others_go_on)
{
	enum { MANY = 3000 };
	threads_open(2);
	local_on(0, count_request);
	threads_on(REQUESTER, request);
	threads_on(COUNT, count_down);
	for (unsigned i = 0; i < 8; i++)
		CHECK_IS(tern_spawn(local[0], 0, REQUESTER, note_ending, &ended, 1, MANY), 0);
	CHECK_IS(tern_spawn(local[0], 0, COUNT, note_ending, &ended, 0, 1), 0);
	tern_signal(local[0], &counter[0], 1);
	await(&ended, 9);
	while (got_requests < 8 * MANY)
		everybody();
	local_close();
}

enum { BYTES = 1 << 20 };

static uint64_t fetch(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	char *to = malloc(BYTES);
	CHECK_IS(tern_get(t, to, word[0], BYTES), 0);
	uint64_t last = (uint64_t)to[BYTES - 1];
	free(to);
	return last;
}

/* Through messages, so that it takes many steps and both ranks. */
TEST(threads_fetch_memory_all_at_the_same_time)
{
	static char there[BYTES];
	tern_addr a;
	setenv("TERN_SINGLE_COPY", "0", 1);
	threads_open(2);
	threads_on(REQUESTER, fetch);
	memset(there, 7, BYTES);
	CHECK_IS(tern_register(local[1], there, BYTES, &a), 0);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_IS(tern_spawn(local[0], 0, REQUESTER, note_ending, &ended, a), 0);
	await(&ended, 8);
	CHECK_IS(ended.result, 7);
	CHECK_IS(tern_unregister(local[1], a), 0);
	local_close();
}

static unsigned char block[20000];
static unsigned blocks;

static void *block_accept(tern *t, uint32_t from, unsigned id, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)arg;
	return len == sizeof block ? block : NULL;
}

static void block_end(tern *t, uint32_t from, unsigned id, void *data, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)data, (void)arg;
	CHECK(memcmp(block, block + 1, len - 1) == 0); /* all of it is one thread's */
	blocks++;
}

static uint64_t send_block(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	void *from = malloc(sizeof block);
	memset(from, (int)word[0], sizeof block);
	CHECK_IS(tern_sequence_send(t, 1, 0, from, sizeof block, TERN_WAY_FULL), 0);
	free(from);
	return 0;
}

TEST(blocks_of_several_threads_to_a_rank_go_one_after_another)
{
	threads_open(2);
	threads_on(REQUESTER, send_block);
	CHECK_IS(tern_sequence_on(local[1], 0, block_accept, block_end, NULL), 0);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_IS(tern_spawn(local[0], 0, REQUESTER, note_ending, &ended, i), 0);
	await(&ended, 8);
	CHECK_IS(blocks, 8);
	local_close();
}
