/* SPDX-License-Identifier: BSD-3-Clause */
/* Strided blocks that are found at their owner through a named pointer. */
#include <errno.h>

#include "lib/local.h"
#include "lib/mem_model.h"
#include "mem/mem.h"

enum { BYTES = 60000, HERE = 100000 };

static unsigned char first[BYTES], second[BYTES], here[HERE], image[HERE];
static void *pointer = first;

static void ranks_open(void)
{
	struct chance c = { 5 };
	local_open(3);
	model_scatter(first, BYTES, &c);
	model_scatter(second, BYTES, &c);
	memset(here, 0xee, HERE);
	memset(image, 0xee, HERE);
	CHECK_IS(tern_block_name(local[1], 9, &pointer, BYTES), 0);
}

static int get(unsigned name, size_t offset, size_t src_stride, size_t at, size_t dst_stride,
	       size_t run, size_t count)
{
	tern_op op = TERN_OP;
	int rc = tern_block_get_start(local[0], here + at, dst_stride, 1,
				      &(tern_block){ .name = name,
						     .offset = offset,
						     .stride = src_stride,
						     .run = run,
						     .count = count },
				      &op);
	int ended = tern_op_wait(local[0], &op);
	CHECK_IS(op.pending, 0);
	return rc ? rc : ended;
}

static void expect(const unsigned char *from, size_t offset, size_t src_stride, size_t at,
		   size_t dst_stride, size_t run, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(image + at + i * dst_stride, from + offset + i * src_stride, run);
	CHECK(model_same(here, image, HERE));
}

TEST(a_block_is_got_through_the_pointer_as_it_is_when_asked_for)
{
	ranks_open();
	CHECK_IS(get(9, 100, 0, 64, 0, 50, 1), 0);
	expect(first, 100, 0, 64, 0, 50, 1);
	pointer = second;
	CHECK_IS(get(9, 100, 30, 1000, 20, 20, 50), 0);
	expect(second, 100, 30, 1000, 20, 20, 50);
	pointer = NULL;
	CHECK_IS(get(9, 0, 0, 0, 0, 1, 1), -ENOENT);
	pointer = first;
	CHECK_IS(get(9, 0, 0, 30000, 0, 1, 1), 0);
	expect(first, 0, 0, 30000, 0, 1, 1);
	local_close();
}

TEST(blocks_of_any_shape_arrive_whole)
{
	ranks_open();
	struct chance c = { check_seed() };
	for (unsigned n = check_scaled(200); n; n--) {
		size_t run = 1 + model_length(&c, TERN_PAYLOAD_MAX - 1),
		       count = chance_below(&c, 40);
		size_t src_stride = chance_one_in(&c, 5) ? 0 : run + chance_below(&c, 50);
		size_t dst_stride = run + chance_below(&c, 50);
		size_t from = src_stride * count + run, to = dst_stride * count + run;
		if (from > BYTES || to > HERE)
			continue;
		size_t offset = chance_below(&c, (uint32_t)(BYTES - from + 1));
		size_t at = chance_below(&c, (uint32_t)(HERE - to + 1));
		CHECK_IS(get(9, offset, src_stride, at, dst_stride, run, count), 0);
		expect(first, offset, src_stride, at, dst_stride, run, count);
	}
	local_close();
}

TEST(what_is_not_named_or_not_that_long_is_refused_and_nothing_written)
{
	ranks_open();
	tern_op op = TERN_OP;
	CHECK_IS(get(8, 0, 0, 0, 0, 1, 1), -ENOENT);
	CHECK_IS(get(9, BYTES, 0, 0, 0, 1, 1), -ENOENT);
	CHECK_IS(get(9, BYTES - 9, 0, 0, 0, 10, 1), -ENOENT);
	CHECK_IS(get(9, 0, BYTES - 9, 0, 0, 10, 2), -ENOENT);
	CHECK_IS(get(9, SIZE_MAX, 0, 0, 0, 10, 1), -ENOENT);
	CHECK_IS(get(9, 100, SIZE_MAX - 49, 0, 0, 10, 2), -EINVAL); /* -50, as it were */
	CHECK_IS(get(9, 20000, (size_t)0 - 8192, 0, 8192, TERN_PAYLOAD_MAX, 2),
		 -EINVAL); /* in two messages */
	CHECK_IS(get(TERN_BLOCKS_MAX, 0, 0, 0, 0, 1, 1), -EINVAL);
	CHECK_IS(get(9, 0, 0, 0, 0, TERN_PAYLOAD_MAX + 1, 1), -EINVAL);
	CHECK_IS(tern_block_get_start(local[0], here, 0, 3,
				      &(tern_block){ .name = 9, .run = 1, .count = 1 }, &op),
		 -ERANGE);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_block_name(local[0], TERN_BLOCKS_MAX, &pointer, 1), -ERANGE);
	int rc = get(8, 0, 0, 0, 0, 1, 1);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(get(9, 0, 0, 0, 0, 0, 5), 0); /* nothing is a success */
	CHECK_IS(get(9, 0, 0, 0, 0, 5, 0), 0);
	CHECK_IS(tern_block_name(local[1], 9, NULL, 0), 0); /* withdrawn */
	CHECK_IS(get(9, 0, 0, 0, 0, 1, 1), -ENOENT);
	CHECK(model_same(here, image, HERE));
	local_close();
}

TEST(every_rank_has_names_of_its_own_and_may_ask_itself)
{
	static void *other = second;
	ranks_open();
	tern_op op = TERN_OP;
	CHECK_IS(tern_block_name(local[2], 9, &other, BYTES), 0);
	CHECK_IS(tern_block_get_start(
			 local[0], here + 200, 0, 2,
			 &(tern_block){ .name = 9, .offset = 5, .run = 10, .count = 1 }, &op),
		 0);
	CHECK_IS(tern_block_get_start(
			 local[0], here + 100, 0, 1,
			 &(tern_block){ .name = 9, .offset = 5, .run = 10, .count = 1 }, &op),
		 0);
	CHECK_IS(tern_block_get_start(
			 local[0], here, 0, 0,
			 &(tern_block){ .name = 9, .offset = 5, .run = 10, .count = 1 }, &op),
		 0);
	CHECK_IS(tern_op_wait(local[0], &op), -ENOENT); /* rank 0 has none */
	CHECK_IS(tern_block_get_start(
			 local[1], here + 300, 0, 1,
			 &(tern_block){ .name = 9, .offset = 50, .run = 10, .count = 1 }, &op),
		 0);
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	memcpy(image + 200, second + 5, 10);
	memcpy(image + 100, first + 5, 10);
	memcpy(image + 300, first + 50, 10);
	CHECK(model_same(here, image, HERE));
	local_close();
}
