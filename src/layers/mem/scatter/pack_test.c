/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of scattered memory in messages: good ones move bytes, bad ones none. */
#include <errno.h>

#include "lib/mem_areas.h"

enum { NO_SLOT = 0xffff, BYTES = 16 };

/* A message as pack.c sends it: words, and for a put the bytes behind them. */
static void say(unsigned id, const uint64_t *words, size_t n, size_t bytes)
{
	static uint64_t payload[TERN_PAYLOAD_MAX / 8];
	const uint64_t arg[] = { NO_SLOT, n, bytes };
	memcpy(payload, words, n * 8);
	memset((char *)payload + n * 8, 0xa5, bytes);
	size_t len = n * 8 + (id == MEM_PUT_PARTS ? bytes : 0);
	CHECK_IS(layer_request(local[0]->own, 1, id, payload, len, 3, arg), 0);
	CHECK_IS(tern_poll(local[1]) < 0, 0);
	CHECK_IS(tern_poll(local[0]) < 0, 0); /* an answer to no slot is ignored */
}

static void refused(const uint64_t *words, size_t n)
{
	say(MEM_PUT_PARTS, words, n, BYTES);
	say(MEM_GET_PARTS, words, n, BYTES);
	areas_check();
}

#define REFUSED(...)                               \
	refused((const uint64_t[]){ __VA_ARGS__ }, \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* The shape of a row, in one word. */
static uint64_t of(uint64_t run, uint64_t count)
{
	return count << 16 | run;
}

TEST(a_good_description_moves_its_bytes)
{
	areas_open(1);
	const uint64_t one[] = { at[0] + 100, of(BYTES, 1) };
	say(MEM_PUT_PARTS, one, 2, BYTES);
	memset(image[0] + 100, 0xa5, BYTES);
	areas_check();
	/* Runs of 5, downwards, and a run of 6 in registered memory. */
	const uint64_t two[] = { at[0] + 800, of(5, 2), (uint64_t)-100, at[1] + 7, of(6, 1) };
	say(MEM_PUT_PARTS, two, 5, BYTES);
	memset(image[0] + 800, 0xa5, 5);
	memset(image[0] + 700, 0xa5, 5);
	memset(image[1] + 7, 0xa5, 6);
	areas_close();
}

TEST(a_description_that_is_wrong_anywhere_moves_nothing)
{
	areas_open(1);
	const tern_addr a = at[0] + 64, beyond = at[1] + AREA;
	/* Cut short, with no bytes, with others than came, at another rank, outside of memory. */
	REFUSED(a);
	REFUSED(a, of(8, 2));
	REFUSED(a, of(8, 1), a + 50, of(4, 2));
	REFUSED(a, of(0, 1));
	REFUSED(a, of(0, 0));
	REFUSED(a, of(BYTES, 0));
	REFUSED(a, of(BYTES, 1), a + 50, of(0, 1));
	REFUSED(a, of(BYTES, 1), a + 50, of(1, 0));
	REFUSED(a, of(BYTES - 1, 1));
	REFUSED(a, of(BYTES + 1, 1));
	REFUSED(a, of(8, 1), a + 50, of(9, 1));
	REFUSED(handed_at(a, 0), of(BYTES, 1));
	REFUSED(handed_at(a, RANKS), of(BYTES, 1));
	REFUSED(TERN_ADDR_NONE, of(BYTES, 1));
	REFUSED(a, of(8, 1), beyond - 7, of(8, 1));
	REFUSED(a, UINT64_MAX);
	REFUSED(a, UINT64_MAX, 0);
	/* Too far, too many, numbers that overflow. */
	REFUSED(beyond - 8, of(8, 2), 8);
	REFUSED(at[1] + 7, of(8, 2), (uint64_t)-8);
	REFUSED(a, of(8, 3), 8);
	REFUSED(a, of(8, UINT32_MAX), 0);
	REFUSED(a, of(8, UINT64_C(1) << 47), 0);
	REFUSED(a, of(1 << 15, UINT64_C(1) << 47), 0);
	REFUSED(a, of(8, 2), INT64_MAX);
	REFUSED(a, of(8, 2), (uint64_t)INT64_MIN);
	REFUSED(a, of(4, 4), INT64_MAX);
	REFUSED(a, of(4, 4), (uint64_t)INT64_MIN);
	areas_close();
}

TEST(words_that_do_not_fit_their_message_are_refused)
{
	areas_open(1);
	const uint64_t good[] = { at[0], of(BYTES, 1) };
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < 4; i++) {
			const uint64_t n[] = { 0, 5, UINT64_MAX, UINT64_C(1) << 61 };
			const uint64_t arg[] = { NO_SLOT, n[i], BYTES };
			CHECK_IS(layer_request(local[0]->own, 1, k ? MEM_PUT_PARTS : MEM_GET_PARTS,
					       good, sizeof good, 3, arg),
				 0);
			CHECK_IS(layer_request(local[0]->own, 1, k ? MEM_PUT_PARTS : MEM_GET_PARTS,
					       NULL, 0, 3, arg),
				 0);
			CHECK_IS(tern_poll(local[1]) < 0, 0);
			areas_check();
		}
	const uint64_t much[] = { NO_SLOT, 2, TERN_PAYLOAD_MAX + 1 };
	const uint64_t large[] = { at[0], of(TERN_PAYLOAD_MAX + 1, 1) };
	CHECK_IS(layer_request(local[0]->own, 1, MEM_GET_PARTS, large, sizeof large, 3, much), 0);
	CHECK_IS(tern_poll(local[1]) < 0, 0);
	areas_close();
}
