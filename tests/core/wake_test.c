/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 200 */
/*
 * No wake-up is ever lost. The library bounds each sleep, which would hide a lost
 * wake-up as a short delay; here the bound is taken away, so that it would be a
 * hang. Random pauses bring the receivers to every step of the backoff.
 */
#include <pthread.h>
#include <sched.h>
#include <tern/mem.h>
#include <tern/thread.h>

#include "base/world.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { ASK, TELL };
static const uint64_t a_minute = UINT64_C(60000000000);

static uint64_t seed;
static unsigned rounds;
static _Atomic unsigned *sleeps; /* shared by the ranks */

static void sleep_without_bound(const struct sleep *s, uint64_t ns)
{
	(void)ns;
	atomic_fetch_add(sleeps, 1);
	world_real.sleep(s, a_minute);
}

static struct world patient;

struct rank {
	_Atomic uint64_t got, answered, passed;
	struct chance chance;
	uint64_t *word; /* here, and the partner's */
	tern_addr there;
};
static struct rank ranks[RANKS_AT_MOST];

static void answer(tern *t, const tern_msg *m)
{
	tern_signal(t, &ranks[tern_rank(t)].got, 1);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void take_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &ranks[tern_rank(t)].answered, 1);
}

static void prepare(tern *t)
{
	ranks[tern_rank(t)] = (struct rank){ .chance = { seed * 1000 + tern_rank(t) } };
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, take_answer), 0);
	patient = world_real;
	patient.sleep = sleep_without_bound;
	t->own->world = &patient;
}

/* From nothing to long enough for a deep sleep; most often around the rungs' ends. */
static void pause_at_random(struct chance *c)
{
	static const uint32_t most[] = { 0, 1000, 20000, 350000, 1700000, 2500000, 4000000 };
	uint32_t ns = most[chance_below(c, 7)];
	if (ns)
		ranks_nap(chance_below(c, ns));
}

/* The two ends of a pair take turns in pausing, so that each is woken by the other. */
static void ping_pong(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	uint32_t partner = tern_rank(t) ^ 1;
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2 == tern_rank(t) % 2) {
			pause_at_random(&self->chance);
			CHECK_IS(tern_request(t, partner, ASK), 0);
			CHECK_IS(tern_wait(t, &self->answered, 1), 0);
		} else {
			CHECK_IS(tern_wait(t, &self->got, 1), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
}

/* The same by words of the heap; no message travels where ranks share memory. */
static void signals(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	uint64_t *word = handed_alloc_all(t, sizeof *word), seen = 0;
	REQUIRE(word);
	tern_addr there = tern_addr_at(t, tern_rank(t) ^ 1, word);
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2 == tern_rank(t) % 2) {
			pause_at_random(&self->chance);
			CHECK_IS(tern_put_signal(t, TERN_ADDR_NONE, NULL, 0,
						 &(tern_change){ .word = there,
								 .what = TERN_AMO_ADD,
								 .value = 1 }),
				 0);
		} else {
			CHECK_IS(tern_wait_word(t, word, TERN_WORD_GT, seen++), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
}

/* And by those of workers, while the program sleeps in another wait. */
static void *worker_signals(void *arg)
{
	tern *w;
	REQUIRE(tern_worker_open(arg, &w) == 0);
	w->own->world = &patient;
	struct rank *self = &ranks[tern_rank(w)];
	uint64_t seen = 0;
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2 == tern_rank(w) % 2) {
			pause_at_random(&self->chance);
			CHECK_IS(tern_put_signal(w, TERN_ADDR_NONE, NULL, 0,
						 &(tern_change){ .word = self->there,
								 .what = TERN_AMO_ADD,
								 .value = 1 }),
				 0);
		} else {
			CHECK_IS(tern_wait_word(w, self->word, TERN_WORD_GT, seen++), 0);
		}
	}
	CHECK_IS(tern_request(w, tern_rank(w), ASK), 0);
	CHECK_IS(tern_wait(w, &self->answered, 1), 0);
	CHECK_IS(tern_close(w), 0);
	return NULL;
}

static void words_open(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	self->word = handed_alloc_all(t, sizeof *self->word);
	REQUIRE(self->word);
	self->there = tern_addr_at(t, tern_rank(t) ^ 1, self->word);
}

static void workers_signal(tern *t)
{
	pthread_t thread;
	words_open(t);
	REQUIRE(pthread_create(&thread, NULL, worker_signals, t) == 0);
	CHECK_IS(tern_wait(t, &ranks[tern_rank(t)].got, 1), 0);
	pthread_join(thread, NULL);
	CHECK_IS(tern_barrier(t), 0);
}

/* And by those of light threads, of which one waits for a word and one for its end. */
static uint64_t await_words(tern *t, const uint64_t *words, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < rounds; i++)
		CHECK_IS(tern_wait_word(t, ranks[tern_rank(t)].word, TERN_WORD_GT, i), 0);
	return words[0];
}

static void threads_signal(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	tern_thread thread;
	words_open(t);
	t->own->waiting.spin = 0; /* two threads look for twice as long before they sleep */
	if (tern_rank(t) % 2) {
		CHECK_IS(tern_thread_on(t, 0, await_words, NULL), 0);
		CHECK_IS(tern_thread_start(t, tern_rank(t), 0, &thread), 0);
		CHECK_IS(tern_thread_join(t, &thread, NULL), 0);
	}
	for (unsigned i = 0; tern_rank(t) % 2 == 0 && i < rounds; i++) {
		pause_at_random(&self->chance);
		CHECK_IS(tern_put_signal(t, TERN_ADDR_NONE, NULL, 0,
					 &(tern_change){ .word = self->there,
							 .what = TERN_AMO_ADD,
							 .value = 1 }),
			 0);
	}
	CHECK_IS(tern_barrier(t), 0);
}

/* Everybody waits for everybody, at barriers that somebody reaches late. */
static void barriers(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	for (unsigned i = 0; i < rounds; i++) {
		if (chance_one_in(&self->chance, 3))
			pause_at_random(&self->chance);
		CHECK_IS(tern_barrier(t), 0);
	}
}

/*
 * Many peers that are silent most of the time, so that rank 0 takes them off its list and sleeps.
 */
static void silent_peers(tern *t)
{
	struct rank *self = &ranks[tern_rank(t)];
	if (tern_rank(t) == 0) {
		t->own->waiting.spin = 20000; /* enough empty polls to look for silent peers */
		CHECK_IS(tern_wait(t, &self->got, (uint64_t)rounds * (tern_size(t) - 1)), 0);
	} else {
		for (unsigned i = 0; i < rounds; i++) {
			pause_at_random(&self->chance);
			CHECK_IS(tern_request(t, 0, ASK, i), 0);
			CHECK_IS(tern_wait(t, &self->answered, 1), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
}

static void (*playing)(tern *t);

static void play_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	playing(t);
	CHECK_IS(tern_close(t), 0);
}

static void play(void (*game)(tern *t), uint32_t ranks_in_it, unsigned n)
{
	sleeps = ranks_shared(4096);
	seed = check_seed();
	rounds = n;
	playing = game;
	if (game != threads_signal) /* whose ranks stay with their kernel threads */
		ranks_run_threads(ranks_in_it, prepare, game);
	ranks_run(ranks_in_it, play_process);
	printf("    %u deep sleeps\n", atomic_load(sleeps));
	if (!CHECK(atomic_load(sleeps) > 0))
		printf("    nobody slept: the test shows nothing\n");
}

TEST(two_ranks_wake_each_other)
{
	play(ping_pong, 2, 1000);
}

TEST(many_pairs_wake_each_other)
{
	play(ping_pong, 12, 400);
}

TEST(a_signal_wakes_whoever_sleeps_until_its_word_changes)
{
	play(signals, 2, 1000);
	play(signals, 12, 200);
}

TEST(a_signal_wakes_workers_that_sleep_until_their_word_changes)
{
	play(workers_signal, 2, 400);
	play(workers_signal, 6, 100);
}

TEST(a_signal_wakes_light_threads_that_sleep_until_their_word_changes)
{
	play(threads_signal, 2, 400);
}

TEST(a_barrier_wakes_those_who_sleep)
{
	play(barriers, 5, 400);
}

TEST(a_silent_peer_wakes_a_rank_that_does_not_look_at_it)
{
	play(silent_peers, 10, 200);
}

/* -- The race itself, without the backoff ------------------------------------------------ */

static tern *pair[2];
static _Atomic uint64_t taken;

/* Sends one message at a time and waits until it is taken, with pauses of no time at all. */
static void *send_one_by_one(void *arg)
{
	struct chance c = { seed };
	tern *t = arg;
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = chance_below(&c, 2000); k; k--)
			atomic_signal_fence(memory_order_seq_cst);
		CHECK_IS(tern_request(t, 1, ASK, i), 0);
		while (atomic_load(&taken) <= i)
			sched_yield();
	}
	return NULL;
}

static void take(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_word(m, 0), atomic_load(&taken));
	(void)t;
	atomic_fetch_add(&taken, 1);
}

/* Arms, sleeps if it may, looks: again and again, as fast as it goes. */
static void sleep_and_take(struct endpoint *e)
{
	struct net *net = e->net[1];
	while (atomic_load(&taken) < rounds) {
		struct sleep s = { .says = BELL_ASLEEP };
		if (net->ops->arm(net, &s))
			sleep_without_bound(&s, 0);
		net_disarm(net);
		e->site.peek = &e->site.bell;
		tern_poll(e->t);
	}
}

TEST(arming_races_with_sending_and_no_message_is_slept_over)
{
	pthread_t sender;
	sleeps = ranks_shared(4096);
	seed = check_seed();
	rounds = check_scaled(100000);
	setenv("TERN_DELIVERY", "poll", 1); /* the test itself arms */
	REQUIRE(tern_open_local(2, pair) == 0);
	CHECK_IS(tern_on(pair[0], ASK, take), 0);
	CHECK_IS(tern_on(pair[1], ASK, take), 0);
	CHECK_IS(tern_poll(pair[1]), 0);
	if (atomic_load(&pair[0]->own->group->job.head->weak))
		check_skip("the kernel has no membarrier");
	REQUIRE(pthread_create(&sender, NULL, send_one_by_one, pair[0]) == 0);
	sleep_and_take(pair[1]->own);
	pthread_join(sender, NULL);
	printf("    %u sleeps for %u messages\n", atomic_load(sleeps), rounds);
	CHECK_IS(tern_close(pair[0]), 0);
	CHECK_IS(tern_close(pair[1]), 0);
}
