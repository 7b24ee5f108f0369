/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 collects what all ranks have found and does not know how much that is. It opens a segment
 * with room for the most; each rank fills its part of it and says what it has less, and rank 0 goes
 * on when all of it is there. Then the ranks store what they have found at each other, into memory
 * that the program had already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { LESS, MOST = 1000 };

static uint64_t found[MOST], *collected, table[TERN_RANKS_MAX], seen[TERN_RANKS_MAX];
static tern_segment segment;
static tern_flag complete;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "harvest: %s\n", tern_strerror(rc));
	exit(1);
}

static size_t on_complete(tern *t, void *base, void *arg)
{
	(void)base;
	tern_signal(t, arg, 1);
	return 0; /* the segment closes */
}

static void on_less(tern *t, const tern_msg *m)
{
	must(tern_segment_shorten(t, segment, tern_msg_word(m, 0)));
}

static uint64_t count_of(uint32_t rank)
{
	return rank * 37 % MOST + 1;
}

int main(void)
{
	tern *t;
	tern_team *all;
	static tern_addr where[TERN_RANKS_MAX];
	must(tern_open(&t, NULL));
	uint32_t me = tern_rank(t), n = tern_size(t);
	uint64_t wrong = 0, mine = count_of(me), one = 1;
	must(tern_on(t, LESS, on_less));
	for (uint64_t i = 0; i < mine; i++)
		found[i] = me * MOST + i;
	if (me == 0) {
		collected = calloc(n, sizeof found);
		must(tern_segment_open(t, collected, n * sizeof found, on_complete, &complete,
				       &segment));
	}
	must(tern_team_all(t, &all));
	must(tern_team_broadcast(all, 0, &segment, sizeof segment)); /* it is open */
	must(tern_segment_put(t, segment + me * sizeof found, found, mine * sizeof *found));
	must(tern_request(t, 0, LESS, sizeof found - mine * sizeof *found));
	if (me == 0) {
		must(tern_wait(t, &complete, 1));
		for (uint32_t r = 0; r < n; r++)
			for (uint64_t i = 0; i < count_of(r); i++)
				wrong += collected[(size_t)r * MOST + i] != r * MOST + i;
		free(collected);
	}

	/* Both tables are ordinary memory; what is stored is counted at its rank. */
	tern_addr own, own_seen;
	tern_op local = TERN_OP, op = TERN_OP;
	must(tern_register(t, table, sizeof table, &own));
	must(tern_register(t, seen, sizeof seen, &own_seen));
	must(tern_team_allgather(all, &own, where, sizeof own));
	for (uint32_t r = 0; r < n; r++)
		must(tern_store(t, where[r] + me * sizeof mine, &mine, sizeof mine));
	must(tern_store_sync_all(t));
	for (uint32_t r = 0; r < n; r++)
		wrong += table[r] != count_of(r);
	must(tern_team_allgather(all, &own_seen, where, sizeof own));
	for (uint32_t r = 0; r < n; r++)
		must(tern_put_local_start(t, where[r] + me * sizeof one, &one, sizeof one, &local,
					  &op));
	must(tern_flush(t)); /* all of them are there, */
	must(tern_barrier(t));
	for (uint32_t r = 0; r < n; r++)
		wrong += seen[r] != 1;
	must(tern_unregister(t, own_seen));
	must(tern_unregister(t, own));
	printf("rank %u: %u found, %u wrong\n", me, (unsigned)mine, (unsigned)wrong);
	must(tern_team_free(all));
	must(tern_close(t));
	return wrong != 0;
}
