/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous that the receiver reads, and one that both sides copy: who moves what, and when each
 * side is over.
 */
#include <errno.h>
#include <sys/mman.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/local.h"
#include "msg/msg.h"

enum { ID = 5, LARGE = 100000, PAGE = 4096, PAGES = 16 };

static unsigned char out[LARGE], in[LARGE];

static void begin(void)
{
	chance_fill(out, LARGE, 3);
	memset(in, 0xee, LARGE);
	local_open(2);
}

static void send_begin(const void *data, size_t len, tern_op *op)
{
	CHECK_IS(tern_send_start(local[0], 1, ID, data, len, TERN_SEND_RENDEZVOUS, op), 0);
}

static void recv_begin(tern_op *op)
{
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LARGE, NULL,
				 op),
		 0);
}

static struct sending *only_send(void)
{
	return record_at(&msg_of(local[0])->sends, 0);
}

/* The sender is told once, and until then it does nothing. */
TEST(a_rendezvous_of_up_to_32_kib_takes_two_messages)
{
	static const size_t sizes[] = { TERN_PAYLOAD_MAX + 1, 16 << 10, PULL_MOST };
	begin();
	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < 3; i++) {
			tern_op so = TERN_OP, ro = TERN_OP;
			memset(in, 0xee, LARGE);
			if (!late)
				recv_begin(&ro);
			send_begin(out, sizes[i], &so);
			tern_poll(local[1]);
			CHECK_IS(in[0], late ? 0xee : out[0]); /* not before the receive */
			if (late)
				recv_begin(&ro);
			tern_poll(local[1]);
			CHECK_IS(ro.pending, 0);
			CHECK(chance_filled(in, sizes[i], 3));
			CHECK_IS(in[sizes[i]], 0xee);
			CHECK_IS(so.pending, 1);
			CHECK_IS(only_send()->state, TERN_STATE_IN_USE);
			CHECK_IS(tern_poll(local[0]), 1); /* all that it is told */
			CHECK_IS(so.pending, 0);
			CHECK_IS(so.error, 0);
			CHECK_IS(msg_of(local[0])->offers, 0);
		}
	local_close();
}

/* Cells that are to be given back go with what a send is told, and questions are counted. */
TEST(a_send_whose_data_were_read_leaves_room_for_as_many_others)
{
	uint32_t rts, cells;
	begin();
	rts = msg_of(local[0])->peer[1].rts;
	cells = msg_of(local[0])->peer[1].cells;
	for (int i = 0; i < 3 * CELLS_EACH; i++) {
		tern_op so = TERN_OP, ro = TERN_OP;
		CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ 7 }, sizeof(uint64_t)), 0);
		send_begin(out, PULL_MOST, &so);
		recv_begin(&ro);
		recv_begin(&ro);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
	}
	CHECK_IS(msg_of(local[0])->peer[1].rts, rts);
	CHECK_IS(msg_of(local[0])->peer[1].cells, cells);
	local_close();
}

TEST(the_receiver_reads_its_part_before_the_sender_has_done_anything)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin();
	recv_begin(&ro);
	send_begin(out, LARGE, &so);
	CHECK(tern_poll(local[1]) > 0);
	CHECK(memcmp(in + LARGE / 2 + PAGE, out + LARGE / 2 + PAGE, LARGE / 2 - PAGE) == 0);
	CHECK_IS(in[0], 0xee); /* this is the sender's */
	CHECK_IS(ro.pending, 1);
	CHECK_IS(so.pending, 1);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(chance_filled(in, LARGE, 3));
	CHECK_IS(msg_of(local[0])->offers, 0);
	local_close();
}

/* Half of it, however long it is; and no poll reads more than a slice, of all that come. */
TEST(the_receiver_reads_half_of_a_long_message_in_slices)
{
	enum { SLICES = 3, HALF = SLICES * PULL_SLICE };
	static unsigned char from[2][2 * HALF], to[2][2 * HALF];
	tern_op so[2] = { TERN_OP, TERN_OP }, ro[2] = { TERN_OP, TERN_OP };
#ifndef __x86_64__
	check_skip("under an emulator the kernel does not copy between processes");
#endif
	begin();
	for (int i = 0; i < 2; i++) {
		chance_fill(from[i], 2 * HALF, 4);
		memset(to[i], 0xee, 2 * HALF);
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, to[i],
					 2 * HALF, NULL, &ro[i]),
			 0);
		send_begin(from[i], 2 * HALF, &so[i]);
	}
	for (int n = 1; n <= 2 * SLICES; n++) {
		tern_poll(local[1]);
		for (int k = 0; k < 2 * SLICES; k++) {
			size_t at = HALF + k % SLICES * PULL_SLICE;
			const unsigned char *slice = to[k / SLICES] + at;
			CHECK(k < n ? memcmp(slice, from[k / SLICES] + at, PULL_SLICE) == 0
				    : slice[0] == 0xee && slice[1] == 0xee);
		}
		CHECK_IS(to[0][0], 0xee); /* this is the sender's */
	}
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_op_wait(local[0], &so[i]), 0);
		CHECK_IS(tern_op_wait(local[1], &ro[i]), 0);
		CHECK(chance_filled(to[i], 2 * HALF, 4));
	}
	local_close();
}

TEST(the_sender_is_over_only_when_the_receiver_has_read_its_part)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin();
	CHECK_IS(tern_send(local[1], 0, ID, out, 8), 0); /* connects, which a hold would not */
	send_begin(out, LARGE, &so);
	CHECK(tern_poll(local[1]) > 0);
	tern_hold(local[1]); /* it says what the sender may do, and does nothing itself */
	recv_begin(&ro);
	for (int i = 0; i < 10; i++)
		tern_poll(local[0]);
	CHECK(only_send()->finned);
	CHECK_IS(so.pending, 1);
	CHECK_IS(ro.pending, 1);
	tern_release(local[1]);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(chance_filled(in, LARGE, 3));
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

/* Two rings: what the receiver says last may come first. */
TEST(the_news_that_the_receiver_has_read_may_come_before_the_sender_may_send)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	uint64_t words[TELL_WORDS];
	begin();
	send_begin(out, LARGE, &so);
	tell_words(msg_of(local[1]), words, 0, TELL_READ, record_name(only_send()), 0, ID);
	tell(msg_of(local[1]), 0, words);
	CHECK(tern_poll(local[0]) > 0);
	CHECK(only_send()->read);
	CHECK_IS(so.pending, 1);
	tern_poll(local[1]);
	recv_begin(&ro);
	tern_poll(local[1]); /* reads, so that what was said is true */
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(chance_filled(in, LARGE, 3));
	local_close();
}

/* `lost`: the first page of the source that is not there. */
static void source_lost(size_t all, size_t lost, size_t pages)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	char *source =
		mmap(NULL, all * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(source != MAP_FAILED);
	memset(source, 7, all * PAGE);
	send_begin(source, all * PAGE, &so);
	CHECK_IS(munmap(source + lost * PAGE, pages * PAGE), 0);
	recv_begin(&ro);
	for (int i = 0; i < 100 && (so.pending || ro.pending); i++) {
		tern_poll(local[0]);
		tern_poll(local[1]);
	}
	CHECK_IS(so.pending, 0);
	CHECK_IS(ro.pending, 0);
	CHECK_IS(so.error, -EFAULT);
	CHECK_IS(ro.error, -EFAULT);
	CHECK_IS(msg_of(local[0])->offers, 0);
	munmap(source, all * PAGE);
}

TEST(a_source_that_cannot_be_read_is_an_error_at_both_sides_whoever_finds_it)
{
#ifndef __x86_64__
	check_skip("under an emulator the kernel does not refuse what is not mapped");
#endif
	begin();
	source_lost(PAGES, PAGES - 1, 1); /* the receiver does, */
	source_lost(PAGES, 0, 1);         /* the sender, */
	source_lost(PAGES, 0, PAGES);     /* both, */
	source_lost(4, 1, 1);             /* and the receiver, which reads all of it */
	local_close();
}

TEST(sends_that_nobody_receives_leave_memory_to_be_lent_to_receives)
{
	enum { SENDS = 2 * OFFERS_MOST };
	tern_op so[SENDS], ro = TERN_OP;
	begin();
	for (int i = 0; i < SENDS; i++) {
		so[i] = (tern_op)TERN_OP;
		send_begin(out, LARGE, &so[i]);
	}
	CHECK_IS(msg_of(local[0])->offers, OFFERS_MOST);
	for (int i = 0; i < SENDS; i++) {
		memset(in, 0xee, LARGE);
		recv_begin(&ro);
		CHECK_IS(tern_op_wait(local[0], &so[i]), 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK(chance_filled(in, LARGE, 3));
	}
	CHECK_IS(msg_of(local[0])->offers, 0);
	local_close();
}
