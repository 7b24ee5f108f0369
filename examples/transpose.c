/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A matrix is transposed while its ranks compute. Each has some rows; what another rank needs of
 * them lies scattered, a column of words here and there. The program hands each such block over and
 * goes on: the communication processor picks the words up and puts them into the chain to that
 * rank, as there is room, and the one there lays them down. Try it with TERN_DELIVERY=thread. Where
 * nothing else is to be done meanwhile, tern_team_transpose() is enough.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/async.h>

enum { BLOCK };
enum { ROWS = 64, RANKS_MOST = 64, SIDE = ROWS * RANKS_MOST };

static uint64_t before[ROWS][SIDE], after[ROWS][SIDE];
static tern_out come; /* from the communication processor: whose block has come */

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "transpose: %s\n", tern_strerror(rc));
	exit(1);
}

static uint64_t element(uint64_t row, uint64_t column)
{
	return row * 1000003 + column * 7;
}

/* Which block, and how many of its words have been put. */
struct block {
	uint32_t to;
	unsigned put;
};

/* Column after column. When the chain is full the put says so, and we are called again. */
static int put_block(tern *t, tern_out *out, void *arg)
{
	struct block *b = arg;
	(void)t;
	for (; b->put < ROWS * ROWS; b->put++) {
		const uint64_t *from = &before[b->put % ROWS][b->to * ROWS + b->put / ROWS];
		int rc = tern_chan_put(out, from, sizeof *from);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * A column there is a row here. own[0] counts the words that have come. The program hears of the
 * block by a channel that leads from the processor to it.
 */
static int get_block(tern *t, tern_incoming *m, void *arg)
{
	uint64_t src = m->src;
	(void)t, (void)arg;
	for (; m->own[0] < ROWS * ROWS; m->own[0]++) {
		uint64_t *to = &after[m->own[0] / ROWS][m->src * ROWS + m->own[0] % ROWS];
		int rc = tern_chan_get(m->in, to, sizeof *to);
		if (rc)
			return rc;
	}
	return tern_chan_put(&come, &src, sizeof src);
}

int main(void)
{
	static struct block block[RANKS_MOST];
	tern_op sent = TERN_OP;
	tern *t;
	tern_chan *out, *from, *unused;
	must(tern_open(&t, NULL));
	must(tern_async_chan(t, TERN_ASYNC_PROCESSOR, &out, &unused));
	must(tern_async_chan(t, TERN_ASYNC_PROGRAM, &unused, &from));
	come = tern_chan_out(out);
	tern_in in = tern_chan_in(from);
	must(tern_async_on(t, BLOCK, get_block, NULL));
	uint32_t n = tern_size(t), self = tern_rank(t);
	if (n > RANKS_MOST) {
		fprintf(stderr, "transpose: at most %d ranks\n", RANKS_MOST);
		return 1;
	}
	for (uint64_t i = 0; i < ROWS; i++)
		for (uint64_t j = 0; j < n * ROWS; j++)
			before[i][j] = element(self * ROWS + i, j);
	for (uint32_t to = 0; to < n; to++) {
		block[to].to = to;
		must(tern_async_send_start(t, to, BLOCK, put_block, &block[to], &sent));
	}
	uint64_t sum = 0, want = 0, wrong = 0;
	for (uint64_t i = 0; i < ROWS; i++) /* meanwhile */
		for (uint64_t j = 0; j < n * ROWS; j++)
			sum += before[i][j];
	must(tern_op_wait(t, &sent));
	for (uint64_t k = 0, src; k < n; k++) { /* block after block, as they come */
		must(tern_chan_get(&in, &src, sizeof src));
		for (uint64_t i = 0; i < ROWS; i++)
			for (uint64_t j = src * ROWS; j < (src + 1) * ROWS; j++) {
				wrong += after[i][j] != element(j, self * ROWS + i);
				want += element(self * ROWS + i, j);
			}
	}
	tern_chan_in_back(&in);
	printf("rank %u: %u x %u transposed, %u wrong\n", self, n * ROWS, n * ROWS,
	       (unsigned)(wrong + (sum != want)));
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
