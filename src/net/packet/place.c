/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking along a ring over its control lines. */
#include "net/packet/packet.h"

/* Over a turn, or the rest of a line that is padded, as the ring's consumer would go. */
static bool place_control(const struct out *o, struct place *p, uint64_t difference)
{
	_Atomic uint64_t
		nobody; /* asks which leaves this has passed: they are freed by who acknowledges */
	struct tern_inlet in = { .cursor = p->cursor,
				 .expect = p->expect,
				 .leaf = p->leaf,
				 .base = o->base,
				 .leaf_lines = o->leaf_lines,
				 .freed = &nobody };
	if (!inlet_control(&in, difference))
		return false;
	p->cursor = in.cursor;
	p->expect = in.expect;
	p->leaf = in.leaf;
	return true;
}

const tern_msg *place_look_on(const struct out *o, struct place *p)
{
	for (;;) {
		const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
		uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
		if (x >> TERN_LAP_SHIFT)
			return NULL;
		if (!(x & TERN_HEAD_CONTROL))
			return m;
		if (!place_control(o, p, x))
			return NULL;
	}
}

/* cost: base read */
