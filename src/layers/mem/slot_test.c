/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: requests for memory that wait for their answers. */
#include "mem/slot.h"

#include <errno.h>

#include "lib/check.h"
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
