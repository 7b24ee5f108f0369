/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that are not what they should be are not used. */
#include "net/guard/guard.h"

#include <errno.h>
#include <sys/mman.h>

#include "job/exchange.h"
#include "lib/chance.h"
#include "lib/check.h"

enum { RANKS = 3, BODY = 300, BRIEF_BODY = 50 };

static size_t body = BODY; /* bytes of a datagram's */

static struct job job;
static struct site site[RANKS];
static struct packet_net net[RANKS];

static void guards_open(const char *mode)
{
	setenv("TERN_PROTECT", mode, 1);
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		unsigned char key[32];
		site[r] = (struct site){ .rank = r, .size = RANKS };
		net[r] = (struct packet_net){ .net = { .site = &site[r] },
					      .job = &job,
					      .pulse = &job.pulse[r],
					      .guard = &guard_ops };
		REQUIRE(guard_new(&net[r].keys, &job, &site[r], GUARD_AUTH, key) == 0);
		card_publish(&job, r, key, sizeof key);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t other = 0; other < RANKS; other++)
			REQUIRE(other == r || guard_ops.open(&net[r], other));
}

static void guards_close(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		guard_ops.close(&net[r]);
	job_unmap(&job);
	job_forget(&job);
}

/* A sealed datagram from one rank to another. */
static struct datagram sealed(uint32_t from, uint32_t to)
{
	static struct packet k;
	static unsigned char bytes[BODY + DATAGRAM_HEAD + PACKET_TAG];
	static struct path path; /* large */
	path.net = &net[from];
	path.rank = to;
	k.path = &path;
	k.at = k.bytes + PACKET_FRONT - DATAGRAM_HEAD;
	k.end = k.bytes + PACKET_FRONT + body;
	chance_fill(k.at + DATAGRAM_HEAD, body, 7);
	k.part[0] = (struct iovec){ k.at, (size_t)(k.end - k.at) };
	k.parts = 1;
	guard_ops.seal(&net[from], &k);
	memcpy(bytes, k.at, k.part[0].iov_len);
	return (struct datagram){ .bytes = bytes, .len = k.part[0].iov_len };
}

static bool opened(uint32_t at, struct datagram d, uint32_t *from)
{
	static unsigned char bytes[BODY + DATAGRAM_HEAD + PACKET_TAG];
	struct arrival a;
	memcpy(bytes, d.bytes, d.len); /* it may be changed */
	d.bytes = bytes;
	return guard_ops.unseal(&net[at], &d, from, &a) == SEAL_GOOD && a.len == body &&
	       chance_filled(a.at, body, 7);
}

static void in_each_mode(void (*check)(void))
{
	static const char *const modes[] = { "auth", "encrypt" };
	for (int i = 0; i < 4; i++) {
		body = i / 2 ? BRIEF_BODY : BODY;
		guards_open(modes[i % 2]);
		check();
		guards_close();
	}
}

static void good_ones(void)
{
	uint32_t from;
	for (int i = 0; i < 3000; i++) {
		CHECK(opened(1, sealed(0, 1), &from));
		CHECK_IS(from, 0);
	}
	CHECK(opened(1, sealed(2, 1), &from));
	CHECK_IS(from, 2);
	CHECK(opened(0, sealed(1, 0), &from));
}

TEST(a_datagram_is_opened_by_whom_it_is_for_and_its_sender_is_known)
{
	in_each_mode(good_ones);
}

static void changed_ones(void)
{
	uint32_t from;
	struct datagram d = sealed(0, 1);
	for (size_t i = 0; i < d.len * 8; i++) {
		d.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
		CHECK(!opened(1, d, &from));
		d.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	for (size_t len = 0; len < d.len; len++)
		CHECK(!opened(1, (struct datagram){ .bytes = d.bytes, .len = len }, &from));
	CHECK(opened(1, d, &from)); /* what was refused has not used it up */
}

TEST(a_datagram_of_which_a_bit_was_changed_is_dropped)
{
	in_each_mode(changed_ones);
}

static void old_ones(void)
{
	uint32_t from;
	unsigned char kept[BODY + DATAGRAM_HEAD + PACKET_TAG];
	struct datagram old = sealed(0, 1);
	memcpy(kept, old.bytes, old.len);
	old.bytes = kept;
	for (int i = 0; i < 5; i++)
		CHECK(opened(1, sealed(0, 1), &from));
	CHECK(opened(1, old, &from)); /* late, but for the first time */
	CHECK(!opened(1, old, &from));
	for (int i = 0; i < 2000; i++)
		CHECK(opened(1, sealed(0, 1), &from));
	CHECK(!opened(1, old, &from));
	CHECK_IS(stats_get(&net[1].pulse->count[PULSE_PACKETS_OLD]), 2);
}

TEST(a_datagram_is_taken_once)
{
	in_each_mode(old_ones);
}

static void claimed_ones(void)
{
	uint32_t from;
	struct datagram d = sealed(2, 1);
	d.bytes[2] = 0; /* rank 2 says that it is rank 0 */
	CHECK(!opened(1, d, &from));
	d.bytes[2] = 1; /* or the receiver */
	CHECK(!opened(1, d, &from));
	d = sealed(2, 1);
	CHECK(!opened(0, d, &from)); /* it is for another rank */
}

TEST(a_rank_cannot_speak_as_another)
{
	in_each_mode(claimed_ones);
}

TEST(a_wire_that_knows_better_is_believed)
{
	uint32_t from;
	static const char *const modes[] = { "none", "auth" };
	for (int i = 0; i < 2; i++) {
		guards_open(modes[i]);
		struct datagram d = sealed(2, 1);
		d.from = 1;
		CHECK(!opened(1, d, &from));
		CHECK_IS(stats_get(&net[1].pulse->count[PULSE_PACKETS_FOREIGN]), 1);
		d.from = 3;
		CHECK(opened(1, d, &from));
		CHECK_IS(from, 2);
		guards_close();
	}
}

static void foreign_ones(void)
{
	uint32_t from;
	unsigned char kept[BODY + DATAGRAM_HEAD + PACKET_TAG];
	struct datagram d = sealed(0, 1);
	memcpy(kept, d.bytes, d.len);
	d.bytes = kept;
	guards_close();
	guards_open(getenv("TERN_PROTECT"));
	CHECK(!opened(1, d, &from));
	CHECK_IS(stats_get(&net[1].pulse->count[PULSE_PACKETS_OLD]), 1);
}

TEST(a_datagram_of_another_session_is_dropped)
{
	in_each_mode(foreign_ones);
}

/* Rank 1's end of a wire that promised to lose nothing. */
static void losses_watch(void)
{
	static struct peer peer[RANKS];
	static struct path *path[RANKS];
	static uint32_t active[RANKS], dirty[RANKS];
	static uint8_t met[RANKS];
	static struct wire wire;
	memset(path, 0, sizeof path);
	memset(met, 1, sizeof met); /* all cards have come, and fit */
	site[1].peer = peer;
	net[1].path = path;
	net[1].active = active;
	net[1].dirty = dirty;
	net[1].met = met;
	net[1].wire = &wire;
	net[1].now = 1;
	net[1].confirms = true;
}

static void ones_behind_a_gap(void)
{
	uint32_t from;
	losses_watch();
	CHECK(opened(1, sealed(0, 1), &from));
	CHECK(!net[1].path[0]);
	sealed(0, 1); /* it is lost */
	for (int i = 0; i < 2000; i++)
		CHECK(!opened(1, sealed(0, 1), &from));
	REQUIRE(net[1].path[0]);
	CHECK(net[1].path[0]->silence.lossy);
	CHECK(net[1].path[0]->pending_control & 1u << NEWS_LOST); /* its sender is told */
	CHECK(opened(1, sealed(2, 1), &from));                    /* another rank's are taken */
	CHECK_IS(packet_check(&net[1].net, 0), 0);                /* it may be about to die */
	atomic_store(&job.rank[0].state, RANK_CLOSED);
	CHECK_IS(packet_check(&net[1].net, 0), -EHOSTUNREACH); /* not all of it has come */
	munmap(net[1].path[0], sizeof *net[1].path[0]);
}

TEST(a_datagram_behind_a_gap_is_not_taken_from_a_wire_that_promised_to_lose_none)
{
	in_each_mode(ones_behind_a_gap);
}

TEST(a_rank_that_was_given_up_and_then_ends_is_one_rank_less)
{
	uint32_t from;
	guards_open("auth");
	losses_watch();
	sealed(0, 1); /* it is lost */
	CHECK(!opened(1, sealed(0, 1), &from));
	REQUIRE(net[1].path[0]);
	net[1].path[0]->silence.over = VERDICT_LOSSY;
	net[1].unreachable++;
	CHECK_IS(packet_check(&net[1].net, NET_ALL), 1);
	job_rank_leaves(&job, 0, RANK_CLOSED);
	CHECK_IS(packet_check(&net[1].net, NET_ALL), 1);
	munmap(net[1].path[0], sizeof *net[1].path[0]);
	guards_close();
}

TEST(what_is_encrypted_cannot_be_read)
{
	guards_open("encrypt");
	struct datagram d = sealed(0, 1);
	CHECK(!chance_filled(d.bytes + DATAGRAM_HEAD, body, 7));
	guards_close();
}
