/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 180 */
/*
 * Channels between ranks that run at the same time, as threads and as processes: random mixes
 * through one, many into one, chains, lists. What is put follows from a seed that both sides
 * know, so each checks alone.
 */
#include <tern/chan.h>

#include "chan/chan.h"
#include "lib/chance.h"
#include "lib/far.h"
#include "lib/ranks.h"

enum { MOST_BLOCK = 30000, NAME = 77 };

static uint64_t seed;
static unsigned steps;

static void prepare(tern *t)
{
	(void)t;
}

/* -- A random mix, as its sender and its receiver see it ----------------------------------- */

enum step { PUT8, PUT4, PUT16, BLOCK, END, CALL, STEPS };

static enum step step_of(struct chance *c)
{
	const enum step often[] = { PUT8, PUT8, PUT8, PUT8, PUT4, PUT16, END, CALL, BLOCK };
	return often[chance_below(c, sizeof often / sizeof *often)];
}

static size_t block_len(struct chance *c)
{
	return chance_one_in(c, 20) ? chance_below(c, MOST_BLOCK) : chance_below(c, 300);
}

static void loiter(struct chance *c)
{
	if (chance_one_in(c, 3000))
		ranks_nap(chance_below(c, 2000000));
}

/* A procedure with one parameter: the number it has in the mix. */
static uint64_t called;

static void on_call(tern *t, tern_in *i, void *arg)
{
	uint64_t value = 0;
	(void)t, (void)arg;
	CHECK_IS(tern_chan_get(i, &value, sizeof value), 0);
	called = value;
}

static int send_step(tern_out *o, struct chance *c, unsigned char *block)
{
	enum step step = step_of(c);
	uint64_t word = chance_next(c), two[2] = { word, ~word };
	size_t len = block_len(c);
	switch (step) {
	case PUT8:
		return tern_chan_put(o, &word, sizeof word);
	case PUT4:
		return tern_chan_put(o, &(uint32_t){ (uint32_t)word }, sizeof(uint32_t));
	case PUT16:
		return tern_chan_put(o, two, 16);
	case BLOCK:
		chance_fill(block, len, word);
		return tern_chan_put(o, block, len);
	case END:
		return tern_chan_end(o);
	default:
		return tern_chan_call(o, 9) ? -EINVAL : tern_chan_put(o, &word, sizeof word);
	}
}

/* Gets the next thing and checks it; a code, or 1 if it was another. */
static int receive_step(tern_in *i, struct chance *c, unsigned char *block)
{
	enum step step = step_of(c);
	uint64_t word = chance_next(c), got[2] = { 0, 0 };
	size_t len = block_len(c);
	uint32_t four = 0;
	int rc;
	switch (step) {
	case PUT8:
		rc = tern_chan_get(i, got, sizeof(uint64_t));
		return rc ? rc : got[0] != word;
	case PUT4:
		rc = tern_chan_get(i, &four, sizeof four);
		return rc ? rc : four != (uint32_t)word;
	case PUT16:
		rc = tern_chan_get(i, got, 16);
		return rc ? rc : got[0] != word || got[1] != ~word;
	case BLOCK:
		rc = tern_chan_get(i, block, len);
		return rc ? rc : !chance_filled(block, len, word);
	case END:
		rc = tern_chan_get(i, got, sizeof(uint64_t));
		return rc == -ENODATA ? tern_chan_next(i) : rc ? rc : 1;
	default:
		rc = tern_chan_run(i);
		return rc ? rc : called != word;
	}
}

static void send_mix(tern *t, uint32_t to, uint64_t from_seed)
{
	struct chance c = { from_seed }, own = { ~from_seed };
	unsigned char *block = malloc(MOST_BLOCK);
	tern_chan *channel;
	REQUIRE(block && tern_chan_to(t, to, NAME, &channel) == 0);
	tern_out out = tern_chan_out(channel);
	for (unsigned i = 0; i < steps; i++) {
		REQUIRE(CHECK_IS(send_step(&out, &c, block), 0));
		loiter(&own);
	}
	CHECK_IS(tern_chan_close(channel), 0);
	free(block);
}

static void receive_mix(tern *t, uint32_t from, uint64_t from_seed)
{
	struct chance c = { from_seed }, own = { from_seed + 1 };
	unsigned char *block = malloc(MOST_BLOCK);
	tern_chan *channel;
	uint64_t value;
	int rc = tern_chan_from(t, from, NAME, &channel);
	REQUIRE(block && CHECK_IS(rc, 0));
	tern_in in = tern_chan_in(channel);
	for (unsigned i = 0; i < steps; i++) {
		rc = receive_step(&in, &c, block);
		if (rc)
			printf("    step %u: %s\n", i,
			       rc > 0 ? "another value" : tern_strerror(rc));
		REQUIRE(rc == 0);
		loiter(&own);
	}
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EPIPE);
	CHECK_IS(tern_chan_close(channel), 0);
	free(block);
}

/* Even ranks send to the next one. */
static void mix_in_pairs(tern *t)
{
	uint32_t me = tern_rank(t);
	CHECK_IS(tern_chan_on(t, 9, on_call, NULL), 0);
	if (me % 2 == 0)
		send_mix(t, me + 1, seed + me);
	else
		receive_mix(t, me - 1, seed + me - 1);
	CHECK_IS(tern_barrier(t), 0);
}

TEST(a_random_mix_comes_out_as_it_was_put_between_threads)
{
	seed = check_seed();
	steps = check_scaled(200000);
	ranks_run_threads(2, prepare, mix_in_pairs);
}

static void mix_of_a_process(void)
{
	atomic_store(&check_failures, 0);
	for (int session = 0; session < 2;
	     session++) { /* the next one finds nothing of the one before */
		tern *t = ranks_open();
		seed += (uint64_t)session;
		mix_in_pairs(t);
		CHECK_IS(tern_close(t), 0);
	}
}

TEST(a_random_mix_comes_out_as_it_was_put_between_processes_and_again_in_the_next_session)
{
	seed = check_seed();
	steps = check_scaled(100000);
	ranks_run(2, mix_of_a_process);
}

TEST(more_ranks_than_cores_get_on)
{
	seed = check_seed();
	steps = check_scaled(5000);
	ranks_run(12, mix_of_a_process);
}

/* -- Waiting --------------------------------------------------------------------------------- */

enum { WORDS = 20000 };

static void put_words(tern *t, uint32_t to, uint64_t first, uint64_t n)
{
	tern_chan *channel;
	REQUIRE(tern_chan_to(t, to, NAME, &channel) == 0);
	tern_out out = tern_chan_out(channel);
	for (uint64_t i = 0; i < n; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ first + i }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_close(channel), 0);
}

/* The sender fills the ring long before the receiver opens its end, and the other way round. */
static void late(tern *t)
{
	uint32_t me = tern_rank(t);
	for (int round = 0; round < 2; round++) {
		tern_chan *channel;
		if ((int)me != round)
			ranks_nap(20000000);
		if (me == 0) {
			put_words(t, 1, 5, WORDS);
			continue;
		}
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		uint64_t value = 0, n = 0;
		while (tern_chan_get(&in, &value, sizeof value) == 0)
			CHECK_IS(value, 5 + n), n++;
		CHECK_IS(n, WORDS);
		CHECK_IS(tern_chan_close(channel), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
}

TEST(a_put_without_room_waits_for_the_reader_and_a_get_for_the_sender)
{
	ranks_run_threads(2, prepare, late);
}

/* A put that waits serves messages: the reader reads only when its request has been answered. */
static _Atomic uint64_t answered;

static void on_question(tern *t, const tern_msg *m)
{
	tern_reply(t, m, 2);
}

static void on_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answered, 1);
}

static void prepare_questions(tern *t)
{
	CHECK_IS(tern_on(t, 1, on_question), 0);
	CHECK_IS(tern_on(t, 2, on_answer), 0);
}

static void ask_before_reading(tern *t)
{
	if (tern_rank(t) == 0) {
		put_words(t, 1, 0, WORDS);
	} else {
		tern_chan *channel;
		uint64_t value = 0;
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		for (uint64_t i = 0; i < WORDS; i++) {
			if (i % 4000 == 0) {
				ranks_nap(3000000);
				CHECK_IS(tern_request(t, 0, 1), 0);
				CHECK_IS(tern_wait(t, &answered, 1), 0);
			}
			CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
			CHECK_IS(value, i);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
}

TEST(a_put_that_waits_serves_messages)
{
	ranks_run_threads(2, prepare_questions, ask_before_reading);
}

/* -- Many into one, chains ----------------------------------------------------------------- */

static void into_one(tern *t)
{
	uint32_t me = tern_rank(t), n = tern_size(t) - 1;
	tern_chan *channel[8];
	tern_in in[8], *end[8];
	uint64_t next[8] = { 0 };
	unsigned turn = 0, open = n;
	if (me < n)
		put_words(t, n, (uint64_t)me << 32, check_scaled(WORDS));
	for (uint32_t r = 0; me == n && r < n; r++) {
		REQUIRE(tern_chan_from(t, r, NAME, &channel[r]) == 0);
		in[r] = tern_chan_in(channel[r]);
		end[r] = &in[r];
	}
	while (me == n && open) {
		uint64_t value = 0;
		int which = tern_chan_any(end, open, &turn, 0);
		REQUIRE(which >= 0 && (unsigned)which < open);
		if (tern_chan_peek(end[which]) == TERN_CHAN_CLOSED) {
			end[which] = end[--open];
			continue;
		}
		CHECK_IS(tern_chan_get(end[which], &value, sizeof value), 0);
		CHECK_IS(value & UINT32_MAX, next[value >> 32]++);
		CHECK(&in[value >> 32] == end[which]);
	}
	for (uint32_t r = 0; me == n && r < n; r++)
		CHECK_IS(next[r], check_scaled(WORDS));
	CHECK_IS(tern_barrier(t), 0);
}

TEST(many_senders_are_kept_apart_and_all_are_served)
{
	ranks_run_threads(5, prepare, into_one);
}

/* Each rank adds one and passes on, the last to the first. */
static void chain(tern *t)
{
	uint32_t me = tern_rank(t), n = tern_size(t);
	uint64_t value = 0, last = check_scaled(WORDS);
	tern_chan *to, *from;
	REQUIRE(tern_chan_to(t, (me + 1) % n, NAME, &to) == 0);
	REQUIRE(tern_chan_from(t, (me + n - 1) % n, NAME, &from) == 0);
	tern_out out = tern_chan_out(to);
	tern_in in = tern_chan_in(from);
	for (uint64_t i = 0; i < last; i++) {
		if (me == 0)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ i * n }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0);
		CHECK_IS(value, i * n + (me ? me : n) - 1);
		if (me != 0)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ value + 1 }, sizeof(uint64_t)),
				 0);
	}
	CHECK_IS(tern_chan_close(to), 0);
	CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EPIPE);
	CHECK_IS(tern_barrier(t), 0);
}

TEST(a_chain_of_ranks_passes_values_on)
{
	ranks_run_threads(4, prepare, chain);
}

/* -- Lists --------------------------------------------------------------------------------- */

static void to_all(tern *t)
{
	uint32_t me = tern_rank(t), n = tern_size(t), list[64];
	struct chance c = { seed + me };
	uint64_t value = 0, words = check_scaled(WORDS);
	tern_chan *channel;
	for (uint32_t r = 1; r < n; r++)
		list[r - 1] = r;
	if (me == 0) {
		REQUIRE(tern_chan_to_list(t, list, n - 1, NAME, &channel) == 0);
		tern_out out = tern_chan_out(channel);
		for (uint64_t i = 0; i < words; i++)
			CHECK_IS(i % 1000 == 999
					 ? tern_chan_end(&out)
					 : tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)),
				 0);
	} else {
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		for (uint64_t i = 0; i < words; i++) {
			if (i % 1000 == 999) {
				CHECK_IS(tern_chan_next(&in), 0);
				continue;
			}
			REQUIRE(CHECK_IS(tern_chan_get(&in, &value, sizeof value), 0) &&
				CHECK_IS(value, i));
			if (me % 5 == 1)
				loiter(&c);
		}
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), -EPIPE);
	}
	CHECK_IS(tern_chan_close(channel), 0);
	CHECK_IS(tern_barrier(t), 0);
}

static void to_all_of_a_process(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	to_all(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_list_of_processes_gets_everything_however_slow_some_are)
{
	seed = check_seed();
	const uint32_t sizes[] = { 2, 4, 21, 41 };
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		ranks_run(sizes[i], to_all_of_a_process);
}

TEST(a_list_of_threads_gets_everything)
{
	seed = check_seed();
	ranks_run_threads(20, prepare, to_all);
}

/* -- Without memory in common -------------------------------------------------------------- */

static void lose_some(void)
{
	char fault[80];
	snprintf(fault, sizeof fault, "drop=0.05,reorder=0.1,seed=%llu",
		 (unsigned long long)seed % 1000000);
	far_use(fault);
}

TEST(a_random_mix_comes_out_as_it_was_put_over_a_network_that_loses_and_reorders)
{
	seed = check_seed();
	steps = check_scaled(5000);
	lose_some();
	ranks_run(4, mix_of_a_process);
}

TEST(a_list_gets_everything_over_a_network_that_loses_and_reorders)
{
	seed = check_seed();
	lose_some();
	ranks_run(4, to_all_of_a_process);
}

/* A block longer than the ring, of which nothing was put before. */
static void one_block(void)
{
	enum { BYTES = 200000 };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_chan *channel;
	unsigned char *block = malloc(BYTES);
	REQUIRE(block);
	if (tern_rank(t) == 0) {
		chance_fill(block, BYTES, 3);
		REQUIRE(tern_chan_to(t, 1, NAME, &channel) == 0);
		tern_out out = tern_chan_out(channel);
		CHECK_IS(tern_chan_put(&out, block, BYTES), 0);
	} else {
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		CHECK_IS(tern_chan_get(&in, block, BYTES), 0);
		CHECK(chance_filled(block, BYTES, 3));
	}
	free(block);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_block_longer_than_a_channel_goes_over_a_network)
{
	far_use(NULL);
	ranks_run(2, one_block);
}

/* As if much had just been sent: what is put next stays until the barrier. */
static void put_off(tern_chan *c)
{
	c->since = clock_ns() + (UINT64_C(1) << 40);
	c->burst = UINT32_MAX;
	c->pressed = c->leaf;
}

static void behind_a_barrier(void)
{
	enum { SOME = 500 };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_chan *channel;
	uint64_t value = 0;
	if (tern_rank(t) == 0) {
		REQUIRE(tern_chan_to(t, 1, NAME, &channel) == 0);
		tern_out out = tern_chan_out(channel);
		put_off(channel);
		for (uint64_t i = 0; i < SOME; i++)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_barrier(t), 0);
	} else {
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		CHECK_IS(tern_barrier(t), 0);
		for (uint64_t i = 0; i < SOME; i++)
			REQUIRE(CHECK_IS(tern_chan_ready(&in, 8), 0) &&
				CHECK_IS(tern_chan_get(&in, &value, 8), 0) && CHECK_IS(value, i));
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(what_was_put_before_a_barrier_is_there_behind_it_over_a_network_too)
{
	far_use(NULL);
	for (int i = 0; i < 20; i++)
		ranks_run(2, behind_a_barrier);
}
