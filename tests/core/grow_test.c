/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 200 */
/*
 * Rings of pairs that grow while both ranks run. Messages are handled in order and once: with
 * TERN_GROW from 1 on, with more ranks than cores, while ranks are stopped, and where there is no
 * memory to grow into.
 */
#include "lib/chance.h"
#include "lib/ranks.h"
#include "net/talk.h"

enum { ASK, TELL };

struct stream {
	uint64_t asked[RANKS_AT_MOST], told[RANKS_AT_MOST]; /* from each rank, so far */
	tern_flag answers;
};

static struct stream streams[RANKS_AT_MOST];
static unsigned messages;
static bool poor; /* there is no memory after the first words */

/* A payload takes a spare where there is no memory for a pool. */
static void on_ask(tern *t, const tern_msg *m)
{
	uint64_t expected = streams[tern_rank(t)].asked[tern_msg_src(m)]++;
	CHECK_IS(tern_msg_word(m, 0), expected);
	if (expected % 5 == 0)
		CHECK_IS(tern_reply_data(t, m, TELL, &expected, sizeof expected, expected), 0);
	else if (expected % 2)
		CHECK_IS(tern_reply(t, m, TELL, expected), 0);
	else
		CHECK_IS(tern_reply(t, m, TELL, expected, 1, 2, 3, 4, 5, 6), 0);
}

static void on_tell(tern *t, const tern_msg *m)
{
	struct stream *s = &streams[tern_rank(t)];
	CHECK_IS(tern_msg_word(m, 0), s->told[tern_msg_src(m)]++);
	tern_signal(t, &s->answers, 1);
}

static void prepare(tern *t)
{
	memset(&streams[tern_rank(t)], 0, sizeof streams[0]);
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
}

static void ask(tern *t, uint32_t dst, uint64_t i)
{
	unsigned kind = chance_of(7, i) % 4;
	if (kind == 0)
		CHECK_IS(tern_request(t, dst, ASK, i), 0);
	else if (kind == 1)
		CHECK_IS(tern_request(t, dst, ASK, i, 1, 2, 3, 4, 5, 6, 7), 0);
	else if (kind == 2 && !poor)
		CHECK_IS(tern_request_data(t, dst, ASK, &i, sizeof i, i), 0);
	else
		CHECK_IS(tern_request(t, dst, ASK, i, 1, 2, 3), 0);
}

static void ask_all(tern *t, uint64_t from, uint64_t to)
{
	struct stream *s = &streams[tern_rank(t)];
	for (uint64_t i = from; i < to; i++)
		for (uint32_t dst = 0; dst < tern_size(t); dst++)
			if (dst != tern_rank(t))
				ask(t, dst, i);
	CHECK_IS(tern_wait(t, &s->answers, (to - from) * (tern_size(t) - 1)), 0);
	CHECK_IS(tern_barrier(t), 0);
}

/* Whether our rings to and from the others have grown. */
static void check_rings(tern *t, bool grown)
{
	const struct site *site = &t->own->site;
	tern_hold(t);
	for (uint32_t r = 0; !site->asks && r < tern_size(t); r++) {
		if (r == tern_rank(t))
			continue;
		uint32_t request = grown ? (int)REQUEST_LEAF_LINES : (int)SMALL_REQUEST_LINES;
		uint32_t reply = grown ? (int)REPLY_LEAF_LINES : (int)SMALL_REPLY_LINES;
		CHECK_IS(site->lane[r].leaf_lines, request);
		CHECK_IS(site->peer[r].requests.leaf_lines, request);
		CHECK_IS(site->peer[r].answer.leaf_lines, reply);
		CHECK_IS(site->peer[r].replies.leaf_lines, reply);
	}
	tern_release(t);
}

static void grow_rank(tern *t)
{
	struct job_head *head = t->own->group->job.head;
	ask_all(t, 0, 1);
	if (poor && tern_rank(t) == 0)
		head->budget = atomic_load(&head->committed);
	CHECK_IS(tern_barrier(t), 0);
	ask_all(t, 1, messages);
	for (uint32_t r = 0; r < tern_size(t); r++) {
		uint64_t all = r == tern_rank(t) ? 0 : messages;
		CHECK_IS(streams[tern_rank(t)].asked[r], all);
		CHECK_IS(streams[tern_rank(t)].told[r], all);
	}
	check_rings(t, !poor);
	CHECK_IS(tern_barrier(t), 0);
}

static void grow_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	grow_rank(t);
	CHECK_IS(tern_close(t), 0);
}

static void grow_after(const char *leaves)
{
	setenv("TERN_GROW", leaves, 1);
	messages = check_scaled(1000) + 200;
}

TEST(order_is_kept_whenever_rings_grow)
{
	static const char *const leaves[] = { "0", "1", "2", "3", "5", "16" };
	for (unsigned i = 0; i < sizeof leaves / sizeof *leaves; i++) {
		grow_after(leaves[i]);
		ranks_run(3, grow_process);
	}
}

TEST(order_is_kept_while_rings_grow_between_threads)
{
	grow_after("2");
	ranks_run_threads(3, prepare, grow_rank);
}

TEST(order_is_kept_while_rings_grow_among_more_ranks_than_cores)
{
	grow_after("4");
	messages = 100;
	ranks_run(24, grow_process);
}

TEST(what_cannot_grow_loses_nothing)
{
	grow_after("2");
	poor = true;
	ranks_run(4, grow_process);
	poor = false;
}

static bool anybody_runs(void)
{
	for (uint32_t r = 0; r < ranks_size; r++)
		if (ranks_pid[r])
			return true;
	return false;
}

TEST(ranks_that_are_stopped_while_their_rings_grow_go_on)
{
	struct chance c = { check_seed() };
	for (unsigned round = 0; round < check_scaled(10) + 2; round++) {
		unsigned failed = 0;
		grow_after("3");
		messages = 200;
		ranks_start(4, 0, grow_process);
		while (anybody_runs()) {
			pid_t pid = ranks_pid[chance_below(&c, 4)];
			if (pid)
				kill(pid, SIGSTOP);
			ranks_nap(chance_below(&c, 1000) * 1000);
			if (pid)
				kill(pid, SIGCONT);
			failed += ranks_reap(4, WNOHANG);
		}
		CHECK_IS(failed, 0);
		ranks_end();
	}
}

/* Rank 1 handles nothing before rank 0 has sent more than a small ring has room for. */
static tern_flag *sent;

static void full_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		for (uint64_t i = 0; i < 400; i++)
			CHECK_IS(tern_request(t, 1, ASK, i, 1, 2, 3), 0);
		atomic_store(sent, 1);
		CHECK_IS(tern_wait(t, &streams[0].answers, 400), 0);
	} else {
		tern_hold(t);
		while (!atomic_load(sent))
			ranks_nap(100000);
		tern_release(t);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(streams[1].asked[0], tern_rank(t) * 400);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_ring_that_is_full_grows_though_nobody_takes_anything)
{
	sent = ranks_shared(sizeof *sent);
	grow_after("1000000");
	ranks_run(2, full_process);
}
