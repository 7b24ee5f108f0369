/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Setting buffers aside, sending into them, receiving and giving back; what is refused, and in
 * which words.
 */
#include <errno.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "typed/typed.h"

enum { TYPE = 7, BYTES = 1000, COUNT = 4 };

static unsigned char data[300000];

static bool says(int rc, const char *word)
{
	return strstr(tern_strerror(rc), word) != NULL;
}

static int send_to(uint32_t rank, unsigned type, size_t len, unsigned flags)
{
	return tern_buf_send_start(local[0], rank, type, data, len, flags, NULL);
}

/* The code that a receive ends with, or 0; then the buffer goes back. */
static int receive_code(tern *t, unsigned type, unsigned flags)
{
	void *p = handed_buf(t, type, flags, NULL, NULL);
	return p ? tern_buf_free(t, p) : -errno;
}

TEST(a_message_lands_in_a_buffer_that_was_set_aside_and_nothing_around_it_changes)
{
	local_open(2);
	REQUIRE(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0) == 0);
	struct bufpool *k = &typed_of(local[1])->queue[TYPE]->pool;
	size_t all = COUNT * k->stride;
	for (size_t len = 0; len <= BYTES; len += len < 20 ? 1 : 97) {
		uint32_t src = 99;
		size_t got = 99;
		memset(k->buffer, 0xee, all);
		chance_fill(data, len, len);
		CHECK_IS(send_to(1, TYPE, len, 0), 0);
		unsigned char *p = handed_buf(local[1], TYPE, 0, &src, &got);
		REQUIRE(p);
		size_t at = (size_t)((char *)p - k->buffer);
		CHECK(at < all && at % k->stride == 0);
		CHECK_IS(src, 0);
		CHECK_IS(got, len);
		CHECK(chance_filled(p, len, len));
		for (size_t i = 0; i < all; i++)
			if ((i < at || i >= at + len) &&
			    !CHECK((unsigned char)k->buffer[i] == 0xee))
				break;
		CHECK_IS(tern_buf_free(local[1], p), 0);
	}
	local_close();
}

TEST(a_message_to_oneself_arrives)
{
	local_open(1);
	CHECK_IS(tern_buf_alloc(local[0], 0, 10, 1, 0), 0);
	CHECK_IS(tern_buf_send(local[0], 0, 0, "ten bytes", 10), 0);
	char *p = handed_buf(local[0], 0, 0, NULL, NULL);
	CHECK(p && strcmp(p, "ten bytes") == 0);
	CHECK_IS(tern_buf_free(local[0], p), 0);
	local_close();
}

TEST(messages_are_received_in_the_order_they_arrived)
{
	local_open(3);
	CHECK_IS(tern_buf_alloc(local[2], TYPE, 1, 100, 0), 0);
	for (unsigned i = 0; i < 100; i++) {
		unsigned char byte = (unsigned char)i;
		CHECK_IS(tern_buf_send(local[i % 2], 2, TYPE, &byte, 1), 0);
		local_settle();
	}
	for (unsigned i = 0; i < 100; i++) {
		uint32_t src;
		unsigned char *p = handed_buf(local[2], TYPE, TERN_BUF_NOWAIT, &src, NULL);
		REQUIRE(p);
		CHECK_IS(*p, i);
		CHECK_IS(src, i % 2);
	}
	local_close();
}

TEST(types_have_queues_of_their_own)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], 3, 8, 2, 0), 0);
	CHECK_IS(tern_buf_alloc(local[1], 255, 8, 2, 0), 0);
	CHECK_IS(tern_buf_send(local[0], 1, 3, "three", 6), 0);
	CHECK_IS(tern_buf_send(local[0], 1, 255, "last", 5), 0);
	CHECK(strcmp(handed_buf(local[1], 255, 0, NULL, NULL), "last") == 0);
	CHECK(strcmp(handed_buf(local[1], 3, 0, NULL, NULL), "three") == 0);
	CHECK_IS(receive_code(local[1], 3, TERN_BUF_NOWAIT), -EAGAIN);
	local_close();
}

TEST(what_cannot_be_set_aside_is_refused_with_a_reason)
{
	local_open(1);
	tern *t = local[0];
	CHECK_IS(tern_buf_alloc(t, TERN_BUF_TYPES_MAX, 1, 1, 0), -EINVAL);
	CHECK(says(-EINVAL, "type 256"));
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, 0, 0), -EINVAL);
	CHECK(says(-EINVAL, "0 buffers"));
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, TERN_BUFS_MAX + 1, 0), -EINVAL);
	CHECK(says(-EINVAL, "4097 buffers"));
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, 1, 16), -EINVAL);
	CHECK(says(-EINVAL, "flags 0x10"));
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, 1, TERN_BUF_REFUSE | TERN_BUF_SPILL), -EINVAL);
	CHECK_IS(tern_buf_alloc(t, TYPE, SIZE_MAX, 2, 0), -ENOMEM);
	CHECK_IS(tern_buf_alloc(t, TYPE, SIZE_MAX / 4, 4096, 0), -ENOMEM);
	CHECK_IS(tern_buf_alloc(t, TYPE, 1 << 30, 1, 0), -ENOMEM);
	CHECK(says(-ENOMEM, "TERN_HEAP"));
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, 1, 0), 0); /* nothing of all that is left */
	CHECK_IS(tern_buf_alloc(t, TYPE, 1, 1, TERN_BUF_ORDER), -EEXIST);
	CHECK(says(-EEXIST, "type 7"));
	local_close();
}

TEST(further_calls_give_a_type_more_buffers_of_any_length)
{
	local_open(2);
	for (int round = 0; round < 3; round++) {
		CHECK_IS(tern_buf_alloc(local[1], TYPE, 100, 2, 0), 0);
		CHECK_IS(send_to(1, TYPE, 100, 0), 0); /* the sender knows the type by now */
		CHECK_IS(send_to(1, TYPE, 101, 0), -EMSGSIZE);
		CHECK_IS(tern_buf_alloc(local[1], TYPE, 5000, 3, 0), 0);
		CHECK_IS(tern_buf_alloc(local[1], TYPE, 200000, 1, 0), 0);
		CHECK_IS(send_to(1, TYPE, 200001, 0), -EMSGSIZE);
		CHECK_IS(send_to(1, TYPE, 200000, 0), 0);
		for (int i = 0; i < 4; i++)
			CHECK_IS(send_to(1, TYPE, i ? 5000 : 100, 0), 0);
		CHECK_IS(send_to(1, TYPE, 1, TERN_BUF_NOWAIT), -EAGAIN); /* all six are used */
		size_t sum = 0;
		for (int i = 0; i < 6; i++) {
			size_t len;
			void *q = handed_buf(local[1], TYPE, 0, NULL, &len);
			REQUIRE(q);
			CHECK(len == 100 || memcmp(q, data, len) == 0);
			sum += len;
			CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY);
			CHECK_IS(tern_buf_free(local[1], q), 0);
		}
		CHECK_IS(sum, 2 * 100 + 3 * 5000 + 200000);
		CHECK_IS(tern_buf_close(local[1], TYPE), 0);
		CHECK_IS(send_to(1, TYPE, 1, 0), -ENXIO);
	}
	local_close();
}

TEST(a_type_that_cannot_be_closed_takes_messages_in_all_its_buffers)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 100, 1, 0), 0);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 100, 1, 0), 0);
	struct type_queue *more = typed_of(local[1])->queue[TYPE]->more;
	uint32_t c = 0;
	CHECK(bufpool_take(&more->pool, 0, &c)); /* a message is landing there */
	CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY);
	bufpool_put(&more->pool, more->slot[c].at, c);
	CHECK_IS(send_to(1, TYPE, 100, 0), 0);
	CHECK_IS(send_to(1, TYPE, 100, 0), 0);
	CHECK_IS(send_to(1, TYPE, 100, TERN_BUF_NOWAIT), -EAGAIN);
	local_close();
}

TEST(so_many_further_calls_are_the_most)
{
	local_open(1);
	CHECK_IS(tern_buf_alloc(local[0], TYPE, 1, 1, 0), 0);
	for (int i = 0; i < TERN_BUF_MORE_MAX; i++)
		CHECK_IS(tern_buf_alloc(local[0], TYPE, 1, 1, 0), 0);
	CHECK_IS(tern_buf_alloc(local[0], TYPE, 1, 1, 0), -ENOMEM);
	CHECK(says(-ENOMEM, "61 times"));
	for (int i = 0; i <= TERN_BUF_MORE_MAX; i++)
		CHECK_IS(tern_buf_send(local[0], 0, TYPE, data, 1), 0);
	local_settle();
	CHECK_IS(tern_buf_close(local[0], TYPE), 0);
	CHECK_IS(tern_buf_alloc(local[0], TYPE, 1, 1, 0), 0);
	CHECK_IS(tern_buf_alloc(local[0], TYPE, 1, 1, 0), 0);
	local_close();
}

TEST(every_type_may_have_buffers_and_each_finds_its_own)
{
	local_open(2);
	for (unsigned type = 0; type < TERN_BUF_TYPES_MAX; type++)
		REQUIRE(tern_buf_alloc(local[1], type, 16, 1 + type % 3, 0) == 0);
	for (unsigned type = 0; type < TERN_BUF_TYPES_MAX; type++)
		CHECK_IS(tern_buf_send(local[0], 1, type, &type, sizeof type), 0);
	for (unsigned type = TERN_BUF_TYPES_MAX; type-- > 0;) {
		unsigned *p = handed_buf(local[1], type, 0, NULL, NULL);
		CHECK(p && *p == type);
		CHECK_IS(tern_buf_free(local[1], p), 0);
	}
	local_close();
}

TEST(the_most_buffers_are_all_used_and_all_come_back)
{
	static void *p[TERN_BUFS_MAX];
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 4, TERN_BUFS_MAX, TERN_BUF_REFUSE), 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < TERN_BUFS_MAX; i++)
			REQUIRE(tern_buf_send(local[0], 1, TYPE, &i, sizeof i) == 0);
		CHECK_IS(send_to(1, TYPE, 1, 0), -ENOBUFS);
		for (unsigned i = 0; i < TERN_BUFS_MAX; i++) {
			p[i] = handed_buf(local[1], TYPE, 0, NULL, NULL);
			REQUIRE(p[i] && *(unsigned *)p[i] == i);
		}
		for (unsigned i = 0; i < TERN_BUFS_MAX; i++)
			CHECK_IS(tern_buf_free(local[1], p[(i * 37) % TERN_BUFS_MAX]), 0);
	}
	local_close();
}

TEST(what_is_no_buffer_of_the_programs_is_not_taken_back)
{
	local_open(2);
	int here;
	CHECK_IS(tern_buf_free(local[1], &here), -EINVAL); /* without any type */
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	struct bufpool *k = &typed_of(local[1])->queue[TYPE]->pool;
	CHECK_IS(tern_buf_free(local[1], NULL), -EINVAL);
	CHECK_IS(tern_buf_free(local[1], &here), -EINVAL);
	CHECK_IS(tern_buf_free(local[1], k->buffer), -EINVAL); /* not given */
	CHECK_IS(tern_buf_free(local[1], k->buffer + COUNT * k->stride), -EINVAL);
	CHECK_IS(tern_buf_free(local[1], k->buffer - 1), -EINVAL);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	char *p = handed_buf(local[1], TYPE, 0, NULL, NULL);
	REQUIRE(p);
	CHECK_IS(tern_buf_free(local[1], p + 1), -EINVAL);
	CHECK_IS(tern_buf_free(local[0], p), -EINVAL); /* another rank's */
	CHECK_IS(tern_buf_free(local[1], p), 0);
	CHECK_IS(tern_buf_free(local[1], p), -EINVAL); /* twice */
	CHECK(says(-EINVAL, "tern_buf_free()"));
	local_close();
}

/* -- Closing ----------------------------------------------------------------------------------- */

TEST(a_type_that_is_closed_is_gone_for_senders_and_for_the_receiver)
{
	local_open(2);
	CHECK_IS(tern_buf_close(local[1], TYPE), -ENXIO);
	CHECK_IS(tern_buf_close(local[1], TERN_BUF_TYPES_MAX), -ENXIO);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	local_settle();
	CHECK_IS(tern_buf_close(local[1], TYPE), 0); /* what was not received is dropped */
	CHECK_IS(send_to(1, TYPE, 5, 0), -ENXIO);
	CHECK(says(-ENXIO, "rank 1") && says(-ENXIO, "type 7"));
	CHECK_IS(receive_code(local[1], TYPE, 0), -ENXIO);
	CHECK_IS(receive_code(local[1], TERN_BUF_TYPES_MAX, 0), -ENXIO);
	local_close();
}

TEST(a_sender_that_knows_nothing_of_the_closing_yet_takes_no_buffer)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	struct bufpool k = typed_of(local[1])->queue[TYPE]->pool;
	uint32_t c;
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	local_settle();
	CHECK_IS(tern_buf_close(local[1], TYPE), 0); /* two were free, two had a message */
	CHECK(!bufpool_take(&k, 0, &c));
	CHECK_IS(tern_buf_alloc(local[1], TYPE + 1, BYTES, COUNT, 0),
		 0); /* the same words, for another type */
	CHECK(!bufpool_take(&k, 0, &c));
	CHECK_IS(send_to(1, TYPE, 5, 0), -ENXIO);
	local_close();
}

static void close_it(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_buf_close(t, TYPE), 0);
}

TEST(whoever_waits_for_a_message_of_a_type_that_is_closed_meanwhile_is_told)
{
	local_open(1);
	CHECK_IS(tern_buf_alloc(local[0], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(tern_defer(local[0], close_it, NULL), 0);
	CHECK_IS(receive_code(local[0], TYPE, 0), -ENXIO);
	local_close();
}

TEST(a_type_can_be_opened_again_with_other_buffers)
{
	local_open(2);
	for (unsigned round = 1; round < 40; round++) {
		unsigned count = 1 + round * 7 % 90;
		CHECK_IS(tern_buf_alloc(local[1], TYPE, round * 10, count, TERN_BUF_REFUSE), 0);
		for (unsigned i = 0; i < count; i++)
			CHECK_IS(send_to(1, TYPE, round * 10, 0), 0);
		CHECK_IS(send_to(1, TYPE, 1, 0), -ENOBUFS);
		CHECK_IS(send_to(1, TYPE, round * 10 + 1, 0), -EMSGSIZE);
		CHECK_IS(receive_code(local[1], TYPE, 0), 0);
		local_settle();
		CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	}
	local_close();
}

TEST(closing_and_opening_again_uses_no_more_memory)
{
	local_open(2);
	char *before = handed_alloc(local[1], 64);
	for (unsigned round = 0; round < 1000; round++) {
		unsigned type = round % TERN_BUF_TYPES_MAX;
		REQUIRE(tern_buf_alloc(local[1], type, BYTES, 1 + round % 500, 0) == 0);
		CHECK_IS(tern_buf_close(local[1], type), 0);
	}
	char *after = handed_alloc(local[1], 64);
	CHECK(after - before < 2 << 20);
	local_close();
}

TEST(a_type_whose_buffer_the_program_has_stays_open)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	char *p = handed_buf(local[1], TYPE, 0, NULL, NULL);
	CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY);
	CHECK(says(-EBUSY, "tern_buf_free()"));
	CHECK_IS(send_to(1, TYPE, 5, 0), 0); /* it works on */
	CHECK_IS(tern_buf_free(local[1], p), 0);
	local_settle();
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	local_close();
}

TEST(a_type_into_which_a_message_is_just_landing_stays_open)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_REFUSE), 0);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY); /* announced, and not yet heard */
	CHECK(says(-EBUSY, "landing"));
	for (int i = 1; i < COUNT; i++)
		CHECK_IS(send_to(1, TYPE, 5, 0), 0); /* the attempt took no buffer away */
	CHECK_IS(send_to(1, TYPE, 5, 0), -ENOBUFS);
	local_settle();
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	local_close();
}

/* -- What a send and a receive refuse ---------------------------------------------------------- */

TEST(a_send_that_cannot_be_is_refused_with_its_reason)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(send_to(2, TYPE, 1, 0), -ERANGE);
	CHECK(says(-ERANGE, "rank 2"));
	CHECK_IS(send_to(1, TYPE + 1, 1, 0), -ENXIO);
	CHECK_IS(send_to(1, TERN_BUF_TYPES_MAX, 1, 0), -ENXIO);
	CHECK_IS(send_to(1, KEY_SPILL, 1, 0), -ENXIO);
	CHECK_IS(send_to(1, TYPE, BYTES + 1, 0), -EMSGSIZE);
	CHECK(says(-EMSGSIZE, "1001 bytes") && says(-EMSGSIZE, "have 1000"));
	CHECK_IS(send_to(1, TYPE, 1, 2), -EINVAL);
	CHECK(handed_buf(local[1], TYPE, 2, NULL, NULL) == NULL && errno == EINVAL);
	local_settle();
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT),
		 -EAGAIN);                           /* nothing of it was seen */
	CHECK_IS(tern_buf_close(local[1], TYPE), 0); /* and no buffer is taken */
	local_close();
}

TEST(a_type_that_is_opened_after_a_refused_send_is_found)
{
	local_open(2);
	CHECK_IS(send_to(1, TYPE, 1, 0), -ENXIO);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(send_to(1, TYPE, 1, 0), 0);
	local_close();
}

TEST(with_nowait_nothing_waits)
{
	local_open(2);
	int rc;
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, 1, 0), 0);
	CHECK_IS(send_to(1, TYPE, 1, TERN_BUF_NOWAIT),
		 -EAGAIN); /* it does not know the buffers yet */
	CHECK(says(-EAGAIN, "asked"));
	while ((rc = send_to(1, TYPE, 1, TERN_BUF_NOWAIT)) == -EAGAIN)
		local_settle();
	CHECK_IS(rc, 0);
	CHECK_IS(send_to(1, TYPE, 1, TERN_BUF_NOWAIT), -EAGAIN);
	CHECK(says(-EAGAIN, "no buffer"));
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), 0);
	CHECK_IS(send_to(1, TYPE, 1, TERN_BUF_NOWAIT), 0);
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), 0);
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), -EAGAIN);
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	while ((rc = send_to(1, TYPE, 1, TERN_BUF_NOWAIT)) == -EAGAIN)
		local_settle();
	CHECK_IS(rc, -ENXIO);
	local_close();
}

TEST(with_nowait_a_full_ring_is_not_waited_for)
{
	local_open(2);
	int rc = 0;
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 1, TERN_BUFS_MAX, TERN_BUF_REFUSE), 0);
	CHECK_IS(send_to(1, TYPE, 1, 0), 0);
	unsigned sent = 1;
	while ((rc = send_to(1, TYPE, 1, TERN_BUF_NOWAIT)) == 0)
		sent++;
	CHECK_IS(rc, -EAGAIN);
	CHECK(says(-EAGAIN, "ring"));
	for (; sent; sent--)
		CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), 0);
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), -EAGAIN);
	local_close();
}

static int handled;

static void calls_that_wait(tern *t, const tern_msg *m)
{
	(void)m;
	handled++;
	CHECK_IS(tern_buf_send(t, 0, TYPE, data, 1), -EPERM);
	CHECK_IS(tern_buf_send_start(t, 0, TYPE, data, 1, TERN_BUF_NOWAIT, NULL), -EPERM);
	CHECK_IS(receive_code(t, TYPE, 0), 0); /* one is there, so it does not wait */
	CHECK_IS(receive_code(t, TYPE, 0), -EPERM);
	CHECK_IS(receive_code(t, TYPE, TERN_BUF_NOWAIT), -EAGAIN);
}

TEST(in_a_handler_nothing_is_sent_and_nothing_waits)
{
	local_open(2);
	local_on(1, calls_that_wait);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	local_settle();
	CHECK_IS(handled, 1);
	local_close();
}

TEST(under_a_hold_what_does_not_wait_works_and_the_rest_is_refused)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 300000, 2, 0), 0);
	tern_hold(local[0]);
	CHECK_IS(send_to(1, TYPE, 5, 0), -EDEADLK); /* the buffers are not known yet */
	CHECK_IS(send_to(1, TYPE, 5, TERN_BUF_NOWAIT), -EAGAIN);
	tern_release(local[0]);
	local_settle();
	tern_hold(local[0]);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	CHECK_IS(send_to(1, TYPE, sizeof data, 0), 0); /* a long one too: it is moved at once */
	CHECK_IS(send_to(1, TYPE, 5, 0), -EDEADLK);
	CHECK_IS(send_to(1, TYPE, 5, TERN_BUF_NOWAIT), -EAGAIN);
	tern_release(local[0]);
	local_settle();
	tern_hold(local[1]);
	CHECK_IS(receive_code(local[1], TYPE, 0), 0);
	CHECK_IS(receive_code(local[1], TYPE, 0), 0);
	CHECK_IS(receive_code(local[1], TYPE, 0), -EDEADLK);
	CHECK_IS(receive_code(local[1], TYPE, TERN_BUF_NOWAIT), -EAGAIN);
	tern_release(local[1]);
	local_close();
}

TEST(a_short_send_with_a_handle_is_complete_when_it_returns)
{
	local_open(2);
	tern_flag landed = 0;
	tern_op silent = TERN_OP, op = { .flag = &landed };
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, 1, 0), 0);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, "text", 5, 0, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(landed, 1);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, "text", 5, TERN_BUF_NOWAIT, &op), -EAGAIN);
	CHECK_IS(op.pending + op.error, 0); /* what was not accepted leaves it alone */
	CHECK_IS(landed, 1);
	CHECK_IS(receive_code(local[1], TYPE, 0), 0);
	local_close();
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, "text", 5, 0, &silent), 0);
	CHECK_IS(tern_op_test(local[0], &silent), 1);
	local_close();
}

TEST(a_wait_for_a_message_blames_a_rank_that_died)
{
	setenv("TERN_GRACE", "50", 1);
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	job_rank_ended(&local[0]->own->group->job, 0, SIGKILL);
	CHECK_IS(receive_code(local[1], TYPE, 0), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "rank 0"));
	CHECK_IS(tern_forgive(local[1], 0), 0);
}

/*
 * Over a network of packets a rank is known to have left once what it sent before has come: the
 * send after that says so.
 */
static int send_to_left(uint32_t rank)
{
	int rc = send_to(rank, TYPE, 5, 0);
	while (rc == 0 && local[0]->own->site.asks) {
		local_settle();
		rc = send_to(rank, TYPE, 5, 0);
	}
	return rc;
}

TEST(a_send_to_a_rank_that_has_left_says_so)
{
	local_open(3);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(tern_buf_alloc(local[2], TYPE, BYTES, COUNT, 0), 0);
	CHECK_IS(send_to(1, TYPE, 5, 0), 0);
	CHECK_IS(send_to(2, TYPE, 5, 0), 0);
	local_settle();
	local_close_one(1);
	job_rank_ended(&local[0]->own->group->job, 2, SIGKILL);
	local_settle();
	CHECK_IS(send_to_left(1), -ESHUTDOWN);
	CHECK_IS(send_to_left(2), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "rank 2"));
	CHECK_IS(send_to(2, TYPE, 5, TERN_BUF_NOWAIT), -EOWNERDEAD);
}

/* The buffers of a type that takes the place of another lie between those of older ones. */
TEST(a_buffer_is_found_in_whatever_order_the_types_lie)
{
	enum { TYPES = 8, ROUNDS = 3 };
	unsigned type[TYPES];
	local_open(2);
	for (unsigned i = 0; i < TYPES; i++) {
		type[i] = i;
		REQUIRE(tern_buf_alloc(local[1], i, BYTES, COUNT, 0) == 0);
	}
	for (unsigned i = 1; i < TYPES; i += 2) { /* every second one, closed and replaced */
		CHECK_IS(tern_buf_close(local[1], type[TYPES - i]), 0);
		type[TYPES - i] = TYPES + i;
		REQUIRE(tern_buf_alloc(local[1], type[TYPES - i], BYTES, COUNT, 0) == 0);
	}
	for (unsigned round = 0; round < ROUNDS * COUNT; round++)
		for (unsigned i = 0; i < TYPES; i++) {
			CHECK_IS(send_to(1, type[i], BYTES, 0), 0);
			CHECK_IS(receive_code(local[1], type[i], 0), 0);
		}
	local_close();
}
