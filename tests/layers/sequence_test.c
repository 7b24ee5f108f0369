/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * Blocks and streams arrive whole, once and in order: on shared memory, over UDP with its services,
 * and over UDP without any, where packets are lost, doubled and overtake each other. Nothing else
 * of Tern's may be used there, so ranks tell each other in memory that they are done.
 */
#include "lib/chance.h"
#include "lib/ranks.h"

#include <sched.h>

#include <tern/sequence.h>

#include "net/udp/udp.h"

enum { RANKS = 3, KIND = 5, STREAM = 6, BLOCKS = 12, BLOCK_MOST = 200000, PACKETS = 1500 };

static struct {
	uint64_t seed;
	enum tern_way way;
	unsigned group;
	bool reluctant; /* blocks are refused at first */
	_Atomic uint32_t *done;
	unsigned char *memory[RANKS];
	unsigned blocks[RANKS], refusals;
	uint64_t packets[RANKS];
} the;

/* What the i-th block and packet from one rank to another are. */
static size_t block_len(uint32_t from, uint32_t to, unsigned i)
{
	struct chance c = { chance_of(the.seed, (uint64_t)from << 40 | (uint64_t)to << 20 | i) };
	return i % 4 == 0 ? i / 4 * TERN_PAYLOAD_MAX : chance_below(&c, i % 3 ? 3000 : BLOCK_MOST);
}

static uint64_t block_number(uint32_t from, unsigned i)
{
	return the.seed + from * 1000 + i;
}

static void *accept(tern *t, uint32_t from, unsigned id, size_t len, void *arg)
{
	CHECK(id == KIND && arg == &the);
	CHECK_IS(len, block_len(from, tern_rank(t), the.blocks[from]));
	if (the.reluctant && the.refusals++ % 3)
		return NULL;
	return the.memory[from];
}

static void block_end(tern *t, uint32_t from, unsigned id, void *data, size_t len, void *arg)
{
	CHECK(id == KIND && arg == &the && data == the.memory[from]);
	CHECK_IS(len, block_len(from, tern_rank(t), the.blocks[from]));
	CHECK(chance_filled(data, len, block_number(from, the.blocks[from])));
	memset(data, 0, len);
	the.blocks[from]++;
}

static void packet(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words,
		   void *arg)
{
	uint64_t i = the.packets[from]++;
	(void)t;
	CHECK(id == STREAM && arg == &the);
	CHECK_IS(n, i % (TERN_STREAM_WORDS + 1));
	for (unsigned k = 0; k < n; k++)
		CHECK_IS(words[k], i * 10 + k);
}

static void blocks_send(tern *t)
{
	static unsigned char bytes[BLOCK_MOST];
	for (unsigned i = 0; i < BLOCKS; i++)
		for (uint32_t to = 0; to < RANKS; to++) {
			size_t len = block_len(tern_rank(t), to, i);
			chance_fill(bytes, len, block_number(tern_rank(t), i));
			int rc = tern_sequence_send(t, to, KIND, bytes, len, the.way);
			if (!CHECK_IS(rc, 0))
				printf("    %s\n", tern_strerror(rc));
		}
}

static void streams_send(tern *t)
{
	tern_stream *s[RANKS];
	for (uint32_t to = 0; to < RANKS; to++)
		REQUIRE(tern_stream_open(t, to, STREAM, the.way, the.group, &s[to]) == 0);
	for (uint64_t i = 0; i < PACKETS; i++) {
		for (uint32_t to = 0; i == PACKETS / 2 && to < RANKS; to++) {
			CHECK_IS(tern_stream_close(s[to]),
				 0); /* a stream goes on where it was closed */
			REQUIRE(tern_stream_open(t, to, STREAM, the.way, the.group, &s[to]) == 0);
		}
		const uint64_t words[] = { i * 10, i * 10 + 1, i * 10 + 2, i * 10 + 3 };
		for (uint32_t to = 0; to < RANKS; to++)
			CHECK_IS(tern_stream_put(s[to], i % (TERN_STREAM_WORDS + 1), words), 0);
	}
	for (uint32_t to = 0; to < RANKS; to++)
		CHECK_IS(tern_stream_close(s[to]), 0);
}

static bool all_here(void)
{
	bool all = true;
	for (uint32_t r = 0; r < RANKS; r++)
		all &= the.blocks[r] == BLOCKS && the.packets[r] == PACKETS;
	return all;
}

static void rank_main(void)
{
	tern *t = ranks_open();
	for (uint32_t r = 0; r < RANKS; r++)
		REQUIRE((the.memory[r] = calloc(1, BLOCK_MOST)) != NULL);
	CHECK_IS(tern_sequence_on(t, KIND, accept, block_end, &the), 0);
	CHECK_IS(tern_stream_on(t, STREAM, packet, &the), 0);
	atomic_fetch_add(the.done, 1);
	while (atomic_load(the.done) < RANKS) /* everybody has registered */
		sched_yield();
	blocks_send(t);
	streams_send(t);
	while (!all_here())
		tern_poll(t);
	atomic_fetch_add(the.done, 1);
	while (atomic_load(the.done) < 2 * RANKS) /* others may still ask whether something came */
		tern_poll(t);
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK_IS(the.blocks[r], BLOCKS); /* and no more */
		CHECK_IS(the.packets[r], PACKETS);
	}
	CHECK_IS(tern_close(t), 0);
}

static void ranks_over_net(const char *net, const char *service, const char *fault, uint32_t ranks,
			   void (*rank)(void))
{
	char text[128] = "";
	the.seed = check_seed();
	the.done = mmap(NULL, sizeof *the.done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	REQUIRE(the.done != MAP_FAILED);
	if (*fault)
		snprintf(text, sizeof text, "%s,seed=%llu", fault, (unsigned long long)the.seed);
	setenv("TERN_NET", net, 1);
	setenv("TERN_SERVICE", service, 1);
	setenv("TERN_FAULT", text, 1);
	ranks_run(ranks, rank);
}

static void sequences_run(const char *net, const char *service, const char *fault,
			  enum tern_way way)
{
	the.way = way;
	ranks_over_net(net, service, fault, RANKS, rank_main);
}

static void need_udp(void)
{
	char why[200];
	if (!udp_ops.usable(why, sizeof why))
		check_skip(why);
}

TEST(over_shared_memory_they_arrive_as_they_are)
{
	sequences_run("shm", "auto", "", TERN_WAY_AUTO);
}

TEST(over_shared_memory_they_arrive_in_full_too)
{
	sequences_run("shm", "auto", "", TERN_WAY_FULL);
}

TEST(a_receiver_may_refuse_a_block_for_a_while)
{
	the.reluctant = true;
	sequences_run("shm", "auto", "", TERN_WAY_PLAIN);
	sequences_run("shm", "auto", "", TERN_WAY_FULL);
}

TEST(over_udp_they_arrive_with_the_services_it_lacks)
{
	need_udp();
	sequences_run("udp", "auto", "drop=0.05,reorder=0.1", TERN_WAY_AUTO);
}

TEST(over_udp_they_arrive_without_any_service)
{
	need_udp();
	sequences_run("udp", "none", "", TERN_WAY_AUTO);
}

TEST(without_any_service_they_arrive_when_packets_are_lost)
{
	need_udp();
	for (int i = 0; i < 3; i++)
		sequences_run("udp", "none", "drop=0.1", TERN_WAY_AUTO);
}

TEST(without_any_service_they_arrive_when_packets_are_doubled_and_overtake_each_other)
{
	need_udp();
	sequences_run("udp", "none", "duplicate=0.2,reorder=0.3", TERN_WAY_AUTO);
}

/*
 * So late that a question is asked twice, and its second answer comes when another one is awaited.
 */
TEST(without_any_service_they_arrive_when_packets_are_late)
{
	need_udp();
	sequences_run("udp", "none", "delay=0.3,late=5000", TERN_WAY_AUTO);
}

TEST(without_any_service_they_arrive_with_acknowledgements_for_groups)
{
	need_udp();
	the.group = 16;
	the.reluctant = true;
	sequences_run("udp", "none", "drop=0.1,reorder=0.2,corrupt=0.05,truncate=0.05",
		      TERN_WAY_AUTO);
}

/* -- Polls alone ------------------------------------------------------------------------------ */

enum { FEW = 20 };

static void polls_main(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_stream_on(t, STREAM, packet, &the), 0);
	atomic_fetch_add(the.done, 1);
	while (atomic_load(the.done) < 2)
		sched_yield();
	tern_stream *s;
	REQUIRE(tern_stream_open(t, 1 - tern_rank(t), STREAM, TERN_WAY_AUTO, 32, &s) == 0);
	for (uint64_t i = 0; i < FEW; i++) {
		const uint64_t words[] = { i * 10, i * 10 + 1, i * 10 + 2, i * 10 + 3 };
		CHECK_IS(tern_stream_put(s, i % (TERN_STREAM_WORDS + 1), words), 0);
	}
	while (the.packets[1 - tern_rank(t)] < FEW)
		CHECK(tern_poll(t) >= 0);
	atomic_fetch_add(the.done, 1);
	while (atomic_load(the.done) < 4)
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(the.packets[1 - tern_rank(t)], FEW);
	tern_close(t);
}

TEST(packets_that_are_lost_come_while_both_ends_only_poll)
{
	need_udp();
	ranks_over_net("udp", "none", "drop=0.3", 2, polls_main);
}

/* -- What can go wrong ---------------------------------------------------------------------- */

static void lonely_main(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 1)
		_exit(0); /* without a word */
	int rc = tern_sequence_send(t, 1, KIND, "x", 1, TERN_WAY_FULL);
	CHECK_IS(rc, -EOWNERDEAD);
	tern_stream *s;
	rc = tern_stream_open(t, 1, STREAM, TERN_WAY_FULL, 0, &s);
	REQUIRE(rc == 0);
	rc = tern_stream_put(s, 0, NULL);
	if (rc == 0)
		rc = tern_stream_flush(s);
	CHECK_IS(rc, -EOWNERDEAD);
	tern_stream_close(s);
	tern_close(t);
}

TEST(who_sends_to_a_rank_that_dies_is_told)
{
	setenv("TERN_NET", "shm", 1);
	ranks_start(2, 0, lonely_main);
	ranks_reap(2, 0);
	ranks_end();
}

TEST(mistakes_have_their_codes)
{
	tern *t[1];
	tern_stream *s;
	REQUIRE(tern_open_local(1, t) == 0);
	CHECK_IS(tern_sequence_on(t[0], TERN_SEQUENCES_MAX, accept, block_end, NULL), -ERANGE);
	CHECK_IS(tern_sequence_on(t[0], KIND, NULL, block_end, NULL), -EINVAL);
	CHECK_IS(tern_sequence_on(t[0], KIND, accept, block_end, &the), 0);
	CHECK_IS(tern_sequence_on(t[0], KIND, accept, block_end, &the), -EEXIST);
	CHECK_IS(tern_sequence_send(t[0], 0, KIND + 1, "x", 1, TERN_WAY_FULL), -ENXIO);
	CHECK_IS(tern_sequence_send(t[0], 0, KIND + 1, "x", 1, TERN_WAY_PLAIN), -ENXIO);
	CHECK_IS(tern_sequence_send(t[0], 1, KIND, "x", 1, TERN_WAY_AUTO), -ERANGE);
	CHECK_IS(tern_sequence_send(t[0], 0, KIND, "x", 1, (enum tern_way)7), -EINVAL);
	CHECK_IS(tern_stream_open(t[0], 0, STREAM, (enum tern_way)7, 0, &s), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "way 7") != NULL);
	CHECK_IS(tern_stream_open(t[0], 0, STREAM, TERN_WAY_AUTO, TERN_STREAM_WINDOW, &s), -EINVAL);
	REQUIRE(tern_stream_open(t[0], 0, STREAM, TERN_WAY_AUTO, 0, &s) == 0);
	CHECK_IS(tern_stream_open(t[0], 0, STREAM, TERN_WAY_AUTO, 0, &s), -EEXIST);
	CHECK_IS(tern_stream_put(s, TERN_STREAM_WORDS + 1, (uint64_t[5]){ 0 }), -EMSGSIZE);
	CHECK_IS(tern_stream_close(s), 0);
	CHECK_IS(tern_close(t[0]), 0);
}
