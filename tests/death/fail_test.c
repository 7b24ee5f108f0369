/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that die while the others go on. The test plays a launcher with --survive;
 * the real one is in kill_test.sh.
 */
#include "lib/chance.h"
#include "lib/ranks.h"

enum { ASK, TELL, RANKS = 5, VICTIM = 2 };

static _Atomic uint64_t answers, never;
static _Atomic uint64_t *shared; /* how many survivors have come to an end */
static uint64_t seed;

/* What a call may say of a rank that has left, once it is known. */
static bool ends_well(int rc)
{
	return rc == 0 || rc == -EOWNERDEAD || rc == -ESHUTDOWN;
}

static void answer(tern *t, const tern_msg *m)
{
	CHECK(ends_well(tern_reply(t, m, TELL)));
}

static void take(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

static tern *rank_open(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	return t;
}

static bool names_the_victim(int rc)
{
	bool good = strstr(tern_strerror(rc), "rank 2") != NULL;
	if (!good)
		printf("    %d: %s\n", rc, tern_strerror(rc));
	return good;
}

/* Survivors still reach each other, in messages of both kinds. */
static void talk_among_survivors(tern *t)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		if (r == VICTIM)
			continue;
		atomic_store(&answers, 0);
		CHECK_IS(tern_request(t, r, ASK, 1), 0);
		CHECK_IS(tern_request_data(t, r, ASK, "x", 1, 2, 3), 0);
		CHECK_IS(tern_wait(t, &answers, 2), 0);
	}
}

static void wait_for_the_others(tern *t)
{
	atomic_fetch_add(shared, 1);
	while (atomic_load(shared) < RANKS - 1)
		tern_poll(t);
}

static void survive(void)
{
	tern *t = rank_open();
	t->own->waiting.grace_ns = 200 * UINT64_C(1000000);
	CHECK_IS(tern_request(t, VICTIM, ASK), 0);
	CHECK_IS(tern_wait(t, &answers, 1), 0);
	if (tern_rank(t) == VICTIM) {
		while (atomic_load(shared) < RANKS - 1) /* serve everybody once */
			tern_poll(t);
		raise(SIGKILL);
	}
	wait_for_the_others(t);
	uint64_t began = clock_ns();
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_the_victim(rc));
	CHECK(clock_ns() - began >= 200 * UINT64_C(1000000));
	rc = tern_request(t, VICTIM, ASK, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_the_victim(rc));
	rc = tern_barrier(t);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_the_victim(rc));
	CHECK_IS(tern_barrier(t), -EOWNERDEAD);
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	talk_among_survivors(t);
	atomic_fetch_add(&shared[1], 1);
	while (atomic_load(&shared[1]) < RANKS - 1)
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_dead_rank_is_named_by_whoever_needs_it_and_the_others_go_on)
{
	shared = ranks_shared(4096);
	ranks_start(RANKS, 0, survive);
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
}

static _Atomic unsigned told;

/* Goes on without it: asks the next survivor instead. */
static void ask_another(tern *t, uint32_t rank, int why, void *arg)
{
	(void)arg;
	if (why != -EOWNERDEAD) /* others leave when they are done */
		return;
	CHECK_IS(rank, VICTIM);
	CHECK(names_the_victim(why));
	CHECK_IS(tern_forgive(t, rank), 0);
	CHECK_IS(tern_request(t,
			      (tern_rank(t) + 1) % RANKS == VICTIM ? 0 : (tern_rank(t) + 1) % RANKS,
			      ASK),
		 0);
	atomic_fetch_add(&told, 1);
}

static void survive_told(void)
{
	tern *t = rank_open();
	CHECK_IS(tern_lost_on(t, ask_another, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGKILL);
	CHECK_IS(tern_wait(t, &answers, 1), 0); /* which nobody would bring, if it were not told */
	CHECK_IS(atomic_load(&told), 1);
	wait_for_the_others(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_function_is_told_of_a_killed_rank_and_the_wait_under_way_goes_on_without_it)
{
	shared = ranks_shared(4096);
	ranks_start(RANKS, 0, survive_told);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	ranks_end();
}

/* -- At any moment ----------------------------------------------------------------------- */

/* Talks with everybody until told to stop; whatever happens, every call ends. */
static void talk_whatever_happens(void)
{
	static const unsigned char bytes[5000];
	tern *t = rank_open();
	struct chance c = { seed + tern_rank(t) };
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK_IS(tern_forgive(t, r), 0);
	while (!atomic_load(shared)) {
		uint32_t dst = chance_below(&c, tern_size(t));
		int rc = chance_one_in(&c, 3)
				 ? tern_request_data(t, dst, ASK, bytes, chance_below(&c, 5000), 1)
				 : tern_request(t, dst, ASK, 1);
		CHECK(ends_well(rc));
		if (chance_one_in(&c, 50))
			CHECK(ends_well(tern_barrier(t)));
		CHECK(tern_poll(t) >= 0);
	}
	CHECK_IS(tern_close(t), 0);
}

static void kill_some(struct chance *c)
{
	for (int kills = 0; kills < 3; kills++) {
		ranks_nap(chance_below(c, 10000000));
		pid_t victim = ranks_pid[chance_below(c, ranks_size)];
		if (victim > 0)
			kill(victim, SIGKILL);
		ranks_nap(1000000);
		ranks_reap(ranks_size, WNOHANG);
	}
}

/* Tells the job of everyone that ends; how many ended by themselves and not well. */
static unsigned reap_the_rest(void)
{
	unsigned failed = 0;
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0;) {
		failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
		job_rank_ended(&ranks_job, ranks_rank_of(pid), status);
	}
	return failed;
}

/* Fewer where ranks open slowly: of a round over libfabric that is nearly all. */
static unsigned rounds(void)
{
	const char *net = getenv("TERN_NET");
	return CHECK_SLOWER > 1 || (net && strncmp(net, "ofi", 3) == 0) ? 5 : 20;
}

TEST(whenever_ranks_are_killed_the_calls_of_the_others_end)
{
	seed = check_seed();
	struct chance c = { seed };
	for (unsigned round = rounds(); round; round--) {
		shared = ranks_shared(4096);
		ranks_start(6, 0, talk_whatever_happens);
		kill_some(&c);
		atomic_store(shared, 1);
		CHECK_IS(reap_the_rest(), 0);
		ranks_end();
	}
}
