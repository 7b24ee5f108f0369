/* SPDX-License-Identifier: BSD-3-Clause */
/* What a message of Tern is on a simulated node: its flits on SCMP, its lines on FLASH. */
#include "net/sim/machine/controller.h"

#include <string.h>

#include "net/packet/packet.h"

#include "lib/sim_play.h"

enum {
	LIBRARY = TERN_HANDLER_MAX + 3,
	CREATES,
	ENDS,
	RTS,
	CTS,
	DATA,
};

enum { CYCLE = 2000 }; /* ps, of SCMP */

static uint64_t sender;   /* the thread that sends */
static uint32_t from, to; /* nodes */
static uint64_t word[8];  /* of the message */
static bool behind_news;  /* the message is not the first of its packet */

/* Hands a message over; the packet. */
static const struct travel *sent(unsigned id, unsigned words, uint16_t data)
{
	static unsigned char bytes[PACKET_FRONT + 16384];
	uint16_t head =
		(uint16_t)(id | (words > 6 ? RECORD_WORDS_MORE : words) << RECORD_WORDS_SHIFT |
			   (data ? RECORD_HAS_PAYLOAD : 0));
	const uint16_t payload[4] = { data, 0, data, 0 };
	unsigned char *at = bytes;
	if (behind_news) {
		const uint16_t news = RECORD_IS_NEWS;
		memcpy(at, &news, sizeof news);
		at += sizeof news + sizeof(uint64_t);
	}
	memcpy(at, &head, sizeof head);
	at += sizeof head;
	if (words > 6) {
		const uint16_t n = (uint16_t)words;
		memcpy(at, &n, sizeof n);
		at += sizeof n;
	}
	memcpy(at, word, sizeof word);
	memcpy(at + words * 8, payload, sizeof payload);
	const struct iovec part = { bytes, 100 + data };
	uint32_t i = baton_send(&m, from,
				&(struct outgoing){ .rank = to,
						    .part = &part,
						    .parts = 1,
						    .class = CLASS_REQUEST,
						    .context = sender,
						    .record = bytes });
	REQUIRE(i != NOTHING);
	return &m.travel[i];
}

static void begin_nodes(const char *profile, uint32_t nodes)
{
	role_set(CREATES - TERN_HANDLER_MAX, ROLE_THREAD);
	role_set(ENDS - TERN_HANDLER_MAX, ROLE_THREAD_ENDS);
	role_set(RTS - TERN_HANDLER_MAX, ROLE_RTS);
	role_set(CTS - TERN_HANDLER_MAX, ROLE_CTS);
	role_set(DATA - TERN_HANDLER_MAX, ROLE_DATA);
	begin_with(profile, nodes);
	baton_join(&m, 0);
	m.arrived = play_note;
	sender = from = 0;
	to = 1;
}

static void begin(const char *profile)
{
	begin_nodes(profile, 2);
}

/* Whether worms move as one changes nothing. */
static const char *const wholes[] = { "", ",whole=0" };

static const char *with(const char *profile, unsigned whole)
{
	static char text[128];
	snprintf(text, sizeof text, "%s%s", profile, wholes[whole]);
	return text;
}

/* The processor has come to the time of the clock. */
static void now(void)
{
	m.process[0].time = m.shared->clock;
}

static unsigned flits(unsigned id, unsigned words, uint16_t data)
{
	return sent(id, words, data)->size / 4;
}

TEST(messages_of_scmp_have_the_flits_of_the_thesis)
{
	static const char *const profiles[] = { "scmp", "scmp-original" };
	for (unsigned i = 0; i < 2; i++) {
		begin(profiles[i]);
		CHECK_IS(flits(0, 0, 0), 2); /* head, handler */
		CHECK_IS(flits(0, 3, 0), 2 + 2 * 3);
		CHECK_IS(flits(0, 8, 0), 2 + 2 * 8);
		CHECK_IS(flits(LIBRARY, 4, 0), 2);         /* RTS, CTS: head, message ID */
		CHECK_IS(flits(LIBRARY, 2, 64), 2 + 16);   /* data */
		CHECK_IS(flits(LIBRARY, 2, 61), 2 + 16);   /* whole flits */
		CHECK_IS(flits(CREATES, 3, 0), 2 + 2 * 2); /* the first word is a label */
		behind_news = true;
		CHECK_IS(flits(0, 3, 0), 2 + 2 * 3);
		behind_news = false;
	}
}

TEST(an_operation_takes_a_cycle_of_the_machine_unless_the_profile_says)
{
	struct profile p;
	REQUIRE(profile_load(&p, "scmp") == 0);
	CHECK(p.integer == 2000 && p.floating == 2000 && p.load == 2000 && p.store == 2000);
	REQUIRE(profile_load(&p, "cm5,cycle=20ns,floating=1ns") == 0);
	CHECK(p.integer == 20000 && p.floating == 1000);
	REQUIRE(profile_load(&p, "cluster") == 0);
	CHECK_IS(p.integer, 1000);
}

TEST(the_two_scmps_differ_in_their_queues_alone)
{
	struct profile a, b;
	REQUIRE(profile_load(&a, "scmp") == 0 && profile_load(&b, "scmp-original") == 0);
	CHECK(a.thread_queues && a.descriptors && !b.thread_queues && !b.descriptors);
	memcpy(b.name, a.name, sizeof b.name);
	b.thread_queues = b.descriptors = 1;
	CHECK(memcmp(&a, &b, sizeof a) == 0);
}

/* When the last message of a thread of node 0 has room. */
static uint64_t room(uint64_t thread)
{
	while (niu_full(&m, 0, thread) && machine_step(&m))
		;
	return m.shared->clock;
}

TEST(a_thread_is_suspended_while_its_queue_is_full)
{
	for (unsigned whole = 0; whole < 2; whole++) {
		begin(with("scmp,queue=12",
			   whole)); /* three blocks of 2 flits for the head and 2 for the data */
		uint64_t enters = sent(LIBRARY, 2, 4096)->sent;
		sent(LIBRARY, 2, 4096);
		sent(LIBRARY, 2, 4096);
		CHECK(!niu_full(&m, 0, 0));
		sent(LIBRARY, 2, 4096);
		CHECK(niu_full(&m, 0, 0));
		CHECK_IS(room(0), enters + 2 * CYCLE); /* the first is described no longer */
		sent(LIBRARY, 2, 4096);
		/* 1026 flits, a cycle behind the last of them, and two of the next block. */
		CHECK_IS(room(0), enters + (1026 + 1 + 2) * CYCLE);
		begin(with("scmp-original,queue=12",
			   whole)); /* all but 12 flits of the block have gone */
		enters = sent(LIBRARY, 2, 4096)->sent;
		CHECK_IS(room(0), enters + (1026 - 12) * CYCLE);
	}
}

TEST(where_packets_may_be_lost_or_late_or_find_no_room_there_are_no_queues)
{
	static const char *const profiles[] = {
		"scmp,queue=12,drop=1",  "scmp,queue=12,corrupt=1", "scmp,queue=12,jitter=1ns",
		"scmp,queue=12,order=0", "scmp,queue=12,room=0",    "scmp,queue=12"
	};
	enum { PROFILES = sizeof profiles / sizeof *profiles };
	for (unsigned i = 0; i < PROFILES; i++) {
		begin(profiles[i]);
		for (unsigned blocks = 0; blocks < 4; blocks++)
			sent(LIBRARY, 2, 4096);
		CHECK_IS(niu_full(&m, 0, 0), i == PROFILES - 1);
	}
}

TEST(each_change_of_scmp_can_be_switched_off_alone)
{
	for (unsigned queues = 0; queues < 2; queues++) {
		begin(queues ? "scmp,queue=12" : "scmp,queue=12,thread_queues=0");
		for (sender = 1; sender <= 4; sender++) /* the fourth finds a queue of its own */
			sent(LIBRARY, 2, 4096);
		CHECK_IS(niu_full(&m, 0, 4), !queues);
	}
	begin("scmp,queue=12,descriptors=0");
	uint64_t enters = sent(LIBRARY, 2, 4096)->sent;
	CHECK_IS(room(0), enters + (1026 - 12) * CYCLE);
}

/* Thread 1 of node 0 asks node 1, by an RTS of 64 bytes, and thread 2 sends 64 bytes. */
static uint64_t ask(const char *profile)
{
	begin(profile);
	sender = 1;
	word[1] = UINT64_C(7) << NAME_SHIFT; /* the send's name */
	word[2] = 64;
	sent(RTS, 4, 0);
	sender = 2;
	uint64_t enters = sent(LIBRARY, 2, 64)->sent;
	play();
	CHECK_IS(blocked, 0);
	return enters;
}

/* Node 1 tells that it may; when that is there. */
static uint64_t clear(uint32_t kind)
{
	now();
	from = 1;
	to = 0;
	word[0] = kind | UINT64_C(7) << NAME_SHIFT;
	word[3] = 9; /* the receive's name */
	sent(CTS, 6, 0);
	play();
	return came[0][count[0] - 1] - CYCLE; /* the NIU takes a cycle */
}

TEST(with_one_queue_a_message_waits_for_the_rendezvous_of_another_thread)
{
	uint64_t enters = ask("scmp"); /* 3 links; the RTS has gone before; the NIU takes a cycle */
	CHECK_IS(count[1], 2);
	CHECK_IS(came[1][1], enters + (1 + 3 + 17 + 1) * CYCLE);
	CHECK(!m.controller->stuck(&m, NULL));

	ask("scmp,thread_queues=0");
	CHECK_IS(count[1], 1);
	CHECK(m.controller->stuck(&m, NULL));
	CHECK_IS(m.shared->underway, 0);
	uint64_t cleared = clear(TOLD_CLEAR);
	CHECK_IS(count[1], 1); /* the data go first */
	now();
	from = 0;
	to = 1;
	m.serving = true;
	m.served = cleared;
	word[0] = 9;
	uint64_t data = sent(DATA, 1, 64)->sent;
	m.serving = false;
	play();
	CHECK_IS(count[1], 3);
	CHECK_IS(came[1][1], data + (1 + 3 + 17 + 1) * CYCLE);
	/* 18 flits of data, and a cycle behind the last of them. */
	CHECK_IS(came[1][2], data + (18 + 1) * CYCLE + (1 + 3 + 17 + 1) * CYCLE);
}

/* Its packets are handed over at once. An RTS behind them, which would pass data, waits for all. */
TEST(a_rendezvous_of_several_packets_has_its_queue_until_the_last_of_them_has_left)
{
	enum { PACKETS = 3 };
	begin("scmp,thread_queues=0");
	for (sender = 1; sender <= 2; sender++) {
		word[1] = (sender + 6) << NAME_SHIFT;
		word[2] = PACKETS * 128;
		sent(RTS, 4, 0);
	}
	play();
	uint64_t cleared = clear(TOLD_CLEAR);
	CHECK_IS(count[1], 1);
	now();
	from = 0;
	to = 1;
	word[0] = 9;
	for (int i = 0; i < PACKETS; i++) {
		m.serving = true;
		m.served = cleared;
		sent(DATA, 1, 128);
	}
	m.serving = false;
	play();
	CHECK_IS(count[1], 1 + PACKETS + 1);
	for (int i = 2; i <= PACKETS; i++) /* 34 flits of each, and a cycle between them */
		CHECK_IS(came[1][i] - came[1][i - 1], (34 + 1) * CYCLE);
}

TEST(a_send_that_is_refused_does_not_block_its_queue)
{
	ask("scmp,thread_queues=0");
	uint64_t told = clear(TOLD_LAST);
	CHECK_IS(count[1], 2);
	CHECK_IS(came[1][1], told + (1 + 3 + 17 + 1) * CYCLE);
}

/* Thread messages from node 0: `n` to node 1 of a row of three, and then one to node 2. */
static void crowd(const char *profile, unsigned n)
{
	begin_nodes(profile, 3);
	for (unsigned i = 0; i < n; i++)
		sent(CREATES, 3, 0);
	to = 2;
	sent(CREATES, 3, 0);
	play();
}

TEST(a_thread_message_that_finds_no_context_blocks_those_behind_it)
{
	crowd("scmp,width=3", 16);
	CHECK(count[1] == 16 && count[2] == 1);
	crowd("scmp,width=3", 17);
	CHECK(count[1] == 16 && count[2] == 0);
	CHECK_IS(m.shared->underway, 2);
	now();
	to = 1; /* data have channels of their own */
	uint64_t enters = sent(LIBRARY, 2, 64)->sent;
	play();
	CHECK_IS(came[1][16], enters + (1 + 3 + 17 + 1) * CYCLE);
	/*
	 * A thread of node 1 ends: 6 flits leave the network, from the cycle of its last message.
	 */
	now();
	from = 1;
	to = 0;
	uint64_t ends = sent(ENDS, 3, 0)->sent;
	play();
	CHECK_IS(came[1][17], ends + (5 + 1) * CYCLE);
	CHECK_IS(count[2], 1);
	CHECK_IS(m.shared->underway, 0);
}

TEST(a_network_that_stands_for_want_of_a_context_says_so)
{
	char *text;
	size_t len;
	crowd("scmp,width=3,contexts=2", 3);
	CHECK(mesh_network.stands(&m) && blocked == 0);
	FILE *f = open_memstream(&text, &len);
	mesh_network.stuck(&m, f);
	fclose(f);
	CHECK(strstr(text, "the packet from node 0 to node 1 holds the link right of node 0 "
			   "(channel 1), out of node 1 (channel 1), and waits for a context of "
			   "node 1, which has 2 threads\n"));
	CHECK(strstr(text,
		     "the packet from node 0 to node 2 holds the link into node 0 (channel 1), "
		     "and waits for the link right of node 0 (channel 1), which the packet "
		     "from node 0 to node 1 holds\n"));
	free(text);
}

TEST(a_thread_has_its_context_until_its_last_message_lies_in_the_queue)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned descriptors = i / 2;
		crowd(with(descriptors ? "scmp,width=3,contexts=1"
				       : "scmp-original,width=3,contexts=1",
			   i % 2),
		      2);
		CHECK_IS(count[1], 1);
		now();
		from = sender = 1;
		to = 0;
		uint64_t enters = sent(LIBRARY, 2, 4096)->sent;
		uint64_t ends = sent(ENDS, 3, 0)->sent;
		play();
		/* With the block in the queue, behind its last flit. */
		CHECK_IS(came[1][1],
			 (descriptors ? ends : enters + (1026 + 1) * CYCLE) + (5 + 1) * CYCLE);
	}
}

TEST(a_communication_processor_sends_blocks_and_the_processor_words)
{
	begin("dual");
	uint64_t words = sent(0, 2, 0)->sent; /* 4 cycles, and one for each 4 bytes */
	CHECK_IS(words, (4 + 4) * 25000);
	CHECK_IS(baton_time(&m), words);
	CHECK_IS(m.node[0].busy, 0);
	uint64_t block = sent(0, 0, 64)->sent; /* handed over in 8 cycles */
	CHECK_IS(baton_time(&m), words + 8 * 25000);
	CHECK_IS(block, words + (8 + 4 + 16) * 25000);
	block = sent(0, 0, 64)->sent;
	CHECK_IS(block, words + (8 + 4 + 16 + 4 + 16) * 25000); /* one after the other */
	/* Words that the processor writes meanwhile do not pass them. */
	CHECK_IS(sent(0, 2, 0)->sent, block);
}

TEST(a_block_of_flash_has_a_header_for_each_line)
{
	begin("flash");
	const struct travel *t = sent(LIBRARY, 2, 4096);
	CHECK_IS(t->size, 32 * (128 + 16));
	CHECK_IS(t->hold, 32 * 30 * 10000);
	CHECK_IS(t->sent, 1000000);
	CHECK_IS(sent(LIBRARY, 2, 0)->size, 16);
}
