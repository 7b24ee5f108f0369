/* SPDX-License-Identifier: BSD-3-Clause */
/* Slips: what an owner and a far sender tell each other of buffers that are lent. */
#include "typed/typed.h"

enum { FLAGS_SHIFT = 8, COUNT_SHIFT = 16, FIRST_LOANS = 2 };

void slip_write(const struct slip *s, uint64_t words[SLIP_WORDS])
{
	words[0] = (uint64_t)s->turn << 32 | (uint64_t)s->count << COUNT_SHIFT |
		   (uint64_t)s->flags << FLAGS_SHIFT | s->type;
	words[1] = 0;
	for (unsigned i = 0; i < SLIP_LOANS / 2; i++)
		words[FIRST_LOANS + i] = (uint64_t)s->loan[2 * i + 1] << 32 | s->loan[2 * i];
}

bool slip_read(const tern_msg *m, struct slip *s)
{
	if (tern_msg_words(m) != SLIP_WORDS)
		return false;
	uint64_t first = tern_msg_arg(m, 0);
	s->type = first & 0xff;
	s->flags = first >> FLAGS_SHIFT & 0xff;
	s->count = first >> COUNT_SHIFT & 0xffff;
	s->turn = (uint32_t)(first >> 32);
	for (unsigned i = 0; i < SLIP_LOANS; i++)
		s->loan[i] = (uint32_t)(tern_msg_arg(m, FIRST_LOANS + i / 2) >> i % 2 * 32);
	return s->count <= SLIP_LOANS;
}

_Static_assert(FIRST_LOANS + SLIP_LOANS / 2 == SLIP_WORDS && TERN_TYPES_MAX <= 1 << FLAGS_SHIFT,
	       "a slip's parts fit");
