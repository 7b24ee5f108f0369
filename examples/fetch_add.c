/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetch-and-add on another rank's counter, in two forms. The blocking one asks and
 * waits. The split-phase one begins, leaves the rank free to do something else, and
 * ends later: many can be under way at once. For memory of the heap one call does the same, without
 * handlers: tern_amo(), in histogram.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>

enum { ADD, ADDED };        /* handlers */
enum { TICKETS, SUM, ALL }; /* counters that every rank has */

static uint64_t counter[ALL];

/* One fetch-and-add under way; its place in the table is the number that the reply brings back. */
static struct fetch {
	tern_flag done;
	uint64_t before;
} fetches[TERN_RANKS_MAX];

static void on_add(tern *t, const tern_msg *m)
{
	uint64_t which = tern_msg_word(m, 0), before = counter[which];
	counter[which] += tern_msg_word(m, 1); /* handlers run one after another: no lock */
	tern_reply(t, m, ADDED, tern_msg_word(m, 2), before);
}

static void on_added(tern *t, const tern_msg *m)
{
	struct fetch *f = &fetches[tern_msg_word(m, 0)];
	f->before = tern_msg_word(m, 1);
	tern_signal(t, &f->done, 1);
}

static int fetch_add_begin(tern *t, uint32_t rank, uint64_t which, uint64_t add, uint32_t number)
{
	return tern_request(t, rank, ADD, which, add, number);
}

static int fetch_add_end(tern *t, uint32_t number, uint64_t *before)
{
	int rc = tern_wait(t, &fetches[number].done, 1);
	if (!rc)
		*before = fetches[number].before;
	return rc;
}

static int fetch_add(tern *t, uint32_t rank, uint64_t which, uint64_t add, uint64_t *before)
{
	int rc = fetch_add_begin(t, rank, which, add, 0);
	return rc ? rc : fetch_add_end(t, 0, before);
}

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "fetch_add: %s\n", tern_strerror(rc));
	exit(1);
}

int main(void)
{
	tern *t;
	uint64_t ticket, before;
	must(tern_open(&t, NULL));
	must(tern_on(t, ADD, on_add));
	must(tern_on(t, ADDED, on_added));

	must(fetch_add(t, 0, TICKETS, 1, &ticket)); /* rank 0 gives out tickets */
	printf("rank %u of %u has ticket %u\n", tern_rank(t), tern_size(t), (unsigned)ticket);

	for (uint32_t r = 0; r < tern_size(t); r++) /* to everybody at once, */
		must(fetch_add_begin(t, r, SUM, ticket + 1, r));
	for (uint32_t r = 0; r < tern_size(t); r++) /* and then collect */
		must(fetch_add_end(t, r, &before));

	must(tern_barrier(t)); /* everybody's have ended: the sums are complete */
	printf("rank %u has sum %u\n", tern_rank(t), (unsigned)counter[SUM]);
	must(tern_close(t));
	return 0;
}
