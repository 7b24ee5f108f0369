/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that are processes, each with threads that have workers: all send to all, in one session
 * after another, and while a rank is killed.
 */
#include "lib/ranks.h"

enum { ASK, TELL, DONE, RANKS = 3, VICTIM = 2, THREADS = 3, BYTES = 1000 };

static uint64_t rounds, handled;
static _Atomic uint64_t fatal; /* set while handlers may run already */
static tern_flag done;

struct hand {
	tern *worker;
	uint64_t asked[RANKS], told[RANKS];
	tern_flag answered[RANKS];
	bool gone[RANKS];
};

/* The words: where the sender keeps its state, and the how manieth this is. */
static void on_ask(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (++handled == fatal)
		raise(SIGKILL);
	int rc = data ? tern_reply_data(t, m, TELL, data, len, tern_msg_word(m, 0),
					tern_msg_word(m, 1))
		      : tern_reply(t, m, TELL, tern_msg_word(m, 0), tern_msg_word(m, 1));
	CHECK(rc == 0 || rc == -EOWNERDEAD);
}

static void on_tell(tern *t, const tern_msg *m)
{
	struct hand *h = (struct hand *)(uintptr_t)tern_msg_word(m, 0);
	uint32_t from = tern_msg_src(m);
	CHECK(t == h->worker);
	CHECK_IS(tern_msg_word(m, 1), h->told[from]++);
	tern_signal(t, &h->answered[from], 1);
}

static void on_done(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &done, 1);
}

static tern *rank_open(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
	CHECK_IS(tern_on(t, DONE, on_done), 0);
	handled = 0;
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

static int hand_ask(struct hand *h, uint32_t rank, uint64_t i)
{
	static const char data[BYTES];
	uintptr_t self = (uintptr_t)h;
	if (i % 3 == 0)
		return tern_request_data(h->worker, rank, ASK, data, 1 + i % BYTES, self,
					 h->asked[rank]);
	return tern_request(h->worker, rank, ASK, self, h->asked[rank]);
}

/* Asks a rank and waits for its answer now and then; only the victim may fail to give it. */
static void hand_turn(struct hand *h, uint32_t rank, uint64_t i)
{
	int rc = hand_ask(h, rank, i);
	h->asked[rank] += rc == 0;
	if (!rc && i % 8 == 7)
		rc = tern_wait(h->worker, &h->answered[rank], 8);
	if (!rc)
		return;
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 2") != NULL);
	CHECK_IS(tern_forgive(h->worker, VICTIM), 0);
	h->gone[VICTIM] = true;
	if (rank != VICTIM) /* its wait was blamed on the victim, and goes on */
		CHECK_IS(tern_wait(h->worker, &h->answered[rank], 8), 0);
}

static void *hand_main(void *t)
{
	struct hand h = { 0 };
	int rc = tern_worker_open(t, &h.worker);
	CHECK_IS(rc, 0);
	for (uint64_t i = 0; !rc && i < rounds; i++)
		for (uint32_t r = 0; r < RANKS; r++)
			if (!h.gone[r])
				hand_turn(&h, r, i);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK(h.gone[r] || h.told[r] == rounds);
	CHECK_IS(tern_request(h.worker, tern_rank(t), DONE), 0);
	CHECK_IS(tern_close(h.worker), 0);
	return NULL;
}

static void hands_run(tern *t)
{
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, hand_main, t) == 0);
	int rc = tern_wait(t, &done, THREADS);
	if (rc == -EOWNERDEAD) {
		CHECK_IS(tern_forgive(t, VICTIM), 0);
		rc = tern_wait(t, &done, THREADS);
	}
	CHECK_IS(rc, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void sessions(void)
{
	for (int i = 0; i < 3; i++) {
		tern *t = rank_open();
		hands_run(t);
		hands_run(t); /* with workers that were closed */
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(handled, 2 * RANKS * THREADS * rounds);
		CHECK_IS(tern_close(t), 0);
	}
}

TEST(workers_of_all_ranks_ask_all_ranks_and_each_answer_comes_once_and_in_order)
{
	rounds = check_scaled(4000) / 8 * 8;
	ranks_run(RANKS, sessions);
}

static _Atomic uint64_t *over;

static void with_a_victim(void)
{
	tern *t = rank_open();
	fatal = tern_rank(t) == VICTIM ? rounds * THREADS / 2 : 0;
	hands_run(t);
	atomic_fetch_add(over, 1);
	while (atomic_load(over) < RANKS - 1)
		(void)!tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_with_workers_that_is_killed_is_named_to_the_workers_of_others_which_go_on)
{
	rounds = check_scaled(4000) / 8 * 8;
	over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(over != MAP_FAILED);
	ranks_start(RANKS, 0, with_a_victim);
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
}
