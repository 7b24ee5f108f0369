/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Launched ranks that open and close again and again: each time is a session of its own. */
#include "lib/chance.h"
#include "lib/ranks.h"

enum { ASK, TELL };

static _Atomic uint64_t told;
static uint64_t session; /* that this process is in */
static unsigned sessions;
static uint64_t seed;

static void answer(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_word(m, 0), session); /* nothing of an older session */
	CHECK_IS(tern_reply(t, m, TELL, session), 0);
}

static void take(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_word(m, 0), session);
	tern_signal(t, &told, 1);
}

static void one_session(struct chance *c)
{
	tern *t = ranks_open();
	atomic_store(&told, 0); /* the strays of the session before do not count */
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	for (uint32_t r = 0; r < tern_size(t); r++) {
		CHECK_IS(tern_request(t, r, ASK, session), 0);
		CHECK_IS(tern_request_data(t, r, ASK, "some bytes", 11, session), 0);
	}
	CHECK_IS(tern_wait(t, &told, 2 * tern_size(t)), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (chance_one_in(c, 4)) /* what the others do not handle any more is dropped */
		(void)!tern_request(t, (tern_rank(t) + 1) % tern_size(t), TELL, session);
	if (chance_one_in(c, 4))
		ranks_nap(chance_below(c, 1000000));
	CHECK_IS(tern_close(t), 0);
}

static void open_again_and_again(void)
{
	struct chance c = { seed + (uint64_t)atoi(getenv("TERN_RANK")) };
	for (session = 0; session < sessions; session++)
		one_session(&c);
}

TEST(ranks_open_and_close_together_a_hundred_times)
{
	seed = check_seed();
	sessions = 100;
	ranks_run(4, open_again_and_again);
}

TEST(many_ranks_open_and_close_together)
{
	seed = check_seed();
	sessions = 5;
	ranks_run(32, open_again_and_again);
}

static void open_twice(void)
{
	tern *t = ranks_open(), *second = NULL;
	int rc = tern_open(&second, NULL);
	CHECK_IS(rc, -EBUSY);
	CHECK(strstr(tern_strerror(rc), getenv("TERN_RANK")) != NULL);
	CHECK(second == NULL);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_has_one_endpoint_at_a_time)
{
	ranks_run(2, open_twice);
}

static void fail_then_open(void)
{
	tern *t = NULL;
	setenv("TERN_SPIN", "lots", 1);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	CHECK(t == NULL);
	unsetenv("TERN_SPIN");
	t = ranks_open();
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(an_open_that_failed_can_be_repeated)
{
	ranks_run(2, fail_then_open);
}

static void local_beside_launched(void)
{
	tern *t = ranks_open(), *local[2];
	REQUIRE(tern_open_local(2, local) == 0);
	CHECK_IS(tern_size(local[1]), 2);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(local[0]), 0);
	CHECK_IS(tern_close(local[1]), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_launched_rank_may_have_a_job_of_its_own_besides)
{
	ranks_run(3, local_beside_launched);
}

static void wrong_rank(void)
{
	tern *t = NULL;
	ranks_setenv("TERN_RANK", 7);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	ranks_setenv("TERN_RANK", 0);
	ranks_setenv("TERN_SIZE", 7);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	ranks_setenv("TERN_JOB_FD", 700);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "700") != NULL);
	unsetenv("TERN_RANK");
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	CHECK(t == NULL);
}

TEST(an_environment_that_does_not_fit_the_job_is_refused)
{
	ranks_run(1, wrong_rank);
}
