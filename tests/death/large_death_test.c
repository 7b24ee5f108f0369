/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 200 */
/*
 * A rank is killed while requests above TERN_PAYLOAD_MAX, and replies as long as these, are under
 * way to it and from it, some of them kept: the blocks of the others come back, and what was kept
 * can be read. Over each network.
 */
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { KEEP, TAKE, BACK, RANKS = 3, VICTIM = 2, FLOOD = 100, SOME = 20 };

static const tern_msg *kept[TERN_POOL_BLOCKS];
static unsigned keeps, from[RANKS];
static _Atomic uint64_t taken, *done; /* done: of all ranks */

static bool whole(const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	return len == tern_msg_word(m, 1) && chance_filled(data, len, tern_msg_word(m, 0));
}

/* The victim dies with some blocks of both others kept, and some not even looked at. */
static void take(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	CHECK(whole(m));
	int rc = tern_reply_data(t, m, BACK, data, len, tern_msg_word(m, 0), len);
	CHECK(!rc || tern_msg_src(m) == VICTIM);
	tern_signal(t, &taken, 1);
	if (tern_rank(t) != VICTIM)
		return;
	if (keeps < TERN_POOL_BLOCKS / 2)
		CHECK_IS(tern_msg_keep(t, m, &kept[keeps++]), 0);
	from[tern_msg_src(m)]++;
	if (from[0] >= SOME && from[1] >= SOME) /* so both have passed the barrier */
		raise(SIGKILL);
}

static void back(tern *t, const tern_msg *m)
{
	(void)t;
	CHECK(whole(m));
}

/* A signal handler must not allocate, and the first message that is kept does. */
static void keep(tern *t, const tern_msg *m)
{
	CHECK(whole(m));
	if (keeps < TERN_POOL_BLOCKS / 2 && tern_delivery_get(t) != TERN_DELIVERY_INTERRUPT)
		CHECK_IS(tern_msg_keep(t, m, &kept[keeps++]), 0);
}

static int send_one(tern *t, uint32_t dst, unsigned id, unsigned i)
{
	static unsigned char bytes[TERN_REQUEST_MAX];
	size_t len = i % 8 ? TERN_REQUEST_MAX - i * 200 : i + 1;
	chance_fill(bytes, len, i);
	return tern_request_data(t, dst, id, bytes, len, i, len);
}

static void victim(tern *t)
{
	for (unsigned i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(send_one(t, i % 2, KEEP, i), 0);
	for (;;)
		CHECK(tern_poll(t) >= 0);
}

static void survivor(tern *t)
{
	int rc;
	uint32_t other = !tern_rank(t);
	for (unsigned i = 0; !(rc = send_one(t, VICTIM, TAKE, i)); i = (i + 1) % FLOOD)
		;
	/* A connection that breaks may be noticed before the death. */
	CHECK(rc == -EOWNERDEAD || rc == -EHOSTUNREACH);
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	for (unsigned i = 0; i < FLOOD; i++)
		CHECK_IS(send_one(t, other, TAKE, i), 0);
	CHECK_IS(tern_wait(t, &taken, FLOOD), 0);
	for (unsigned i = 0; i < keeps; i++) {
		CHECK(whole(kept[i]));
		CHECK_IS(tern_msg_drop(t, kept[i]), 0);
	}
}

/* None is missing. */
static void claim_all(tern *t)
{
	void *claimed[TERN_POOL_BLOCKS];
	for (unsigned i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK((claimed[i] = handed_claim(t, !tern_rank(t), TERN_REQUEST_MAX)) != NULL);
	for (unsigned i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_abandon(t, claimed[i]), 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, KEEP, keep), 0);
	CHECK_IS(tern_on(t, TAKE, take), 0);
	CHECK_IS(tern_on(t, BACK, back), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		victim(t);
	survivor(t);
	claim_all(t);
	atomic_fetch_add(done, 1);
	while (atomic_load(done) < RANKS - 1)
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

static void run_over(const char *net)
{
	const char *delivery = getenv("TERN_DELIVERY");
	if (!traffic_usable(net) ||
	    (delivery && !strcmp(delivery, "interrupt") && !strncmp(net, "ofi", 3)))
		check_skip("this build, or this machine, has no such network, or no signal of it");
	setenv("TERN_NET", net, 1);
	setenv("TERN_GRACE", "60", 1);
	done = ranks_shared(sizeof *done);
	ranks_start(RANKS, 0, rank_main);
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
}

TEST(over_shared_memory_large_blocks_of_the_living_come_back)
{
	run_over("shm");
}

TEST(over_udp_large_blocks_of_the_living_come_back)
{
	run_over("udp");
}

TEST(over_libfabric_large_blocks_of_the_living_come_back)
{
	run_over("ofi/tcp");
}
