/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: requests for memory that wait for their answers. */
#include "mem/slot.h"

#include <errno.h>

#include "lib/local.h"
#include "mem/mem.h"

/* A network may tell of a move that was given up when its slot has been taken many times since. */
TEST(an_answer_to_a_slot_that_was_given_up_finds_nobody_after_thousands_of_uses)
{
	tern *t;
	tern_op op = TERN_OP;
	REQUIRE(tern_open_local(1, &t) == 0);
	struct mem *m = mem_of(t);
	struct slot *first = slot_take(m, 0, SLOTS_QUICK);
	uint64_t old = slot_name(m, first);
	slot_give(first);
	for (unsigned i = 0; i < 70000; i++) {
		struct slot *s = slot_take(m, 0, SLOTS_QUICK);
		REQUIRE(s == first);
		s->op = &op;
		op.pending = 1;
		slot_moved(m, old, 0);
		REQUIRE(s->used && op.pending == 1);
		slot_moved(m, slot_name(m, s), 0);
		REQUIRE(!s->used && op.pending == 0);
	}
	CHECK_IS(tern_close(t), 0);
}

/* Its rank may have died, which others tell later than the network does. */
TEST(a_move_that_a_network_could_not_make_ends_when_a_death_would_be_known)
{
	tern *t;
	tern_op op = TERN_OP;
	REQUIRE(tern_open_local(1, &t) == 0);
	struct slot *s = slot_take(mem_of(t), 0, SLOTS_QUICK);
	s->moving = true;
	s->op = &op;
	op.pending = 1;
	slot_moved(mem_of(t), slot_name(mem_of(t), s), -EIO);
	CHECK_IS(op.pending, 1);
	CHECK_IS(tern_op_wait(t, &op), -EIO);
	CHECK_IS(tern_close(t), 0);
}

static unsigned refused;

static int move_refuse(struct net *net, uint32_t rank, const struct window *w, uint64_t offset,
		       void *bytes, size_t len, bool put, uint64_t tag)
{
	(void)net, (void)rank, (void)w, (void)offset, (void)bytes, (void)len, (void)put, (void)tag;
	refused++;
	return -EINVAL;
}

static unsigned none_ended(struct net *net, struct moved *moved, unsigned n)
{
	(void)net, (void)moved, (void)n;
	return 0;
}

/* So does a flush, which waits until no slot is taken. */
TEST(what_a_network_does_not_move_goes_by_message_and_ends)
{
	static const struct net_rma rma = { .move = move_refuse, .ended = none_ended };
	static char bytes[5000];
	tern_op op = TERN_OP;
	tern_addr a;
	void *p;
	local_polled();
	far_use(NULL);
	local_open(2);
	memset(bytes, 7, sizeof bytes);
	REQUIRE(tern_alloc(local[1], sizeof bytes, &p) == 0);
	REQUIRE(tern_addr_of(local[1], p, &a) == 0);
	struct mem *m = mem_of(local[0]);
	m->peer[1].half[0].bytes = atomic_load(&m->job->rank[1].heap);
	local[0]->own->site.peer[1].net->rma = &rma;
	CHECK_IS(tern_put_start(local[0], a, bytes, sizeof bytes, &op), 0);
	while (op.pending)
		local_settle_transfers();
	CHECK(refused > 0);
	CHECK(memcmp(p, bytes, sizeof bytes) == 0);
	CHECK(slots_quiet(m));
	local[0]->own->site.peer[1].net->rma = NULL;
	local_close();
}
