/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 MODES */
/*
 * Ranks that flood each other with requests while their handlers reply: no
 * deadlock, and neither memory nor stack grow with the number of messages.
 */
#include <sys/stat.h>

#include "lib/chance.h"
#include "lib/ranks.h"
#include "net/talk.h"

enum { ASK, ASK_DATA, TELL, BYTES = 3000, STACK_MOST = 32768 * CHECK_SLOWER };

/* Of a rank, whose handlers may run on another thread than its program. */
struct rank {
	_Atomic uint64_t answered;
	uint64_t served;
	size_t deepest; /* that a handler has been seen below the top */
};

static struct rank rank_of[RANKS_AT_MOST];
static _Thread_local uintptr_t
	top; /* of the stack, where the rank began, or a thread of the library's was first seen */
static unsigned messages;
static bool only_to_zero;

static void top_is_here(void)
{
	char here;
	top = (uintptr_t)&here;
}

static struct rank *rank_here(const tern *t)
{
	return &rank_of[tern_rank(t)];
}

static struct rank *rank_note(const tern *t)
{
	struct rank *rank = rank_here(t);
	char here;
	uintptr_t at = (uintptr_t)&here;
	if (!top)
		top_is_here();
	size_t depth = at < top ? top - at : at - top;
	if (depth > rank->deepest)
		rank->deepest = depth;
	return rank;
}

static void answer(tern *t, const tern_msg *m)
{
	rank_note(t)->served++;
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0), 7), 0);
}

static void answer_data(tern *t, const tern_msg *m)
{
	size_t len;
	rank_note(t)->served++;
	const unsigned char *data = tern_msg_data(m, &len);
	CHECK(len == BYTES && chance_filled(data, 16, tern_msg_word(m, 0)));
	CHECK_IS(tern_reply_data(t, m, TELL, data, len, tern_msg_word(m, 0)), 0);
}

static void take_answer(tern *t, const tern_msg *m)
{
	size_t len;
	struct rank *rank = rank_note(t);
	const unsigned char *data = tern_msg_data(m, &len);
	CHECK(!data || (len == BYTES && chance_filled(data, 16, tern_msg_word(m, 0))));
	tern_signal(t, &rank->answered, 1);
}

static void prepare(tern *t)
{
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, ASK_DATA, answer_data), 0);
	CHECK_IS(tern_on(t, TELL, take_answer), 0);
}

static uint32_t target(const tern *t, unsigned i)
{
	return only_to_zero ? 0 : (tern_rank(t) + 1 + i % (tern_size(t) - 1)) % tern_size(t);
}

static uint64_t committed(const tern *t)
{
	const struct job *j = &t->own->group->job;
	struct stat st;
	CHECK_IS(fstat(j->fd, &st), 0);
	CHECK_IS((uint64_t)st.st_blocks * 512, j->head->committed);
	return j->head->committed;
}

/* Sends everything without ever waiting for an answer, then waits for all of them. */
static void flood(tern *t, unsigned n, bool payloads)
{
	unsigned char filled[BYTES];
	for (unsigned i = 0; i < n; i++) {
		int rc;
		if (payloads && i % 3 == 0) {
			chance_fill(filled, BYTES, i);
			rc = tern_request_data(t, target(t, i), ASK_DATA, filled, BYTES, i);
		} else {
			rc = tern_request(t, target(t, i), ASK, i);
		}
		REQUIRE(rc == 0);
	}
	CHECK_IS(tern_wait(t, &rank_here(t)->answered, n), 0);
}

static void flood_rank(tern *t)
{
	top_is_here();
	bool sends = !only_to_zero || tern_rank(t) != 0;
	for (int payloads = 0; payloads < 2; payloads++) {
		unsigned n = payloads ? messages / 5 : messages;
		if (sends)
			flood(t, n / 10, payloads);
		CHECK_IS(tern_barrier(t), 0);
		uint64_t before = committed(t);
		CHECK_IS(tern_barrier(t), 0);
		if (sends)
			flood(t, n, payloads);
		CHECK_IS(tern_barrier(t), 0);
		/* Ten times the messages; rings grow once, and so do spares for replies. */
		const struct job *j = &t->own->group->job;
		size_t pairs = (size_t)j->size * (j->size - 1);
		CHECK(committed(t) - before <=
		      j->size * j->spare.bytes + pairs * sizeof(struct large_talk));
		CHECK_IS(tern_barrier(t), 0);
	}
	tern_hold(t);
	CHECK(rank_here(t)->deepest < STACK_MOST);
	CHECK(rank_here(t)->served > 0 || only_to_zero);
	tern_release(t);
}

static void flood_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	flood_rank(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(two_threads_flood_each_other)
{
	messages = check_scaled(100000);
	ranks_run_threads(2, prepare, flood_rank);
}

TEST(two_processes_flood_each_other)
{
	messages = check_scaled(100000);
	ranks_run(2, flood_process);
}

TEST(everybody_floods_everybody)
{
	messages = check_scaled(20000);
	ranks_run_threads(6, prepare, flood_rank);
	ranks_run(6, flood_process);
}

TEST(everybody_floods_one)
{
	only_to_zero = true;
	messages = check_scaled(20000);
	ranks_run_threads(8, prepare, flood_rank);
	ranks_run(8, flood_process);
}

/* One thread plays both ranks, so that every send blocks at a moment that is always the same. */
TEST(two_endpoints_of_one_thread_flood_each_other)
{
	tern *t[2];
	top_is_here();
	REQUIRE(tern_open_local(2, t) == 0);
	prepare(t[0]);
	prepare(t[1]);
	unsigned n = check_scaled(100000);
	unsigned char filled[BYTES];
	for (unsigned i = 0; i < n; i++) {
		CHECK_IS(tern_request(t[0], 1, ASK, i), 0);
		CHECK_IS(tern_request(t[1], 0, ASK, i, i), 0);
		if (i % 4)
			continue;
		chance_fill(filled, BYTES, i);
		CHECK_IS(tern_request_data(t[0], 1, ASK_DATA, filled, BYTES, i), 0);
		CHECK_IS(tern_request_data(t[1], 0, ASK_DATA, filled, BYTES, i), 0);
	}
	for (int r = 0; r < 2; r++) {
		CHECK_IS(tern_wait(t[r], &rank_here(t[r])->answered, n + (n + 3) / 4), 0);
		CHECK(rank_here(t[r])->deepest < STACK_MOST);
	}
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}
