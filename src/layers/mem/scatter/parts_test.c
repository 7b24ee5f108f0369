/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get of scattered memory that this process can touch. */
#include <errno.h>

#include "lib/mem_areas.h"

static int move(bool put, const tern_part *dst, size_t dsts, const tern_part *src, size_t srcs,
		tern_op *op)
{
	return (put ? tern_put_parts_start : tern_get_parts_start)(local[0], dst, dsts, src, srcs,
								   op);
}

static void random_shape(bool put, tern_op *op)
{
	struct model_shape s;
	struct model_side dst, src;
	int k = (int)chance_below(&chance, 2);
	model_shape(&chance, MOST, &s, &dst, &src);
	tern_part to = model_part(&s, &dst), from = model_part(&s, &src);
	size_t there = somewhere(dst.covers) + dst.before;
	size_t mine = somewhere(src.covers) + src.before;
	if (put) {
		to.addr = at[k] + there;
		from.base = here + mine;
		model_apply(image[k] + there, &dst, here_image + mine, &src, &s);
	} else {
		to.base = here + there;
		from.addr = at[k] + mine;
		model_apply(here_image + there, &dst, image[k] + mine, &src, &s);
	}
	CHECK_IS(move(put, &to, 1, &from, 1, op), 0);
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
	char text[] = "aabbccdd", back[9] = "";
	const size_t four = 4, two_four[] = { 2, 4 };
	const ptrdiff_t down = -2, rows[] = { 1, -2 };
	const tern_part there = {
		.addr = at[0] + 106, .run = 2, .dims = 1, .count = &four, .stride = &down
	};
	CHECK_IS(move(true, &there, 1, &(tern_part){ .base = text, .run = 8 }, 1, NULL), 0);
	memcpy(image[0] + 100, "ddccbbaa", 8);
	areas_check();
	const tern_part again = {
		.addr = at[0] + 106, .run = 1, .dims = 2, .count = two_four, .stride = rows
	};
	CHECK_IS(tern_get_parts(local[2], &(tern_part){ .base = back, .run = 8 }, 1, &again, 1), 0);
	CHECK(memcmp(back, "aabbccdd", 9) == 0);
	areas_close();
}

TEST(a_part_that_reaches_out_of_its_memory_at_either_end_is_refused_whole)
{
	areas_open(1);
	tern_op op = TERN_OP;
	size_t count = 10;
	ptrdiff_t stride = -16;
	const ptrdiff_t none = 0, beside = 8;
	tern_part there = { .run = 8, .dims = 1, .count = &count, .stride = &stride };
	tern_part mine = { .base = here, .run = 8, .dims = 1, .count = &count, .stride = &none };
	there.addr = at[1] + 143;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EFAULT); /* the tenth begins at -1 */
	CHECK_IS(move(true, &there, 1, &mine, 1, &op), -EFAULT);
	there.addr = at[1] + 144;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), 0);
	for (int i = 0; i < 10; i++)
		memcpy(image[1] + 144 - 16 * i, here_image, 8);
	areas_check();
	stride = 16;
	there.addr = at[1] + AREA - 151;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EFAULT);
	there.addr = at[1] + AREA - 152;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), 0);
	for (int i = 0; i < 10; i++)
		memcpy(image[1] + AREA - 152 + 16 * i, here_image, 8);
	there.addr = at[1] + AREA - 151;
	mine.stride = &beside;
	CHECK_IS(move(false, &mine, 1, &there, 1, &op), -EFAULT);
	there.addr = at[0];
	count = SIZE_MAX;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EINVAL);
	count = 3;
	stride = PTRDIFF_MAX;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EINVAL);
	stride = PTRDIFF_MIN;
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EINVAL);
	const tern_part huge = { .addr = at[0], .run = SIZE_MAX };
	CHECK_IS(move(true, &huge, 1, &huge, 1, NULL), -EINVAL);
	there = (tern_part){ .addr = at[0], .run = 1, .dims = TERN_DIMS_MAX + 1 };
	CHECK_IS(move(true, &there, 1, &mine, 1, NULL), -EINVAL);
	CHECK_IS(op.pending, 0);
	areas_close();
}

TEST(totals_that_do_not_agree_are_refused_before_a_byte_moves)
{
	areas_open(1);
	tern_op op = TERN_OP;
	const tern_part there[] = { { .addr = at[0], .run = 8 }, { .addr = at[1], .run = 8 } };
	const tern_part mine = { .base = here, .run = 15 };
	CHECK_IS(move(true, there, 2, &mine, 1, NULL), -EMSGSIZE);
	CHECK(strstr(tern_strerror(-EMSGSIZE), "16") && strstr(tern_strerror(-EMSGSIZE), "15"));
	CHECK_IS(move(false, &mine, 1, there, 2, &op), -EMSGSIZE);
	CHECK_IS(move(true, there, 0, &mine, 1, &op), -EMSGSIZE);
	CHECK_IS(op.pending, 0);
	areas_close();
}

TEST(a_block_of_twenty_dimensions_is_as_good_as_a_row)
{
	areas_open(1);
	size_t count[TERN_DIMS_MAX];
	ptrdiff_t there[TERN_DIMS_MAX], mine[TERN_DIMS_MAX];
	int n = 0;
	for (int d = 0; d < TERN_DIMS_MAX; d++) {
		count[d] = d % 2 ? 1 : 2;
		there[d] = d % 2 ? -7 : 3 << n;
		mine[d] = d % 2 ? PTRDIFF_MAX : 5 << n;
		n += d % 2 == 0;
	}
	const tern_part dst = { { .addr = at[0] + 64 }, 3, TERN_DIMS_MAX, count, there };
	const tern_part src = { { .base = here }, 3, TERN_DIMS_MAX, count, mine };
	CHECK_IS(move(true, &dst, 1, &src, 1, NULL), 0);
	for (int i = 0; i < 1 << n; i++)
		memcpy(image[0] + 64 + 3 * i, here_image + 5 * i, 3);
	areas_close();
}

/* -- Lists ----------------------------------------------------------------------------------- */

enum { PARTS = 60, LIST_MOST = 100000 };

/* A list with its arrays, and where its bytes are in the image. */
struct list {
	tern_part part[PARTS], image[PARTS];
	struct model_shape shape[PARTS];
	struct model_side side[PARTS];
	size_t n, used[2];
};

/* Lays a part of about `most` bytes behind those before it; its bytes. */
static size_t list_add(struct list *l, bool remote, size_t most)
{
	size_t i = l->n++, bytes;
	struct model_shape *s = &l->shape[i];
	struct model_side other;
	int k = (int)chance_below(&chance, 2);
	model_shape(&chance, 4096, s, &l->side[i], &other);
	l->part[i] = model_part(s, &l->side[i]);
	part_bytes(&l->part[i], &bytes);
	if (bytes > most) {
		*s = (struct model_shape){ .run = bytes = most };
		l->side[i] = (struct model_side){ .covers = most };
		l->part[i] = model_part(s, &l->side[i]);
	}
	size_t place = l->used[remote ? k : 0] + chance_below(&chance, 20) + l->side[i].before;
	l->used[remote ? k : 0] = place - l->side[i].before + l->side[i].covers;
	l->image[i] = l->part[i];
	l->part[i].addr = remote ? at[k] + place : (uintptr_t)(here + place);
	l->image[i].base = (remote ? image[k] : here_image) + place;
	return bytes;
}

static void list_make(struct list *l, bool remote, size_t total)
{
	l->n = l->used[0] = l->used[1] = 0;
	while (total && l->n < PARTS - 1)
		total -= list_add(l, remote, total);
	if (!total)
		return;
	size_t i = l->n++; /* the rest in one run */
	l->part[i] = l->image[i] = (tern_part){ .run = total };
	l->part[i].addr = remote ? at[0] + l->used[0] : (uintptr_t)(here + l->used[0]);
	l->image[i].base = (remote ? image[0] : here_image) + l->used[0];
}

TEST(lists_of_parts_that_differ_at_both_sides_land_in_order)
{
	static struct list there, mine;
	static uint64_t to[LIST_MOST], from[LIST_MOST];
	areas_open(check_seed());
	for (unsigned n = check_scaled(100); n; n--) {
		tern_op op = TERN_OP;
		bool put = chance_one_in(&chance, 2);
		size_t total = chance_below(&chance, LIST_MOST);
		list_make(&there, true, total);
		list_make(&mine, false, total);
		const struct list *dst = put ? &there : &mine, *src = put ? &mine : &there;
		CHECK_IS(model_places(dst->image, dst->n, to), total);
		CHECK_IS(model_places(src->image, src->n, from), total);
		for (size_t i = 0; i < total; i++)
			*(unsigned char *)(uintptr_t)to[i] = *(unsigned char *)(uintptr_t)from[i];
		CHECK_IS(move(put, dst->part, dst->n, src->part, src->n, n % 2 ? &op : NULL), 0);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		areas_check();
	}
	areas_close();
}

TEST(a_list_with_one_bad_part_is_refused_before_a_byte_moves)
{
	areas_open(1);
	tern_op op = TERN_OP;
	const tern_part there[] = { { .addr = at[0], .run = 100 },
				    { .addr = at[1], .run = 100 },
				    { .addr = at[1] + AREA, .run = 1 } };
	const tern_part mine = { .base = here, .run = 201 };
	CHECK_IS(move(true, there, 3, &mine, 1, NULL), -EFAULT);
	CHECK_IS(move(true, there, 3, &mine, 1, &op), -EFAULT);
	CHECK_IS(move(false, &mine, 1, there, 3, &op), -EFAULT);
	CHECK_IS(op.pending, 0);
	areas_close();
}

/* More than one go moves: slices begin and end in the middle of rows. */
static void rows_long(bool put, size_t run, ptrdiff_t apart, bool piece, tern_op *op)
{
	size_t count = (AREA - 64) / (size_t)(apart < 0 ? -apart : apart);
	size_t first = apart < 0 ? (count - 1) * (size_t)-apart : 0;
	tern_part far = {
		.addr = at[0] + first, .run = run, .dims = 1, .count = &count, .stride = &apart
	};
	tern_part near = far;
	near.base = here + first;
	if (piece)
		near = (tern_part){ .base = here, .run = run * count };
	for (size_t i = 0; i < count; i++) {
		unsigned char *there = image[0] + (ptrdiff_t)first + apart * (ptrdiff_t)i;
		unsigned char *mine = piece ? here_image + run * i
					    : here_image + (ptrdiff_t)first + apart * (ptrdiff_t)i;
		memcpy(put ? there : mine, put ? mine : there, run);
	}
	CHECK_IS(move(put, put ? &far : &near, 1, put ? &near : &far, 1, op), 0);
	if (op)
		CHECK_IS(tern_op_wait(local[0], op), 0);
	areas_check();
}

TEST(many_runs_in_a_row_land_where_they_belong_in_slices_too)
{
	static const size_t runs[] = { 1, 4, 8, 24, 48, 64, 100 };
	tern_op op = TERN_OP;
	areas_open(check_seed());
	for (unsigned i = 0; i < 7 * 8; i++)
		rows_long(i & 1, runs[i / 8],
			  (i & 2 ? -1 : 1) * (ptrdiff_t)(runs[i / 8] + 1 + (i & 6) * 4), i & 4,
			  i % 3 ? &op : NULL);
	areas_close();
}

/* Pairs that are cut alike, up to one that is elsewhere; the others then go by themselves. */
TEST(pairs_of_parts_that_are_cut_alike_land_where_they_belong)
{
	enum { PAIRS = 500, RUN = 40, APART = 200, TWO = 2 };
	static tern_part far[PAIRS], near[PAIRS];
	const size_t two = TWO;
	const ptrdiff_t stride = APART / 2;
	areas_open(check_seed());
	for (unsigned n = 0; n < 40; n++) {
		bool put = n % 2;
		tern_op op = TERN_OP;
		for (size_t i = 0; i < PAIRS; i++) {
			int k = n % 4 == 3 && i == PAIRS / 2;
			bool strided = chance_one_in(&chance, 3);
			size_t run = chance_below(&chance, RUN + 1), from = i * APART;
			far[i] = (tern_part){ .addr = at[k] + from, .run = run };
			if (strided)
				far[i] = (tern_part){ .addr = at[k] + from,
						      .run = run,
						      .dims = 1,
						      .count = &two,
						      .stride = &stride };
			near[i] = far[i];
			near[i].base = here + from;
			for (size_t r = 0; r < (strided ? TWO : 1); r++) {
				unsigned char *there = image[k] + from + r * APART / 2;
				unsigned char *mine = here_image + from + r * APART / 2;
				memcpy(put ? there : mine, put ? mine : there, run);
			}
		}
		CHECK_IS(move(put, put ? far : near, PAIRS, put ? near : far, PAIRS,
			      n % 3 ? &op : NULL),
			 0);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
		areas_check();
	}
	areas_close();
}

/* A list at one side or at both, of memory in one place or in two, at once and in slices. */
static void singles_move(unsigned n, size_t run)
{
	enum { MANY = 5000 };
	static tern_part list[2][MANY];
	bool put = n & 1, two = n & 2;
	unsigned one = n / 4 % 3; /* the side that is a single part: 0 neither, 1 here, 2 there */
	tern_op op = TERN_OP;
	tern_part *far = list[0], *near = list[1];
	for (size_t i = 0; i < MANY; i++) {
		int k = two && one != 2 && i % 7 == 0;
		size_t mine = (one == 1 ? run : run + 3) * i,
		       there = (one == 2 ? run : run + 5) * i;
		far[i] = (tern_part){ .addr = at[k] + there, .run = run };
		near[i] = (tern_part){ .base = here + mine, .run = run };
		memcpy(put ? image[k] + there : here_image + mine,
		       put ? here_image + mine : image[k] + there, run);
	}
	far->run = one == 2 ? run * MANY : run;
	near->run = one == 1 ? run * MANY : run;
	size_t fars = one == 2 ? 1 : MANY, nears = one == 1 ? 1 : MANY;
	CHECK_IS(move(put, put ? far : near, put ? fars : nears, put ? near : far,
		      put ? nears : fars, n % 5 ? &op : NULL),
		 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	areas_check();
}

TEST(lists_of_single_runs_land_where_they_belong_whichever_side_is_one_piece)
{
	static const size_t runs[] = { 1, 4, 8, 16, 40, 64, 72 };
	areas_open(check_seed());
	for (unsigned i = 0; i < 7 * 12; i++)
		singles_move(i % 12, runs[i / 12]);
	areas_close();
}
