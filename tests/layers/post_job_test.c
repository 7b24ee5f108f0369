/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * Gathered items among processes: random destinations, limits, answers, chains of handlers that
 * post, with few and many ranks, in every way of delivery, over shared memory and UDP with faults;
 * phases that end with a barrier or with tern_team_quiet(); and ranks that are killed.
 */
#include <tern/coll.h>
#include <tern/post.h>

#include "lib/chance.h"
#include "lib/ranks.h"

enum { TAKE, TAKE_MANY, ASK, ANSWER, WALK, PHASE, PHASE_WALK };

static uint64_t next_in[RANKS_AT_MOST], next_out[RANKS_AT_MOST], next_answer[RANKS_AT_MOST];
static _Atomic uint64_t came, answers, walked, early;
static uint64_t phase, items, seed, steps;

/* Numbered by sender and receiver. */
static void take(tern *t, const tern_msg *m)
{
	(void)t;
	if (tern_msg_word(m, 0) != next_in[tern_msg_src(m)]++)
		CHECK(!"items of one rank come in order");
	atomic_fetch_add(&came, 1);
}

/* The same of several items in one call. */
static void take_many(tern *t, const tern_msg *m, const uint64_t *number, size_t count)
{
	(void)t;
	for (size_t i = 0; i < count; i++)
		if (number[i] != next_in[tern_msg_src(m)]++)
			CHECK(!"items of one rank come in order");
	atomic_fetch_add(&came, count);
}

static void ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, ANSWER, tern_msg_word(m, 0), tern_msg_word(m, 1)), 0);
}

static void answer(tern *t, const tern_msg *m)
{
	(void)t;
	uint32_t src = tern_msg_src(m);
	if (tern_msg_word(m, 0) != next_answer[src]++ || tern_msg_word(m, 1) != src)
		CHECK(!"answers come in order");
	atomic_fetch_add(&answers, 1);
}

/* Goes on to a random rank as often as its word says, and then ends. */
static void walk(tern *t, const tern_msg *m)
{
	uint64_t left = tern_msg_word(m, 0), dice = tern_msg_word(m, 1);
	atomic_fetch_add(&walked, 1);
	if (!left)
		return;
	dice = chance_of(dice, left);
	CHECK_IS(tern_post(t, (uint32_t)(dice % tern_size(t)), WALK, left - 1, dice), 0);
}

static void note_phase(tern *t, const tern_msg *m)
{
	(void)t;
	if (tern_msg_word(m, 0) != phase)
		atomic_fetch_add(&early, 1);
	atomic_fetch_add(&came, 1);
}

static void phase_walk(tern *t, const tern_msg *m);

static tern *rank_open(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	REQUIRE(tern_on(t, TAKE, take) == 0 && tern_on(t, ASK, ask) == 0 &&
		tern_on(t, ANSWER, answer) == 0 && tern_on(t, WALK, walk) == 0 &&
		tern_on(t, PHASE, note_phase) == 0 && tern_on(t, PHASE_WALK, phase_walk) == 0 &&
		tern_post_on(t, TAKE_MANY, take_many, NULL) == 0);
	seed += tern_rank(t);
	return t;
}

static uint32_t someone(const tern *t, uint64_t i)
{
	return (uint32_t)(chance_of(seed, i) % tern_size(t));
}

static uint64_t sum_of(tern_team *team, uint64_t mine)
{
	uint64_t sum = 0;
	CHECK_IS(tern_team_allreduce(team, &mine, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	return sum;
}

/* -- Everything that was posted is handled, and in order --------------------------------------- */

static void scatter(tern *t, tern_team *team)
{
	CHECK_IS(tern_post_limit(t, tern_rank(t) % 2 ? 1024 : 0), 0);
	for (uint64_t i = 0; i < items; i++) {
		uint32_t to = someone(t, i);
		unsigned id = i / 32 % 3 ? TAKE_MANY : TAKE;
		REQUIRE(tern_post(t, to, id, next_out[to]++) == 0);
	}
	CHECK_IS(tern_team_quiet(team), 0);
	CHECK_IS(tern_post_limit(t, 0), 0);
	CHECK_IS(sum_of(team, atomic_load(&came)), items * tern_size(t));
}

static void question(tern *t, tern_team *team)
{
	uint64_t asked[RANKS_AT_MOST] = { 0 };
	for (uint64_t i = 0; i < items; i++) {
		uint32_t to = someone(t, i);
		REQUIRE(tern_post(t, to, ASK, asked[to]++, to, 0, 0) == 0);
	}
	CHECK_IS(tern_team_quiet(team), 0);
	CHECK_IS(atomic_load(&answers), items);
}

/* Handlers post, whose handlers post: nothing runs when the call has returned. */
static void walks(tern *t, tern_team *team)
{
	for (uint64_t i = 0; i < items / 10; i++)
		REQUIRE(tern_post(t, someone(t, i), WALK, steps, seed + i) == 0);
	CHECK_IS(tern_team_quiet(team), 0);
	uint64_t now = atomic_load(&walked);
	CHECK_IS(sum_of(team, now), items / 10 * (steps + 1) * tern_size(t));
	CHECK_IS(atomic_load(&walked), now);
}

/*
 * One item that goes on and on: it lies in some open buffer, or in a ring, whenever a rank is asked
 * whether it is done.
 */
static void lone_walk(tern *t, tern_team *team)
{
	uint64_t before = atomic_load(&walked), length = steps * 20;
	CHECK_IS(tern_barrier(t), 0); /* all have looked */
	if (tern_rank(t) == 0)
		REQUIRE(tern_post(t, someone(t, 0), WALK, length, seed) == 0);
	CHECK_IS(tern_team_quiet(team), 0);
	CHECK_IS(sum_of(team, atomic_load(&walked) - before), length + 1);
}

/* Handlers post in phases that end with tern_team_quiet(): no item is handled in a later one. */
static void phase_walk(tern *t, const tern_msg *m)
{
	uint64_t left = tern_msg_word(m, 1);
	note_phase(t, m);
	if (left)
		CHECK_IS(tern_post(t, (tern_rank(t) + 1) % tern_size(t), PHASE_WALK,
				   tern_msg_word(m, 0), left - 1),
			 0);
}

static void quiet_phases(tern *t, tern_team *team)
{
	uint64_t before = atomic_load(&came), each = items / 200 + 1;
	CHECK_IS(tern_barrier(t), 0); /* all have looked */
	for (phase = 0; phase < 5; phase++) {
		CHECK_IS(tern_barrier(t), 0); /* all ranks have the number */
		for (uint64_t i = 0; i < each; i++)
			REQUIRE(tern_post(t, someone(t, i), PHASE_WALK, phase, 3) == 0);
		CHECK_IS(tern_team_quiet(team), 0);
	}
	CHECK_IS(sum_of(team, atomic_load(&came) - before), 5 * 4 * each * tern_size(t));
	CHECK_IS(atomic_load(&early), 0);
}

/* Items of a phase are handled before its barrier ends. */
static void phases(tern *t)
{
	uint64_t before = atomic_load(&came), each = items / 100 + 1;
	for (phase = 0; phase < 20; phase++) {
		CHECK_IS(tern_barrier(t), 0); /* all ranks have the number */
		for (uint64_t i = 0; i < each; i++)
			REQUIRE(tern_post(t, (tern_rank(t) + 1) % tern_size(t), PHASE, phase) == 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(atomic_load(&came), before += each);
	}
	CHECK_IS(atomic_load(&early), 0);
}

static void job_rank(void)
{
	tern_team *team;
	tern *t = rank_open();
	REQUIRE(tern_team_all(t, &team) == 0);
	scatter(t, team);
	question(t, team);
	walks(t, team);
	lone_walk(t, team);
	phases(t);
	quiet_phases(t, team);
	CHECK_IS(tern_team_free(team), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_job(uint32_t ranks, const char *net, const char *fault, const char *delivery,
		    unsigned n)
{
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "38", 1);
	if (net)
		setenv("TERN_NET", net, 1);
	if (fault)
		setenv("TERN_FAULT", fault, 1);
	items = check_scaled(n);
	steps = 20;
	seed = check_seed();
	ranks_run(ranks, job_rank);
	unsetenv("TERN_FAULT");
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

TEST(two_ranks_that_poll)
{
	try_job(2, NULL, NULL, "poll", 200000);
}

TEST(eight_ranks_that_poll)
{
	try_job(8, NULL, NULL, "poll", 50000);
}

TEST(sixty_four_ranks_that_poll)
{
	try_job(64, NULL, NULL, "poll", 5000);
}

TEST(by_thread)
{
	try_job(2, NULL, NULL, "thread", 50000);
	try_job(5, NULL, NULL, "thread", 20000);
}

TEST(by_interrupt)
{
	try_job(2, NULL, NULL, "interrupt", 50000);
	try_job(5, NULL, NULL, "interrupt", 20000);
}

TEST(over_a_network)
{
	try_job(4, "udp", NULL, "poll", 20000);
	try_job(3, "udp", NULL, "thread", 10000);
}

TEST(over_a_network_that_loses)
{
	try_job(3, "udp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", "poll", 5000);
	try_job(3, "udp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=4", "interrupt",
		5000);
}

/* -- Ranks that are stopped and go on ---------------------------------------------------------- */

enum { STOPS = 40, STOPPED = 4 };

TEST(ranks_that_are_stopped_and_go_on_lose_nothing)
{
	setenv("TERN_DELIVERY", "poll", 1);
	items = check_scaled(100000);
	steps = 20;
	seed = check_seed();
	ranks_start(STOPPED, 0, job_rank);
	for (int i = 0; i < STOPS; i++) {
		kill(ranks_pid[i % STOPPED], SIGSTOP);
		ranks_nap(2000000);
		kill(ranks_pid[i % STOPPED], SIGCONT);
	}
	CHECK_IS(ranks_reap(STOPPED, 0), 0);
	ranks_end();
	unsetenv("TERN_DELIVERY");
}

/* -- A rank that dies -------------------------------------------------------------------------- */

enum { VICTIM = 2, CREW = 5 };

struct board {
	_Atomic uint64_t under_way, done;
};
static struct board *board;

static void nothing(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

/* Posts to everybody until the victim's name comes back; the others are reached after it. */
static void post_until_it_dies(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	int rc = 0;
	REQUIRE(tern_on(t, TAKE, nothing) == 0 && tern_on(t, ANSWER, answer) == 0 &&
		tern_on(t, ASK, ask) == 0);
	for (uint32_t r = 0; r < CREW; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	for (uint64_t i = 0; !rc; i++) {
		rc = tern_post(t, (uint32_t)(i % CREW), TAKE, i, i);
		if (i == 10000)
			atomic_fetch_add(&board->under_way, 1);
		if (i % 1000 == 0 && !rc)
			rc = tern_poll(t) < 0;
	}
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 2") != NULL);
	rc = tern_post_flush(t); /* what was gathered for it is dropped, and told once */
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	for (uint32_t r = 0; r < CREW; r++)
		if (r != VICTIM)
			CHECK_IS(tern_post(t, r, ASK, 0, r), 0);
	CHECK_IS(tern_post_flush(t), 0);
	while (atomic_load(&answers) < CREW - 1)
		CHECK(tern_poll(t) >= 0);
	atomic_fetch_add(&board->done, 1);
	while (atomic_load(&board->done) < CREW - 1)
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

static void try_death(const char *net)
{
	board = ranks_shared(sizeof *board);
	if (net)
		setenv("TERN_NET", net, 1);
	ranks_start(CREW, 0, post_until_it_dies);
	while (atomic_load(&board->under_way) < CREW)
		ranks_nap(100000);
	kill(ranks_pid[VICTIM], SIGKILL);
	CHECK_IS(ranks_reap(1, 0), 1);
	CHECK_IS(ranks_reap(CREW - 1, 0), 0);
	ranks_end();
	unsetenv("TERN_NET");
}

TEST(posts_to_a_rank_that_was_killed_fail_with_its_name)
{
	try_death(NULL);
	try_death("udp");
}

/* -- Memory that is spent -------------------------------------------------------------------- */

/* A rank's first look at another's heap takes a page. Nobody looks before it is spent. */
static void get_without_memory(void)
{
	tern *t = ranks_open();
	int rc = 0;
	CHECK_IS(tern_on(t, TAKE, nothing), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		while (!atomic_load(&board->under_way))
			ranks_nap(100000);
		for (uint64_t i = 0; i < 1000; i++)
			CHECK_IS(tern_post(t, 1, TAKE, i, i), 0);
		CHECK_IS(tern_post_flush(t), 0);
		atomic_store(&t->own->group->job.head->committed, t->own->group->job.head->budget);
		atomic_store(&board->done, 1);
		CHECK_IS(tern_close(t), 0);
		return;
	}
	atomic_store(&board->under_way, 1);
	while (!atomic_load(&board->done))
		ranks_nap(100000);
	for (int i = 0; rc >= 0 && i < 1000; i++)
		rc = tern_poll(t);
	CHECK_IS(rc, -ENOMEM);
	CHECK(strstr(tern_strerror(rc), "gathered items from rank 0"));
	CHECK(strstr(tern_strerror(rc), "TERN_MEMORY"));
	CHECK_IS(tern_close(t), 0);
}

TEST(items_lost_for_want_of_memory_are_told)
{
	board = ranks_shared(sizeof *board);
	ranks_run(2, get_without_memory);
}
