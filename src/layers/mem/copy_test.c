/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory copy between what this process can touch. Between others' private memory:
 * tests/layers/mem_region_test.c.
 */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "lib/mem_model.h"
#include "mem/mem.h"

enum { RANKS = 3, AREA = 1 << 20, MOST = 256 << 10 };

/* Of ranks 1 and 2, heap and registered; rank 0 copies among them. */
static unsigned char *area[4], *image[4];
static tern_addr at[4];

static void areas_open(struct chance *c)
{
	local_open(RANKS);
	for (int i = 0; i < 4; i++) {
		tern *t = local[1 + i / 2];
		area[i] = i % 2 ? malloc(AREA) : handed_alloc(t, AREA);
		image[i] = malloc(AREA);
		REQUIRE(area[i] && image[i]);
		if (i % 2)
			REQUIRE(tern_register(t, area[i], AREA, &at[i]) == 0);
		else
			at[i] = handed_addr(t, area[i]);
		model_scatter(area[i], AREA, c);
		memcpy(image[i], area[i], AREA);
	}
}

static void areas_check(void)
{
	for (int i = 0; i < 4; i++)
		CHECK(model_same(area[i], image[i], AREA));
}

TEST(any_bytes_are_copied_between_any_two_places)
{
	struct chance c = { check_seed() };
	tern_op op = TERN_OP;
	areas_open(&c);
	for (unsigned n = check_scaled(400); n; n--) {
		uint32_t from = chance_below(&c, 4), to = chance_below(&c, 4);
		size_t len = model_length(&c, MOST);
		size_t src = chance_below(
			&c, (uint32_t)(AREA / 2 - len)); /* halves: source and target are apart */
		size_t dst = AREA / 2 + chance_below(&c, (uint32_t)(AREA / 2 - len));
		CHECK_IS(tern_copy_start(local[n % RANKS], at[to] + dst, at[from] + src, len, &op),
			 0);
		CHECK_IS(tern_op_wait(local[n % RANKS], &op), 0);
		memcpy(image[to] + dst, image[from] + src, len);
		if (n % 20 == 0)
			areas_check();
	}
	areas_check();
	local_close();
}

TEST(a_copy_does_not_block_and_its_status_can_be_polled)
{
	struct chance c = { 1 };
	tern_op op = TERN_OP;
	areas_open(&c);
	CHECK_IS(tern_copy_start(local[0], at[2], at[1], AREA, &op), 0);
	CHECK_IS(op.pending, 1);
	int rc;
	while ((rc = tern_op_test(local[0], &op)) == 0)
		;
	CHECK_IS(rc, 1);
	memcpy(image[2], image[1], AREA);
	areas_check();
	local_close();
}

TEST(a_copy_with_either_side_out_of_range_is_refused_before_a_byte_moves)
{
	struct chance c = { 1 };
	tern_op op = TERN_OP;
	areas_open(&c);
	CHECK_IS(tern_copy_start(local[0], at[1] + AREA - 9, at[3], 10, &op), -EFAULT);
	CHECK_IS(tern_copy_start(local[0], at[1], at[3] + AREA - 9, 10, &op), -EFAULT);
	CHECK_IS(tern_copy_start(local[0], TERN_ADDR_NONE, at[3], 10, &op), -EFAULT);
	CHECK_IS(tern_copy_start(local[0], at[1], TERN_ADDR_NONE, 10, &op), -EFAULT);
	CHECK_IS(tern_copy_start(local[0], at[1], handed_at(at[3], RANKS), 10, &op), -ERANGE);
	CHECK_IS(op.pending, 0);
	areas_check();
	local_close();
}
