/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks without a launcher: see pair.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "peer.h"

enum { CARD = 4096, SHARED_MOST = 256 << 20 };

static struct shared {
	_Alignas(64) _Atomic uint32_t came[2]; /* barriers that each rank has come to */
	double value[2];
	unsigned char card[2][CARD];
} * shared;

static int rank;
static pid_t parent, child;
static bool crowded; /* both ranks have one core */
static char *memory;
static size_t memory_used;

__attribute__((noreturn)) void pair_fail(const char *call, const char *why)
{
	fprintf(stderr, "compare: rank %d: %s: %s\n", rank, call, why);
	kill(rank ? parent : child, SIGTERM);
	exit(1);
}

void pair_idle(void)
{
	if (crowded)
		sched_yield();
}

void *pair_shared(size_t bytes)
{
	memory_used += (bytes + 63) / 64 * 64;
	if (memory_used > SHARED_MOST)
		pair_fail("pair_shared", "it has 256 MiB");
	return memory + memory_used - (bytes + 63) / 64 * 64;
}

static void *shared_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		perror("compare: mmap");
		exit(1);
	}
	return p;
}

/* A core for each rank, of those that this process may use. */
static void bind_core(void)
{
	cpu_set_t all, own;
	int skip = rank;
	sched_getaffinity(0, sizeof all, &all);
	crowded = CPU_COUNT(&all) < 2;
	for (int c = 0; c < CPU_SETSIZE && !crowded; c++)
		if (CPU_ISSET(c, &all) && skip-- == 0) {
			CPU_ZERO(&own);
			CPU_SET(c, &own);
			sched_setaffinity(0, sizeof own, &own);
		}
}

void peer_open(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	shared = shared_map(sizeof *shared);
	memory = shared_map(SHARED_MOST);
	parent = getpid();
	child = fork();
	if (child < 0) {
		perror("compare: fork");
		exit(1);
	}
	rank = child == 0;
	if (rank)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* for process_vm_readv() */
	bind_core();
	pair_open();
	peer_barrier();
}

/* Rank 0's status has to be 1 if rank 1's is. */
void peer_close(void)
{
	int status;
	peer_barrier();
	pair_close();
	if (rank)
		return;
	if (waitpid(child, &status, 0) < 0 || status)
		exit(1);
}

int peer_rank(void)
{
	return rank;
}

int peer_ranks(void)
{
	return 2;
}

void peer_barrier(void)
{
	uint32_t round = atomic_load_explicit(&shared->came[rank], memory_order_relaxed) + 1;
	/* Pairs with the acquire below at the other rank. */
	atomic_store_explicit(&shared->came[rank], round, memory_order_release);
	while ((int32_t)(atomic_load_explicit(&shared->came[!rank], memory_order_acquire) - round) <
	       0) {
		pair_progress();
		pair_idle();
	}
}

double peer_max(double value)
{
	shared->value[rank] = value;
	peer_barrier();
	double other = shared->value[!rank];
	peer_barrier(); /* before it is overwritten */
	return value > other ? value : other;
}

void pair_exchange(const void *mine, void *theirs, size_t len)
{
	if (len > CARD)
		pair_fail("pair_exchange", "more than 4 KiB");
	memcpy(shared->card[rank], mine, len);
	peer_barrier();
	memcpy(theirs, shared->card[!rank], len);
	peer_barrier();
}
