/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adding a network is a folder (tests/net/toy) and a line in the table of networks
 * (tests/net/toy/table.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>
#include <tern/thread.h>

#include "lib/check.h"
#include "open/nets.h"
#include "toy/toy.h"

enum { ASK, TELL, RANKS = 3, MESSAGES = 2000, POLLS = 1000000, LONG = 5000 };

static tern *t[RANKS];
static uint64_t asked, told, words, bytes;

static void on_ask(tern *e, const tern_msg *m)
{
	size_t len = 0;
	const void *data = tern_msg_data(m, &len);
	asked++;
	CHECK_IS(tern_reply_data(e, m, TELL, data, len, tern_msg_word(m, 0)), 0);
}

static void on_tell(tern *e, const tern_msg *m)
{
	size_t len = 0;
	(void)e;
	tern_msg_data(m, &len);
	told++;
	words += tern_msg_word(m, 0);
	bytes += len;
}

static void toy_open_ranks(void)
{
	setenv("TERN_NET", "toy", 1);
	setenv("TERN_DELIVERY", "poll", 1);
	REQUIRE(tern_open_local(RANKS, t) == 0);
	for (int r = 0; r < RANKS; r++) {
		CHECK_IS(tern_on(t[r], ASK, on_ask), 0);
		CHECK_IS(tern_on(t[r], TELL, on_tell), 0);
	}
}

static void poll_all(void)
{
	for (int r = 0; r < RANKS; r++)
		CHECK(tern_poll(t[r]) >= 0);
}

static void toy_close_ranks(void)
{
	for (int r = 0; r < RANKS; r++)
		CHECK_IS(tern_close(t[r]), 0);
}

TEST(a_network_that_was_added_carries_messages_and_payloads)
{
	char payload[LONG];
	memset(payload, 7, sizeof payload);
	toy_open_ranks();
	for (uint64_t i = 0; i < MESSAGES; i++)
		CHECK_IS(tern_request(t[i % RANKS], (uint32_t)((i + 1) % RANKS), ASK, i), 0);
	for (int r = 0; r < RANKS; r++)
		CHECK_IS(tern_request_data(t[0], (uint32_t)r, ASK, payload, LONG, 0), 0);
	for (int i = 0; i < POLLS && told < MESSAGES + RANKS; i++)
		poll_all();
	CHECK_IS(told, MESSAGES + RANKS);
	CHECK_IS(words, (uint64_t)MESSAGES * (MESSAGES - 1) / 2);
	CHECK_IS(bytes, RANKS * LONG);
	toy_close_ranks();
}

TEST(its_name_is_understood_and_offered)
{
	setenv("TERN_NET", "toy", 1);
	CHECK_IS(nets_judge(), 0);
	setenv("TERN_NET", "shm,toy", 1);
	CHECK_IS(nets_judge(), 0);
	setenv("TERN_NET", "toy/more", 1);
	CHECK_IS(nets_judge(), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL),
		     "udp, ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN, toy, or shm and one"));
}

TEST(a_wire_is_told_what_a_packet_carries)
{
	toy_open_ranks();
	CHECK_IS(tern_request(t[0], 1, ASK, 1), 0);
	CHECK(toy_sent[CLASS_REQUEST] > 0);
	CHECK_IS(toy_sent[CLASS_REPLY], 0);
	for (int i = 0; i < POLLS && !told; i++)
		poll_all();
	CHECK(toy_sent[CLASS_REPLY] > 0);
	for (int i = 0; i < POLLS && !toy_sent[CLASS_CONTROL]; i++)
		poll_all(); /* the reply is acknowledged */
	CHECK(toy_sent[CLASS_CONTROL] > 0);
	CHECK_IS(toy_context[CLASS_REQUEST], 0); /* the program's */
	toy_close_ranks();
}

static uint64_t thread_number;
static uint64_t context_seen;

static uint64_t ask_from_thread(tern *e, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	thread_number = tern_thread_self(e).number;
	CHECK_IS(tern_request(e, 2, ASK, 0), 0);
	context_seen = toy_context[CLASS_REQUEST];
	return 0;
}

TEST(a_wire_is_told_which_context_sends)
{
	toy_open_ranks();
	for (int r = 0; r < RANKS; r++)
		CHECK_IS(tern_thread_on(t[r], 0, ask_from_thread, NULL), 0);
	CHECK_IS(tern_spawn(t[0], 1, 0, NULL, NULL), 0);
	for (int i = 0; i < POLLS && !told; i++)
		poll_all();
	CHECK(thread_number != 0);
	CHECK_IS(context_seen, thread_number);
	toy_close_ranks();
}
