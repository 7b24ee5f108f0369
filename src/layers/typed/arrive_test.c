/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that no good peer sends are refused, whatever they name, and harm nothing. */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "lib/typed_pool.h"
#include "typed/typed.h"

enum { TYPE = 4, ORDERLY = 5, BYTES = 100, COUNT = 3 };

static struct type_queue *queue;

static void open_three(void)
{
	setenv("TERN_CHECK", "1", 1); /* so that the words of buffers are looked at */
	local_open(3);
	REQUIRE(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL) == 0);
	REQUIRE(tern_buf_alloc(local[1], ORDERLY, BYTES, COUNT, TERN_BUF_ORDER) == 0);
	queue = typed_of(local[1])->queue[TYPE];
}

static int arrives(const struct notice *n)
{
	uint64_t words[NOTICE_WORDS];
	memcpy(words, n, sizeof *n);
	CHECK_IS(layer_request(local[0]->own, 1, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words), 0);
	return tern_poll(local[1]);
}

static uint32_t taken(struct type_queue *s)
{
	uint32_t c;
	REQUIRE(bufpool_take(&s->pool, 0, &c));
	return c;
}

/* As a sender does: a buffer that rank 0 has taken. */
static struct notice good(unsigned type)
{
	struct type_queue *s = typed_of(local[1])->queue[type];
	struct notice n = { .type = (uint8_t)type,
			    .key = (uint16_t)type,
			    .generation = s->pool.generation,
			    .len = 10 };
	n.index = taken(s);
	return n;
}

static void check_refused(const struct notice *n, const char *why)
{
	int rc = arrives(n);
	CHECK_IS(rc, -EBADMSG);
	if (!CHECK(strstr(tern_strerror(rc), why) && strstr(tern_strerror(rc), "rank 0")))
		printf("    %s\n", tern_strerror(rc));
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK(handed_buf(local[1], TYPE, TERN_BUF_NOWAIT, NULL, NULL) == NULL);
	CHECK(handed_buf(local[1], ORDERLY, TERN_BUF_NOWAIT, NULL, NULL) == NULL);
}

TEST(a_good_notice_is_taken_and_the_same_again_is_not)
{
	open_three();
	struct notice n = good(TYPE);
	CHECK_IS(arrives(&n), 1);
	CHECK_IS(arrives(&n), -EBADMSG); /* the buffer is full */
	char *p = handed_buf(local[1], TYPE, TERN_BUF_NOWAIT, NULL, NULL);
	REQUIRE(p);
	check_refused(&n, "had not taken"); /* the program has it */
	CHECK_IS(tern_buf_free(local[1], p), 0);
	check_refused(&n, "had not taken"); /* it is free */
	local_close();
}

TEST(what_a_notice_names_is_checked)
{
	open_three();
	const struct notice n = good(TYPE);
	struct notice bad = n;
	bad.type = bad.key = 77;
	check_refused(&bad, "not open");
	bad = n;
	bad.generation++;
	check_refused(&bad, "not open");
	bad = n;
	bad.type = ORDERLY; /* in another type's buffer */
	check_refused(&bad, "not open");
	bad = n;
	bad.key = KEYS;
	check_refused(&bad, "not open");
	bad.key = 0xfff;
	check_refused(&bad, "not open");
	bad = n;
	bad.index = COUNT;
	check_refused(&bad, "had not taken");
	bad.index = UINT32_MAX;
	check_refused(&bad, "had not taken");
	bad.index = (n.index + 1) % COUNT; /* free */
	check_refused(&bad, "had not taken");
	bad = n;
	bad.len = BYTES + 1;
	check_refused(&bad, "longer");
	bad.len = UINT64_MAX;
	check_refused(&bad, "longer");
	CHECK_IS(arrives(&n), 1); /* and the good one still is */
	CHECK(handed_buf(local[1], TYPE, TERN_BUF_NOWAIT, NULL, NULL) != NULL);
	local_close();
}

TEST(a_buffer_that_another_has_taken_is_not_announced_for_it)
{
	open_three();
	struct notice n = good(TYPE);
	atomic_store(&queue->pool.word[queue->slot[n.index].at],
		     bufpool_word(&queue->pool, n.index, 2));
	check_refused(&n, "had not taken");
	local_close();
}

TEST(a_cell_of_the_spill_is_only_for_types_that_spill)
{
	open_three();
	struct type_queue *spill = typed_of(local[1])->queue[KEY_SPILL];
	struct notice n = { .type = ORDERLY,
			    .key = KEY_SPILL,
			    .len = 10,
			    .generation = typed_of(local[1])->queue[ORDERLY]->pool.generation };
	n.index = taken(spill);
	check_refused(&n, "not open");
	n.type = TYPE;
	n.generation = queue->pool.generation;
	n.len = BYTES + 1; /* fits the cell, but not the type */
	check_refused(&n, "longer");
	n.generation--; /* of a type that is not open any more */
	n.len = 10;
	CHECK_IS(arrives(&n), 1); /* dropped, and the cell is free again */
	CHECK_IS(bufpool_count_free(&spill->pool), spill->pool.count);
	local_close();
}

TEST(a_message_in_the_spill_is_no_longer_than_its_cell)
{
	open_three();
	REQUIRE(tern_buf_alloc(local[1], 20, 5000, 1, TERN_BUF_SPILL) == 0);
	struct type_queue *spill = typed_of(local[1])->queue[KEY_SPILL];
	struct notice n = { .type = 20,
			    .key = KEY_SPILL,
			    .generation = typed_of(local[1])->queue[20]->pool.generation };
	n.index = taken(spill);
	n.len = spill->pool.bytes + 1;
	check_refused(&n, "longer");
	n.len--;
	CHECK_IS(arrives(&n), 1);
	local_close();
}

TEST(messages_that_say_too_little_or_answer_nothing_are_refused)
{
	open_three();
	uint64_t words[6] = { TYPE };
	for (unsigned n = 0; n < NOTICE_WORDS; n++) {
		CHECK_IS(layer_request(local[0]->own, 1, TYPED_ARRIVED, NULL, 0, n, words), 0);
		CHECK_IS(tern_poll(local[1]), -EBADMSG);
	}
	for (unsigned n = 0; n <= 6; n++) {
		CHECK_IS(layer_request(local[0]->own, 1, TYPED_FOUND, NULL, 0, n, words), 0);
		CHECK_IS(tern_poll(local[1]), -EBADMSG);
	}
	local_close();
}

/* -- Answers about pools ----------------------------------------------------------------------- */

static const uint64_t *answer;

static void lie(tern *t, const tern_msg *m)
{
	(void)m;
	layer_reply(t->own, TYPED_FOUND, NULL, 0, 6, answer);
}

TEST(an_answer_that_names_memory_which_is_not_its_own_is_refused)
{
	open_three();
	struct bufpool *k = &queue->pool;
	tern_addr at = handed_addr(local[1], queue->words),
		  buffers = handed_addr(local[1], k->buffer);
	void *mine = handed_alloc(local[0], 1 << 20);
	tern_addr other = handed_addr(local[0], mine);
	const uint64_t size = (uint64_t)k->generation << 32 | COUNT, found = TYPE;
	const uint64_t bad[][6] = {
		{ found, other, buffers, size, BYTES, 0 },
		{ found, at, other, size, BYTES, 0 },
		{ found, 0, buffers, size, BYTES, 0 },
		{ found, at, 0, size, BYTES, 0 },
		{ found, at + 8, buffers, size, BYTES, 0 },
		{ found, at, buffers, size, UINT64_C(1) << 40, 0 },
		{ found, at, buffers, size, UINT64_MAX, 0 },
		{ found, at, buffers, size | 0xffffffff, 0, 0 },
		{ found, at, buffers, size | 0x7fffffff, 0, 0 },
		{ found, at, buffers, size & ~UINT64_C(0xffffffff), BYTES, 0 },
		{ found, at, buffers, COUNT, BYTES, 0 },
	};
	layer_on(local[1]->own, TYPED_LOOKUP, lie);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		answer = bad[i];
		int rc = tern_buf_send(local[0], 1, TYPE, "text", 5);
		if (!CHECK_IS(rc, -ENXIO))
			printf("    answer %zu\n", i);
		CHECK_IS(tern_poll(local[0]), -EBADMSG);
	}
	CHECK_IS(tern_poll(local[1]), 0);
	local_close();
}

TEST(an_answer_that_nobody_waits_for_changes_nothing)
{
	open_three();
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, "text", 5), 0);
	const struct target *known = &typed_of(local[0])->target[1][TYPE];
	const struct target before = *known;
	uint64_t words[6] = { TYPE,
			      handed_addr(local[1], queue->words),
			      handed_addr(local[1], queue->pool.buffer),
			      UINT64_C(99) << 32 | 1,
			      10,
			      0 };
	CHECK_IS(layer_request(local[1]->own, 0, TYPED_FOUND, NULL, 0, 6, words), 0);
	CHECK_IS(tern_poll(local[0]), -EBADMSG);
	CHECK(!known->asked && !known->none && known->pool.generation == before.pool.generation &&
	      known->pool.count == before.pool.count);
	local_close();
}

TEST(a_question_about_anything_is_answered)
{
	open_three();
	for (uint64_t key = 0; key < KEYS + 3; key++)
		CHECK_IS(layer_request(local[0]->own, 1, TYPED_LOOKUP, NULL, 0, 1, &key), 0);
	uint64_t far = UINT64_MAX;
	CHECK_IS(layer_request(local[0]->own, 1, TYPED_LOOKUP, NULL, 0, 1, &far), 0);
	CHECK_IS(layer_request(local[0]->own, 1, TYPED_LOOKUP, NULL, 0, 0, &far), 0);
	int told = 0;
	for (int i = 0; i < 20; i++) {
		told += tern_poll(local[0]) == -EBADMSG; /* it had not asked */
		CHECK(tern_poll(local[1]) >= 0);
	}
	CHECK(told > 0);
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, "text", 5), 0);
	local_close();
}
