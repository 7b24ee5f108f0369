/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that nobody watches but each other. The test plays a launcher that says nothing: it takes
 * in the dead, late, and tells the job of none.
 */
#include "boot/neighbour.h"

#include "../../tests/chance.h"
#include "../../tests/crew.h"
#include "boot/process.h"

enum { ASK, TELL };

/* [0]: ranks may begin; [1]: how many have come so far; [2]: who was killed, a bit each; [3]: all that will be are */
static _Atomic uint64_t *shared;
static _Atomic uint64_t answers, never;

static void answer(tern *t, const tern_msg *m)
{
	(void)!tern_reply(t, m, TELL);
}

static void take(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

/* As a rank does that has joined: the numbers are there, then it watches. */
static tern *watching_open(void)
{
	static struct job mine;
	while (!atomic_load(shared))
		crew_nap(100000);
	REQUIRE(job_map(&mine, crew_job.fd) == 0);
	REQUIRE(neighbour_watch(&mine, (uint32_t)atoi(getenv("TERN_RANK"))) == 0);
	tern *t = crew_open();
	t->own->grace_ns = 1000000;
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	return t;
}

static void crew_note(void)
{
	for (uint32_t r = 0; r < crew_size; r++) {
		atomic_store(&crew_job.rank[r].pid, crew_pid[r]);
		atomic_store(&crew_job.rank[r].born, process_born(crew_pid[r]));
	}
	atomic_store(shared, 1);
}

static void crew_start_watching(uint32_t n, void (*rank_main)(void))
{
	shared = crew_shared(4096);
	crew_start(n, 0, rank_main);
	crew_note();
}

/* Reaps without telling; how many ended by themselves and not well. */
static unsigned reap_in_silence(void)
{
	unsigned failed = 0;
	int status;
	while (waitpid(-1, &status, 0) > 0)
		failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
	return failed;
}

static bool says(int rc, const char *words)
{
	bool good = strstr(tern_strerror(rc), words) != NULL;
	if (!good)
		printf("    %d: %s\n", rc, tern_strerror(rc));
	return good;
}

static uint32_t victim;

static void one_dies(void)
{
	char name[32];
	tern *t = watching_open();
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == victim)
		raise(SIGKILL);
	snprintf(name, sizeof name, "rank %u is dead", victim);
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, name));
	rc = tern_barrier(t);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, name));
	atomic_fetch_add(&shared[1], 1);
	while (atomic_load(&shared[1]) < tern_size(t) - 1) /* until then, nobody closes */
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(whichever_rank_dies_the_others_waits_end_with_its_name)
{
	for (victim = 0; victim < 4; victim++) {
		crew_start_watching(4, one_dies);
		CHECK_IS(reap_in_silence(), 0);
		crew_end();
	}
}

/* -- Many at once ------------------------------------------------------------------------- */

enum { CROWD = 7 };

static void learn_of_every_death(void)
{
	tern *t = watching_open();
	atomic_fetch_add(&shared[1], 1);
	while (!atomic_load(&shared[3]))
		tern_poll(t);
	for (uint32_t r = 0; r < CROWD; r++)
		while (atomic_load(&shared[2]) >> r & 1 && tern_request(t, r, ASK) != -EOWNERDEAD)
			tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

/* Kills all but one, in any order, some at the same moment. */
static void kill_all_but(struct chance *c, uint32_t spared)
{
	uint32_t left = CROWD - 1;
	while (left) {
		uint32_t r = chance_below(c, CROWD);
		if (r == spared || atomic_load(&shared[2]) >> r & 1)
			continue;
		kill(crew_pid[r], SIGKILL);
		atomic_fetch_or(&shared[2], UINT64_C(1) << r);
		left--;
		if (chance_one_in(c, 2))
			crew_nap(chance_below(c, 2000000));
	}
	atomic_store(&shared[3], 1);
}

TEST(in_whatever_order_the_others_die_the_last_one_knows_of_each)
{
	struct chance c = { check_seed() };
	for (unsigned round = 0; round < (CHECK_SLOWER > 1 ? 5 : 25); round++) {
		crew_start_watching(CROWD, learn_of_every_death);
		while (atomic_load(&shared[1]) < CROWD)
			crew_nap(1000000);
		kill_all_but(&c, chance_below(&c, CROWD));
		CHECK_IS(reap_in_silence(), 0);
		crew_end();
	}
}

/* -- Ends that are no deaths --------------------------------------------------------------- */

static void see_gone(tern *t, uint32_t rank)
{
	while (job_rank_state(&t->own->group->job, rank) != RANK_GONE)
		tern_poll(t);
	CHECK_IS(tern_request(t, rank, ASK), -ESHUTDOWN);
}

/* Backwards, so that the last rank's watcher comes over two of whom others have told. */
static void leave_one_by_one(void)
{
	tern *t = watching_open();
	uint32_t me = tern_rank(t), last = tern_size(t) - 1;
	CHECK_IS(tern_barrier(t), 0);
	if (me + 1 < last)
		see_gone(t, me + 1);
	if (me == last)
		for (int look = 0; look < 3; look++, crew_nap(50000000))
			for (uint32_t r = 0; r < last; r++)
				see_gone(t, r);
	CHECK_IS(tern_close(t), 0);
}

TEST(whoever_closes_and_ends_is_gone_and_not_dead)
{
	crew_start_watching(4, leave_one_by_one);
	CHECK_IS(reap_in_silence(), 0);
	crew_end();
}

static void open_again_and_again(void)
{
	tern *t = watching_open();
	for (int session = 0; session < 5; session++) {
		uint32_t next = (tern_rank(t) + 1) % tern_size(t);
		CHECK_IS(tern_request(t, next, ASK), 0);
		CHECK_IS(tern_wait(t, &answers, 1), 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(tern_close(t), 0);
		t = crew_open();
		CHECK_IS(tern_on(t, ASK, answer), 0);
		CHECK_IS(tern_on(t, TELL, take), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(sessions_follow_each_other_under_watch)
{
	crew_start_watching(4, open_again_and_again);
	CHECK_IS(reap_in_silence(), 0);
	crew_end();
}

/* A watcher that has closed goes on watching. */
static void close_and_stay(void)
{
	tern *t = watching_open();
	uint32_t me = tern_rank(t);
	CHECK_IS(tern_barrier(t), 0);
	if (me == 1) { /* the one before the victim */
		CHECK_IS(tern_close(t), 0);
		while (!atomic_load(&shared[1]))
			crew_nap(1000000);
		return;
	}
	if (me == 2)
		raise(SIGKILL);
	CHECK_IS(tern_forgive(t, 1), 0);
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, "rank 2"));
	atomic_store(&shared[1], 1);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_has_closed_still_tells_of_its_neighbour)
{
	crew_start_watching(3, close_and_stay);
	CHECK_IS(reap_in_silence(), 0);
	crew_end();
}
