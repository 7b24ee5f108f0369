/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A picture in tiles, one at each rank, in a ring. Sends and receives move what lies scattered: a
 * column, described once and used at two places; three things with an id each in one message; every
 * fourth pixel, which the neighbour's library sends when it is asked. A receive for a message that
 * may never come is looked at while the rank computes, and taken back in the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/send.h>

enum { WIDTH = 64, HEIGHT = 32, PICTURE = 0 };
enum { EDGE, TITLE, BRIGHT, SIZE, SMALL, ALARM };

static unsigned char tile[HEIGHT][WIDTH], small[HEIGHT / 4][WIDTH / 4];
static uint64_t wrong;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "tiles: %s\n", tern_strerror(rc));
	exit(1);
}

static unsigned char pixel(uint32_t rank, unsigned y, unsigned x)
{
	return (unsigned char)(rank * 31 + y * 7 + x);
}

/* The last column of the tile before goes where the first one of this tile was. */
static void edge(tern *t, uint32_t before, uint32_t behind)
{
	static const size_t rows = HEIGHT;
	static const ptrdiff_t apart = WIDTH;
	tern_part column = { .run = 1, .dims = 1, .count = &rows, .stride = &apart };
	tern_part last = column, first = column;
	last.base = &tile[0][WIDTH - 1];
	first.base = &tile[0][0];
	must(tern_send_parts(t, behind, EDGE, &last, 1));
	must(tern_recv_parts(t, before, EDGE, &first, 1, NULL));
	for (unsigned y = 0; y < HEIGHT; y++)
		wrong += tile[y][0] != pixel(before, y, WIDTH - 1);
}

/* Three parts of one message, each for a receive of its own, in whatever order they are met. */
static void card(tern *t, uint32_t before, uint32_t behind)
{
	static const tern_id ids[] = { TITLE, BRIGHT, SIZE };
	char title[16] = "", own_title[16];
	uint64_t bright = 0, own_bright = tern_rank(t), size[2] = { 0 };
	uint64_t own_size[2] = { WIDTH, HEIGHT };
	snprintf(own_title, sizeof own_title, "tile %u", tern_rank(t));
	const tern_part parts[] = { { .base = own_title, .run = sizeof own_title },
				    { .base = &own_bright, .run = sizeof own_bright },
				    { .base = own_size, .run = sizeof own_size } };
	void *const to[] = { title, &bright, size };
	tern_op got[] = { TERN_OP, TERN_OP, TERN_OP }, sent = TERN_OP;
	tern_op *waiting[] = { &got[0], &got[1], &got[2] };
	for (int i = 0; i < 3; i++)
		must(tern_recv_start(t, &(tern_match){ .rank = before, .id = ids[i] }, to[i],
				     parts[i].run, NULL, &got[i]));
	must(tern_send_each_start(t, behind, ids, parts, 3, TERN_SEND_AUTO, &sent));
	for (size_t n = 3, which; n; waiting[which] = waiting[--n])
		must(tern_op_wait_any(t, waiting, n, &which));
	must(tern_op_wait(t, &sent));
	wrong += bright != before || size[0] != WIDTH || size[1] != HEIGHT;
}

/* Every fourth pixel of the tile before; its owner's program has nothing to do with it. */
static void preview(tern *t, uint32_t before)
{
	tern_op got = TERN_OP;
	for (unsigned y = 0; y < HEIGHT / 4; y++)
		must(tern_recv_start(t, &(tern_match){ .rank = before, .id = SMALL + y * 8 },
				     small[y], WIDTH / 4, NULL, &got));
	for (unsigned y = 0; y < HEIGHT / 4; y++)
		must(tern_block_ask(t, before,
				    &(tern_block){ .name = PICTURE,
						   .offset = (size_t)4 * y * WIDTH + 4,
						   .stride = 4,
						   .run = 1,
						   .count = WIDTH / 4 - 1 },
				    SMALL + y * 8));
	must(tern_op_wait(t, &got));
	for (unsigned i = 0; i < WIDTH / 4 * HEIGHT / 4; i++)
		if (i % (WIDTH / 4) < WIDTH / 4 - 1)
			wrong += small[i / (WIDTH / 4)][i % (WIDTH / 4)] !=
				 pixel(before, i / (WIDTH / 4) * 4, i % (WIDTH / 4) * 4 + 4);
}

int main(void)
{
	tern *t;
	static void *where = tile;
	uint64_t sum = 0;
	tern_op alarm = TERN_OP;
	must(tern_open(&t, NULL));
	uint32_t me = tern_rank(t), n = tern_size(t);
	for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
		tile[i / WIDTH][i % WIDTH] = pixel(me, i / WIDTH, i % WIDTH);
	must(tern_block_name(t, PICTURE, &where, sizeof tile));
	must(tern_recv_start(t, &(tern_match){ .rank = TERN_RANK_ANY, .id = ALARM }, NULL, 0, NULL,
			     &alarm));
	must(tern_barrier(t));
	edge(t, (me + n - 1) % n, (me + 1) % n);
	card(t, (me + n - 1) % n, (me + 1) % n);
	preview(t, (me + n - 1) % n);
	for (unsigned y = 0; y < HEIGHT && tern_op_test(t, &alarm) == 0; y++) /* row after row */
		for (unsigned x = 0; x < WIDTH; x++)
			sum += tile[y][x];
	if (tern_op_state(t, &alarm) == TERN_STATE_IN_USE) /* nobody has sent it */
		must(tern_op_cancel(t, &alarm));
	printf("rank %u: %u pixels, %u wrong\n", me, WIDTH * HEIGHT, (unsigned)wrong + !sum);
	must(tern_barrier(t));
	must(tern_close(t));
	return wrong != 0;
}
