/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/*
 * The internal buffer: the program and the processor of one endpoint, with the calls of channels.
 */
#include "lib/async_pair.h"

enum { MESSAGE, SQUARE, RESULT, ORDER, PLAIN };
enum { MORE_THAN_A_BUFFER = 20000 };

static struct mail mail;
static tern_op op;
static tern_chan *to, *from;

static void internal_start(uint32_t ranks)
{
	local_open(ranks);
	local_drains(MESSAGE, mail_drain, &mail);
	CHECK_IS(tern_async_chan(local[0], TERN_ASYNC_PROGRAM, &to, &from), 0);
}

TEST(the_processor_drains_what_the_program_sends_it_whatever_the_length)
{
	internal_start(1);
	tern_out out = tern_chan_out(to);
	CHECK_IS(tern_chan_call(&out, MESSAGE), 0);
	for (uint64_t i = 0; i < MORE_THAN_A_BUFFER; i++)
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)),
			 0); /* serves messages, and the processor, when it is full */
	CHECK_IS(tern_chan_end(&out), 0);
	tern_chan_out_back(&out);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, MORE_THAN_A_BUFFER);
	CHECK_IS(mail.src, 0);
	CHECK(!mail.out_of_order);
	local_close();
}

TEST(the_buffer_is_bounded_and_under_a_hold_its_room_ends)
{
	unsigned n = 0;
	int rc;
	internal_start(1);
	tern_hold(local[0]);
	tern_out out = tern_chan_out(to);
	CHECK_IS(tern_chan_call(&out, MESSAGE), 0);
	while ((rc = tern_chan_put(&out, &(uint64_t){ n }, sizeof(uint64_t))) == 0)
		n++;
	CHECK_IS(rc, -EDEADLK);
	CHECK(n > 2000 && n < 4000);
	CHECK_IS(tern_chan_room(&out, sizeof n), -EAGAIN);
	tern_release(local[0]);
	CHECK_IS(tern_chan_end(&out), 0); /* serves until there is room */
	tern_chan_out_back(&out);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	CHECK_IS(mail.words, n);
	local_close();
}

/* On the processor: gets a number, sends its square back, with the procedure that takes it. */
static int square(tern *t, tern_incoming *m, void *arg)
{
	tern_chan *back, *unused;
	uint64_t x = 0;
	(void)arg;
	int rc = tern_chan_ready(m->in, 8);
	if (rc)
		return rc;
	CHECK_IS(tern_async_chan(t, TERN_ASYNC_PROCESSOR, &back, &unused), 0);
	tern_out out = tern_chan_out(back);
	rc = tern_chan_room(&out, 300); /* for all of it, or for nothing */
	if (rc)
		return rc;
	CHECK_IS(tern_chan_get(m->in, &x, sizeof x), 0);
	CHECK_IS(tern_chan_call(&out, RESULT), 0);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ x * x }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	tern_chan_out_back(&out);
	return 0;
}

/* In the program. */
static void result(tern *t, tern_in *i, void *arg)
{
	uint64_t y = 0;
	(void)t;
	CHECK_IS(tern_chan_get(i, &y, sizeof y), 0);
	*(uint64_t *)arg += y;
}

TEST(data_and_procedures_go_both_ways)
{
	uint64_t sum = 0, want = 0;
	internal_start(1);
	local_drains(SQUARE, square, NULL);
	CHECK_IS(tern_chan_on(local[0], RESULT, result, &sum), 0);
	tern_out out = tern_chan_out(to);
	for (uint64_t i = 0; i < 5000; i++) {
		CHECK_IS(tern_chan_call(&out, SQUARE), 0);
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_chan_end(&out), 0);
		want += i * i;
		if (i < 20)
			continue; /* some are under way */
		tern_in in = tern_chan_in(from);
		CHECK_IS(tern_chan_run(&in), 0);
		CHECK_IS(tern_chan_peek(&in), TERN_CHAN_END);
		CHECK_IS(tern_chan_next(&in), 0);
		tern_chan_in_back(&in);
	}
	tern_chan_out_back(&out);
	tern_in in = tern_chan_in(from);
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_chan_run(&in), 0);
		CHECK_IS(tern_chan_next(&in), 0);
	}
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_NOTHING);
	tern_chan_in_back(&in);
	CHECK_IS(sum, want);
	local_close();
}

static int fetch_turn(tern *t, void *arg)
{
	tern_chan *unused, *program;
	CHECK_IS(tern_async_chan(t, TERN_ASYNC_PROCESSOR, &unused, &program), 0);
	tern_in in = tern_chan_in(program);
	int rc = tern_chan_get(&in, arg, sizeof(uint64_t));
	if (rc == -ENODATA)
		rc = tern_chan_next(&in);
	tern_chan_in_back(&in);
	return rc;
}

TEST(data_without_a_procedure_is_for_turns_and_procedures_behind_it_wait)
{
	uint64_t value = 0;
	internal_start(1);
	tern_out out = tern_chan_out(to);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 77 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	CHECK_IS(tern_chan_call(&out, MESSAGE), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	tern_chan_out_back(&out);
	turns_settle();
	CHECK_IS(mail.messages, 0);
	CHECK_IS(tern_async_start(local[0], fetch_turn, &value, NULL), 0);
	CHECK_IS(value, 77);
	turns_settle();
	CHECK_IS(mail.messages, 1);
	local_close();
}

/*
 * Figure 3, word for word: node, send procedure and receive procedure go through the internal
 * buffer.
 */
static int order_drain(tern *t, tern_incoming *m, void *arg)
{
	uint64_t node = 0, fill = 0, drain = 0, what = 0;
	(void)arg;
	int rc = tern_chan_ready(m->in, 32);
	if (rc)
		return rc;
	CHECK_IS(tern_chan_get(m->in, &node, sizeof node), 0);
	CHECK_IS(tern_chan_get(m->in, &fill, sizeof fill), 0);
	CHECK_IS(tern_chan_get(m->in, &drain, sizeof drain), 0);
	CHECK_IS(tern_chan_get(m->in, &what, sizeof what), 0);
	return tern_async_send_start(t, (uint32_t)node, (unsigned)drain,
				     (tern_filler *)(uintptr_t)fill, (void *)(uintptr_t)what, &op);
}

TEST(figure_3_can_be_written_with_it)
{
	struct message l = { .first = 9, .words = MORE_THAN_A_BUFFER };
	internal_start(2);
	local_drains(ORDER, order_drain, NULL);
	tern_out out = tern_chan_out(to);
	CHECK_IS(tern_chan_call(&out, ORDER), 0);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ (uintptr_t)message_fill }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ MESSAGE }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ (uintptr_t)&l }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	tern_chan_out_back(&out);
	while (!mail.messages)
		turns_settle();
	CHECK_IS(mail.first, 9);
	CHECK_IS(mail.words, MORE_THAN_A_BUFFER);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}

TEST(the_ends_are_always_the_same_ones_and_stay_open)
{
	tern_chan *again[2], *other[2];
	internal_start(1);
	CHECK_IS(tern_async_chan(local[0], TERN_ASYNC_PROGRAM, &again[0], &again[1]), 0);
	CHECK(again[0] == to && again[1] == from);
	CHECK_IS(tern_async_chan(local[0], TERN_ASYNC_PROCESSOR, &other[0], &other[1]), 0);
	CHECK_IS(tern_chan_close(to), -EPERM);
	CHECK(sentence_has(-EPERM, "the internal buffer of rank 0"));
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_chan_close(other[i]), -EPERM);
	local_close();
}

static void plain(tern *t, tern_in *i, void *arg)
{
	(void)t, (void)i, (void)arg;
}

TEST(a_procedure_of_the_program_is_not_the_processors)
{
	internal_start(1);
	CHECK_IS(tern_chan_on(local[0], PLAIN, plain, NULL), 0);
	tern_out out = tern_chan_out(to);
	CHECK_IS(tern_chan_call(&out, PLAIN), 0);
	CHECK_IS(tern_chan_end(&out), 0);
	tern_chan_out_back(&out);
	int rc;
	while ((rc = tern_poll(local[0])) >= 0)
		;
	CHECK_IS(rc, -ENXIO);
	CHECK(sentence_has(-ENXIO, "receive procedure 4"));
	local_close();
}
