/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 180 RUN_SERIAL MODES */
/*
 * A rank is killed while all exchange messages that were handed over: the others' sends to it end
 * with an error, their procedures hear of it if they were in the middle of its message, and all the
 * rest arrives.
 */
#include "lib/async_pair.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { STREAM, RUNS = 6, RANKS = 4, VICTIM = 2 };

static _Atomic uint64_t *under_way, *dead, *done;

/* Words that count up, for ever, or until told that it is enough. */
struct stream {
	uint64_t next;
	_Atomic bool enough;
};

static int stream_fill(tern *t, tern_out *out, void *arg)
{
	struct stream *s = arg;
	(void)t;
	for (int i = 0; i < 1000 && !s->enough; i++, s->next++) {
		int rc = tern_chan_put(out, &(uint64_t){ s->next }, sizeof(uint64_t));
		if (rc)
			return rc;
	}
	return s->enough ? 0 : 1;
}

static int end_of[RANKS]; /* how the stream of each ended; 1: not yet */

static int stream_drain(tern *t, tern_incoming *m, void *arg)
{
	uint64_t word;
	int rc;
	(void)t, (void)arg;
	for (int i = 0; i < 1000; i++) {
		rc = tern_chan_get(m->in, &word, sizeof word);
		if (rc == -EAGAIN)
			return rc;
		if (rc) {
			end_of[m->src] = rc;
			return 0; /* that it died is no error of this rank's */
		}
		REQUIRE(CHECK_IS(word, m->own[0]++));
		if (m->own[0] == 20000)
			atomic_fetch_add(under_way, 1);
	}
	return 1;
}

static void streams_check(const tern_op *op)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK_IS(end_of[r], r == VICTIM ? -EOWNERDEAD : -ENODATA);
		CHECK_IS(op[r].pending, 0);
		CHECK_IS(op[r].error, r == VICTIM ? -EOWNERDEAD : 0);
	}
}

static bool streams_over(tern *t, const tern_op *op)
{
	bool over = true;
	tern_hold(t);
	for (uint32_t r = 0; r < RANKS; r++)
		over &= end_of[r] != 1 && op[r].pending == 0;
	tern_release(t);
	return over;
}

static void rank_main(void)
{
	struct stream s[RANKS] = { { 0 } };
	tern_op op[RANKS] = { TERN_OP };
	tern *t = ranks_open();
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	CHECK_IS(tern_async_on(t, STREAM, stream_drain, NULL), 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		end_of[r] = 1;
		CHECK_IS(tern_async_send_start(t, r, STREAM, stream_fill, &s[r], &op[r]), 0);
	}
	while (!atomic_load(dead))
		CHECK(tern_poll(t) >= 0);
	for (uint32_t r = 0; r < RANKS; r++)
		s[r].enough = r != VICTIM;
	while (!streams_over(t, op))
		CHECK(tern_poll(t) >= 0);
	streams_check(op);
	CHECK_IS(tern_async_send_start(t, VICTIM, STREAM, NULL, NULL, &op[0]), -EOWNERDEAD);
	CHECK(sentence_has(-EOWNERDEAD, "rank 2"));
	atomic_fetch_add(done, 1);
	while (atomic_load(done) + 1 < RANKS)
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_is_killed_in_the_middle_of_everything_ends_its_own_messages_only)
{
	struct chance c = { check_seed() };
	for (int run = 0; run < RUNS; run++) {
		_Atomic uint64_t *board = ranks_shared(3 * sizeof *board);
		under_way = &board[0];
		dead = &board[1];
		done = &board[2];
		ranks_start(RANKS, 0, rank_main);
		while (atomic_load(under_way) < RANKS * RANKS)
			ranks_nap(100000);
		ranks_nap(chance_below(&c, 3000000));
		kill(ranks_pid[VICTIM], SIGKILL);
		CHECK_IS(ranks_reap(1, 0), 1);
		atomic_store(dead, 1);
		CHECK_IS(ranks_reap(RANKS - 1, 0), 0);
		ranks_end();
	}
}
