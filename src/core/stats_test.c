/* SPDX-License-Identifier: BSD-3-Clause */
/* What is counted, with TERN_STATS and without, and what a rank shows of its waits. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <tern/send.h>
#include <tern/stats.h>
#include <time.h>

#include "endpoint/endpoint.h"
#include "lib/local.h"

enum { ASK, TELL, BUSY };

static void answer(tern *t, const tern_msg *m)
{
	tern_reply(t, m, TELL, 1);
}

static void nothing(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void busy(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	struct timespec left = { .tv_nsec = 200000 };
	while (nanosleep(&left, &left) != 0) /* another rank's interrupt */
		;
}

static void ranks_open(uint32_t n, const char *counting)
{
	setenv("TERN_STATS", counting, 1);
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, nothing);
	local_on(BUSY, busy);
}

/* Nothing is to be printed: the tests look for themselves. */
static void ranks_close(void)
{
	for (uint32_t r = 0; r < local_size; r++) {
		tern_hold(local[r]);
		local[r]->own->stats = NULL;
		tern_release(local[r]);
	}
	local_close();
}

static tern_stats_data stats_of(uint32_t rank)
{
	tern_stats_data d;
	CHECK_IS(tern_stats(local[rank], &d), 0);
	return d;
}

static tern_stats_peer_data peer_of(uint32_t rank, uint32_t peer)
{
	tern_stats_peer_data d;
	CHECK_IS(tern_stats_peer(local[rank], peer, &d), 0);
	return d;
}

/* A request of `words` words; pieces, lines and payloads all travel in their own way. */
static void send_some(unsigned words, bool payload)
{
	uint64_t w[TERN_WORDS_MAX] = { 0 };
	if (payload)
		CHECK_IS(tern_request_data(local[0], 1, TELL, w, 48, 1, 2), 0);
	else
		CHECK_IS(tern_request_array(local[0], 1, TELL, words, w), 0);
}

TEST(what_was_sent_follows_from_the_lanes_whatever_was_sent)
{
	ranks_open(2, "0");
	uint64_t state = check_seed();
	for (uint64_t sent = 1; sent <= 5000; sent++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		unsigned words = (unsigned)(state >> 33) % 12;
		send_some(words <= TERN_WORDS_MAX ? words : 1, words == 11);
		CHECK_IS(stats_of(0).sent, sent);
		if ((state >> 50) % 64 == 0)
			tern_poll(local[1]);
	}
	local_settle();
	CHECK_IS(peer_of(0, 1).sent, 5000);
	CHECK_IS(peer_of(1, 0).handled, 5000);
	CHECK_IS(stats_of(1).handled, 5000);
	ranks_close();
}

TEST(replies_are_sent_messages_too)
{
	ranks_open(2, "0");
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK_IS(peer_of(1, 0).sent, 10);
	CHECK_IS(peer_of(0, 1).sent, 10);
	CHECK_IS(peer_of(0, 1).handled, 10);
	ranks_close();
}

TEST(without_TERN_STATS_handlers_are_not_counted_and_nothing_is_committed)
{
	ranks_open(2, "0");
	tern_stats_handler_data h;
	CHECK_IS(tern_request(local[0], 1, TELL, 1, 2), 0);
	local_settle();
	CHECK_IS(tern_stats_handler(local[1], TELL, &h), 0);
	CHECK_IS(h.count, 0);
	CHECK_IS(stats_of(1).counting, 0);
	CHECK(!local[1]->own->stats);
	CHECK_IS(atomic_load(&local[1]->own->pulse->counting), 0);
	ranks_close();
}

TEST(with_TERN_STATS_each_handler_and_each_peer_is_counted)
{
	ranks_open(2, "1");
	tern_stats_handler_data h;
	tern_hold(local[1]); /* so that a queue is seen */
	for (int i = 0; i < 100; i++)
		send_some(2, false);
	for (int i = 0; i < 10; i++)
		send_some(1, false);
	for (int i = 0; i < 5; i++)
		send_some(0, true);
	for (int i = 0; i < 3; i++)
		send_some(8, false);
	tern_release(local[1]);
	local_settle();
	CHECK_IS(tern_stats_handler(local[1], TELL, &h), 0);
	CHECK_IS(h.count, 118);
	CHECK_IS(h.bytes, 100 * 16 + 10 * 8 + 5 * (48 + 16) + 3 * 64);
	CHECK_IS(h.timed, 8); /* the first, and each 16th from there */
	CHECK_IS(peer_of(1, 0).requests, 118);
	CHECK_IS(peer_of(1, 0).bytes, h.bytes);
	CHECK_IS(peer_of(0, 1).sent_bytes, h.bytes);
	CHECK_IS(stats_of(1).bytes, h.bytes);
	CHECK(peer_of(1, 0).queue_most >= 50);
	ranks_close();
}

TEST(messages_of_a_layer_are_counted_as_that_layers)
{
	ranks_open(2, "1");
	tern_stats_handler_data h;
	uint64_t word = 7;
	CHECK_IS(tern_send(local[0], 1, 3, &word, sizeof word), 0);
	local_settle();
	unsigned layer = 0;
	for (; tern_stats_handler(local[1], TERN_STATS_LAYER + layer, &h) == 0; layer++)
		CHECK_IS(h.count, strcmp(h.name, "msg") == 0);
	CHECK(layer > 3);
	ranks_close();
}

TEST(the_time_of_one_handler_in_16_is_taken_at_first)
{
	ranks_open(2, "1");
	tern_stats_handler_data h;
	for (int i = 0; i < 17; i++)
		CHECK_IS(tern_request(local[0], 1, BUSY, 1, 2), 0);
	local_settle();
	CHECK_IS(tern_stats_handler(local[1], BUSY, &h), 0);
	CHECK_IS(h.timed, 2);
	CHECK(h.ns >= 2 * 150000 && h.longest_ns >= 150000);
	ranks_close();
}

TEST(what_is_not_there_is_refused_with_a_sentence)
{
	ranks_open(1, "0");
	tern_stats_peer_data p;
	tern_stats_handler_data h;
	CHECK_IS(tern_stats_peer(local[0], 1, &p), -ERANGE);
	CHECK_IS(tern_stats_handler(local[0], TERN_STATS_LAYER + 100, &h), -ERANGE);
	CHECK(sentence_has(-ERANGE, "1023"));
	CHECK_IS(tern_stats_handler(local[0], UINT32_MAX, &h), -ERANGE);
	ranks_close();
}

/* -- Printing --------------------------------------------------------------------------- */

/* What all of them print when they close. */
static void close_and_read(char *text, size_t room)
{
	FILE *to = tmpfile();
	int before = dup(STDERR_FILENO);
	REQUIRE(to && before >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0);
	local_close();
	CHECK(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(to);
	text[fread(text, 1, room - 1, to)] = '\0';
	fclose(to);
}

TEST(a_rank_prints_at_its_end_the_handlers_and_peers_that_were_active)
{
	static char text[1 << 16];
	for (int json = 0; json < 2; json++) {
		ranks_open(3, json ? "2" : "1");
		CHECK_IS(tern_request(local[0], 1, TELL), 0);
		local_settle();
		close_and_read(text, sizeof text);
		const char *rank = strstr(text, json ? "{\"rank\": 1" : "tern: rank 1 of 3\n");
		REQUIRE(rank != NULL);
		CHECK(strstr(rank, "user 1 (nothing)"));
		CHECK(strstr(rank, json ? "\"name\": \"rank 0\"" : "tern:   rank 0 "));
		CHECK(!strstr(text, "(busy)") && !strstr(text, "(answer)"));
		CHECK(!strstr(text, json ? "\"name\": \"rank 2\"" : "tern:   rank 2 "));
	}
}

/* -- Packets ---------------------------------------------------------------------------- */

/* A struct of another version, between bytes that are nobody's business. */
struct framed {
	tern_stats_net_data d;
	uint64_t behind[2];
};

TEST(shared_memory_has_no_packets)
{
	ranks_open(2, "1");
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	tern_stats_net_data d = { .size = sizeof d }, none = { .size = sizeof d };
	CHECK_IS(tern_stats_net(local[0], &d), 0);
	CHECK(memcmp(&d, &none, sizeof d) == 0);
	ranks_close();
}

TEST(counts_of_packets_are_written_up_to_the_size_that_the_program_knows)
{
	ranks_open(1, "0");
	struct framed f = { .d.size = sizeof f.d, .behind = { 7, 8 } };
	stats_set(&local[0]->own->pulse->count[PULSE_PACKETS_FORGED], 5);
	CHECK_IS(tern_stats_net(local[0], &f.d), 0);
	CHECK(f.d.forged == 5 && f.behind[0] == 7);
	f.d.size =
		sizeof f.d + sizeof f.behind[0]; /* of a later version: what this one lacks is 0 */
	CHECK_IS(tern_stats_net(local[0], &f.d), 0);
	CHECK(f.d.forged == 5 && f.behind[0] == 0 && f.behind[1] == 8);
	for (int i = 0; i < 2; i++) {
		f.d = (tern_stats_net_data){ .size = i ? SIZE_MAX : 0, .sent = 3 };
		CHECK_IS(tern_stats_net(local[0], &f.d), -EINVAL);
		CHECK(sentence_has(-EINVAL, "sizeof(tern_stats_net_data)"));
		CHECK_IS(f.d.sent, 3);
	}
	ranks_close();
}

/* -- What a rank shows of its waits ---------------------------------------------------- */

static void *receive(void *arg)
{
	(void)arg;
	uint64_t word;
	CHECK_IS(tern_recv(local[1], 0, 0x7, &word, sizeof word, NULL), 0);
	return NULL;
}

/* Until the rank is seen waiting; waits are shown some hundred microseconds after they begin. */
static struct rank_wait rank_wait_await(uint32_t rank)
{
	struct rank_wait p = { 0 };
	for (int i = 0; i < 1000000 && !pulse_read(local[0]->own->pulse + rank, &p); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	return p;
}

TEST(a_wait_says_in_which_call_and_for_whom_and_that_it_is_over)
{
	ranks_open(2, "0");
	pthread_t thread;
	uint64_t word = 1;
	struct rank_wait p;
	CHECK_IS(tern_poll(local[0]), 0);
	REQUIRE(pthread_create(&thread, NULL, receive, NULL) == 0);
	p = rank_wait_await(1);
	CHECK(strcmp(p.text, "tern_recv 0x7 from rank 0") == 0);
	CHECK(p.known && p.whom == 0 && p.since);
	CHECK_IS(tern_send(local[0], 1, 0x7, &word, sizeof word), 0);
	pthread_join(thread, NULL);
	CHECK(!pulse_read(&local[0]->own->pulse[1], &p));
	CHECK(stats_of(1).waits >= 1);
	ranks_close();
}

TEST(a_request_without_room_counts_as_a_stall)
{
	local_polled();
	ranks_open(2, "1");
	for (int i = 0; i < 600;
	     i++) /* a ring has 508 lines; rank 1 is served while rank 0 waits */
		CHECK_IS(tern_request(local[0], 1, TELL, 1, 2), 0);
	CHECK_IS(stats_of(0).room_stalls, 1);
	CHECK(stats_of(0).room_ns > 0);
	ranks_close();
}
