/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get of strided blocks and of lists of pieces, on memory that this process can touch. */
#include <errno.h>

#include "../../tests/mem_areas.h"

static void random_shape(bool put, tern_op *op)
{
	tern_shape s;
	struct model_side dst, src;
	int k = (int)chance_below(&chance, 2);
	model_shape(&chance, MOST, &s, &dst, &src);
	size_t to = somewhere(dst.covers) + dst.before, from = somewhere(src.covers) + src.before;
	if (put) {
		CHECK_IS(tern_put_shape_start(local[0], at[k] + to, here + from, &s, op), 0);
		model_apply(image[k] + to, here_image + from, &s);
	} else {
		CHECK_IS(tern_get_shape_start(local[0], here + to, at[k] + from, &s, op), 0);
		model_apply(here_image + to, image[k] + from, &s);
	}
	memset(&s, 0xff, sizeof s); /* it was copied */
	if (op)
		CHECK_IS(tern_op_wait(local[0], op), 0);
}

TEST(strided_blocks_of_any_dimension_and_direction_land_byte_by_byte_where_they_belong)
{
	tern_op op = TERN_OP;
	areas_open(check_seed());
	for (unsigned n = check_scaled(400); n; n--) {
		random_shape(chance_one_in(&chance, 2), chance_one_in(&chance, 2) ? &op : NULL);
		if (n % 10 == 0)
			areas_check();
	}
	areas_close();
}

TEST(negative_strides_turn_a_block_around)
{
	areas_open(1);
	const tern_shape s = {
		.run = 2, .dims = 1, .count = { 4 }, .dst_stride = { -2 }, .src_stride = { 2 }
	};
	CHECK_IS(tern_put_shape_start(local[0], at[0] + 106, "aabbccdd", &s, NULL), 0);
	memcpy(image[0] + 100, "ddccbbaa", 8);
	areas_check();
	char back[9] = "";
	const tern_shape again = { .run = 1,
				   .dims = 2,
				   .count = { 2, 4 },
				   .dst_stride = { 1, 2 },
				   .src_stride = { 1, -2 } };
	CHECK_IS(tern_get_shape_start(local[2], back, at[0] + 106, &again, NULL), 0);
	CHECK(memcmp(back, "aabbccdd", 9) == 0);
	areas_close();
}

TEST(a_block_that_reaches_out_of_its_memory_at_either_end_is_refused_whole)
{
	areas_open(1);
	tern_op op = TERN_OP;
	tern_shape s = {
		.run = 8, .dims = 1, .count = { 10 }, .dst_stride = { -16 }, .src_stride = { 0 }
	};
	CHECK_IS(tern_put_shape_start(local[0], at[1] + 143, here, &s, NULL),
		 -EINVAL); /* the tenth begins at -1 */
	CHECK_IS(tern_put_shape_start(local[0], at[1] + 143, here, &s, &op), -EINVAL);
	CHECK_IS(tern_put_shape_start(local[0], at[1] + 144, here, &s, NULL), 0);
	for (int i = 0; i < 10; i++)
		memcpy(image[1] + 144 - 16 * i, here_image, 8);
	areas_check();
	s.dst_stride[0] = 16;
	CHECK_IS(tern_put_shape_start(local[0], at[1] + AREA - 151, here, &s, NULL), -EFAULT);
	CHECK_IS(tern_put_shape_start(local[0], at[1] + AREA - 152, here, &s, NULL), 0);
	for (int i = 0; i < 10; i++)
		memcpy(image[1] + AREA - 152 + 16 * i, here_image, 8);
	s.dst_stride[0] = 1;
	s.src_stride[0] = 16;
	CHECK_IS(tern_get_shape_start(local[0], here, at[1] + AREA - 151, &s, &op), -EFAULT);
	s.count[0] = SIZE_MAX;
	CHECK(tern_put_shape_start(local[0], at[0], here, &s, NULL) < 0);
	s.dst_stride[0] = PTRDIFF_MAX;
	CHECK_IS(tern_put_shape_start(local[0], at[0], here, &s, NULL), -EINVAL);
	s.dst_stride[0] = PTRDIFF_MIN;
	CHECK_IS(tern_put_shape_start(local[0], at[0], here, &s, NULL), -EINVAL);
	s = (tern_shape){ .run = SIZE_MAX };
	CHECK(tern_put_shape_start(local[0], at[0], here, &s, NULL) < 0);
	s = (tern_shape){ .run = 1, .dims = TERN_DIMS_MAX + 1 };
	CHECK_IS(tern_put_shape_start(local[0], at[0], here, &s, NULL), -EINVAL);
	CHECK_IS(op.pending, 0);
	areas_close();
}

TEST(a_block_of_eight_dimensions_is_as_good_as_a_row)
{
	areas_open(1);
	tern_shape s = { .run = 3, .dims = TERN_DIMS_MAX };
	for (int d = 0; d < TERN_DIMS_MAX; d++) {
		s.count[d] = 2;
		s.dst_stride[d] = 3 << d;
		s.src_stride[d] = 5 << d;
	}
	CHECK_IS(tern_put_shape_start(local[0], at[0] + 64, here, &s, NULL), 0);
	for (int i = 0; i < 256; i++)
		memcpy(image[0] + 64 + 3 * i, here_image + 5 * i, 3);
	areas_close();
}

TEST(lists_of_pieces_land_each_at_its_place)
{
	enum { PIECES = 60 };
	static tern_piece pieces[PIECES];
	areas_open(check_seed());
	tern_op op = TERN_OP;
	for (unsigned n = check_scaled(40); n; n--) {
		bool put = chance_one_in(&chance, 2);
		for (int i = 0; i < PIECES; i++) {
			int k = (int)chance_below(&chance, 2);
			size_t len = chance_one_in(&chance, 20) ? model_length(&chance, MOST)
								: chance_below(&chance, 300);
			size_t there = somewhere(len), mine = somewhere(len);
			pieces[i] = (tern_piece){ at[k] + there, here + mine, len };
			if (put)
				memcpy(image[k] + there, here_image + mine, len);
			else
				memcpy(here_image + mine, image[k] + there, len);
		}
		CHECK_IS((put ? tern_put_pieces_start : tern_get_pieces_start)(local[0], pieces, PIECES,
								   n % 2 ? &op : NULL),
			 0);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		areas_check();
	}
	areas_close();
}

TEST(a_list_with_one_bad_piece_is_refused_before_a_byte_moves)
{
	areas_open(1);
	tern_op op = TERN_OP;
	const tern_piece pieces[] = { { at[0], here, 100 },
				      { at[1], here, 100 },
				      { at[1] + AREA, here, 1 } };
	CHECK_IS(tern_put_pieces_start(local[0], pieces, 3, NULL), -EFAULT);
	CHECK_IS(tern_put_pieces_start(local[0], pieces, 3, &op), -EFAULT);
	CHECK_IS(tern_get_pieces_start(local[0], pieces, 3, &op), -EFAULT);
	CHECK_IS(op.pending, 0);
	areas_close();
}
