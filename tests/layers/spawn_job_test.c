/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * Threads between processes: trees of them, floods of them, more ranks than cores, waits that
 * sleep, and death.
 */
#include <errno.h>

#include <tern/chan.h>
#include <tern/send.h>
#include <tern/thread.h>

#include "core/core.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { TREE, ECHO, RECEIVE, STAY, DIE };

static uint64_t seed;

/* -- Random trees ------------------------------------------------------------------------- */

struct sum {
	_Atomic uint64_t ends;
	uint64_t nodes;
};

static void add_child(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	struct sum *s = arg;
	(void)rank;
	CHECK_IS(rc, 0);
	s->nodes += result;
	tern_signal(t, &s->ends, 1);
}

static uint64_t tree_nodes(uint64_t depth, uint64_t state)
{
	uint64_t nodes = 1;
	if (depth)
		for (uint64_t i = 0, n = chance_of(state, 0) % 4; i < n; i++)
			nodes += tree_nodes(depth - 1, chance_of(state, i + 1));
	return nodes;
}

/*
 * Grows from `word[1]`, which decides everything, so that the number of nodes does not depend on
 * who runs when. The parent waits for all its children.
 */
static uint64_t tree(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	struct sum s = { 0 };
	uint64_t children = word[0] ? chance_of(word[1], 0) % 4 : 0;
	for (uint64_t i = 0; i < children; i++) {
		uint64_t state = chance_of(word[1], i + 1);
		CHECK_IS(tern_spawn(t, (uint32_t)(state % tern_size(t)), TREE, add_child, &s,
				    word[0] - 1, state),
			 0);
		if (state % 5 == 0)
			CHECK_IS(tern_thread_yield(t), 0);
	}
	CHECK_IS(tern_wait(t, &s.ends, children), 0);
	return s.nodes + 1;
}

static void trees(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_thread_on(t, TREE, tree, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t state = chance_of(seed, tern_rank(t) * 100 + i), nodes = 0;
		tern_thread root;
		CHECK_IS(tern_thread_start(t, (uint32_t)(state % tern_size(t)), TREE, &root, 5,
					   state),
			 0);
		CHECK_IS(tern_thread_join(t, &root, &nodes), 0);
		CHECK_IS(nodes, tree_nodes(5, state));
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(random_trees_of_threads_grow_over_all_ranks)
{
	seed = check_seed();
	setenv("TERN_CONTEXTS", "512", 1); /* who waits for its children keeps its context */
	ranks_run(4, trees);
}

TEST(so_they_do_with_more_ranks_than_cores)
{
	seed = check_seed();
	setenv("TERN_CONTEXTS", "1024", 1);
	ranks_run(12, trees);
}

/* -- Floods --------------------------------------------------------------------------------- */

static uint64_t echo(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	if (word[1] % 3 == 0)
		tern_thread_yield(t);
	return word[0];
}

static void count_end(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	(void)rank, (void)result;
	CHECK_IS(rc, 0);
	tern_signal(t, arg, 1);
}

/* Everybody creates many on everybody at once: credits, queues and tickets all run out. */
static void flood(void)
{
	static _Atomic uint64_t ends;
	uint64_t each = check_scaled(20000), made = 0;
	tern *t = ranks_open();
	CHECK_IS(tern_thread_on(t, ECHO, echo, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint64_t i = 0; i < each; i++, made++)
		CHECK_IS(tern_spawn(t, (uint32_t)(chance_of(seed, i) % tern_size(t)), ECHO,
				    count_end, &ends, i, i, 3, 4, 5, i),
			 0);
	CHECK_IS(tern_wait(t, &ends, made), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(ranks_that_flood_each_other_with_threads_come_to_an_end)
{
	seed = check_seed();
	ranks_run(3, flood);
}

/* -- Waits that sleep -------------------------------------------------------------------------- */

static uint64_t receive(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	uint64_t value = 0;
	CHECK_IS(tern_recv(t, TERN_RANK_ANY, word[0], &value, sizeof value, NULL), 0);
	return value;
}

static double processor_seconds(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Until a rank has fallen asleep once more. */
static void await_sleep(tern *t, uint32_t rank)
{
	const _Atomic uint64_t *sleeps = &t->own->group->job.pulse[rank].count[PULSE_SLEEPS];
	for (uint64_t before = atomic_load(sleeps); atomic_load(sleeps) == before;)
		ranks_nap(1000000);
}

/* Rank 1's threads wait for messages that come late; it must sleep until they do, and miss none. */
static void sleepers(void)
{
	static _Atomic uint64_t ends;
	tern *t = ranks_open();
	CHECK_IS(tern_thread_on(t, RECEIVE, receive, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	double before = processor_seconds();
	if (tern_rank(t) == 0) {
		for (uint64_t i = 0; i < 8; i++)
			CHECK_IS(tern_spawn(t, 1, RECEIVE, count_end, &ends, i), 0);
		for (uint64_t i = 0; i < 8; i++) {
			await_sleep(t, 1);
			CHECK_IS(tern_send(t, 1, 7 - i, &(uint64_t){ i }, sizeof(uint64_t)), 0);
			CHECK_IS(tern_wait(t, &ends, 1), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		CHECK(processor_seconds() - before < 0.5 * CHECK_SLOWER);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_all_of_whose_threads_wait_sleeps_and_is_woken)
{
	ranks_run(2, sleepers);
}

static uint64_t get_one(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_chan *c;
	uint64_t value = 0;
	CHECK_IS(tern_chan_from(t, 0, word[0], &c), 0);
	tern_in in = tern_chan_in(c);
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
	tern_chan_in_back(&in);
	CHECK_IS(tern_chan_close(c), 0);
	return value;
}

/*
 * No bell rings for a channel, so a rank one of whose threads waits for one must not sleep for
 * long.
 */
static void channel_among_sleepers(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_thread_on(t, RECEIVE, receive, NULL), 0);
	CHECK_IS(tern_thread_on(t, ECHO, get_one, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		tern_thread late, channel;
		tern_chan *c;
		uint64_t value = 0;
		CHECK_IS(tern_thread_start(t, 1, RECEIVE, &late, 5), 0);
		CHECK_IS(tern_thread_start(t, 1, ECHO, &channel, 9), 0);
		CHECK_IS(tern_chan_to(t, 1, 9, &c), 0);
		ranks_nap(50000000);
		tern_out out = tern_chan_out(c);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 42 }, sizeof(uint64_t)), 0);
		tern_chan_out_back(&out);
		CHECK_IS(tern_thread_join(t, &channel, &value), 0);
		CHECK_IS(value, 42);
		CHECK_IS(tern_send(t, 1, 5, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_thread_join(t, &late, NULL), 0);
		CHECK_IS(tern_chan_close(c), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_thread_that_waits_for_a_channel_is_not_forgotten_among_those_that_sleep)
{
	ranks_run(2, channel_among_sleepers);
}

/* -- Death --------------------------------------------------------------------------------- */

static uint64_t die(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t, (void)word;
	kill(getpid(), SIGKILL);
	return 0;
}

static uint64_t join_the_dying(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_thread thread;
	CHECK_IS(tern_thread_start(t, (uint32_t)word[0], DIE, &thread), 0);
	return (uint64_t)-tern_thread_join(t, &thread, NULL);
}

static _Atomic uint64_t bad_ends;

static void bad_end(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	(void)result, (void)arg;
	CHECK_IS(rank, 2);
	CHECK_IS(rc, -EOWNERDEAD);
	tern_signal(t, &bad_ends, 1);
}

static uint64_t stay_forever(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	static _Atomic uint64_t never;
	(void)word;
	return (uint64_t)-tern_wait(t, &never, 1);
}

/*
 * Rank 2 dies by a thread that rank 1's thread has created; rank 0 has many there, started, waiting
 * and queued.
 */
static void deaths(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_thread_on(t, DIE, die, NULL), 0);
	CHECK_IS(tern_thread_on(t, STAY, stay_forever, NULL), 0);
	CHECK_IS(tern_thread_on(t, ECHO, join_the_dying, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		tern_thread thread;
		uint64_t code = 0;
		for (unsigned i = 0; i < 200; i++)
			CHECK_IS(tern_spawn(t, 2, STAY, bad_end, NULL), 0);
		ranks_nap(20000000);
		/*
		 * Its contexts are full: another rank makes it die by a signal, as rank 1's thread
		 * would.
		 */
		CHECK_IS(tern_thread_start(t, 1, ECHO, &thread, 2), 0);
		CHECK_IS(tern_wait(t, &bad_ends, 200), 0);
		CHECK_IS(tern_thread_join(t, &thread, &code), 0);
		CHECK_IS(code, EOWNERDEAD);
		CHECK_IS(tern_spawn(t, 2, STAY, bad_end, NULL), -EOWNERDEAD);
	}
	CHECK(tern_barrier(t) < 0); /* somebody is missing, or gone */
	tern_forgive(t, 2);
	if (tern_rank(t) == 1)
		while (tern_thread_self(t).threads)
			tern_thread_yield(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(threads_at_a_rank_that_dies_end_with_an_error_wherever_they_stood)
{
	setenv("TERN_CONTEXTS", "65",
	       1); /* so that the thread which kills finds a place beside those that stay */
	ranks_start(3, 0, deaths);
	CHECK_IS(ranks_reap(3, 0), 1);
	ranks_end();
}
