/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong, at both ends: the code, a sentence that names rank and id, and nothing written.
 */
#include <errno.h>
#include <sys/resource.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/local.h"
#include "lib/rows.h"
#include "msg/msg.h"

enum { ID = 0xab, LARGE = 50000 };

static unsigned char out[LARGE], in[LARGE];

static bool untouched(void)
{
	for (size_t i = 0; i < LARGE; i++)
		if (in[i] != 0xee)
			return false;
	return true;
}

static int last_error_at(uint32_t rank, tern_op *op)
{
	int rc;
	while ((rc = tern_op_test(local[rank], op)) == 0)
		local_settle();
	return rc;
}

/* -- Lengths ----------------------------------------------------------------------------------- */

enum sender { HEARS_BY_HANDLE, HEARS_BY_POLL };

/*
 * A message of `len` bytes for a receive of `cap`, posted before or after; all of `parts` or up to.
 */
static void misfit(size_t len, size_t cap, unsigned flags, bool recv_first, bool in_parts,
		   enum sender how)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	tern_envelope env = { 0 };
	const tern_part parts[2] = { { .base = in, .run = cap / 2 },
				     { .base = in + cap / 2, .run = cap - cap / 2 } };
	memset(in, 0xee, LARGE);
	for (int step = 0; step < 2; step++) {
		if ((step == 0) == recv_first) {
			CHECK_IS(in_parts ? tern_recv_parts_start(
						    local[1], &(tern_match){ .rank = 0, .id = ID },
						    parts, 2, &env, &ro)
					  : tern_recv_start(local[1],
							    &(tern_match){ .rank = 0, .id = ID },
							    in, cap, &env, &ro),
				 0);
		} else {
			CHECK_IS(tern_send_start(local[0], 1, ID, out, len, flags, &so), 0);
			if (!recv_first)
				tern_poll(local[1]);
		}
	}
	int rc = recv_first ? tern_poll(local[1]) : 0;
	CHECK(rc >= 0);
	CHECK_IS(ro.pending, 0);
	rc = tern_op_wait(local[1], &ro);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "0xab") && sentence_has(rc, "rank 0"));
	CHECK(env.error == -EMSGSIZE && env.src == 0 && env.id == ID && env.len == len);
	rc = how == HEARS_BY_HANDLE ? tern_op_wait(local[0], &so) : tern_poll(local[0]);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "0xab") && sentence_has(rc, "rank 1"));
	CHECK(untouched());
	local_settle_transfers();
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
}

static void misfits(size_t len, size_t cap, bool in_parts)
{
	bool small = len <= TERN_PAYLOAD_MAX;
	for (int first = 0; first < 2; first++) {
		misfit(len, cap, 0, first, in_parts, small ? HEARS_BY_POLL : HEARS_BY_HANDLE);
		misfit(len, cap, TERN_SEND_RENDEZVOUS, first, in_parts, HEARS_BY_HANDLE);
		misfit(len, cap, TERN_SEND_SYNC, first, in_parts, HEARS_BY_HANDLE);
	}
	misfit(len, cap, TERN_SEND_READY, true, in_parts, small ? HEARS_BY_POLL : HEARS_BY_HANDLE);
	misfit(len, cap, TERN_SEND_READY | TERN_SEND_SYNC, true, in_parts, HEARS_BY_HANDLE);
}

TEST(a_message_that_is_too_long_is_an_error_at_both_sides_and_nothing_is_written)
{
	local_open(2);
	misfits(9, 8, false);
	misfits(1, 0, false);
	misfits(1000, 999, false);
	misfits(LARGE, LARGE - 1, false);
	misfits(LARGE, 8, false);
	local_close();
}

TEST(totals_of_parts_that_differ_are_an_error_at_both_sides_and_nothing_is_written)
{
	local_open(2);
	misfits(8, 9, true);
	misfits(9, 8, true);
	misfits(0, 2, true);
	misfits(999, 1000, true);
	misfits(1000, 999, true);
	misfits(LARGE - 1, LARGE, true);
	misfits(LARGE, LARGE - 1, true);
	local_close();
}

TEST(less_than_the_total_of_parts_may_come_when_that_is_asked_for)
{
	static const size_t sizes[] = { 0, 5, 1000, LARGE - 7 };
	const tern_part parts[2] = { ROWS(in, 1, 300, 2),
				     { .base = in + 700, .run = LARGE - 700 } };
	const size_t total = 300 + LARGE - 700;
	local_open(2);
	chance_fill(out, LARGE, 1);
	for (unsigned i = 0; i < 4; i++)
		for (int first = 0; first < 2; first++) {
			tern_op so = TERN_OP, ro = TERN_OP;
			tern_envelope env;
			size_t len = sizes[i] < total ? sizes[i] : total;
			memset(in, 0xee, LARGE);
			if (first)
				CHECK_IS(tern_recv_parts_start(
						 local[1],
						 &(tern_match){ .rank = 0,
								.flags = TERN_RECV_UPTO,
								.id = ID },
						 parts, 2, &env, &ro),
					 0);
			CHECK_IS(tern_send_start(local[0], 1, ID, out, len, 0, &so), 0);
			if (!first) {
				local_settle_transfers();
				CHECK_IS(tern_recv_parts_start(
						 local[1],
						 &(tern_match){ .rank = 0,
								.flags = TERN_RECV_UPTO,
								.id = ID },
						 parts, 2, &env, &ro),
					 0);
			}
			CHECK_IS(tern_op_wait(local[1], &ro), 0);
			CHECK_IS(tern_op_wait(local[0], &so), 0);
			CHECK_IS(env.len, len);
			for (size_t b = 0; b < 300; b++)
				CHECK(in[2 * b] == (b < len ? out[b] : 0xee) &&
				      in[2 * b + 1] == 0xee);
			for (size_t b = 300; b < total; b++)
				if (!CHECK(in[700 + b - 300] == (b < len ? out[b] : 0xee)))
					break;
		}
	local_close();
}

TEST(a_blocking_receive_that_is_too_short_says_so_and_what_follows_is_received)
{
	tern_envelope env = { 0 };
	local_open(2);
	memset(in, 0xee, LARGE);
	CHECK_IS(tern_send(local[0], 1, ID, out, 100), 0);
	CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
	int rc = tern_recv(local[1], 0, ID, in, 99, &env);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "0xab") && sentence_has(rc, "rank 0"));
	CHECK(env.len == 100 && env.error == -EMSGSIZE);
	CHECK(untouched());
	uint64_t word = 0;
	CHECK_IS(tern_recv(local[1], 0, ID, &word, sizeof word, NULL), 0);
	CHECK_IS(word, 5);
	CHECK_IS(tern_poll(local[0]), -EMSGSIZE);
	local_close();
}

TEST(a_blocking_send_whose_receive_is_too_short_says_so)
{
	tern_op ro = TERN_OP;
	local_open(2);
	memset(in, 0xee, LARGE);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LARGE - 1,
				 NULL, &ro),
		 0);
	int rc = tern_send(local[0], 1, ID, out, LARGE);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "0xab") && sentence_has(rc, "rank 1"));
	CHECK_IS(tern_op_wait(local[1], &ro), -EMSGSIZE);
	CHECK(untouched());
	local_close();
}

TEST(cells_of_messages_that_were_refused_come_back)
{
	local_open(2);
	for (int i = 0; i < 3000; i++) {
		CHECK_IS(tern_send(local[0], 1, ID, out, 1000), 0);
		CHECK_IS(tern_recv(local[1], 0, ID, in, 1, NULL), -EMSGSIZE);
		CHECK_IS(tern_poll(local[0]), -EMSGSIZE);
	}
	struct msg *m = msg_of(local[0]);
	CHECK(m->peer[1].cells + msg_of(local[1])->peer[0].owed == m->window);
	local_close();
}

/* -- What is asked for ------------------------------------------------------------------------- */

TEST(flags_that_nobody_knows_and_two_modes_at_once_are_refused)
{
	tern_op op = TERN_OP;
	const tern_id id = ID;
	const tern_part part = { .base = out, .run = 8 };
	local_open(2);
	int rc = tern_send_start(local[0], 1, ID, out, 8, 64, &op);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, "0x40"));
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_READY | TERN_SEND_RENDEZVOUS,
				 &op),
		 -EINVAL);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_RECV_UPTO, &op), -EINVAL);
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, &part, 1, 64, &op), -EINVAL);
	CHECK_IS(tern_send_each_start(local[0], 1, &id, &part, 1,
				      TERN_SEND_READY | TERN_SEND_RENDEZVOUS, &op),
		 -EINVAL);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .flags = 64, .id = ID }, in, 8,
				 NULL, &op),
		 -EINVAL);
	CHECK_IS(tern_recv_start(local[0],
				 &(tern_match){ .rank = 1, .flags = TERN_SEND_READY, .id = ID }, in,
				 8, NULL, &op),
		 -EINVAL);
	CHECK_IS(tern_recv_parts_start(
			 local[0], &(tern_match){ .rank = 1, .flags = TERN_SEND_SYNC, .id = ID },
			 &part, 1, NULL, &op),
		 -EINVAL);
	CHECK_IS(op.pending, 0);
	CHECK_IS(msg_of(local[0])->sends.used + msg_of(local[0])->recvs.used, 0);
	local_close();
}

TEST(a_rank_that_does_not_exist_is_refused_everywhere)
{
	tern_op op = TERN_OP;
	tern_envelope env;
	const tern_id id = ID;
	const tern_part part = { .base = out, .run = 8 };
	local_open(2);
	for (uint32_t bad = 2; bad < 2000; bad += 1000) {
		int rc = tern_send(local[0], bad, ID, out, 8);
		CHECK_IS(rc, -ERANGE);
		CHECK(sentence_has(rc, bad == 2 ? "rank 2" : "rank 1002"));
		CHECK_IS(tern_send_start(local[0], bad, ID, out, 8, 0, &op), -ERANGE);
		CHECK_IS(tern_send_parts_start(local[0], bad, ID, &part, 1, 0, &op), -ERANGE);
		CHECK_IS(tern_send_each_start(local[0], bad, &id, &part, 1, 0, &op), -ERANGE);
		CHECK_IS(tern_recv(local[0], bad, ID, in, 8, NULL), -ERANGE);
		CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = bad, .id = ID }, in, 8,
					 NULL, &op),
			 -ERANGE);
		CHECK_IS(tern_recv_parts_start(local[0], &(tern_match){ .rank = bad, .id = ID },
					       &part, 1, NULL, &op),
			 -ERANGE);
		CHECK_IS(tern_block_ask(
				 local[0], bad,
				 &(tern_block){ .name = 0, .stride = 1, .run = 1, .count = 1 }, ID),
			 -ERANGE);
		CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = bad, .id = ID }, &env),
			 -ERANGE);
	}
	CHECK_IS(tern_send(local[0], TERN_RANK_ANY, ID, out, 8), -ERANGE);
	CHECK_IS(tern_send(local[0], TERN_RANK_ALL, ID, out, 8), -ERANGE);
	CHECK_IS(tern_recv(local[0], TERN_RANK_ALL, ID, in, 8, NULL), -ERANGE);
	CHECK_IS(op.pending, 0);
	local_close();
}

TEST(a_probe_that_waits_for_a_rank_that_does_not_exist_is_refused)
{
	local_open(2);
	CHECK_IS(tern_probe(local[0],
			    &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 2, .id = ID }, NULL),
		 -ERANGE);
	local_close();
}

TEST(too_many_parts_and_more_bytes_than_memory_has_are_refused)
{
	static tern_part many[TERN_PARTS_MAX + 1];
	static tern_id ids[TERN_PARTS_MAX + 1];
	tern_op op = TERN_OP;
	local_open(2);
	for (unsigned i = 0; i <= TERN_PARTS_MAX; i++)
		many[i] = (tern_part){ .base = out, .run = 1 };
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, many, TERN_PARTS_MAX + 1, 0, &op), -EINVAL);
	CHECK_IS(tern_recv_parts_start(local[0], &(tern_match){ .rank = 1, .id = ID }, many,
				       TERN_PARTS_MAX + 1, NULL, &op),
		 -EINVAL);
	CHECK_IS(tern_send_each_start(local[0], 1, ids, many, TERN_PARTS_MAX + 1, 0, &op), -EINVAL);
	const tern_part huge[] = { ROWS(out, SIZE_MAX / 2, 3, 1) };
	const tern_part sum[] = { { .base = out, .run = SIZE_MAX / 2 },
				  { .base = out, .run = SIZE_MAX / 2 } };
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, huge, 1, 0, &op), -EINVAL);
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, sum, 2, 0, &op), -EINVAL);
	CHECK_IS(tern_recv_parts_start(local[0], &(tern_match){ .rank = 1, .id = ID }, sum, 2, NULL,
				       &op),
		 -EINVAL);
	CHECK_IS(op.pending, 0);
	local_close();
}

TEST(one_bad_part_among_parts_with_an_id_each_and_none_is_sent)
{
	const tern_id ids[] = { 1, 2 };
	const tern_part parts[] = { { .base = out, .run = 8 }, ROWS(out, SIZE_MAX / 2, 3, 1) };
	tern_op op = TERN_OP;
	local_open(2);
	CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 2, 0, &op), -EINVAL);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_probe(local[1], &(tern_match){ .rank = 0, .id = 1 }, NULL), 0);
	local_close();
}

/* -- In a handler ------------------------------------------------------------------------------ */

static int in_handlers[16];

static tern_op started = TERN_OP;

static void try_everything(tern *t, const tern_msg *m)
{
	static tern_op op;
	static const tern_part part = { .base = out, .run = 8 };
	static const tern_id id = ID;
	int *rc = in_handlers;
	(void)m;
	*rc++ = tern_send(t, 0, ID, out, 8);
	*rc++ = tern_recv(t, 0, ID, in, 8, NULL);
	*rc++ = tern_send_start(t, 0, ID, out, 8, 0, &op);
	*rc++ = tern_recv_start(t, &(tern_match){ .rank = 0, .id = ID }, in, 8, NULL, &op);
	*rc++ = tern_send_parts_start(t, 0, ID, &part, 1, 0, &op);
	*rc++ = tern_recv_parts_start(t, &(tern_match){ .rank = 0, .id = ID }, &part, 1, NULL, &op);
	*rc++ = tern_send_each_start(t, 0, &id, &part, 1, 0, &op);
	*rc++ = tern_op_wait(t, &started);
	*rc++ = tern_op_cancel(t, &started);
	*rc++ = tern_probe(t, &(tern_match){ .rank = 0, .id = ID }, NULL);
	*rc++ = tern_probe(t, &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 0, .id = ID }, NULL);
	*rc++ = tern_block_ask(t, 0, &(tern_block){ .name = 0, .stride = 1, .run = 1, .count = 1 },
			       ID);
	CHECK_IS(op.pending, 0);
}

TEST(sends_and_receives_may_not_be_called_in_a_handler)
{
	local_open(2);
	local_on(1, try_everything);
	CHECK_IS(tern_send_start(local[1], 0, ID, out, LARGE, 0, &started), 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, 8, NULL,
				 &started),
		 0);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	tern_poll(local[1]);
	for (int i = 0; i < 12; i++)
		if (!CHECK_IS(in_handlers[i], -EPERM))
			printf("    number %d\n", i);
	CHECK_IS(tern_op_state(local[1], &started), TERN_STATE_IN_USE);
	CHECK_IS(started.pending, 2);
	local_close();
}

static void leave_a_hold(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
}

TEST(a_probe_that_waits_ends_when_a_handler_leaves_a_hold)
{
	local_polled();
	local_open(2);
	local_on(1, leave_a_hold);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	int rc = tern_probe(local[1],
			    &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 0, .id = ID }, NULL);
	CHECK_IS(rc, -EDEADLK);
	CHECK(sentence_has(rc, "tern_probe() with TERN_PROBE_WAIT"));
	tern_release(local[1]);
	local_close();
}

/* -- Without memory ---------------------------------------------------------------------------- */

/* Lets the process map so many bytes more; UINT64_MAX: as many as it likes. */
static void memory_left(uint64_t bytes)
{
	struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long pages = 0;
	if (bytes != UINT64_MAX) {
		FILE *f = fopen("/proc/self/statm", "r");
		REQUIRE(f && fscanf(f, "%lu", &pages) == 1);
		fclose(f);
		most.rlim_cur = pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
	}
	REQUIRE(setrlimit(RLIMIT_AS, &most) == 0);
}

/* Its record has room, and the table of receives, which is larger, has none. */
TEST(a_receive_without_memory_is_refused_and_takes_nothing)
{
	uint64_t word = 0;
	tern_op op = TERN_OP;
	const tern_match match = { .rank = 0, .id = ID };
	local_polled();
	local_open(2);
	memory_left(128 << 10);
	int rc = tern_recv_start(local[1], &match, &word, sizeof word, NULL, &op);
	memory_left(UINT64_MAX);
	CHECK_IS(rc, -ENOMEM);
	CHECK(sentence_has(rc, "no memory for the table"));
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_recv_start(local[1], &match, &word, sizeof word, NULL, &op), 0);
	CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ 7 }, sizeof word), 0);
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	CHECK_IS(word, 7);
	local_close();
}

/* Each piece of memory that an arrival needs is the one that is lacking: all or nothing is kept. */
TEST(a_message_that_there_is_no_memory_to_write_down_leaves_nothing_behind)
{
	enum { STEP = 64 << 10 };
	local_polled();
	for (uint64_t left = 0, kept = 0; !kept; left += STEP) {
		uint64_t word = 0;
		local_open(2);
		CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ 1 }, sizeof word), 0);
		memory_left(left);
		(void)!tern_poll(local[1]);
		memory_left(UINT64_MAX);
		int found = tern_probe(local[1], &(tern_match){ .rank = 0, .id = ID }, NULL);
		kept = found == 1;
		CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ 2 }, sizeof word), 0);
		for (uint64_t i = 2 - kept; i <= 2; i++) {
			CHECK_IS(tern_recv(local[1], 0, ID, &word, sizeof word, NULL), 0);
			CHECK_IS(word, i);
		}
		CHECK_IS(tern_probe(local[1], &(tern_match){ .rank = 0, .id = ID }, NULL), 0);
		local_close();
	}
}

/* -- Ranks that have left ---------------------------------------------------------------------- */

TEST(a_rank_that_has_closed_well_ends_what_needs_it)
{
	tern_op so = TERN_OP, ro = TERN_OP, any = TERN_OP, asks = TERN_OP;
	local_open(3);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LARGE, 0, &so), 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = ID }, in, LARGE, NULL,
				 &ro),
		 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, in,
				 LARGE, NULL, &any),
		 0);
	CHECK_IS(tern_send(local[1], 0, 3, &(uint64_t){ 33 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send_start(local[1], 0, 4, out, LARGE, 0, &asks), 0);
	local_close_one(1);
	int rc = last_error_at(0, &so);
	CHECK_IS(rc, -ESHUTDOWN);
	rc = last_error_at(0, &ro);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK_IS(any.pending, 1); /* rank 2 may still send */
	uint64_t word = 0;
	CHECK_IS(tern_recv(local[0], 1, 3, &word, sizeof word, NULL), 0); /* it had sent that */
	CHECK_IS(word, 33);
	rc = tern_recv(local[0], 1, ID, in, LARGE, NULL);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 1"));
	rc = tern_send(local[0], 1, ID, out, 8);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_send(local[0], 1, ID, out, LARGE), -ESHUTDOWN);
	CHECK_IS(tern_send(local[2], 0, ID, &(uint64_t){ 7 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[0], &any), 0);
	local_close();
}

TEST(a_receive_that_takes_the_question_of_a_rank_that_has_left_ends)
{
	for (int noticed = 0; noticed < 2; noticed++) {
		tern_op so = TERN_OP, ro = TERN_OP;
		local_open(3);
		CHECK_IS(tern_send_start(local[1], 0, 4, out, LARGE, 0, &so), 0);
		CHECK_IS(tern_send_start(local[1], 0, 4, out, LARGE, 0, &so), 0);
		CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = 4 }, NULL), 1);
		local_close_one(1);
		if (noticed)
			local_settle_transfers();
		CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 4 }, in, LARGE,
					 NULL, &ro),
			 0);
		CHECK_IS(tern_op_wait(local[0], &ro), -ESHUTDOWN);
		CHECK_IS(tern_recv(local[0], 1, 4, in, LARGE, NULL), -ESHUTDOWN);
		local_settle_transfers();
		CHECK_IS(msg_of(local[0])->recvs.used, 0);
		local_close();
	}
}

TEST(a_receive_from_a_rank_that_leaves_without_a_word_ends)
{
	tern_op ro = TERN_OP;
	local_open(3);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 4 }, in, LARGE, NULL,
				 &ro),
		 0);
	local_close_one(1);
	CHECK_IS(tern_op_wait(local[0], &ro), -ESHUTDOWN);
	local_close();
}

TEST(a_receive_from_any_rank_ends_when_no_other_is_left)
{
	tern_op exact = TERN_OP, masked = TERN_OP;
	local_open(3);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .id = 4 }, in,
				 LARGE, NULL, &exact),
		 0);
	CHECK_IS(tern_recv_start(local[0],
				 &(tern_match){ .rank = TERN_RANK_ANY, .id = 0, .any = ~0xf00 }, in,
				 LARGE, NULL, &masked),
		 0);
	local_close_one(1);
	local_settle_transfers();
	CHECK(exact.pending && masked.pending);
	local_close_one(2);
	CHECK_IS(tern_op_wait(local[0], &exact), -ESHUTDOWN);
	CHECK_IS(tern_op_wait(local[0], &masked), -ESHUTDOWN);
	CHECK_IS(tern_recv(local[0], TERN_RANK_ANY, 4, in, LARGE, NULL), -ESHUTDOWN);
	local_close();
}

TEST(a_probe_that_waits_for_a_rank_that_has_closed_well_ends)
{
	local_open(3);
	CHECK_IS(tern_send(local[1], 0, 4, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	local_close_one(1);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 1, .id = 4 },
			    NULL),
		 1); /* what it had sent */
	int rc = tern_probe(local[0], &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 1, .id = 5 },
			    NULL);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 1"));
	local_close();
}
