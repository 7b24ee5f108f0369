/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages, procedures, and what waits at an end. */
#include "lib/chan_pair.h"
#include "lib/chance.h"

enum { LINES = 3 * PIPE_LEAVES * LEAF_LINES };

TEST(a_message_ends_where_it_was_ended_and_the_next_one_begins_when_asked_for)
{
	uint64_t value = 77;
	pair_start();
	for (unsigned i = 0; i < LINES; i++) {
		unsigned words = i % 20;
		for (unsigned k = 0; k < words; k++)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ k }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_end(&out), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		for (unsigned k = 0; k < words; k++)
			CHECK_IS(pair_get(), k);
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), -ENODATA);
		CHECK_IS(try_get(&in, &value), -ENODATA); /* for as long as one likes */
		CHECK_IS(tern_chan_ready(&in, 1), -ENODATA);
		CHECK_IS(tern_chan_next(&in), 0);
		CHECK_IS(pair_get(), i);
	}
	pair_end();
}

TEST(next_passes_what_was_not_got_of_a_message_and_nothing_else)
{
	char block[2000] = "";
	pair_start();
	for (unsigned i = 0; i < 100; i++) {
		CHECK_IS(tern_chan_put(&out, block, i * 20), 0);
		CHECK_IS(tern_chan_end(&out), 0);
		CHECK_IS(tern_chan_end(&out), 0); /* a message of nothing */
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		if (i % 2)
			pair_get();
		CHECK_IS(tern_chan_next(&in), 0);
		chan_settle();
		CHECK_IS(tern_chan_peek(&in), TERN_CHAN_END);
		CHECK_IS(tern_chan_next(&in), 0);
		CHECK_IS(pair_get(), i);
	}
	pair_end();
}

TEST(a_block_longer_than_the_rest_of_the_message_is_refused)
{
	char block[64];
	uint64_t two[2];
	pair_start();
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	chan_settle();
	CHECK_IS(tern_chan_ready(&in, 9), -EMSGSIZE);
	CHECK(sentence_has(-EMSGSIZE, "channel 7 from rank 0"));
	CHECK_IS(tern_chan_get(&in, block, 9), -EMSGSIZE);
	CHECK_IS(pair_get(), 5); /* nothing was taken */
	CHECK_IS(tern_chan_get(&in, block, 9), -ENODATA);
	CHECK_IS(tern_chan_get(&in, two, 16), -ENODATA);
	pair_end();
}

/* -- Procedures ----------------------------------------------------------------------------- */

static uint64_t sum;

static void add(tern *t, tern_in *i, void *arg)
{
	uint64_t a = 0, b[2] = { 0, 0 };
	CHECK(t == local[1]);
	CHECK_IS(tern_chan_get(i, &a, sizeof a), 0);
	CHECK_IS(tern_chan_get(i, b, 16), 0);
	*(uint64_t *)arg += a + b[0] + b[1];
}

static void nested(tern *t, tern_in *i, void *arg)
{
	(void)t, (void)arg;
	CHECK_IS(tern_chan_run(i), 0);
	CHECK_IS(tern_chan_run(i), 0);
}

TEST(a_procedure_runs_with_its_parameters_when_the_receiver_says_so)
{
	uint64_t value;
	pair_start();
	for (int r = 0; r < 2; r++)
		CHECK_IS(tern_chan_on(local[r], TERN_PROCS_MAX - 1, add, &sum), 0);
	for (unsigned i = 0; i < LINES; i++) {
		uint64_t two[2] = { 1000, i };
		sum = 0;
		CHECK_IS(tern_chan_call(&out, TERN_PROCS_MAX - 1), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_put(&out, two, 16), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 3 }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_get(&in, &value, sizeof value), -ENOMSG);
		CHECK_IS(sum, 0);
		CHECK_IS(tern_chan_run(&in), 0);
		CHECK_IS(sum, 1000 + 2 * i);
		CHECK_IS(tern_chan_run(&in), -EPROTO);
		CHECK_IS(pair_get(), 3);
	}
	pair_end();
}

TEST(a_procedure_may_run_others)
{
	pair_start();
	for (int r = 0; r < 2; r++) {
		CHECK_IS(tern_chan_on(local[r], 0, add, &sum), 0);
		CHECK_IS(tern_chan_on(local[r], 1, nested, NULL), 0);
	}
	CHECK_IS(tern_chan_call(&out, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_IS(tern_chan_call(&out, 0), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_put(&out, ((uint64_t[]){ 2, 3 }), 16), 0);
	}
	CHECK_IS(tern_chan_run(&in), 0);
	CHECK_IS(sum, 12);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	pair_end();
}

TEST(a_procedure_that_is_not_known_is_an_error_on_either_side)
{
	pair_start();
	CHECK_IS(tern_chan_on(local[0], TERN_PROCS_MAX, add, &sum), -ERANGE);
	CHECK_IS(tern_chan_on(local[0], 1, NULL, NULL), -EINVAL);
	CHECK_IS(tern_chan_call(&out, TERN_PROCS_MAX), -ERANGE);
	CHECK_IS(tern_chan_call(&out, 1), -ENXIO);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	CHECK_IS(tern_chan_on(local[0], 1, add, &sum), 0);
	CHECK_IS(tern_chan_call(&out, 1), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	CHECK_IS(tern_chan_call(&out, 1), 0);
	CHECK_IS(tern_chan_run(&in), -ENXIO);
	CHECK(sentence_has(-ENXIO, "procedure 1"));
	CHECK_IS(tern_chan_run(&in), -ENXIO); /* it stays until it is passed, or registered */
	CHECK_IS(tern_chan_next(&in), 0);
	chan_settle();
	in.line->word[LINE_WORDS - 1] = ITEM_CALL | UINT64_MAX
							    << ITEM_BITS; /* as nobody sends it */
	CHECK_IS(tern_chan_run(&in), -ENXIO);
	pair_end();
}

/* -- Information ---------------------------------------------------------------------------- */

static void expect(enum tern_chan_kind what)
{
	chan_settle();
	CHECK_IS(tern_chan_peek(&in), what);
}

TEST(information_tells_what_waits_at_every_place_of_the_ring)
{
	pair_start();
	for (int r = 0; r < 2; r++)
		CHECK_IS(tern_chan_on(local[r], 0, nested, NULL), 0);
	for (unsigned i = 0; i < LINES; i++) {
		expect(TERN_CHAN_NOTHING);
		for (unsigned k = 0; k <= i % 9; k++)
			CHECK_IS(tern_chan_put(&out, &(uint64_t){ k }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_end(&out), 0);
		CHECK_IS(tern_chan_call(&out, 0), 0);
		CHECK_IS(tern_chan_end(&out), 0);
		for (unsigned k = 0; k <= i % 9; k++) {
			expect(TERN_CHAN_DATA);
			pair_get();
		}
		expect(TERN_CHAN_END);
		CHECK_IS(tern_chan_next(&in), 0);
		expect(TERN_CHAN_PROCEDURE);
		CHECK_IS(tern_chan_next(&in), 0);
	}
	expect(TERN_CHAN_NOTHING);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_close(pair_to), 0);
	expect(TERN_CHAN_DATA);
	pair_get();
	expect(TERN_CHAN_CLOSED);
	CHECK_IS(tern_chan_close(pair_from), 0);
	local_close();
}

/* -- Any ------------------------------------------------------------------------------------- */

enum { PRODUCERS = 5 };

TEST(any_gives_every_end_its_turn_and_keeps_producers_apart)
{
	tern_chan *to[PRODUCERS], *from[PRODUCERS];
	tern_out outs[PRODUCERS];
	tern_in ins[PRODUCERS], *ends[PRODUCERS];
	unsigned turn = 0, served[PRODUCERS] = { 0 };
	local_open(PRODUCERS + 1);
	for (uint32_t r = 0; r < PRODUCERS; r++) {
		REQUIRE(tern_chan_to(local[r], PRODUCERS, 1, &to[r]) == 0);
		REQUIRE(tern_chan_from(local[PRODUCERS], r, 1, &from[r]) == 0);
		outs[r] = tern_chan_out(to[r]);
		ins[r] = tern_chan_in(from[r]);
		ends[r] = &ins[r];
	}
	CHECK_IS(tern_chan_any(ends, PRODUCERS, &turn, TERN_CHAN_NOWAIT), -EAGAIN);
	CHECK_IS(tern_chan_any(ends, 0, &turn, TERN_CHAN_NOWAIT), -EAGAIN);
	CHECK_IS(tern_chan_any(ends, 0, &turn, 0), -EINVAL);
	for (uint64_t i = 0; i < 600; i++)
		for (uint32_t r = 0; r < PRODUCERS; r++)
			CHECK_IS(tern_chan_put(&outs[r], &(uint64_t){ i * PRODUCERS + r },
					       sizeof(uint64_t)),
				 0);
	chan_settle();
	for (unsigned i = 0; i < 600 * PRODUCERS; i++) {
		int which = tern_chan_any(ends, PRODUCERS, &turn, 0);
		uint64_t value = 0;
		CHECK_IS(which, i % PRODUCERS); /* all have data, so they take turns */
		CHECK_IS(tern_chan_get(ends[which], &value, sizeof value), 0);
		CHECK_IS(value, (uint64_t)served[which]++ * PRODUCERS + (unsigned)which);
	}
	CHECK_IS(tern_chan_any(ends, PRODUCERS, &turn, TERN_CHAN_NOWAIT), -EAGAIN);
	CHECK_IS(tern_chan_end(&outs[3]), 0); /* an end of a message is something, too */
	chan_settle();
	CHECK_IS(tern_chan_any(ends, PRODUCERS, &turn, TERN_CHAN_NOWAIT), 3);
	CHECK_IS(turn, 4);
	local_close();
}

/* -- Against a model -------------------------------------------------------------------------- */

enum { MODEL = 1 << 16 };

struct fact {
	enum tern_chan_kind what;
	uint64_t word;
};

static struct fact model[MODEL];
static unsigned first, last;

static void note(enum tern_chan_kind what, uint64_t word)
{
	model[last++ % MODEL] = (struct fact){ what, word };
}

static void nothing_done(tern *t, tern_in *i, void *arg)
{
	(void)t, (void)i, (void)arg;
}

static void put_something(struct chance *c)
{
	uint64_t word = chance_next(c), two[2] = { word, ~word };
	char block[600] = "";
	size_t len = chance_below(c, sizeof block);
	switch (chance_below(c, 6)) {
	case 0:
		CHECK_IS(tern_chan_put(&out, two, 16), 0);
		note(TERN_CHAN_DATA, two[0]);
		note(TERN_CHAN_DATA, two[1]);
		break;
	case 1:
		chance_fill((unsigned char *)block, len, word);
		CHECK_IS(tern_chan_put(&out, block, len), 0);
		for (size_t at = 0; at < len; at += 8) {
			uint64_t piece = 0;
			memcpy(&piece, block + at, len - at < 8 ? len - at : 8);
			note(TERN_CHAN_DATA, piece);
		}
		break;
	case 2:
		CHECK_IS(tern_chan_end(&out), 0);
		note(TERN_CHAN_END, 0);
		break;
	case 3:
		CHECK_IS(tern_chan_call(&out, (unsigned)word % 4), 0);
		note(TERN_CHAN_PROCEDURE, word % 4);
		break;
	default:
		CHECK_IS(tern_chan_put(&out, &word, sizeof word), 0);
		note(TERN_CHAN_DATA, word);
	}
}

static void get_something(void)
{
	struct fact f =
		first == last ? (struct fact){ TERN_CHAN_NOTHING, 0 } : model[first++ % MODEL];
	REQUIRE(CHECK_IS(tern_chan_peek(&in), f.what));
	if (f.what == TERN_CHAN_DATA)
		CHECK_IS(pair_get(), f.word);
	else if (f.what == TERN_CHAN_END)
		CHECK_IS(tern_chan_next(&in), 0);
	else if (f.what == TERN_CHAN_PROCEDURE)
		CHECK_IS(tern_chan_run(&in), 0);
}

TEST(any_mix_of_puts_ends_and_calls_comes_out_as_it_was_put)
{
	struct chance c = { check_seed() };
	pair_start();
	for (unsigned id = 0; id < 4; id++)
		for (int r = 0; r < 2; r++)
			CHECK_IS(tern_chan_on(local[r], id, nothing_done, NULL), 0);
	unsigned rounds = check_scaled(pair_from->mirror ? 5000 : 100000);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned n = chance_below(&c, 30); n && tern_chan_room(&out, 1000) == 0; n--)
			put_something(&c);
		chan_settle();
		for (unsigned n = chance_below(&c, 200); n; n--)
			get_something();
	}
	pair_end();
}
