/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that puts and gets of a few hundred bytes move those bytes and no other. */
#include "lib/local.h"
#include "mem/mem.h"
#include "mem/wide.h"

enum { ROOM = WIDE_LONG + WIDE_MOST, BEFORE = 8, PLACES = 3 };

static unsigned char here[ROOM], back[ROOM];
static unsigned char *there;
static tern_addr addr;

static void opened(void)
{
	void *p;
	local_open(2);
	CHECK_IS(tern_alloc(local[1], ROOM, &p), 0);
	there = p;
	REQUIRE(tern_addr_of(local[1], p, &addr) == 0);
	for (unsigned i = 0; i < ROOM; i++)
		here[i] = (unsigned char)(i * 7 + i / 251);
}

/* Wrong bytes: outside of [at, at + len) they are 0. */
static unsigned wrong(const unsigned char *p, unsigned at, const unsigned char *from, size_t len)
{
	unsigned bad = 0;
	for (unsigned i = 0; i < ROOM; i++)
		bad += p[i] != (i >= at && i < at + len ? from[i - at] : 0);
	return bad;
}

typedef int mover(unsigned at, unsigned of, size_t len);

static int put(unsigned at, unsigned of, size_t len)
{
	return tern_put(local[0], addr + at, here + of, len);
}

static int put_started(unsigned at, unsigned of, size_t len)
{
	tern_op op = TERN_OP;
	int rc = tern_put_start(local[0], addr + at, here + of, len, &op);
	return rc ? rc : tern_op_wait(local[0], &op);
}

static void puts_of(mover *move, unsigned at, unsigned of, size_t len)
{
	memset(there, 0, ROOM);
	CHECK_IS(move(at, of, len), 0);
	CHECK_IS(wrong(there, at, here + of, len), 0);
}

static void gets_of(unsigned at, unsigned of, size_t len)
{
	tern_op op = TERN_OP;
	memset(back, 0, ROOM);
	CHECK_IS(tern_get(local[0], back + at, addr + of, len), 0);
	CHECK_IS(wrong(back, at, there + of, len), 0);
	memset(back, 0, ROOM);
	CHECK_IS(tern_get_start(local[0], back + at, addr + of, len, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(wrong(back, at, there + of, len), 0);
}

/* All lengths up to WIDE_MOST and around WIDE_LONG, and some between. */
static size_t longer(size_t len)
{
	bool between = len > WIDE_MOST + BEFORE && len < WIDE_LONG - 2 * TERN_LINE;
	return len + (between ? 61 : 1);
}

TEST(every_length_moves_its_bytes_and_no_other)
{
	static const unsigned place[PLACES] = { 0, 1, 33 };
	opened();
	for (size_t len = WIDE_LEAST - BEFORE; len <= WIDE_LONG + BEFORE; len = longer(len))
		for (unsigned i = 0; i < PLACES; i++) {
			puts_of(put, BEFORE + place[i], place[(i + len) % PLACES], len);
			puts_of(put_started, BEFORE + place[i], place[(i + len) % PLACES], len);
		}
	memcpy(there, here, ROOM);
	for (size_t len = WIDE_LEAST - BEFORE; len <= WIDE_LONG + BEFORE; len = longer(len))
		for (unsigned i = 0; i < PLACES; i++)
			gets_of(BEFORE + place[i], place[(i + len) % PLACES], len);
	local_close();
}

/* A rank knows where the longest of them may begin; what begins later goes another way. */
TEST(the_end_of_a_heap_is_reached_and_not_passed)
{
	opened();
	CHECK_IS(put(0, 0, 1), 0);
	const struct job_span *s = &mem_of(local[0])->span[1];
	tern_addr end = s->first + s->own;
	for (size_t len = WIDE_LEAST; len <= WIDE_LONG; len *= 2) {
		CHECK_IS(tern_put(local[0], end - len, here, len), 0);
		CHECK_IS(memcmp(s->base + s->own - len, here, len), 0);
		CHECK_IS(tern_get(local[0], back, end - len, len), 0);
		CHECK_IS(memcmp(back, here, len), 0);
		CHECK_IS(tern_put(local[0], end - len + 1, here, len), -EFAULT);
		CHECK_IS(tern_get(local[0], back, end - len + 1, len), -EFAULT);
	}
	local_close();
}
