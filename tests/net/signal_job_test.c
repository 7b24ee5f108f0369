/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * Puts with a signal between processes, over each network: whoever sees the word finds the data,
 * of every length; messages are served meanwhile; what the owner refuses is told; and how many
 * messages a store takes.
 */
#include <tern/mem.h>
#include <tern/stats.h>

#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { MOST = 200000, ROUNDS = 3, TELL = 1 };

static const size_t lengths[] = { 0, 1, 7, 8, 64, 1000, 8192, 8193, 70000, MOST };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static struct area {
	uint64_t ready, taken; /* words that the other rank signals */
	char bytes[MOST];
} * area;

static _Atomic uint64_t told;

static void tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static bool all_are(const char *bytes, size_t len, char value)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static tern *pair_open(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell), 0);
	area = handed_alloc_all(t, sizeof *area);
	REQUIRE(area);
	memset(area, 0, sizeof *area);
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

/* The i-th put of the one, which the other looks at before it says so. */
static void send_all(tern *t)
{
	static char source[MOST];
	tern_addr there = tern_addr_at(t, 1, area->bytes), ready = tern_addr_at(t, 1, &area->ready);
	for (uint64_t i = 0; i < (uint64_t)ROUNDS * LENGTHS; i++) {
		tern_op op = TERN_OP;
		size_t len = lengths[i % LENGTHS];
		memset(source, (int)i + 1, len);
		enum tern_amo what = i % 3 ? TERN_AMO_ADD : TERN_AMO_STORE;
		int rc = i % 2 ? tern_put_signal(t, there, source, len,
						 &(tern_change){ .word = ready,
								 .what = what,
								 .value = i % 3 ? 1 : i + 1 })
			       : tern_put_signal_start(t, there, source, len,
						       &(tern_change){ .word = ready,
								       .what = what,
								       .value = i % 3 ? 1 : i + 1 },
						       &op);
		CHECK_IS(rc, 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(tern_request(t, 1, TELL), 0);
		CHECK_IS(tern_wait_word(t, &area->taken, TERN_WORD_EQ, i + 1), 0);
	}
}

static void take_all(tern *t)
{
	for (uint64_t i = 0; i < (uint64_t)ROUNDS * LENGTHS; i++) {
		size_t len = lengths[i % LENGTHS];
		if (i % 4 == 3)
			ranks_nap(2000000); /* then it lies there */
		CHECK_IS(tern_wait_word(t, &area->ready, TERN_WORD_GT, i), 0);
		if (!CHECK(all_are(area->bytes, len, (char)(i + 1))))
			printf("    of %zu bytes, put %llu\n", len, (unsigned long long)i);
		CHECK_IS(area->ready, i + 1);
		if (i % 4 == 1)
			ranks_nap(3000000); /* the other sleeps in its wait */
		CHECK_IS(tern_put_signal(t, TERN_ADDR_NONE, NULL, 0,
					 &(tern_change){ .word = tern_addr_at(t, 0, &area->taken),
							 .what = TERN_AMO_ADD,
							 .value = 1 }),
			 0);
	}
	CHECK_IS(tern_wait(t, &told, (uint64_t)ROUNDS * LENGTHS), 0); /* served meanwhile */
}

static void refused(tern *t)
{
	uint64_t value = 1;
	tern_addr there = tern_addr_at(t, 1, area->bytes), ready = tern_addr_at(t, 1, &area->ready);
	tern_addr nowhere = ready + (UINT64_C(1) << 27);
	uint64_t before = 0, after = 1;
	CHECK_IS(tern_get(t, &before, ready, 8), 0);
	CHECK_IS(tern_put_signal(
			 t, there, &value, 8,
			 &(tern_change){ .word = nowhere, .what = TERN_AMO_ADD, .value = 1 }),
		 -EFAULT);
	CHECK_IS(tern_put_signal(t, nowhere, &value, 8,
				 &(tern_change){ .word = ready, .what = TERN_AMO_ADD, .value = 1 }),
		 -EFAULT);
	CHECK_IS(tern_put_signal(
			 t, there, &value, 8,
			 &(tern_change){ .word = ready + 4, .what = TERN_AMO_ADD, .value = 1 }),
		 -EINVAL);
	CHECK_IS(tern_put_signal(
			 t, there, &value, 8,
			 &(tern_change){ .word = ready, .what = (enum tern_amo)77, .value = 1 }),
		 -EINVAL);
	CHECK_IS(tern_get(t, &after, ready, 8), 0);
	CHECK_IS(after, before);
}

static void talk(void)
{
	tern *t = pair_open();
	if (tern_rank(t) == 0) {
		send_all(t);
		refused(t);
	} else {
		take_all(t);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void run_over(const char *net, void (*rank_main)(void))
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	ranks_run(2, rank_main);
}

TEST(over_shared_memory_whoever_sees_the_word_finds_the_data)
{
	run_over("shm", talk);
}

TEST(where_heaps_are_read_only_whoever_sees_the_word_finds_the_data)
{
	setenv("TERN_GRANT", "1", 1);
	run_over("shm", talk);
	unsetenv("TERN_GRANT");
}

TEST(over_udp_whoever_sees_the_word_finds_the_data)
{
	run_over("udp", talk);
}

TEST(over_udp_that_loses_packets_whoever_sees_the_word_finds_the_data)
{
	setenv("TERN_FAULT", "drop=0.05,duplicate=0.05,reorder=0.05", 1);
	run_over("udp", talk);
	unsetenv("TERN_FAULT");
}

TEST(over_libfabric_whoever_sees_the_word_finds_the_data)
{
	run_over("ofi", talk);
}

/* -- Puts that do not signal ------------------------------------------------------------------ */

static void plain(void)
{
	tern *t = pair_open();
	uint64_t one = 1;
	if (tern_rank(t) == 0) {
		for (unsigned i = 0; i < 5; i++) {
			ranks_nap(5000000); /* the other sleeps */
			CHECK_IS(tern_put(t, tern_addr_at(t, 1, &area->ready), &one, 8), 0);
			CHECK_IS(tern_wait_word(t, &area->taken, TERN_WORD_EQ, i + 1), 0);
		}
	} else {
		for (uint64_t i = 0; i < 5; i++) {
			CHECK_IS(tern_wait_word(t, &area->ready, TERN_WORD_EQ, 1), 0);
			area->ready = 0;
			CHECK_IS(tern_amo(t, tern_addr_at(t, 0, &area->taken), TERN_AMO_ADD, 1,
					  (uint64_t *)NULL),
				 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_wait_for_a_word_notices_a_put_and_an_atomic_operation_too)
{
	run_over("shm", plain);
	run_over("udp", plain);
}

/* -- Stores ----------------------------------------------------------------------------------- */

static uint64_t sent(tern *t)
{
	tern_stats_data d;
	CHECK_IS(tern_stats(t, &d), 0);
	return d.sent;
}

/* As many messages there as there are stores, and none back. */
static void stores(void)
{
	static char source[TERN_PAYLOAD_MAX];
	static const size_t length[] = { 1, 8, 30, 1000, TERN_PAYLOAD_MAX };
	enum { KINDS = sizeof length / sizeof *length, TIMES = 20 };
	tern *t = pair_open();
	uint64_t before = sent(t), bytes = 0;
	for (unsigned i = 0; i < TIMES * KINDS; i++) {
		size_t len = length[i % KINDS];
		bytes += len;
		memset(source, (int)i, len);
		if (tern_rank(t) == 0)
			CHECK_IS(tern_store(t, tern_addr_at(t, 1, area->bytes + i * 10), source,
					    len),
				 0);
	}
	if (tern_rank(t) == 0) {
		CHECK_IS(sent(t) - before, TIMES * KINDS);
	} else {
		CHECK_IS(tern_store_sync(t, bytes), 0);
		CHECK_IS(sent(t) - before, 0);
		CHECK(all_are(area->bytes + 990, TERN_PAYLOAD_MAX, 99));
		CHECK_IS(tern_store_sync_for(t, 1, 0), -ETIMEDOUT);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(over_a_network_a_store_is_one_message)
{
	run_over("udp", stores);
	if (traffic_usable("ofi"))
		run_over("ofi", stores);
	setenv("TERN_GRANT", "1", 1);
	run_over("shm", stores);
	unsetenv("TERN_GRANT");
}

/* Of any length: then the bytes of all ranks are there. */
static void stores_of_all(void)
{
	static char source[MOST];
	tern *t = pair_open();
	uint32_t other = !tern_rank(t);
	for (unsigned i = 0; i < 2 * LENGTHS; i++) {
		size_t len = lengths[i % LENGTHS];
		memset(source, (int)(i + 10 * other), len);
		CHECK_IS(tern_store(t, tern_addr_at(t, other, area->bytes), source, len), 0);
		CHECK_IS(tern_store_sync_all(t), 0);
		CHECK(all_are(area->bytes, len, (char)(i + 10 * tern_rank(t))));
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(when_all_have_synchronised_stores_of_every_length_are_there)
{
	run_over("shm", stores_of_all);
	run_over("udp", stores_of_all);
	if (traffic_usable("ofi"))
		run_over("ofi", stores_of_all);
}

static void store_refused(void)
{
	tern *t = pair_open();
	tern_addr nowhere = tern_addr_at(t, 1, area->bytes) + (UINT64_C(1) << 27);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_store(t, nowhere, "x", 1), 0);
		CHECK_IS(tern_request(t, 1, TELL), 0);
	} else {
		int rc = 0;
		while (!rc || rc > 0)
			rc = tern_poll(t);
		CHECK_IS(rc, -EFAULT);
		CHECK(strstr(tern_strerror(rc), "rank 1 refused a store of 1 bytes from rank 0"));
		CHECK_IS(tern_wait(t, &told, 1), 0);
		CHECK_IS(tern_store_sync_for(t, 1, 0), -ETIMEDOUT); /* nothing was counted */
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(over_a_network_a_store_to_no_memory_is_told_at_its_target_and_not_counted)
{
	run_over("udp", store_refused);
}
