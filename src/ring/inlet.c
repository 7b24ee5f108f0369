/* SPDX-License-Identifier: BSD-3-Clause */
/* The consuming end of a ring: leaves that are done with are given back. */
#include "ring/ring.h"

void inlet_open(struct tern_inlet *in, char *memory, uint32_t leaf_lines, _Atomic uint64_t *freed,
		uint32_t source, uint8_t kind)
{
	in->base = memory;
	in->leaf_lines = leaf_lines;
	in->freed = freed;
	in->peer = source;
	in->kind = kind;
	in->leaf = ring_first_leaf();
	in->cursor = memory + in->leaf % RING_LEAVES * leaf_lines * TERN_LINE;
	in->expect = ring_lap_of(in->leaf, source);
	in->handled = ring_first_message();
	in->accept = TERN_HEAD_PLAIN;
	in->larger = NULL;
	in->pace = 1;
}

uint64_t inlet_handled(const struct tern_inlet *in)
{
	return in->base ? in->handled - ring_first_message() : 0;
}

/* On in the next leaf. */
static void inlet_enter(struct tern_inlet *in)
{
	if (++in->leaf % RING_LEAVES == 0)
		in->expect = ring_next_lap(in->expect);
	in->cursor = in->base + in->leaf % RING_LEAVES * in->leaf_lines * TERN_LINE;
}

/* Gives the leaf back. */
static void inlet_advance(struct tern_inlet *in)
{
	/* ring.R2, release; acquired in lane_next(). */
	atomic_store_explicit(in->freed, in->leaf + 1, memory_order_release);
	inlet_enter(in);
}

/* The small ring is done with. The count of the larger one says already that we are there. */
static void inlet_move(struct tern_inlet *in)
{
	/* For whoever looks from outside; the producer does not read it any more. */
	atomic_store_explicit(in->freed, RING_MOVED, memory_order_release);
	in->base = in->larger;
	in->freed = in->larger_freed;
	in->leaf_lines = (uint32_t)in->larger_lines;
	in->larger = NULL;
	inlet_enter(in);
}

bool inlet_control(struct tern_inlet *in, uint64_t difference)
{
	if (difference == (TERN_HEAD_CONTROL | CONTROL_NEXT << TERN_ID_SHIFT))
		inlet_advance(in);
	else if (difference == (TERN_HEAD_CONTROL | CONTROL_PAD << TERN_ID_SHIFT))
		in->cursor += TERN_LINE - (uintptr_t)in->cursor % TERN_LINE;
	else
		return false;
	return true;
}

bool inlet_grown(struct tern_inlet *in, uint64_t difference)
{
	if (difference != (TERN_HEAD_CONTROL | CONTROL_GROW << TERN_ID_SHIFT) || !in->larger)
		return false;
	inlet_move(in);
	return true;
}

bool inlet_next(struct tern_inlet *in, uint64_t *difference)
{
	while (inlet_has(in)) {
		*difference = atomic_load_explicit(&inlet_at(in)->head, memory_order_relaxed) ^
			      in->expect;
		if (!inlet_control(in, *difference) && !inlet_grown(in, *difference))
			return true;
	}
	return false;
}

uint64_t inlet_lying(const struct tern_inlet *in)
{
	struct tern_inlet look = *in; /* a leaf that it passes is not given back */
	_Atomic uint64_t nowhere;
	uint64_t n = 0, difference;
	look.freed = look.larger_freed = &nowhere;
	for (; inlet_next(&look, &difference); n++)
		look.cursor += message_bytes(inlet_at(&look), difference);
	return n;
}
