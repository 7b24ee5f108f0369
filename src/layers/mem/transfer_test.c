/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous put and get, on memory that this process can touch; handles, order, rules. */
#include <errno.h>

#include "lib/handed.h"
#include "lib/mem_areas.h"

enum { ASK, TELL, GO };

/* -- Contiguous ---------------------------------------------------------------------------- */

TEST(every_short_length_is_put_and_got_at_every_alignment)
{
	areas_open(1);
	for (size_t len = 0; len <= 70; len++)
		for (size_t to = 64; to < 80; to++) {
			size_t from = 100 + (len * 7 + to) % 16;
			int k = (int)(len + to) % 2;
			CHECK_IS(tern_put(local[0], at[k] + to, here + from, len), 0);
			memcpy(image[k] + to, here_image + from, len);
			CHECK(model_same(area[k], image[k], 256));
			CHECK_IS(tern_get(local[2], here + 1000 + from, at[k] + to, len), 0);
			memcpy(here_image + 1000 + from, image[k] + to, len);
			CHECK(model_same(here, here_image, 2048));
		}
	areas_close();
}

TEST(blocks_of_any_length_and_alignment_arrive_whole_and_touch_nothing_else)
{
	areas_open(check_seed());
	for (unsigned n = check_scaled(300); n; n--) {
		int k = (int)chance_below(&chance, 2);
		size_t len = model_length(&chance, MOST);
		size_t there = somewhere(len), mine = somewhere(len);
		if (chance_one_in(&chance, 2)) {
			CHECK_IS(tern_put(local[0], at[k] + there, here + mine, len), 0);
			memcpy(image[k] + there, here_image + mine, len);
		} else {
			CHECK_IS(tern_get(local[0], here + mine, at[k] + there, len), 0);
			memcpy(here_image + mine, image[k] + there, len);
		}
		if (n % 10 == 0)
			areas_check();
	}
	areas_close();
}

TEST(zero_bytes_are_a_success_and_touch_nothing_the_address_included)
{
	areas_open(1);
	const tern_addr addresses[] = { at[0],          at[1],      at[0] + AREA,
					TERN_ADDR_NONE, UINT64_MAX, handed_at(at[0], RANKS) };
	tern_op op = TERN_OP;
	const size_t no_rows[] = { 3, 0 }, five = 5;
	const ptrdiff_t strides[] = { 8, -9000 };
	const tern_part none[] = { { .run = 0 },
				   { .run = 8, .dims = 1, .count = &no_rows[1], .stride = strides },
				   { .run = 8, .dims = 2, .count = no_rows, .stride = strides },
				   { .run = 0, .dims = 1, .count = &five, .stride = strides } };
	for (int i = 0; i < 6; i++) {
		CHECK_IS(tern_put(local[0], addresses[i], NULL, 0), 0);
		CHECK_IS(tern_get(local[0], NULL, addresses[i], 0), 0);
		CHECK_IS(tern_put_start(local[0], addresses[i], NULL, 0, &op), 0);
		CHECK_IS(tern_get_start(local[0], NULL, addresses[i], 0, &op), 0);
		CHECK_IS(tern_store(local[0], addresses[i], NULL, 0), 0);
		CHECK_IS(tern_copy_start(local[0], addresses[i], addresses[5 - i], 0, &op), 0);
		for (int k = 0; k < 4; k++) {
			tern_part there = none[k];
			there.addr = addresses[i];
			CHECK_IS(tern_put_parts(local[0], &there, 1, &none[3 - k], 1), 0);
			CHECK_IS(tern_get_parts(local[0], NULL, 0, &there, 1), 0);
			CHECK_IS(tern_get_parts_start(local[0], none, 4, &there, 1, &op), 0);
		}
	}
	CHECK_IS(tern_put_parts(local[0], NULL, 0, NULL, 0), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(op.pending, 0);
	areas_close();
}

/* Neither way moves a byte; returns the put's code. */
static int refused(tern_addr a, size_t len)
{
	tern_op op = TERN_OP;
	int rc = tern_get(local[0], here, a, len);
	CHECK(rc < 0);
	CHECK_IS(tern_put_start(local[0], a, here, len, &op), rc);
	CHECK_IS(tern_get_start(local[0], here, a, len, &op), rc);
	CHECK_IS(tern_store(local[0], a, here, len), rc);
	CHECK_IS(tern_copy_start(local[0], a, at[0], len, &op), rc);
	CHECK_IS(op.pending, 0);
	CHECK_IS(op.error, 0);
	CHECK_IS(tern_put(local[0], a, here, len), rc);
	return rc;
}

TEST(what_is_out_of_range_or_nowhere_is_refused_before_a_byte_moves)
{
	areas_open(1);
	int rc = refused(TERN_ADDR_NONE, 1);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "TERN_ADDR_NONE"));
	rc = refused(handed_at(at[0], RANKS), 1);
	CHECK_IS(rc, -ERANGE);
	CHECK(sentence_has(rc, "rank 3"));
	CHECK_IS(refused(UINT64_MAX, 1), -ERANGE);
	rc = refused(at[1] + AREA - 10, 11);
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(refused(at[1] + AREA, 1), -EFAULT);
	CHECK_IS(refused(at[1], (size_t)AREA + 1), -EFAULT);
	CHECK_IS(refused(at[1] + (UINT64_C(1) << 39), 1), -EFAULT);
	rc = refused(at[0] + (64 << 20), 1); /* nothing of the heap has ever reached that */
	CHECK_IS(rc, -EFAULT);
	CHECK(sentence_has(rc, "rank 1") && sentence_has(rc, "heap"));
	CHECK_IS(refused(at[0], SIZE_MAX), -EFAULT);
	CHECK_IS(refused(at[0] + 1, SIZE_MAX), -EFAULT);
	CHECK_IS(refused(at[1], SIZE_MAX), -EFAULT);
	CHECK_IS(refused(handed_at(at[0], 2), 1), -EFAULT); /* rank 2 has allocated nothing */
	CHECK_IS(refused(handed_at(at[1], 2), 1), -EFAULT); /* nor registered */
	for (unsigned bit = 0; bit < 47; bit++) {           /* no other region is there */
		tern_addr a = (UINT64_C(1) << 48) | UINT64_C(1) << bit;
		if (a - at[1] >= AREA)
			CHECK_IS(tern_put(local[0], a, here, 1), -EFAULT);
	}
	areas_close();
}

TEST(memory_that_was_freed_is_heap_memory_until_it_is_given_out_again)
{
	areas_open(1);
	unsigned char byte = 0;
	CHECK_IS(tern_free(local[1], area[0]), 0);
	CHECK_IS(tern_put(local[0], at[0], "x", 1),
		 0); /* as through a plain pointer: not noticed, and no harm */
	CHECK_IS(tern_get(local[0], &byte, at[0], 1), 0);
	CHECK_IS(byte, 'x');
	CHECK(handed_alloc(local[1], AREA) == area[0]);
	image[0][0] = 'x';
	areas_close();
}

/* -- Many at once ------------------------------------------------------------------------------ */

TEST(hundreds_of_operations_under_one_handle_overlap_and_all_complete)
{
	static _Atomic uint64_t flag;
	areas_open(check_seed());
	tern_op op = { .flag = &flag };
	for (unsigned n = check_scaled(10) + 1; n; n--) {
		uint64_t started = 0;
		size_t to = 64;
		while (to + 4096 < AREA &&
		       started < 900) { /* places apart, for they overlap in time */
			size_t len = chance_below(&chance, 2000) +
				     (chance_one_in(&chance, 100) ? 100000 : 0);
			int k = (int)chance_below(&chance, 2);
			if (to + len + 64 > AREA)
				break;
			size_t from = somewhere(len);
			CHECK_IS(tern_put_start(local[0], at[k] + to, here + from, len, &op), 0);
			memcpy(image[k] + to, here_image + from, len);
			to += len + chance_below(&chance, 40);
			started++;
		}
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		CHECK_IS(op.pending, 0);
		CHECK_IS(atomic_exchange(&flag, 0), started);
		areas_check();
	}
	areas_close();
}

TEST(more_than_the_most_operations_are_under_way_after_the_call_has_made_room)
{
	areas_open(1);
	tern_op op = TERN_OP;
	enum { MANY = TERN_OPS_MAX + 200, LONG = 80000 }; /* longer than what is moved at once */
	uint32_t most = 0;
	for (unsigned i = 0; i < MANY; i++) {
		CHECK_IS(tern_put_start(local[0], at[0] + i, here + i, LONG, &op), 0);
		most = op.pending > most ? op.pending : most;
	}
	CHECK(most > 100 && most <= TERN_OPS_MAX);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	tern_op again = TERN_OP; /* and none is lost */
	for (unsigned i = 0; i < MANY; i++)
		CHECK_IS(tern_put_start(local[0], at[0], here, LONG, &again), 0);
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(again.pending, 0);
	CHECK_IS(tern_put(local[0], at[0], here, AREA), 0);
	memcpy(image[0], here_image, AREA);
	areas_close();
}

/* -- Handles ----------------------------------------------------------------------------------- */

TEST(a_handle_that_was_never_used_is_complete)
{
	tern_op op = TERN_OP;
	areas_open(1);
	CHECK_IS(tern_op_test(local[0], &op), 1);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	areas_close();
}

TEST(testing_a_handle_moves_the_data_and_says_when_it_is_there)
{
	tern_op op = TERN_OP;
	areas_open(1);
	CHECK_IS(tern_put_start(local[0], at[0] + 1, here, AREA - 2, &op), 0);
	CHECK_IS(op.pending, 1);
	int rc, tests = 0;
	while ((rc = tern_op_test(local[0], &op)) == 0)
		tests++;
	CHECK_IS(rc, 1);
	CHECK(tests > 0);
	memcpy(image[0] + 1, here_image, AREA - 2);
	areas_close();
}

TEST(a_flag_counts_every_operation_once)
{
	static _Atomic uint64_t flag;
	areas_open(1);
	tern_op op = { .flag = &flag };
	CHECK_IS(tern_put_start(local[0], at[0], here, 0, &op), 0);
	CHECK_IS(tern_put_start(local[0], at[0], here, 1, &op), 0);
	CHECK_IS(tern_put_start(local[0], at[0], here, AREA, &op), 0);
	CHECK_IS(tern_get_start(local[0], here, at[0], 70, &op), 0); /* the same bytes as are put */
	CHECK_IS(tern_wait(local[0], &flag, 4), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(atomic_load(&flag), 0);
	memcpy(image[0], here_image, AREA);
	memcpy(here, here_image, AREA); /* whichever came first */
	areas_close();
}

/* And so takes none of the places for what is under way: a hold does not refuse it. */
TEST(a_started_put_or_get_of_a_heap_is_complete_on_return)
{
	static const size_t lens[] = { 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 512, 4096, 64 << 10 };
	static _Atomic uint64_t flag;
	areas_open(1);
	tern_hold(local[0]);
	for (unsigned i = 0; i < 2 * sizeof lens / sizeof *lens; i++) {
		size_t len = lens[i / 2], off = i % 7 * 8;
		tern_op op = { .error = -EDOM, .flag = i % 2 ? &flag : NULL };
		atomic_store(&flag, 0);
		CHECK_IS(tern_put_start(local[0], at[0] + off, here, len, &op), 0);
		CHECK(memcmp(handed_local(local[0], at[0] + off, len), here, len) == 0);
		memcpy(image[0] + off, here_image, len);
		CHECK_IS(op.pending, 0);
		CHECK_IS(atomic_load(&flag), i % 2);
		CHECK_IS(tern_get_start(local[0], here + off, at[0], len, &op), 0);
		CHECK(memcmp(handed_local(local[0], at[0], len), here + off, len) == 0);
		memcpy(here_image + off, image[0], len);
		CHECK_IS(op.pending, 0);
		CHECK_IS(op.error, -EDOM); /* of an earlier operation */
		CHECK_IS(atomic_load(&flag), i % 2 * 2);
	}
	tern_release(local[0]);
	areas_close();
}

TEST(the_first_error_under_a_handle_is_told_once)
{
	static _Atomic uint64_t flag;
	areas_open(1);
	tern_op op = { .flag = &flag };
	tern_segment s = (tern_segment)1 << 48; /* none is open there */
	CHECK_IS(tern_segment_put_start(local[0], s, here, 10, &op), 0);
	CHECK_IS(tern_put_start(local[0], at[0], here, 10, &op), 0);
	CHECK_IS(tern_segment_put_start(local[0], s, here, 10, &op), 0);
	int rc = tern_op_wait(local[0], &op);
	CHECK(rc < 0);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(tern_op_test(local[0], &op), 1);
	CHECK_IS(atomic_load(&flag), 3);
	memcpy(image[0], here_image, 10);
	areas_close();
}

/* -- Order: puts and messages ------------------------------------------------------------------ */

static size_t long_len;

static void look_at_data(tern *t, const tern_msg *m)
{
	size_t offset = tern_msg_word(m, 0);
	CHECK_IS(tern_rank(t), 1);
	CHECK(memcmp(area[0] + offset, here_image, long_len) == 0);
	requests.count++;
	requests.words = tern_msg_count(m);
}

TEST(the_handler_of_a_long_message_finds_the_data_in_place)
{
	areas_open(1);
	local_on(ASK, look_at_data);
	static const size_t lengths[] = { 0, 1, 8, 100, 8192, 70000, 500000 };
	for (unsigned i = 0; i < 7; i++) {
		long_len = lengths[i];
		memset(area[0], 0, AREA);
		CHECK_IS(tern_put_request(local[0], at[0] + 64 + i, ASK, here, long_len, 64 + i, 2,
					  3),
			 0);
		local_settle();
		CHECK_IS(requests.count, i + 1);
		CHECK_IS(requests.words, 3);
	}
	const uint64_t words[] = { 70, 2, 3, 4 };
	CHECK_IS(tern_put_request_array(local[0], at[0] + 70, ASK, here, long_len, 4, words), 0);
	local_settle();
	CHECK(requests.count == 8 && requests.words == 4);
	CHECK_IS(tern_put_request(local[0], at[0] + 70, ASK, here, long_len, 70, 2, 3, 4, 5, 6, 7,
				  8),
		 0);
	local_settle();
	CHECK(requests.count == 9 && requests.words == 8);
	memset(image[0], 0, AREA);
	memcpy(image[0] + 70, here_image, 500000);
	areas_check();
	CHECK_IS(tern_put_request(local[0], at[0], 500, here, 100),
		 -ENXIO); /* no such handler: nothing moves */
	CHECK_IS(tern_put_request(local[0], at[1] + AREA, ASK, here, 1), -EFAULT);
	CHECK_IS(tern_put_request(local[0], handed_at(at[1], 7), ASK, here, 1), -ERANGE);
	CHECK_IS(local_settle(), 0);
	areas_close();
}

TEST(a_flush_ends_every_transfer_and_orders_puts_to_one_rank)
{
	areas_open(1);
	tern_op first = TERN_OP, second = TERN_OP;
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(tern_put_start(local[0], at[0], here, AREA, &first), 0);
	CHECK(first.pending == 1);
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(tern_put_start(local[0], at[0] + 1000, here, 10, &second), 0);
	CHECK_IS(tern_flush(local[0]), 0);
	CHECK_IS(first.pending + second.pending, 0);
	memcpy(image[0], here_image, AREA);
	memcpy(image[0] + 1000, here_image, 10); /* after the flush, so on top */
	areas_check();
	CHECK_IS(tern_op_wait(local[0], &first), 0);
	areas_close();
}

/* -- In handlers and under a hold -------------------------------------------------------------- */

static void use_memory(tern *t, const tern_msg *m)
{
	static const char text[] = "from a handler";
	char back[sizeof text];
	uint64_t old = 0;
	tern_op op = TERN_OP;
	requests.count++;
	for (int k = 0; k < 2; k++) {
		CHECK_IS(tern_put(t, at[k] + 801, text, sizeof text), 0);
		CHECK_IS(tern_get(t, back, at[k] + 801, sizeof text), 0);
		CHECK(memcmp(back, text, sizeof text) == 0);
		CHECK_IS(tern_put_start(t, at[k] + 901, text, sizeof text, &op), 0);
		CHECK_IS(tern_put_start(t, at[k] + 2000, here, 500000, &op),
			 0); /* all of it, at once */
		CHECK_IS(op.pending, 0);
		CHECK_IS(tern_amo(t, at[k] + 704, TERN_AMO_SWAP, 5, &old), 0);
		CHECK_IS(tern_amo(t, at[k] + 704, TERN_AMO_ADD, 5, &old), 0);
		CHECK_IS(old, 5);
		CHECK_IS(tern_store(t, at[k] + 1001, text, sizeof text), 0);
	}
	CHECK_IS(tern_copy_start(t, at[0] + 600000, at[1] + 2000, 300000, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_flush(t), 0);
	CHECK(handed_alloc(t, 10) != NULL);
	/* What sends a request or waits is not for a handler. */
	tern_segment s = (tern_segment)1 << 48;
	CHECK_IS(tern_segment_put_start(t, s, text, 1, &op), -EPERM);
	CHECK_IS(tern_get_when_start(t, back, at[0], 1,
				     &(tern_when){ .flag = at[0] + 704, .least = 1 }, &op),
		 -EPERM);
	CHECK_IS(tern_block_get_start(t, back, 0, 1,
				      &(tern_block){ .name = 0, .run = 1, .count = 1 }, &op),
		 -EPERM);
	CHECK_IS(tern_store_sync(t, 1), -EPERM);
	CHECK_IS(tern_store_sync_all(t), -EPERM);
	CHECK_IS(tern_unregister(t, at[1]), -EPERM);
	CHECK_IS(tern_put_request(t, at[0], ASK, text, 1), -EPERM);
	CHECK(handed_alloc_all(t, 64) == NULL && errno == EPERM);
	CHECK_IS(tern_free_all(t, area[0]), -EPERM);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void expect_what_handlers_did(void)
{
	static const char text[] = "from a handler";
	for (int k = 0; k < 2; k++) {
		memcpy(image[k] + 801, text, sizeof text);
		memcpy(image[k] + 901, text, sizeof text);
		memcpy(image[k] + 1001, text, sizeof text);
		memcpy(image[k] + 704, &(uint64_t){ 10 }, 8);
		memcpy(image[k] + 2000, here_image, 500000);
	}
	memcpy(image[0] + 600000, image[1] + 2000, 300000);
}

TEST(a_handler_uses_heap_memory_and_what_its_process_registered_but_does_not_wait)
{
	areas_open(1);
	local_on(ASK, use_memory);
	local_on(TELL, note_reply);
	CHECK_IS(tern_request(local[0], 2, ASK), 0);
	local_settle();
	expect_what_handlers_did();
	CHECK_IS(requests.count, 1);
	CHECK_IS(replies.count, 1);
	areas_close();
}

TEST(under_a_hold_memory_moves_at_once_and_waits_are_refused)
{
	areas_open(1);
	tern_op op = TERN_OP, queued = TERN_OP;
	CHECK_IS(tern_put_start(local[0], at[0], here, AREA, &queued), 0);
	tern_hold(local[0]);
	CHECK_IS(tern_op_wait(local[0], &queued), -EDEADLK);
	CHECK_IS(tern_flush(local[0]), -EDEADLK);
	CHECK_IS(tern_op_test(local[0], &queued), 0); /* nothing moves */
	CHECK_IS(tern_put(local[0], at[1], here, AREA), 0);
	CHECK_IS(tern_put_start(local[0], at[1], here, AREA, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_store_sync(local[0], 1), -EDEADLK);
	CHECK(handed_alloc_all(local[0], 64) == NULL && errno == EDEADLK);
	tern_release(local[0]);
	CHECK_IS(tern_op_wait(local[0], &queued), 0);
	memcpy(image[0], here_image, AREA);
	memcpy(image[1], here_image, AREA);
	areas_close();
}

/* -- Beside messages --------------------------------------------------------------------------- */

static void answer(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

TEST(messages_are_served_while_a_long_transfer_is_under_way)
{
	areas_open(1);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	tern_op op[8] = { TERN_OP };
	for (int i = 0; i < 8; i++)
		CHECK_IS(tern_put_start(local[0], at[i % 2], here, AREA, &op[i]), 0);
	unsigned during = 0, together = 0;
	while (tern_op_test(local[0], &op[0]) == 0) {
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
		tern_poll(local[1]);
		tern_poll(local[0]);
		during++;
		together += op[7].pending;
	}
	printf("    %u round trips during transfers of %d bytes\n", during, 8 * AREA);
	CHECK(during > 10);
	CHECK(together > 0); /* they advance together */
	CHECK_IS(tern_flush(local[0]), 0);
	local_settle();
	CHECK_IS(replies.count, during);
	memcpy(image[0], here_image, AREA);
	memcpy(image[1], here_image, AREA);
	areas_close();
}

/* What of a put of ones has landed. */
static size_t landed(const unsigned char *memory, size_t len)
{
	size_t n = 0;
	while (n < len && memory[n])
		n++;
	return n;
}

TEST(a_piece_is_long_while_no_message_comes_and_short_while_they_do)
{
	enum { AT_FIRST = 64 << 10, LONG = 256 << 10, SHORT = 2 << 10, EVERY = 4, PIECES = 4 };
	enum { LEN = AT_FIRST + PIECES * LONG };
	static unsigned char from[LEN], to[LEN];
	tern_addr addr;
	tern_op op = TERN_OP;
	local_polled();
	local_open(2);
	local_on(TELL, note_reply);
	memset(from, 1, LEN);
	REQUIRE(tern_register(local[1], to, LEN, &addr) == 0);
	CHECK_IS(tern_put_start(local[0], addr, from, LEN, &op), 0);
	CHECK_IS(landed(to, LEN), AT_FIRST);
	for (unsigned i = 1; i <= PIECES; i++) {
		CHECK_IS(op.pending, 1);
		tern_poll(local[0]);
		CHECK_IS(landed(to, LEN), AT_FIRST + i * LONG);
	}
	CHECK_IS(op.pending, 0);
	memset(to, 0, LEN);
	CHECK_IS(tern_put_start(local[0], addr, from, LEN, &op), 0);
	for (unsigned i = 1; i <= 10 * EVERY; i++) {
		CHECK_IS(tern_request(local[1], 0, TELL), 0);
		CHECK(tern_poll(local[0]) > 0);
		CHECK_IS(landed(to, LEN), AT_FIRST + i / EVERY * SHORT);
	}
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(landed(to, LEN), LEN);
	local_close();
}
