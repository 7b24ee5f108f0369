/* SPDX-License-Identifier: BSD-3-Clause */
/* The poll set of an endpoint: a circle of inlets that begins with the bell. */
#include "net/net.h"

#include "base/world.h"

void pollset_begin(struct site *site, _Atomic uint64_t *bell)
{
	site->bell = (struct tern_inlet){
		.cursor = (char *)(void *)(uintptr_t)bell,
		.expect = BELL_RUNG, /* a bell is polled like a line whose header is its word */
		.kind = TERN_BELL,
		.hot = 1,
		.next = &site->bell,
	};
	site->pollset = 0;
}

void pollset_add(struct site *site, struct tern_inlet *in)
{
	if (in->hot)
		return;
	in->hot = 1;
	in->seen = NULL;
	in->next = site->bell.next;
	site->bell.next = in;
	site->pollset++;
}

void pollset_remove(struct site *site, struct tern_inlet *in)
{
	if (!in->hot)
		return;
	struct tern_inlet *before = &site->bell;
	while (before->next != in)
		before = before->next;
	before->next = in->next;
	in->hot = 0;
	site->pollset--;
}

/* cost: base status */
