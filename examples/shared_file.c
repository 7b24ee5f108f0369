/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the program has: rank 0 maps a file and registers it with its descriptor. Ranks of
 * its machine get a pointer to it, and count in it by C11 atomics; others use the same address by
 * calls.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tern/coll.h>
#include <unistd.h>

enum { COUNTERS = 1024, BYTES = COUNTERS * 8, ROUNDS = 1000 };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "shared_file: %s\n", tern_strerror(rc));
	exit(1);
}

/* Any file that can be mapped will do: also one of memfd_create() or shm_open(). */
static uint64_t *table_open(tern *t, tern_addr *a)
{
	FILE *f = tmpfile();
	if (!f || ftruncate(fileno(f), BYTES) < 0)
		exit(1);
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (p == MAP_FAILED)
		exit(1);
	must(tern_register_fd(t, p, BYTES, fileno(f), 0, a));
	fclose(f); /* Tern has a descriptor of its own */
	return p;
}

static void count(tern *t, tern_addr table)
{
	_Atomic uint64_t *near;
	bool mapped = tern_addr_local(t, table, BYTES, (void **)&near) == 0;
	for (unsigned i = 0; i < ROUNDS; i++)
		if (mapped)
			atomic_fetch_add(&near[i % COUNTERS], 1);
		else
			must(tern_amo(t, table + 8 * (i % COUNTERS), TERN_AMO_ADD, 1,
				      (uint64_t *)NULL));
}

int main(void)
{
	tern *t;
	tern_team *all;
	tern_addr a;
	uint64_t *table = NULL, sum = 0;
	must(tern_open(&t, NULL));
	must(tern_team_all(t, &all));
	if (tern_rank(t) == 0)
		table = table_open(t, &a);
	must(tern_team_broadcast(all, 0, &a, sizeof a));
	count(t, a);
	must(tern_barrier(t));
	for (unsigned i = 0; table && i < COUNTERS; i++)
		sum += table[i];
	if (table) {
		printf("%u ranks have counted to %u\n", tern_size(t), (unsigned)sum);
		must(tern_unregister(t, a));
	}
	must(tern_team_free(all));
	bool wrong = table && sum != (uint64_t)ROUNDS * tern_size(t);
	must(tern_close(t));
	return wrong;
}
