/* SPDX-License-Identifier: BSD-3-Clause */
/* What a message of Tern is on a simulated node: its flits on SCMP, its lines on FLASH. */
#include "net/sim/machine/controller.h"

#include <string.h>

#include "net/packet/packet.h"

#include "../../../../tests/sim_play.h"

enum { LIBRARY = TERN_HANDLER_MAX + 3 };

static uint64_t sender; /* the thread that sends */

/* Hands a message over at node 0; the packet. */
static const struct travel *sent(unsigned id, unsigned words, uint16_t data)
{
	static unsigned char bytes[PACKET_FRONT + 16384];
	uint16_t head =
		(uint16_t)(id | (words > 6 ? RECORD_WORDS_MORE : words) << RECORD_WORDS_SHIFT |
			   (data ? RECORD_HAS_PAYLOAD : 0));
	const uint16_t payload[4] = { data, 0, data, 0 };
	unsigned char *at = bytes;
	memcpy(at, &head, sizeof head);
	at += sizeof head;
	if (words > 6) {
		const uint16_t n = (uint16_t)words;
		memcpy(at, &n, sizeof n);
		at += sizeof n;
	}
	memcpy(at + words * 8, payload, sizeof payload);
	const struct iovec part = { bytes, 100 + data };
	uint32_t i = turn_send(&m, 0,
			       &(struct outgoing){ .rank = 1,
						   .part = &part,
						   .parts = 1,
						   .class = CLASS_REQUEST,
						   .context = sender,
						   .record = bytes });
	REQUIRE(i != NOTHING);
	return &m.travel[i];
}

static void begin(const char *profile)
{
	begin_with(profile, 2);
	turn_join(&m, 0);
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
		CHECK_IS(flits(LIBRARY, 4, 0), 2);                 /* RTS, CTS: head, message ID */
		CHECK_IS(flits(LIBRARY, 2, 64), 2 + 16);           /* data */
		CHECK_IS(flits(LIBRARY, 2, 61), 2 + 16);           /* whole flits */
		CHECK_IS(flits(HANDLER_THREADS, 3, 0), 2 + 2 * 2); /* the first word is a label */
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

TEST(a_thread_is_suspended_while_its_queue_is_full)
{
	begin("scmp,queue=12"); /* three blocks of 2 flits for the head and 2 for the data */
	for (unsigned i = 0; i < 3; i++)
		sent(LIBRARY, 2, 4096);
	CHECK_IS(turn_thread_of(&m, 0)->suspended, 0);
	sent(LIBRARY, 2, 4096);
	uint64_t first = turn_thread_of(&m, 0)->queued[0].until;
	CHECK_IS(turn_thread_of(&m, 0)->suspended, first);
	begin("scmp-original,queue=12"); /* all but 12 flits of the block have gone */
	uint64_t enters = sent(LIBRARY, 2, 4096)->sent;
	CHECK_IS(turn_thread_of(&m, 0)->suspended, enters + (1026 - 12) * 2000);
}

TEST(each_change_of_scmp_can_be_switched_off_alone)
{
	for (unsigned queues = 0; queues < 2; queues++) {
		begin(queues ? "scmp,queue=12" : "scmp,queue=12,thread_queues=0");
		for (sender = 1; sender <= 4; sender++) /* the fourth finds a queue of its own */
			sent(LIBRARY, 2, 4096);
		CHECK_IS(turn_thread_of(&m, 4)->suspended == 0, queues);
		sender = 0;
	}
	begin("scmp,queue=12,descriptors=0");
	uint64_t enters = sent(LIBRARY, 2, 4096)->sent;
	CHECK_IS(turn_thread_of(&m, 0)->suspended, enters + (1026 - 12) * 2000);
}

TEST(a_communication_processor_sends_blocks_and_the_processor_words)
{
	begin("dual");
	uint64_t word = sent(0, 2, 0)->sent; /* 4 cycles, and one for each 4 bytes */
	CHECK_IS(word, (4 + 4) * 25000);
	CHECK_IS(turn_time(&m), word);
	CHECK_IS(m.node[0].busy, 0);
	uint64_t block = sent(0, 0, 64)->sent; /* handed over in 8 cycles */
	CHECK_IS(turn_time(&m), word + 8 * 25000);
	CHECK_IS(block, word + (8 + 4 + 16) * 25000);
	CHECK_IS(sent(0, 0, 64)->sent, block + (4 + 16) * 25000); /* one after the other */
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
