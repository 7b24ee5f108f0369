/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Asynchronous sends that fail: who is told, and what goes on. */
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

TEST(what_is_not_there_is_refused_when_it_is_named)
{
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 2, MESSAGE, NULL, NULL, &op), -ERANGE);
	CHECK(sentence_has(-ERANGE, "rank 2"));
	CHECK_IS(tern_async_send_start(local[0], 1, TERN_PROCS_MAX, NULL, NULL, &op), -ERANGE);
	CHECK_IS(tern_async_send_start(local[0], 1, OTHER, NULL, NULL, &op), -ENXIO);
	CHECK(sentence_has(-ENXIO, "receive procedure 3 of rank 1"));
	CHECK_IS(tern_async_on(local[0], TERN_PROCS_MAX, mail_drain, NULL), -ERANGE);
	CHECK_IS(tern_async_on(local[0], MESSAGE, NULL, NULL), -EINVAL);
	CHECK_IS(op.pending, 0);
	tern_hold(local[0]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), -EDEADLK);
	tern_release(local[0]);
	turns_settle();
	CHECK_IS(mail.messages, 0);
	local_close();
}

/* The code that the polls of a rank return at last; other ranks are served too. */
static int trouble_of(uint32_t rank)
{
	int rc;
	while ((rc = tern_poll(local[rank])) >= 0)
		for (uint32_t r = 0; r < local_size; r++)
			if (r != rank && local[r])
				CHECK(tern_poll(local[r]) >= 0);
	return rc;
}

TEST(a_procedure_that_the_receiver_lacks_is_told_there_and_the_next_message_arrives)
{
	struct message l[2] = { { .words = 100 }, { .words = 5 } };
	pair_start();
	CHECK_IS(tern_async_on(local[0], OTHER, mail_drain, NULL), 0);
	CHECK_IS(tern_async_send_start(local[0], 1, OTHER, message_fill, &l[0], &op), 0);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[1], &op), 0);
	CHECK_IS(trouble_of(1), -ENXIO);
	CHECK(sentence_has(-ENXIO, "rank 0 sent a message for receive procedure 3"));
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, 5);
	local_close();
}

static int refuse_drain(tern *t, tern_incoming *m, void *arg)
{
	(void)t, (void)m, (void)arg;
	return -EILSEQ;
}

TEST(the_error_of_a_procedure_is_what_the_next_poll_returns_and_its_message_is_dropped)
{
	struct message l[2] = { { .words = MORE_THAN_A_CHAIN }, { .words = 5 } };
	pair_start();
	local_drains(OTHER, refuse_drain, NULL);
	CHECK_IS(tern_async_send_start(local[0], 1, OTHER, message_fill, &l[0], &op), 0);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[1], &op), 0);
	CHECK_IS(trouble_of(1), -EILSEQ);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	turns_settle();
	CHECK_IS(mail.words, 5);
	local_close();
}

TEST(the_error_of_a_filler_is_the_handles_and_what_it_had_put_arrives)
{
	struct message l[2] = { { .words = 4, .result = -EILSEQ }, { .first = 10, .words = 5 } };
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[0], NULL), -EILSEQ);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, 4);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[1], NULL), 0);
	turns_settle();
	CHECK_IS(mail.messages, 2);
	CHECK_IS(mail.first, 10);
	local_close();
}

static int split_fill(tern *t, tern_out *out, void *arg)
{
	(void)t, (void)arg;
	return tern_chan_put(out, &(uint64_t){ 1 }, sizeof(uint64_t)) || tern_chan_end(out) ||
	       tern_chan_put(out, &(uint64_t){ 2 }, sizeof(uint64_t));
}

TEST(a_filler_that_ends_its_message_itself_is_found_out)
{
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, split_fill, NULL, &op), 0);
	CHECK_IS(trouble_of(1), -EPROTO);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	CHECK_IS(mail.messages, 2);
	CHECK_IS(mail.words, 1);
	local_close();
}

TEST(a_chain_that_somebody_has_written_over_is_given_up_and_a_new_one_made)
{
	struct message l = { .words = 5 };
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	tern_hold(local[1]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, NULL), 0);
	struct tern_chan_line *line = async_of(local[1])->peer[0].intake.chan->pipe->leaf[0].line;
	for (int i = 0; i < 20; i++)
		atomic_store(&line[i].count, -3);
	tern_release(local[1]);
	CHECK_IS(trouble_of(1), -EBADMSG);
	turns_settle(); /* over a network it takes a while until the other has heard of it */
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), -EPIPE);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	CHECK_IS(mail.messages, 2);
	CHECK(chans_of(local[0])->first->next == NULL); /* the one that was given up is gone */
	local_close();
}

TEST(without_memory_for_a_chain_the_handle_says_so_and_with_some_it_goes_on)
{
	void *taken[128];
	unsigned n = 0;
	setenv("TERN_HEAP", "2M", 1);
	pair_start();
	while (n < 128 && (taken[n] = handed_alloc(local[0], 16 << 10)) != NULL)
		n++;
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, &op), 0);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), -ENOMEM);
	CHECK_IS(op.pending, 0);
	while (n)
		CHECK_IS(tern_free(local[0], taken[--n]), 0);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	local_close();
}

/* -- Leaving ----------------------------------------------------------------------------------- */

TEST(what_was_handed_over_is_sent_before_the_endpoint_closes)
{
	static struct message l[10];
	pair_start();
	for (unsigned i = 0; i < 10; i++) {
		l[i] = (struct message){ .words = MORE_THAN_A_CHAIN / 2 };
		CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i], &op), 0);
	}
	local_close_one(0);
	turns_settle();
	CHECK_IS(mail.messages, 10);
	CHECK_IS(mail.words, 5 * MORE_THAN_A_CHAIN);
	local_close();
}

TEST(what_cannot_be_sent_does_not_keep_an_endpoint_open)
{
	struct message l = { .words = MORE_THAN_A_CHAIN };
	setenv("TERN_GRACE", "50", 1);
	pair_start();
	tern_hold(local[1]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, &op), 0);
	local_close_one(0);
	tern_release(local[1]);
	local_close();
}

TEST(sends_to_a_rank_that_has_left_fail)
{
	struct message l[2] = { { .words = MORE_THAN_A_CHAIN }, { .words = 1 } };
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	tern_hold(local[1]); /* so that it does not drain */
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l[i], &op), 0);
	while (l[0].calls < 3)
		tern_poll(local[0]);
	local_close_one(1);
	CHECK_IS(tern_op_wait(local[0], &op), -ESHUTDOWN);
	CHECK_IS(l[1].calls, 0);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, &op), -ESHUTDOWN);
	CHECK(sentence_has(-ESHUTDOWN, "rank 1"));
	local_close();
}

TEST(a_rank_that_leaves_before_its_chain_is_open_ends_the_sends_to_it)
{
	pair_start();
	tern_hold(local[1]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, &op), 0);
	for (int i = 0; i < 100; i++)
		tern_poll(local[0]);
	local_close_one(1);
	CHECK_IS(tern_op_wait(local[0], &op), -ESHUTDOWN);
	local_close();
}

TEST(a_procedure_hears_that_its_sender_left_in_the_middle)
{
	struct message l = { .words = MORE_THAN_A_CHAIN };
	setenv("TERN_GRACE", "50", 1);
	pair_start();
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, NULL, NULL, NULL), 0);
	turns_settle();
	tern_hold(local[1]);
	CHECK_IS(tern_async_send_start(local[0], 1, MESSAGE, message_fill, &l, &op), 0);
	while (l.calls < 3)
		tern_poll(local[0]);
	local_close_one(0); /* in vain: nobody drains */
	tern_release(local[1]);
	CHECK_IS(trouble_of(1), -ESHUTDOWN);
	CHECK_IS(mail.messages, 1);
	/* Memory keeps what lies in the chain; a network may lose it. */
	CHECK(mail.words > (getenv("TERN_NET") ? 0 : 1000) && !mail.out_of_order);
	turns_settle();
	local_close();
}

static int hope_drain(tern *t, tern_incoming *m, void *arg)
{
	(void)t, (void)m;
	atomic_fetch_add((_Atomic unsigned *)arg, 1);
	return -EAGAIN;
}

static int idle_fill(tern *t, tern_out *out, void *arg)
{
	(void)t, (void)out, (void)arg;
	return 1; /* but it puts nothing */
}

TEST(a_procedure_that_hopes_for_more_of_a_rank_that_has_left_is_ended)
{
	static _Atomic unsigned hopes;
	setenv("TERN_GRACE", "50", 1);
	pair_start();
	local_drains(OTHER, hope_drain, (void *)&hopes);
	CHECK_IS(tern_async_send_start(local[0], 1, OTHER, idle_fill, NULL, &op), 0);
	while (hopes < 10)
		for (uint32_t r = 0; r < 2; r++)
			CHECK(tern_poll(local[r]) >= 0);
	local_close_one(0);
	while (tern_poll(local[1]) >= 0)
		;
	unsigned last = hopes;
	turns_settle();
	CHECK_IS(hopes, last);
	local_close();
}
