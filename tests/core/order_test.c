/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/*
 * Messages from one rank to another are handled in the order they were sent:
 * requests among requests, replies among replies.
 */
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { ASK, TELL };

struct stream {
	uint64_t asked[RANKS_AT_MOST], told[RANKS_AT_MOST]; /* from each rank, so far */
	_Atomic uint64_t answers;
};

static struct stream streams[RANKS_AT_MOST];
static unsigned messages;

static void check_asked(tern *t, const tern_msg *m)
{
	uint64_t expected = streams[tern_rank(t)].asked[tern_msg_src(m)]++;
	CHECK_IS(tern_msg_word(m, 0), expected);
	if (expected % 5 == 0)
		CHECK_IS(tern_reply_data(t, m, TELL, &expected, sizeof expected, expected), 0);
	else if (expected % 2)
		CHECK_IS(tern_reply(t, m, TELL, expected), 0);
	else
		CHECK_IS(tern_reply(t, m, TELL, expected, 1, 2, 3), 0);
}

static void check_told(tern *t, const tern_msg *m)
{
	struct stream *s = &streams[tern_rank(t)];
	CHECK_IS(tern_msg_word(m, 0), s->told[tern_msg_src(m)]++);
	tern_signal(t, &s->answers, 1);
}

static void prepare(tern *t)
{
	memset(&streams[tern_rank(t)], 0, sizeof streams[0]);
	CHECK_IS(tern_on(t, ASK, check_asked), 0);
	CHECK_IS(tern_on(t, TELL, check_told), 0);
}

/* One to every rank, in a kind that changes from one to the next. */
static void ask(tern *t, uint32_t dst, uint64_t i)
{
	switch (chance_of(7, i) % 4) {
	case 0:
		CHECK_IS(tern_request(t, dst, ASK, i), 0);
		break;
	case 1:
		CHECK_IS(tern_request(t, dst, ASK, i, 1, 2, 3, 4, 5), 0);
		break;
	case 2:
		CHECK_IS(tern_request_data(t, dst, ASK, &i, sizeof i, i), 0);
		break;
	default: {
		void *claimed = handed_claim(t, dst, 100);
		CHECK(claimed != NULL);
		CHECK_IS(tern_commit(t, claimed, ASK, i), 0);
	}
	}
}

static void order_rank(tern *t)
{
	for (uint64_t i = 0; i < messages; i++)
		for (uint32_t dst = 0; dst < tern_size(t); dst++)
			ask(t, dst, i);
	CHECK_IS(tern_wait(t, &streams[tern_rank(t)].answers, (uint64_t)messages * tern_size(t)),
		 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint32_t r = 0; r < tern_size(t); r++) {
		CHECK_IS(streams[tern_rank(t)].asked[r], messages);
		CHECK_IS(streams[tern_rank(t)].told[r], messages);
	}
}

static void order_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	order_rank(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(order_is_kept_between_threads)
{
	messages = check_scaled(20000);
	ranks_run_threads(3, prepare, order_rank);
}

TEST(order_is_kept_between_processes)
{
	messages = check_scaled(20000);
	ranks_run(3, order_process);
}

TEST(order_is_kept_within_a_job_of_one)
{
	messages = check_scaled(50000);
	ranks_run_threads(1, prepare, order_rank);
}

TEST(order_is_kept_among_many)
{
	messages = check_scaled(300);
	ranks_run(24, order_process);
}
