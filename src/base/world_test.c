/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another world takes over time and waiting: of the library's own calls, and of endpoints that are
 * opened in it.
 */
#include <errno.h>
#include <tern/tern.h>

#include "base/clock.h"
#include "base/world.h"
#include "core/wait.h"
#include "lib/check.h"

enum { ASK, TELL };

/* Time stands still, but for whoever waits. */
static uint64_t now = 1;

static uint64_t still_now(void)
{
	return now;
}

static uint64_t yields, yield_ns = 1000, naps, sleeps;

static void still_yield(void)
{
	now += yield_ns;
	yields++;
}

static void still_nap(uint64_t ns)
{
	now += ns;
	naps++;
}

static void still_sleep(const struct sleep *s, uint64_t ns)
{
	sleeps++;
	now = s->until && s->until < now + ns ? s->until : now + ns;
}

static void still_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	now += atomic_load(word) == value ? ns : 0;
}

static int still_poll(struct pollfd *fd, unsigned n, int ms)
{
	(void)fd, (void)n;
	now += (uint64_t)ms * 1000000;
	return 0;
}

static const struct world still = { .now = still_now,
				    .yield = still_yield,
				    .nap = still_nap,
				    .sleep = still_sleep,
				    .wait = still_wait,
				    .poll = still_poll };

TEST(the_world_that_is_used_has_the_clock)
{
	CHECK(world_used() == &world_real);
	CHECK(clock_ns() > 0);
	world_use(&still);
	uint64_t before = clock_ns();
	CHECK_IS(clock_ns(), before);
	world_nap(UINT64_C(3600000000000));
	CHECK_IS(clock_ns() - before, UINT64_C(3600000000000));
	world_poll(NULL, 0, 1000);
	CHECK_IS(clock_ns() - before, UINT64_C(3601000000000));
	world_use(&world_real);
}

static uint64_t answers;

static void on_ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void on_answer(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	answers++;
}

/* A wait of a rank that nobody answers takes as long as it says, in no time. */
TEST(endpoints_wait_in_the_world_that_they_were_opened_in)
{
	tern *t[2];
	world_use(&still);
	REQUIRE(tern_open_local(2, t) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_on(t[i], ASK, on_ask), 0);
		CHECK_IS(tern_on(t[i], TELL, on_answer), 0);
	}
	uint64_t before = now;
	CHECK_IS(tern_request(t[0], 1, ASK), 0);
	while (!answers)
		CHECK(tern_poll(t[1]) + tern_poll(t[0]) >= 0);
	CHECK_IS(now, before);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
	world_use(&world_real);
}

/* How many of the first steps of so many waits are yields, each of which takes `ns`. */
static uint64_t yields_of(uint64_t ns, unsigned waits)
{
	tern *t[2];
	world_use(&still);
	REQUIRE(tern_open_local(2, t) == 0);
	yield_ns = ns;
	yields = 0;
	for (unsigned i = 0; i < waits; i++)
		wait_step(t[0]->own, &(struct wait){ .call = "a test" });
	uint64_t count = yields;
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
	world_use(&world_real);
	return count;
}

TEST(waits_rest_at_once_where_a_yield_gives_the_core_to_a_program_that_computes)
{
	CHECK_IS(yields_of(1000, 100), 100);
	CHECK_IS(yields_of(10000000, 100), 2); /* the third is far away */
}

static bool never(struct endpoint *e, void *arg)
{
	(void)e, (void)arg;
	return false;
}

/* What a collective call waits for rings only who has said so, in `stop`, before it sleeps. */
static int sleeps_when_asked;

static int ask(struct endpoint *e, struct wait *w)
{
	(void)e;
	if (w->since && sleeps_when_asked < 0)
		sleeps_when_asked = (int)sleeps;
	return w->since && naps + sleeps ? -ETIMEDOUT : 0;
}

TEST(a_wait_beside_programs_that_compute_sleeps_without_a_nap_once_its_stop_was_asked)
{
	tern *t[1];
	world_use(&still);
	REQUIRE(tern_open_local(1, t) == 0);
	yield_ns = 10000000;
	for (int i = 0; i < 2; i++)
		wait_step(t[0]->own, &(struct wait){ .call = "a test" });
	naps = sleeps = 0;
	sleeps_when_asked = -1;
	struct wait w = { .call = "a test", .stop = ask };
	CHECK_IS(wait_until(t[0]->own, never, NULL, &w), -ETIMEDOUT);
	CHECK_IS(naps, 0);
	CHECK_IS(sleeps, 1);
	CHECK_IS(sleeps_when_asked, 0);
	CHECK_IS(tern_close(t[0]), 0);
	world_use(&world_real);
}

/* -- Sleeps of the real world. One that is too long hangs the test; none may be too short. -- */

enum { SHORT_NS = 3000000 };
#define FOREVER_NS (UINT64_C(100000) * 1000000000)

static uint64_t slept(const struct sleep *s, uint64_t ns)
{
	uint64_t began = world_real.now();
	world_real.sleep(s, ns);
	return world_real.now() - began;
}

TEST(a_sleep_lasts_its_time_unless_a_bell_rings_or_a_descriptor_can_be_read)
{
	static _Atomic uint64_t bell[2] = { BELL_ASLEEP, BELL_ASLEEP };
	int end[2], other[2];
	REQUIRE(pipe(end) == 0 && pipe(other) == 0);
	struct sleep s = { .bell = { &bell[0], &bell[1] }, .bells = 2, .says = BELL_ASLEEP };
	for (s.fds = 0; s.fds < 2; s.fds++) {
		s.fd[0] = end[0];
		s.bells = 1 + s.fds; /* an old kernel waits for one word only */
		s.ports = 2 * s.fds;
		CHECK(slept(&s, SHORT_NS) >= SHORT_NS);
		s.until = world_real.now() + SHORT_NS;
		CHECK(slept(&s, FOREVER_NS) > 0 && world_real.now() >= s.until);
		slept(&s, FOREVER_NS); /* that time is over */
		s.until = 0;
		for (unsigned i = 0; i < s.bells; i++) {
			bell[i] += BELL_RUNG;
			slept(&s, FOREVER_NS);
			bell[i] -= BELL_RUNG;
		}
	}
	s.fds = 1;
	s.ports = 1; /* the other bell has no descriptor: only a nap */
	slept(&s, FOREVER_NS);
	s.ports = 2;
	s.wake = &other[0];
	CHECK(slept(&s, SHORT_NS) >= SHORT_NS);
	REQUIRE(write(other[1], "", 1) == 1);
	slept(&s, FOREVER_NS);
	s.wake = NULL;
	REQUIRE(write(end[1], "", 1) == 1);
	slept(&s, FOREVER_NS);
}

TEST(a_nap_and_a_wait_for_a_word_last_their_time)
{
	static _Atomic uint32_t word = 5;
	uint64_t began = clock_ns();
	world_nap(SHORT_NS);
	CHECK(clock_ns() - began >= SHORT_NS);
	began = clock_ns();
	world_wait(&word, 5, SHORT_NS);
	CHECK(clock_ns() - began >= SHORT_NS);
	world_wait(&word, 6, FOREVER_NS);
	struct pollfd none = { .fd = -1 };
	began = clock_ns();
	CHECK_IS(world_poll(&none, 1, 3), 0);
	CHECK(clock_ns() - began >= SHORT_NS);
}
