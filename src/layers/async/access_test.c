/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Remote read and write, handed over (figure 5). */
#include <errno.h>
#include <tern/async.h>

#include "core/layer.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK };
enum { BYTES = 3 << 20 };

static unsigned char here[BYTES], there[BYTES];
static tern_addr theirs; /* `there`, registered by rank 1 */
static tern_op op;

static void pair_start(void)
{
	local_open(2);
	CHECK_IS(tern_register(local[1], there, BYTES, &theirs), 0);
}

TEST(nothing_is_moved_in_the_call_and_the_flag_is_set_when_all_is)
{
	_Atomic uint64_t flag = 0;
	op.flag = &flag;
	pair_start();
	chance_fill(there, BYTES, 3);
	tern_hold(local[0]);
	CHECK_IS(tern_async_get_start(local[0], here, theirs, BYTES, &op), 0);
	CHECK_IS(here[1], 0);
	CHECK_IS(op.pending, 1);
	tern_release(local[0]);
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	CHECK(chance_filled(here, BYTES, 3));
	local_close();
}

TEST(a_write_lands_and_raises_a_flag_at_either_side)
{
	_Atomic uint64_t mine = 0, *yours;
	op.flag = &mine;
	pair_start();
	yours = handed_alloc(local[1], sizeof *yours);
	atomic_store(yours, 0);
	chance_fill(here, BYTES, 5);
	CHECK_IS(tern_async_put_start(local[0], theirs, here, BYTES,
				      handed_addr(local[1], (void *)yours), &op),
		 0);
	CHECK_IS(tern_wait(local[1], yours, 1), 0);
	CHECK(chance_filled(there, BYTES, 5));
	CHECK_IS(tern_wait(local[0], &mine, 1), 0);
	CHECK_IS(op.error, 0);
	local_close();
}

TEST(a_value_of_up_to_8_bytes_is_copied_by_the_call)
{
	pair_start();
	tern_hold(local[0]);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t value = i * 3;
		CHECK_IS(tern_async_put_start(local[0], theirs + 8 * i, &value, 8, TERN_ADDR_NONE,
					      &op),
			 0);
		value = 0;
	}
	CHECK_IS(tern_async_put_start(local[0], theirs + 801, "abc", 3, TERN_ADDR_NONE, &op), 0);
	tern_release(local[0]);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	for (uint64_t i = 0; i < 100; i++)
		CHECK_IS(((uint64_t *)(void *)there)[i], i * 3);
	CHECK(memcmp(there + 800, "\0abc", 5) == 0);
	local_close();
}

TEST(a_write_of_nothing_raises_its_flag)
{
	_Atomic uint64_t *yours;
	pair_start();
	yours = handed_alloc(local[1], sizeof *yours);
	CHECK_IS(tern_async_put_start(local[0], theirs, NULL, 0,
				      handed_addr(local[1], (void *)yours), &op),
		 0);
	CHECK_IS(tern_async_put_start(local[0], theirs, NULL, 0, TERN_ADDR_NONE, &op), 0);
	CHECK_IS(tern_wait(local[1], yours, 1), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}

TEST(without_a_handle_both_wait)
{
	uint64_t value = 0;
	pair_start();
	chance_fill(here, BYTES, 7);
	CHECK_IS(tern_async_put_start(local[0], theirs, here, BYTES, TERN_ADDR_NONE, NULL), 0);
	CHECK(chance_filled(there, BYTES, 7));
	CHECK_IS(tern_async_get_start(local[0], &value, theirs, 8, NULL), 0);
	CHECK(memcmp(&value, there, 8) == 0);
	CHECK_IS(tern_async_get_start(local[0], NULL, TERN_ADDR_NONE, 0, NULL), 0);
	local_close();
}

static void fetch(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_async_get_start(t, here, theirs, BYTES, &op), 0);
	CHECK_IS(tern_async_put_start(t, theirs, "value", 6, TERN_ADDR_NONE, &op), 0);
	CHECK_IS(tern_async_get_start(t, here, theirs, BYTES, NULL), -EPERM);
}

TEST(a_handler_may_hand_them_over)
{
	pair_start();
	local_on(ASK, fetch);
	memset(there, 9, BYTES);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	while (!requests.count)
		tern_poll(local[0]);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(here[BYTES - 1], 9);
	CHECK(memcmp(there, "value", 6) == 0);
	local_close();
}

/* Where memory cannot be mapped its owner finds out, and the handle ends with that. */
static void check_address_refused(int rc)
{
	if (layer_maps(local[0]->own, 1))
		CHECK_IS(rc, -EFAULT);
	else
		CHECK_IS(rc ? rc : tern_op_wait(local[0], &op), -EFAULT);
	op.error = 0;
}

TEST(what_is_wrong_is_refused_before_anything_moves)
{
	uint64_t word = 0;
	tern_addr word_at;
	pair_start();
	CHECK_IS(tern_register(local[0], &word, 8, &word_at), 0);
	check_address_refused(tern_async_get_start(local[0], here, theirs, BYTES + 1, &op));
	CHECK_IS(tern_async_put_start(local[0], theirs, here, 100, theirs + 1, &op), -EINVAL);
	CHECK(sentence_has(-EINVAL, "not aligned"));
	CHECK_IS(tern_async_put_start(local[0], theirs, here, 100, word_at, &op), -EINVAL);
	CHECK(sentence_has(-EINVAL, "must be at one"));
	check_address_refused(
		tern_async_put_start(local[0], theirs, there, 0, theirs + BYTES, &op));
	check_address_refused(
		tern_async_put_start(local[0], theirs + BYTES, here, 100, theirs, &op));
	tern_hold(local[0]);
	CHECK_IS(tern_async_get_start(local[0], here, theirs, 100, NULL), -EDEADLK);
	tern_release(local[0]);
	CHECK_IS(op.pending, 0);
	local_settle();
	CHECK_IS(there[0], 0);
	local_close();
}

TEST(memory_that_goes_before_it_is_read_or_written_is_the_handles_error)
{
	pair_start();
	tern_hold(local[0]);
	CHECK_IS(tern_async_get_start(local[0], here, theirs, BYTES, &op), 0);
	CHECK_IS(tern_unregister(local[1], theirs), 0);
	tern_release(local[0]);
	CHECK(tern_op_wait(local[0], &op) < 0);
	local_close();
}

TEST(too_many_writes_are_refused_where_nothing_can_be_waited_for_and_else_wait)
{
	uint64_t value = 1;
	unsigned n = 0;
	int rc;
	pair_start();
	tern_hold(local[0]);
	while ((rc = tern_async_put_start(local[0], theirs, &value, 8, TERN_ADDR_NONE, &op)) == 0)
		n++;
	CHECK_IS(rc, -EAGAIN);
	CHECK_IS(n, TERN_ASYNC_MAX);
	tern_release(local[0]);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_IS(tern_async_put_start(local[0], theirs, &value, 8, TERN_ADDR_NONE, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}

static int walk_turn(tern *t, void *arg)
{
	unsigned *count = arg;
	(void)t;
	++*count;
	return op.pending ? 1 : 0;
}

TEST(a_transfer_handed_over_and_the_queue_advance_together)
{
	unsigned count = 0;
	pair_start();
	tern_hold(local[0]);
	CHECK_IS(tern_async_get_start(local[0], here, theirs, BYTES, &op), 0);
	tern_op walk = TERN_OP;
	CHECK_IS(tern_async_start(local[0], walk_turn, &count, &walk), 0);
	tern_release(local[0]);
	CHECK_IS(tern_op_wait(local[0], &walk), 0);
	CHECK(count >= BYTES / (256 << 10)); /* a turn of each in every poll */
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}
