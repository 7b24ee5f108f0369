/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: a machine without processes, whose packets are sent at given times and noted. */
#ifndef TERN_TESTS_SIM_PLAY_H
#define TERN_TESTS_SIM_PLAY_H

#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "net/sim/machine/network.h"

enum { PLAY_NODES = 256, PLAY_PACKETS = 4096 };

static struct machine m;
static uint64_t came[PLAY_NODES][PLAY_PACKETS]; /* at each node, ps */
static unsigned count[PLAY_NODES];
static unsigned blocked;

static void play_note(struct machine *machine, uint32_t travel)
{
	uint32_t dst = machine->travel[travel].dst;
	if (count[dst] < PLAY_PACKETS)
		came[dst][count[dst]] = machine->shared->clock;
	count[dst]++;
	travel_free(machine, queue_take(machine, &machine->node[dst].inbox));
}

static void play_blocked(struct machine *machine)
{
	(void)machine;
	blocked++;
}

static inline void begin_with(const char *profile, uint32_t nodes)
{
	if (m.shared)
		munmap(m.shared, m.bytes);
	m = (struct machine){ .arrived = play_note, .blocked = play_blocked };
	REQUIRE(profile_load(&m.profile, profile) == 0);
	void *base = mmap(NULL, machine_bytes(&m.profile, nodes), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(base != MAP_FAILED);
	machine_lay(&m, base, nodes);
	machine_init(&m, nodes);
	memset(count, 0, sizeof count);
	blocked = 0;
}

static inline void send_at(uint64_t time, uint32_t src, uint32_t dst, uint32_t bytes)
{
	uint32_t i = travel_new(&m, bytes);
	REQUIRE(i != NOTHING);
	m.travel[i].src = src;
	m.travel[i].dst = dst;
	m.travel[i].size = bytes;
	m.node[dst].coming++;
	event_network(&m, time, EVENT_INJECT, i, 0);
}

static inline void play(void)
{
	while (machine_step(&m))
		;
}

#endif
