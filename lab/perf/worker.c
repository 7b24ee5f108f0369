/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of one rank beside as many ranks. Half of the ranks send and the other half handle, in
 * pairs. Either each sender is a rank, or all of them are workers of rank 0: then the other ranks
 * that would send sleep, and each worker has the core of the rank whose place it takes.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/perf/perf.h"

enum { HANDLER_TAKE, HANDLER_ASK, HANDLER_BACK, HANDLER_CORE, HANDLER_OVER };
enum { PLAY_WORKERS, PLAY_RANKS };
enum { THREADS_MOST = 64, NAP_NS = 200000 };

typedef int pair_act(tern *t, uint32_t to, uint64_t count);

static int core[THREADS_MOST]; /* of the ranks that send; at rank 0 */
static tern_flag over;         /* rank 0's workers are done */

/* -- Handlers ---------------------------------------------------------------------------------- */

static void take(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

/* The word is where the sender waits. */
static void ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, HANDLER_BACK, tern_msg_word(m, 0));
}

static void back(tern *t, const tern_msg *m)
{
	tern_flag *flag = (tern_flag *)(uintptr_t)tern_msg_word(m, 0);
	tern_signal(t, flag, 1);
}

static void core_is(tern *t, const tern_msg *m)
{
	(void)t;
	core[tern_msg_src(m)] = (int)tern_msg_word(m, 0);
}

static void is_over(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &over, 1);
}

static int worker_open(struct bench_rank *p)
{
	tern_on(p->t, HANDLER_TAKE, take);
	tern_on(p->t, HANDLER_ASK, ask);
	tern_on(p->t, HANDLER_BACK, back);
	tern_on(p->t, HANDLER_CORE, core_is);
	tern_on(p->t, HANDLER_OVER, is_over);
	int rc = 0;
	if (p->rank < p->size)
		rc = tern_request(p->t, 0, HANDLER_CORE, (uint64_t)sched_getcpu());
	return rc ? rc : tern_barrier(p->t);
}

/* -- What a sender does ------------------------------------------------------------------------ */

/* The last one is answered, and everything before it has been handled then. */
static int pair_send(tern *t, uint32_t to, uint64_t count)
{
	tern_flag answered = 0;
	int rc = 0;
	for (uint64_t i = 1; i < count && !rc; i++)
		rc = tern_request(t, to, HANDLER_TAKE, i, i, i, i);
	if (!rc)
		rc = tern_request(t, to, HANDLER_ASK, (uintptr_t)&answered);
	return rc ? rc : tern_wait(t, &answered, 1);
}

static int pair_trips(tern *t, uint32_t to, uint64_t count)
{
	tern_flag answered = 0;
	int rc = 0;
	for (uint64_t i = 0; i < count && !rc; i++) {
		rc = tern_request(t, to, HANDLER_ASK, (uintptr_t)&answered, i);
		if (!rc)
			rc = tern_wait(t, &answered, 1);
	}
	return rc;
}

/* -- Workers ----------------------------------------------------------------------------------- */

struct crew {
	struct bench_rank *p;
	pair_act *act;
	_Atomic uint32_t met; /* over all meetings */
	_Atomic int rc;
	uint64_t ns; /* of the first one */
};

struct hand {
	struct crew *crew;
	uint32_t index;
	pthread_t thread;
};

static void hand_bind(const struct hand *h)
{
	cpu_set_t set;
	if (h->crew->p->raw.crowded)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)core[h->index], &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/* Nobody sleeps, which would take longer than what is measured. */
static void crew_meet(struct crew *c, uint32_t nth)
{
	atomic_fetch_add(&c->met, 1);
	while (atomic_load(&c->met) < nth * c->p->size)
		sched_yield();
}

/* After a round trip, so that the other rank is awake. */
static int hand_act(const struct hand *h, tern *worker)
{
	struct crew *c = h->crew;
	uint32_t to = c->p->size + h->index;
	int rc = pair_trips(worker, to, 1);
	crew_meet(c, 1);
	uint64_t began = clock_ns();
	if (!rc)
		rc = c->act(worker, to, c->p->count);
	crew_meet(c, 2);
	if (h->index == 0)
		c->ns = clock_ns() - began;
	return rc;
}

static void *hand_main(void *arg)
{
	struct hand *h = arg;
	tern *worker;
	hand_bind(h);
	int rc = tern_worker_open(h->crew->p->t, &worker);
	if (!rc)
		rc = hand_act(h, worker);
	else
		atomic_fetch_add(&h->crew->met, 2); /* keeps nobody waiting */
	int closed = rc ? 0 : tern_close(worker);
	if (rc || closed)
		atomic_store(&h->crew->rc, rc ? rc : closed);
	return NULL;
}

static int hands_start(struct hand *hand, struct crew *c)
{
	for (uint32_t i = 0; i < c->p->size; i++) {
		hand[i] = (struct hand){ .crew = c, .index = i };
		int error = pthread_create(&hand[i].thread, NULL, hand_main, &hand[i]);
		if (error)
			return error_set(-error, "starting thread %u of %u failed", i, c->p->size);
	}
	return 0;
}

static uint64_t crew_run(struct crew *c, struct hand *hand)
{
	struct bench_rank *p = c->p;
	for (uint32_t i = 0; i < p->size; i++)
		pthread_join(hand[i].thread, NULL);
	p->rc = atomic_load(&c->rc);
	for (uint32_t r = 1; r < p->size && !p->rc; r++)
		p->rc = tern_request(p->t, r, HANDLER_OVER);
	return c->ns;
}

/* Ns of rank 0's workers, between two barriers. */
static uint64_t workers_play(struct bench_rank *p, pair_act *act)
{
	struct hand hand[THREADS_MOST];
	struct crew c = { .p = p, .act = act };
	uint64_t ns = 1;
	p->rc = tern_barrier(p->t);
	if (!p->rc && p->rank == 0)
		p->rc = hands_start(hand, &c);
	if (!p->rc && p->rank == 0)
		ns = crew_run(&c, hand);
	while (!p->rc && p->rank && p->rank < p->size && !atomic_load(&over)) {
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL); /* not on their cores */
		int rc = tern_poll(p->t);
		p->rc = rc < 0 ? rc : 0;
	}
	atomic_store(&over, 0);
	if (!p->rc)
		p->rc = tern_barrier(p->t);
	return ns;
}

static uint64_t ranks_act(struct bench_rank *p, pair_act *act)
{
	p->rc = tern_barrier(p->t);
	uint64_t began = clock_ns();
	if (!p->rc && p->rank < p->size)
		p->rc = act(p->t, p->size + p->rank, p->count);
	if (!p->rc)
		p->rc = tern_barrier(p->t);
	return clock_ns() - began;
}

static uint64_t worker_play(struct bench_rank *p, pair_act *act)
{
	return p->way == PLAY_WORKERS ? workers_play(p, act) : ranks_act(p, act);
}

static double rate_figure(struct bench_rank *p)
{
	return each_microsecond(p, worker_play(p, pair_send)) * p->size;
}

static double trip_figure(struct bench_rank *p)
{
	return each_ns(p, worker_play(p, pair_trips));
}

static const struct test test_worker_rate = {
	{ "worker-rate", "requests of 4 words by so many workers of one rank, in pairs with ranks",
	  "M/s" },
	{ "threads", 1, THREADS_MOST, { 4, { 1, 4, 8, 16 } }, { 0 } },
	.amount = { .ranks = RANKS_BY_PAIRS, .cores = TEST_NONE, .count = 100000, .rounds = 21 },
	.play = { .open = worker_open,
		  .measure = { .figure = rate_figure, .way = PLAY_WORKERS },
		  .limit = { { .figure = rate_figure, .way = PLAY_RANKS } } },
	.limit_name = "as many ranks in place of the workers",
	.bar = { { 8, "at least 0.60" } },
};

static const struct test test_worker_trip = {
	{ "worker-trip", "a request and its reply, by so many workers of one rank at once", "ns" },
	.like = &test_worker_rate,
	.amount = { .count = 2000 },
	.play = { .measure = { .figure = trip_figure, .way = PLAY_WORKERS },
		  .limit = { { .figure = trip_figure, .way = PLAY_RANKS } } },
	.bar = { { 8, "at most 1.67" } },
};

const struct test *const worker_tests[] = { &test_worker_rate, &test_worker_trip, NULL };
