/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Every send looks for what has arrived: a rank that only sends still serves. */
#include "endpoint/endpoint.h"
#include "handed.h"
#include "local.h"

enum { ASK, TELL };

static void answer(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
}

static unsigned sends_until_handled(int (*send)(void))
{
	unsigned before = requests.count, sends = 0;
	while (requests.count == before && sends < 1000) {
		CHECK_IS(send(), 0);
		sends++;
	}
	return sends;
}

static int send_word(void)
{
	return tern_request(local[1], 2, TELL, 1);
}

static int send_words(void)
{
	return tern_request(local[1], 2, TELL, 1, 2, 3);
}

static int send_data(void)
{
	return tern_request_data(local[1], 2, TELL, "x", 1);
}

static int send_claim(void)
{
	void *claimed = handed_claim(local[1], 2, 10);
	return tern_commit(local[1], claimed, TELL);
}

TEST(a_request_is_handled_during_sends_of_every_kind)
{
	local_polled();
	int (*const sends[])(void) = { send_word, send_words, send_data, send_claim };
	ranks_open(3);
	for (int i = 0; i < 4; i++)
		for (int round = 0; round < 20; round++) {
			CHECK_IS(tern_request(local[0], 1, ASK, round), 0);
			unsigned most = local[1]->own->site.asks
						? 999
						: 8; /* a network of packets goes by time */
			CHECK(sends_until_handled(sends[i]) <=
			      most); /* each looks at one place, in turn */
			CHECK_IS(requests.rank, 1);
			tern_poll(local[2]);
		}
	local_close();
}

TEST(two_ranks_that_only_send_serve_each_other)
{
	ranks_open(2);
	for (int i = 0; i < 10000; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
		CHECK_IS(tern_request(local[1], 0, ASK, i), 0);
	}
	CHECK(requests.count > 19000); /* without a single poll */
	local_settle();
	CHECK_IS(requests.count, 20000);
	CHECK_IS(replies.count, 20000);
	local_close();
}

TEST(a_rank_that_sends_to_itself_serves_itself)
{
	ranks_open(1);
	for (int i = 0; i < 1000; i++)
		CHECK_IS(tern_request(local[0], 0, ASK, i), 0);
	CHECK(requests.count > 900);
	local_close();
}
