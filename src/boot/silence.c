/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/silence.h"

#include "base/clock.h"

#define SECOND UINT64_C(1000000000)

void silence_begin(struct silence *s, uint64_t seconds)
{
	*s = (struct silence){ .limit = seconds * SECOND,
			       .heard = clock_ns(),
			       .looked = clock_ns() };
}

void silence_broken(struct silence *s)
{
	s->heard = clock_ns();
}

/*
 * Who has not looked for so long was stopped, or nearly so, and what came meanwhile has yet to be
 * read.
 */
bool silence_too_long(struct silence *s)
{
	uint64_t now = clock_ns();
	if (now - s->looked > SECOND)
		s->heard = now;
	s->looked = now;
	return s->limit && now - s->heard >= s->limit;
}
