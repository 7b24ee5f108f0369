/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts with a signal, and waits for a word: what each does, and what is refused. Between processes
 * and over networks: tests/net/signal_job_test.c.
 */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "mem/mem.h"

enum { LINE = 64, LONG = 300000 };

static uint64_t *word; /* of rank 1: three lines, then LONG bytes */
static tern_addr at;

static void word_open(void)
{
	local_open(2);
	word = handed_alloc(local[1], 3 * LINE + LONG);
	REQUIRE(word);
	at = handed_addr(local[1], word);
}

TEST(a_put_with_a_signal_puts_the_bytes_and_then_changes_the_word)
{
	word_open();
	CHECK_IS(tern_put_signal(local[0], at + LINE, "abc", 4,
				 &(tern_change){ .word = at, .what = TERN_AMO_STORE, .value = 7 }),
		 0);
	CHECK_IS(word[0], 7);
	CHECK(strcmp((char *)&word[8], "abc") == 0);
	CHECK_IS(tern_put_signal(local[0], at + LINE, "de", 3,
				 &(tern_change){ .word = at, .what = TERN_AMO_ADD, .value = 5 }),
		 0);
	CHECK_IS(word[0], 12);
	CHECK(strcmp((char *)&word[8], "de") == 0);
	CHECK_IS(tern_put_signal(local[1], at + LINE, "f", 2,
				 &(tern_change){ .word = at, .what = TERN_AMO_OR, .value = 1 }),
		 0); /* to itself */
	CHECK_IS(word[0], 13);
	/* 0 bytes touch nothing but the word. */
	CHECK_IS(tern_put_signal(local[0], TERN_ADDR_NONE, NULL, 0,
				 &(tern_change){ .word = at, .what = TERN_AMO_MAX, .value = 20 }),
		 0);
	CHECK_IS(word[0], 20);
	CHECK_IS(word[1], 0);
	CHECK(strcmp((char *)&word[8], "f") == 0);
	local_close();
}

TEST(the_word_changes_after_the_last_byte_also_where_polls_carry_the_put_on)
{
	static char source[LONG];
	static const size_t lengths[] = { 1, 8, 64, 8192, 8193, 65536, 65537, LONG };
	tern_op op = TERN_OP;
	tern_flag told = 0;
	word_open();
	op.flag = &told;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		size_t len = lengths[i];
		const char *there = (const char *)&word[3 * LINE / 8];
		memset(source, (int)i + 1, len);
		CHECK_IS(tern_put_signal_start(local[0], at + 3 * LINE, source, len,
					       &(tern_change){ .word = at,
							       .what = TERN_AMO_STORE,
							       .value = i + 1 },
					       &op),
			 0);
		while (op.pending) {
			bool there_all = there[0] == (char)(i + 1) && there[len - 1] == there[0];
			CHECK(word[0] == i || there_all);
			CHECK(tern_poll(local[0]) >= 0);
		}
		CHECK_IS(word[0], i + 1);
		CHECK(memcmp(there, source, len) == 0);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		CHECK_IS(told, i + 1);
		CHECK_IS(tern_put_signal(local[0], at + 3 * LINE, source, len,
					 &(tern_change){ .word = at + LINE,
							 .what = TERN_AMO_ADD,
							 .value = 1 }),
			 0);
		CHECK_IS(word[8], i + 1);
	}
	local_close();
}

/* In a handler, where nothing waits; `m`: NULL in the program. */
static void put_at_once(tern *t, const tern_msg *m)
{
	static char source[LONG];
	const size_t lengths[] = { 4, m ? LONG : 64 };
	for (int i = 0; i < 2; i++) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_put_signal_start(
				 t, at + 3 * LINE, source, lengths[i],
				 &(tern_change){ .word = at, .what = TERN_AMO_ADD, .value = 1 },
				 &op),
			 0);
		CHECK_IS(op.pending, 0);
	}
}

TEST(a_short_put_with_a_signal_is_over_at_once_and_so_is_any_of_a_handlers)
{
	word_open();
	local_on(0, put_at_once);
	put_at_once(local[0], NULL);
	CHECK_IS(tern_request(local[0], 0, 0), 0);
	local_settle();
	CHECK_IS(word[0], 4);
	local_close();
}

TEST(a_flush_waits_for_signals_under_way)
{
	static char source[LONG];
	tern_op op = TERN_OP;
	word_open();
	CHECK_IS(tern_put_signal_start(
			 local[0], at + 3 * LINE, source, LONG,
			 &(tern_change){ .word = at, .what = TERN_AMO_ADD, .value = 1 }, &op),
		 0);
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(word[0], 1);
	CHECK_IS(op.pending, 0);
	local_close();
}

TEST(a_signal_that_cannot_be_is_refused_and_changes_nothing)
{
	static uint64_t private[8];
	tern_addr region;
	word_open();
	void *own = handed_alloc(local[0], LINE);
	tern_addr mine = handed_addr(local[0], own);
	REQUIRE(tern_register(local[1], private, sizeof private, &region) == 0);
	int rc = tern_put_signal(local[0], mine, "abc", 4,
				 &(tern_change){ .word = at, .what = TERN_AMO_ADD, .value = 1 });
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, "data for rank 0 and a word of rank 1"));
	CHECK_IS(
		tern_put_signal(local[0], at, "abc", 4,
				&(tern_change){ .word = at + 4, .what = TERN_AMO_ADD, .value = 1 }),
		-EINVAL);
	CHECK_IS(tern_put_signal(
			 local[0], at, "abc", 4,
			 &(tern_change){ .word = at, .what = (enum tern_amo)99, .value = 1 }),
		 -EINVAL);
	CHECK_IS(
		tern_put_signal(
			local[0], at, "abc", 4,
			&(tern_change){ .word = TERN_ADDR_NONE, .what = TERN_AMO_ADD, .value = 1 }),
		-EFAULT);
	CHECK_IS(tern_put_signal(local[0], TERN_ADDR_NONE, "abc", 4,
				 &(tern_change){ .word = at, .what = TERN_AMO_ADD, .value = 1 }),
		 -EFAULT);
	rc = tern_put_signal(local[0], at, "abc", 4,
			     &(tern_change){ .word = region, .what = TERN_AMO_ADD, .value = 1 });
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "not in the heap of rank 1"));
	CHECK_IS(word[0], 0);
	CHECK_IS(private[0], 0);
	local_close();
}

TEST(every_comparison_is_of_unsigned_numbers)
{
	static const struct {
		enum tern_word what;
		int less, same, more; /* than 5 */
	} row[] = {
		{ TERN_WORD_EQ, -ETIMEDOUT, 0, -ETIMEDOUT }, { TERN_WORD_NE, 0, -ETIMEDOUT, 0 },
		{ TERN_WORD_LT, 0, -ETIMEDOUT, -ETIMEDOUT }, { TERN_WORD_LE, 0, 0, -ETIMEDOUT },
		{ TERN_WORD_GT, -ETIMEDOUT, -ETIMEDOUT, 0 }, { TERN_WORD_GE, -ETIMEDOUT, 0, 0 },
	};
	word_open();
	word[0] = 4;
	word[1] = 5;
	word[2] = UINT64_MAX;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK_IS(tern_wait_word_for(local[1], &word[0], row[i].what, 5, 0), row[i].less);
		CHECK_IS(tern_wait_word_for(local[1], &word[1], row[i].what, 5, 0), row[i].same);
		CHECK_IS(tern_wait_word_for(local[1], &word[2], row[i].what, 5, 0), row[i].more);
		if (!row[i].same)
			CHECK_IS(tern_wait_word(local[1], &word[1], row[i].what, 5), 0);
	}
	local_close();
}

TEST(a_wait_for_a_word_says_when_it_gives_up_and_what_it_cannot_wait_for)
{
	uint64_t private = 0;
	word_open();
	int rc = tern_wait_word_for(local[1], word, TERN_WORD_NE, 0, 1000000);
	CHECK_IS(rc, -ETIMEDOUT);
	CHECK(sentence_has(rc, "tern_wait_word_for() has waited for 1000000 ns"));
	rc = tern_wait_word(local[1], &private, TERN_WORD_EQ, 0);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "not in rank 1's heap"));
	CHECK_IS(tern_wait_word(local[0], word, TERN_WORD_EQ, 0), -EFAULT); /* another's */
	CHECK_IS(tern_wait_word(local[1], (uint64_t *)(void *)((char *)word + 4), TERN_WORD_EQ, 0),
		 -EINVAL);
	CHECK_IS(tern_wait_word(local[1], word, (enum tern_word)6, 0), -EINVAL);
	tern_hold(local[1]);
	CHECK_IS(tern_wait_word(local[1], word, TERN_WORD_EQ, 0), -EDEADLK);
	tern_release(local[1]);
	local_close();
}

/* -- Messages that arrive meanwhile ---------------------------------------------------------- */

enum { RAISE };

static void raise_word(tern *t, const tern_msg *m)
{
	(void)t;
	atomic_store((_Atomic uint64_t *)(void *)word, tern_msg_word(m, 0));
	CHECK_IS(tern_wait_word(t, word, TERN_WORD_EQ, tern_msg_word(m, 0)), -EPERM);
}

TEST(a_wait_for_a_word_serves_the_messages_that_change_it)
{
	word_open();
	local_on(RAISE, raise_word);
	CHECK_IS(tern_request(local[0], 1, RAISE, 9), 0);
	CHECK_IS(tern_wait_word(local[1], word, TERN_WORD_GE, 9), 0);
	CHECK_IS(word[0], 9);
	local_close();
}
