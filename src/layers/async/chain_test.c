/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Asynchronous sends: what is filled is drained, in order, and nobody waits for anybody. */
#include "async/async.h"
#include "lib/async_pair.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { MESSAGE, BLOCK, ANSWER, OTHER };
enum { MORE_THAN_A_CHAIN = 10000 }; /* words */

static struct mail mail;
static tern_op op;

static void pair_start(void)
{
	local_open(2);
	local_drains(MESSAGE, mail_drain, &mail);
}

TEST(what_a_filler_puts_its_procedure_at_the_other_rank_drains)
{
	struct message l = { .first = 40, .words = 3 };
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, 3);
	CHECK_IS(mail.first, 40);
	CHECK_IS(mail.src, 0);
	local_close();
}

TEST(a_message_may_have_no_data_and_go_to_its_own_rank)
{
	struct message l = { .first = 7, .words = 1 };
	pair_start();
	for (uint32_t to = 0; to < 2; to++)
		CHECK_IS(tern_async_send_start(local[1], to, MESSAGE, NULL, NULL, &op), 0);
	CHECK_IS(tern_async_send_start(local[1], 1, MESSAGE, message_fill, &l, &op), 0);
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	turns_settle();
	CHECK_IS(mail.messages, 3);
	CHECK_IS(mail.words, 1);
	CHECK_IS(mail.src, 1);
	local_close();
}

TEST(without_a_handle_the_call_waits_until_all_is_in_the_chain)
{
	struct message l = { .words = MORE_THAN_A_CHAIN };
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, NULL), 0);
	CHECK_IS(l.put, MORE_THAN_A_CHAIN);
	CHECK(l.calls > 1);
	turns_settle();
	CHECK_IS(mail.words, MORE_THAN_A_CHAIN);
	local_close();
}

TEST(the_call_returns_before_anything_is_filled_and_the_handle_tells_when_all_is)
{
	struct message l = { .first = 1, .words = MORE_THAN_A_CHAIN };
	pair_start();
	tern_hold(local[0]);
	tern_hold(local[1]); /* which can therefore not drain */
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, &op), 0);
	CHECK_IS(l.calls, 0);
	tern_release(local[0]);
	for (int i = 0; i < 1000; i++)
		tern_poll(local[0]);
	CHECK_IS(l.calls, 0); /* the chain is not open yet */
	tern_release(local[1]);
	while (!l.calls)
		turns_settle();
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, MORE_THAN_A_CHAIN);
	CHECK(!mail.out_of_order);
	local_close();
}

TEST(a_filler_that_finds_the_chain_full_keeps_nobody_from_anything)
{
	struct message small = { .words = 1 }, large = { .words = MORE_THAN_A_CHAIN };
	tern_op first = TERN_OP;
	local_open(3);
	local_drains(MESSAGE, mail_drain, &mail);
	local_on(0, note_request);
	for (uint32_t to = 1; to < 3; to++)
		CHECK_IS(tern_async_send_start(local[0], to, MESSAGE, message_fill, &small, NULL),
			 0);
	turns_settle();
	tern_hold(local[1]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &large, &first), 0);
	while (large.calls < 10)
		tern_poll(local[0]);
	CHECK_IS(tern_async_send_start(local[0], 2, MESSAGE, NULL, NULL, NULL),
		 0);                                  /* another chain */
	CHECK_IS(tern_request(local[2], 0, 0, 5), 0); /* and messages */
	turns_settle();
	CHECK_IS(requests.count, 1);
	CHECK_IS(first.pending, 1);
	tern_release(local[1]);
	CHECK_IS(tern_op_wait(local[0], &first), 0);
	turns_settle();
	CHECK_IS(mail.words, 1 + MORE_THAN_A_CHAIN);
	local_close();
}

/* -- Order ------------------------------------------------------------------------------------- */

static uint64_t arrived[1000];
static _Atomic unsigned arrivals;

static int number_drain(tern *t, tern_incoming *m, void *arg)
{
	(void)t, (void)arg;
	int rc = tern_chan_get(m->in, &arrived[arrivals % 1000],
			       sizeof(uint64_t)); /* the rest is left, and dropped */
	arrivals += rc == 0;
	return rc;
}

TEST(messages_to_a_rank_are_drained_in_the_order_of_the_calls)
{
	static struct message l[1000];
	struct chance c = { check_seed() };
	local_open(2);
	local_drains(MESSAGE, number_drain, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		l[i] = (struct message){
			.first = i, .words = 1 + chance_below(&c, chance_one_in(&c, 50) ? 5000 : 20)
		};
		CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i], &op), 0);
	}
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(arrivals, 1000);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_IS(arrived[i], i);
	local_close();
}

TEST(what_a_procedure_leaves_of_its_message_is_dropped_without_a_word)
{
	struct message l[3] = { { .words = 3 },
				{ .words = MORE_THAN_A_CHAIN },
				{ .first = 5, .words = 3 } };
	local_open(2);
	local_drains(MESSAGE, number_drain, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i], &op), 0);
	while (arrivals < 3)
		for (uint32_t r = 0; r < 2; r++)
			CHECK(tern_poll(local[r]) >= 0);
	for (int i = 0; i < 1000; i++)
		CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(arrived[2], 5);
	local_close();
}

/* -- Blocks, both ways at once ----------------------------------------------------------------- */

enum { BYTES = (1 << 20) + 5 };

struct parcel_of {
	unsigned char *data;
	size_t done;
};

static int block_fill(tern *t, tern_out *out, void *arg)
{
	struct parcel_of *p = arg;
	(void)t;
	return tern_chan_put_some(out, p->data, BYTES, &p->done);
}

static unsigned char *landed[8][8]; /* at, from */
static _Atomic uint64_t blocks[8];

static int block_drain(tern *t, tern_incoming *m, void *arg)
{
	size_t done = m->own[0];
	(void)arg;
	int rc = tern_chan_get_some(m->in, landed[tern_rank(t)][m->src], BYTES, &done);
	m->own[0] = done;
	if (rc == 0)
		tern_signal(t, &blocks[tern_rank(t)], 1);
	return rc;
}

static void block_check(uint32_t at, uint32_t from)
{
	CHECK(chance_filled(landed[at][from], BYTES, at * 8 + from));
	free(landed[at][from]);
}

static void blocks_prepare(tern *t)
{
	CHECK_IS(tern_async_on(t, BLOCK, block_drain, NULL), 0);
}

static void blocks_rank(tern *t)
{
	uint32_t n = tern_size(t), self = tern_rank(t);
	struct parcel_of p[8];
	tern_op sent = TERN_OP;
	for (uint32_t from = 0; from < n; from++)
		landed[self][from] = malloc(BYTES);
	CHECK_IS(tern_barrier(t), 0);
	for (uint32_t to = 0; to < n; to++) {
		p[to] = (struct parcel_of){ .data = malloc(BYTES) };
		chance_fill(p[to].data, BYTES, to * 8 + self);
		CHECK_IS(tern_async_send_start(t, to, BLOCK, block_fill, &p[to], &sent), 0);
	}
	CHECK_IS(tern_op_wait(t, &sent), 0);
	CHECK_IS(tern_wait(t, &blocks[self], n), 0);
	for (uint32_t r = 0; r < n; r++) {
		block_check(self, r);
		free(p[r].data);
	}
	CHECK_IS(tern_barrier(t), 0);
}

TEST(all_ranks_fill_the_chains_of_all_at_once_and_none_stops)
{
	ranks_run_threads(8, blocks_prepare, blocks_rank);
}

/* -- From handlers and procedures -------------------------------------------------------------- */

static struct message answer = { .first = 100, .words = 2 };

static void hand_over(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_async_send_start(t, tern_msg_src(m), MESSAGE, message_fill, &answer, NULL),
		 -EPERM);
	CHECK_IS(tern_async_send_start(t, tern_msg_src(m), MESSAGE, message_fill, &answer, &op), 0);
}

TEST(a_handler_may_hand_a_send_over)
{
	pair_start();
	local_on(0, hand_over);
	CHECK_IS(tern_request(local[0], 1, 0), 0);
	while (!mail.messages)
		turns_settle();
	CHECK_IS(mail.words, 2);
	CHECK_IS(mail.src, 1);
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	local_close();
}

static int answer_drain(tern *t, tern_incoming *m, void *arg)
{
	(void)arg;
	return tern_async_send_start(t, m->src, MESSAGE, message_fill, &answer, &op);
}

TEST(a_procedure_may_hand_its_answer_over)
{
	pair_start();
	local_drains(ANSWER, answer_drain, NULL);
	CHECK_IS(tern_async_send_start(local[0], 1, ANSWER, NULL, NULL, NULL), 0);
	while (!mail.messages)
		turns_settle();
	CHECK_IS(mail.first, 100);
	CHECK_IS(mail.src, 1);
	local_close();
}

/* -- Bounds ------------------------------------------------------------------------------------ */

TEST(where_nothing_can_be_waited_for_too_many_sends_are_refused)
{
	static struct message l[TERN_ASYNC_MAX + 1];
	pair_start();
	for (int round = 0; round < 2; round++) {
		tern_hold(local[0]);
		for (unsigned i = 0; i <= TERN_ASYNC_MAX; i++) {
			l[i] = (struct message){ .words = 1 };
			CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i],
						       &op),
				 i < TERN_ASYNC_MAX ? 0 : -EAGAIN);
		}
		CHECK(sentence_has(-EAGAIN, "256 are under way"));
		tern_release(local[0]);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
	}
	turns_settle();
	CHECK_IS(mail.messages, 2 * TERN_ASYNC_MAX);
	local_close();
}

TEST(the_program_serves_messages_until_there_is_room_for_its_send)
{
	static struct message l[4 * TERN_ASYNC_MAX];
	pair_start();
	for (unsigned i = 0; i < 4 * TERN_ASYNC_MAX; i++) {
		l[i] = (struct message){ .words = 100 };
		CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i], &op), 0);
	}
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(mail.messages, 4 * TERN_ASYNC_MAX);
	local_close();
}

static struct mail mails[4];

TEST(every_rank_that_a_message_is_sent_to_drains_all_of_it)
{
	const uint32_t ranks[] = { 3, 1, 2 };
	struct message l[3];
	local_open(4);
	for (uint32_t r = 0; r < 4; r++) {
		mails[r] = (struct mail){ 0 };
		CHECK_IS(tern_async_on(local[r], MESSAGE, mail_drain, &mails[r]), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		l[i] = (struct message){ .first = 7, .words = MORE_THAN_A_CHAIN };
		CHECK_IS(tern_async_send_start(local[0], ranks[i], MESSAGE, message_fill, &l[i],
					       &op),
			 0);
	}
	CHECK_IS(op.pending, 3);
	turns_settle();
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	for (uint32_t r = 1; r < 4; r++) {
		CHECK_IS(mails[r].messages, 1);
		CHECK_IS(mails[r].words, MORE_THAN_A_CHAIN);
		CHECK(mails[r].first == 7 && !mails[r].out_of_order);
	}
	local_close();
}
