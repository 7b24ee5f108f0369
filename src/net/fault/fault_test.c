/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault of TERN_FAULT, around a wire that notes what it is given, by a clock that stands
 * still. */
#include "net/fault/fault.h"

#include <errno.h>
#include <tern/tern.h>

#include "base/world.h"
#include "lib/check.h"

enum { RANKS = 3, MANY = 200, LEN = 100 };

/* -- The wire inside --------------------------------------------------------------------------- */

static struct {
	unsigned count, closed;
	uint32_t rank[4 * MANY];
	size_t len[4 * MANY];
	unsigned char bytes[4 * MANY][LEN];
} sent;

static uint64_t now = 1000000000;

static uint64_t still_now(void)
{
	return now;
}

static void note_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	(void)w;
	for (unsigned i = 0; i < n; i++, sent.count++) {
		REQUIRE(sent.count < 4 * MANY);
		sent.rank[sent.count] = o[i].rank;
		sent.len[sent.count] = outgoing_copy(sent.bytes[sent.count], &o[i]);
	}
}

static unsigned note_receive(struct wire *w, struct datagram *d, unsigned n)
{
	(void)w, (void)d;
	return n;
}

static size_t note_most(struct wire *w, uint32_t rank)
{
	(void)w;
	return 1000 + rank;
}

static int note_descriptor(struct wire *w)
{
	(void)w;
	return 77;
}

static uint64_t inner_due = UINT64_MAX;

static uint64_t note_due(struct wire *w)
{
	(void)w;
	return inner_due;
}

static void note_close(struct wire *w)
{
	(void)w;
	sent.closed++;
}

static const struct wire_ops note_ops = {
	.most = note_most,
	.send = note_send,
	.receive = note_receive,
	.descriptor = note_descriptor,
	.due = note_due,
	.close = note_close,
};
static struct wire inner, *wire = &inner;
static struct world still;

static void begin(const char *fault)
{
	still = world_real;
	still.now = still_now;
	world_use(&still);
	setenv("TERN_FAULT", fault, 1);
	inner = (struct wire){ .ops = &note_ops, .provides = 7 };
	sent.count = sent.closed = 0;
	REQUIRE(fault_wrap(wire, 1, RANKS) == 0);
}

static void end(void)
{
	wire->ops->close(wire);
	CHECK_IS(sent.closed, 1);
}

/* The i-th datagram has the bytes i, i + 1, and so on. */
static void send_one(uint32_t rank, unsigned i)
{
	unsigned char bytes[LEN];
	for (unsigned k = 0; k < LEN; k++)
		bytes[k] = (unsigned char)(i + k);
	const struct iovec part[] = { { bytes, 10 }, { bytes + 10, LEN - 10 } };
	const struct outgoing o = { .rank = rank, .part = part, .parts = 2 };
	wire->ops->send(wire, &o, 1);
}

static void send_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		send_one(2, i);
}

static unsigned wrong_bits(unsigned at, unsigned i)
{
	unsigned wrong = 0;
	for (size_t k = 0; k < sent.len[at]; k++)
		wrong += (unsigned)__builtin_popcount(sent.bytes[at][k] ^ (unsigned char)(i + k));
	return wrong;
}

static void look_later(uint64_t ns)
{
	struct datagram d[2];
	now += ns;
	CHECK_IS(wire->ops->receive(wire, d, 2), 2);
}

/* -- Tests ------------------------------------------------------------------------------------- */

TEST(without_faults_a_wire_is_as_it_was)
{
	begin("");
	CHECK(wire->ops == &note_ops && wire->provides == 7 && !fault_in(wire));
	CHECK_IS(fault_judge(wire, false), 0);
}

TEST(what_is_not_harmed_goes_as_it_is_and_the_rest_is_the_inner_wires)
{
	begin("drop=0,seed=5");
	CHECK(fault_in(wire));
	CHECK_IS(wire->provides, 0);
	CHECK_IS(wire->ops->most(wire, 2), 1002);
	CHECK_IS(wire->ops->descriptor(wire), 77);
	CHECK(!wire->ops->narrow);
	CHECK(wire->ops->due(wire) == UINT64_MAX);
	inner_due = 5;
	CHECK_IS(wire->ops->due(wire), 5);
	send_many();
	CHECK_IS(sent.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(sent.rank[i] == 2 && sent.len[i] == LEN && wrong_bits(i, i) == 0);
	end();
}

TEST(all_or_some_are_dropped)
{
	begin("drop=1,seed=5");
	send_many();
	CHECK_IS(sent.count, 0);
	fault_rest(true); /* while they rest, nothing goes wrong */
	send_one(0, 1);
	CHECK_IS(sent.count, 1);
	fault_rest(false);
	end();
	begin("drop=0.5,seed=5");
	send_many();
	CHECK(sent.count > MANY / 4 && sent.count < MANY * 3 / 4);
	end();
}

TEST(a_damaged_one_has_one_wrong_bit_and_a_cut_one_is_shorter)
{
	begin("corrupt=1,seed=5");
	send_many();
	CHECK_IS(sent.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(sent.len[i] == LEN && wrong_bits(i, i) == 1);
	end();
	begin("truncate=1,seed=5");
	send_many();
	CHECK_IS(sent.count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(sent.len[i] < LEN && wrong_bits(i, i) == 0);
	end();
}

TEST(a_doubled_one_comes_twice_the_second_soon)
{
	begin("duplicate=1,seed=5");
	for (unsigned i = 0; i < 20; i++)
		send_one(i % RANKS, i);
	CHECK_IS(sent.count, 20);
	CHECK(wire->ops->due(wire) >= now && wire->ops->due(wire) < now + 200000);
	look_later(200000);
	CHECK_IS(sent.count, 40);
	for (unsigned i = 20; i < 40; i++)
		CHECK(sent.len[i] == LEN && wrong_bits(i, i - 20) == 0 &&
		      sent.rank[i] == (i - 20) % RANKS);
	look_later(200000);
	CHECK_IS(sent.count, 40);
	CHECK(wire->ops->due(wire) == UINT64_MAX);
	end();
}

TEST(a_late_one_is_sent_when_it_is_due_and_too_many_are_lost)
{
	static const char *const faults[] = { "reorder=1,seed=5", "delay=1,late=500,seed=5" };
	static const uint64_t most[] = { 200000, 500000 };
	for (unsigned k = 0; k < 2; k++) {
		begin(faults[k]);
		send_one(1, 3);
		CHECK_IS(sent.count, 0);
		uint64_t due = wire->ops->due(wire);
		CHECK(due >= now && due <= now + most[k]);
		look_later(due - now - 1);
		CHECK_IS(sent.count, 0);
		look_later(1);
		CHECK_IS(sent.count, 1);
		CHECK(sent.rank[0] == 1 && sent.len[0] == LEN && wrong_bits(0, 3) == 0);
		send_many();
		look_later(most[k]);
		CHECK_IS(sent.count, 1 + 64);
		send_one(1, 3); /* there is room again */
		look_later(most[k]);
		CHECK_IS(sent.count, 1 + 64 + 1);
		end();
	}
}

TEST(a_send_passes_on_what_is_due)
{
	begin("delay=1,late=500,seed=5");
	send_one(1, 3);
	now += 500001;
	send_one(2, 4);
	CHECK_IS(sent.count, 1);
	CHECK_IS(sent.rank[0], 1);
	end();
}

TEST(to_a_rank_that_is_cut_off_nothing_goes_until_that_is_over)
{
	begin("partition=1,partition-time=100,seed=5");
	send_one(1, 0);
	CHECK_IS(sent.count, 0);
	now += 100000; /* it is over, and the next begins only later */
	send_one(1, 0);
	CHECK_IS(sent.count, 1);
	now += 1;
	send_one(1, 0);
	CHECK_IS(sent.count, 1);
	end();
}

TEST(a_slow_wire_sends_one_after_the_other_and_loses_what_would_wait_too_long)
{
	begin("slow=1000,seed=5"); /* a millisecond each, and at most 20 wait */
	for (unsigned i = 0; i < 30; i++)
		send_one(1, i);
	CHECK_IS(sent.count, 1);
	look_later(999999);
	CHECK_IS(sent.count, 1);
	look_later(1);
	CHECK_IS(sent.count, 2);
	look_later(100000000);
	CHECK_IS(sent.count, 21);
	send_one(1, 50); /* it is free again */
	CHECK_IS(sent.count, 22);
	end();
}

TEST(the_same_seed_harms_the_same_ones)
{
	static unsigned char first[4 * MANY][LEN];
	unsigned count = 0;
	for (int again = 0; again < 3; again++) {
		begin(again < 2 ? "drop=0.3,corrupt=0.3,seed=9" : "drop=0.3,corrupt=0.3,seed=10");
		send_many();
		bool same = sent.count == count && memcmp(first, sent.bytes, sizeof first) == 0;
		CHECK(same == (again == 1));
		count = sent.count;
		memcpy(first, sent.bytes, sizeof first);
		end();
		memset(sent.bytes, 0, sizeof sent.bytes);
	}
}

TEST(what_cannot_be_read_is_refused_with_the_word)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "lose=1", "'lose=1'" },
		{ "drop", "'drop'" },
		{ "drop=", "'drop='" },
		{ "drop=1.5", "0 to 1" },
		{ "drop=-1", "0 to 1" },
		{ "drop=x", "0 to 1" },
		{ "drop=0.1x", "'drop=0.1x'" },
		{ "late=1e10", "0 to 1e9" },
		{ "late=-1", "microseconds" },
		{ "seed=", "a whole number" },
		{ "seed=x", "a whole number" },
		{ "drop=0.1,,seed=1", "''" },
		{ "drop=0.1,dro=0.2", "'dro=0.2'" },
		{ "drop=nan", "0 to 1" },
	};
	struct plan p;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		int rc = plan_read(&p, bad[i].text);
		CHECK_IS(rc, -EINVAL);
		if (!CHECK(strstr(tern_strerror(rc), bad[i].says)))
			printf("    %s: %s\n", bad[i].text, tern_strerror(rc));
	}
	setenv("TERN_FAULT", "lose=1", 1);
	inner.ops = &note_ops;
	CHECK_IS(fault_wrap(wire, 0, RANKS), -EINVAL);
	CHECK(wire->ops == &note_ops);
}

TEST(every_word_of_a_plan_is_read)
{
	struct plan p;
	CHECK_IS(plan_read(&p, ""), 0);
	CHECK(p.late_ns == 1000000 && p.partition_ns == 20000000 && !p.drop && !p.seeded);
	CHECK_IS(plan_read(&p, "drop=0.5,duplicate=1,reorder=0.25,delay=0,corrupt=0.125,"
			       "truncate=0.0625,partition=0.03125,late=7,partition-time=8,slow=9.5,"
			       "seed=0x10"),
		 0);
	CHECK(p.drop == 1u << 31 && p.duplicate == UINT32_MAX && p.reorder == 1u << 30);
	CHECK(p.delay == 0 && p.corrupt == 1u << 29 && p.truncate == 1u << 28);
	CHECK(p.partition == 1u << 27 && p.late_ns == 7000 && p.partition_ns == 8000);
	CHECK(p.slow_ns == 9500 && p.seed == 16 && p.seeded);
}

TEST(damage_is_only_for_packets_that_are_checked)
{
	static const char *const faults[] = { "drop=1", "corrupt=0.1", "truncate=0.1" };
	for (int i = 0; i < 3; i++) {
		begin(faults[i]);
		CHECK_IS(fault_judge(wire, true), 0);
		int rc = fault_judge(wire, false);
		CHECK_IS(rc, i ? -EINVAL : 0);
		CHECK(!i || strstr(tern_strerror(rc), i == 1 ? "corrupt" : "truncate"));
		end();
	}
}
