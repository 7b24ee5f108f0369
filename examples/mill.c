/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sacks of flour go round a ring of mills, and each mill adds its measure to every sack. A sack is
 * put on the next mill's platform together with a signal; that mill lifts it off and says so, with
 * a signal alone. When the sacks are home they are weighed, one at a time: there is one scale.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/lock.h>

struct sack {
	uint64_t owner, weight;
};

struct scale {
	uint64_t sacks, queued, all, heaviest; /* sacks, and those that had to wait; weights */
};

/* The same at every rank. */
struct mill {
	struct sack platform;
	uint64_t full, empty; /* sacks that have been put here, and that the next mill has taken */
	tern_lock lock;
	struct scale scale; /* at rank 0 */
};

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "mill: %s\n", tern_strerror(rc));
	exit(1);
}

/* Gives the sack to the next mill, and takes the one of the mill before. */
static struct sack pass(tern *t, struct mill *own, struct sack sack, uint64_t step)
{
	uint32_t n = tern_size(t), next = (tern_rank(t) + 1) % n,
		 before = (tern_rank(t) + n - 1) % n;
	must(tern_wait_word(t, &own->empty, TERN_WORD_GE, step)); /* there is room */
	must(tern_put_signal(t, tern_addr_at(t, next, &own->platform), &sack, sizeof sack,
			     &(tern_change){ .word = tern_addr_at(t, next, &own->full),
					     .what = TERN_AMO_ADD,
					     .value = 1 }));

	must(tern_wait_word(t, &own->full, TERN_WORD_GT, step));
	sack = own->platform;
	must(tern_put_signal(t, TERN_ADDR_NONE, NULL, 0,
			     &(tern_change){ .word = tern_addr_at(t, before, &own->empty),
					     .what = TERN_AMO_ADD,
					     .value = 1 }));
	return sack;
}

static void weigh(tern *t, struct mill *own, struct sack sack)
{
	struct scale scale;
	tern_addr there = tern_addr_at(t, 0, &own->scale);
	int rc = tern_lock_try(t, &own->lock), queued = rc == -EAGAIN;
	if (queued) /* somebody weighs */
		rc = tern_lock_take(t, &own->lock);
	must(rc);
	must(tern_get(t, &scale, there, sizeof scale));
	scale.sacks++;
	scale.queued += (unsigned)queued;
	scale.all += sack.weight;
	if (sack.weight > scale.heaviest)
		scale.heaviest = sack.weight;
	must(tern_put(t, there, &scale, sizeof scale));
	must(tern_lock_release(t, &own->lock));
}

int main(void)
{
	tern *t;
	void *p;
	must(tern_open(&t, NULL));
	must(tern_alloc_all(t, sizeof(struct mill), &p));
	struct mill *own = p;
	struct sack sack = { tern_rank(t), tern_rank(t) }; /* its owner has put something in */

	for (uint32_t step = 0; step < tern_size(t); step++) {
		sack.weight += tern_rank(t) + 1;
		sack = pass(t, own, sack, step);
	}
	if (sack.owner != tern_rank(t))
		printf("rank %u: the sack of rank %u came home\n", tern_rank(t),
		       (unsigned)sack.owner);
	weigh(t, own, sack);
	must(tern_barrier(t));
	if (tern_rank(t) == 0)
		printf("%u sacks, %u in all, %u in the heaviest\n", (unsigned)own->scale.sacks,
		       (unsigned)own->scale.all, (unsigned)own->scale.heaviest);
	if (tern_rank(t) == 0 && own->scale.queued)
		printf("%u had to wait\n", (unsigned)own->scale.queued);
	must(tern_close(t));
	return 0;
}
