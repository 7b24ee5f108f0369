/* SPDX-License-Identifier: BSD-3-Clause */
/* The pulse of a rank: what it shows of itself, for whoever looks from outside. */
#include "job/stats.h"

#include <string.h>

enum { READS = 100 }; /* of a pulse that is being written, before it is given up */

const char *const pulse_names[PULSE_COUNTS] = {
	[PULSE_WAITS] = "waits",
	[PULSE_YIELDS] = "yields",
	[PULSE_NAPS] = "naps",
	[PULSE_SLEEPS] = "sleeps",
	[PULSE_SLEPT] = "slept_ns",
	[PULSE_BELLS] = "bells",
	[PULSE_KNOCKS] = "knocks",
	[PULSE_ROOM_STALLS] = "room_stalls",
	[PULSE_ROOM_TICKS] = "room_ns",
	[PULSE_BLOCK_STALLS] = "block_stalls",
	[PULSE_BLOCK_TICKS] = "block_ns",
	[PULSE_GATES] = "gates",
	[PULSE_INTERRUPTS] = "interrupts",
	[PULSE_CLAIMS] = "claims",
	[PULSE_DEFERRED] = "deferred_most",
	[PULSE_PACKETS_SENT] = "packets_sent",
	[PULSE_PACKETS_RECEIVED] = "packets_received",
	[PULSE_PACKETS_AGAIN] = "packets_again",
	[PULSE_PACKETS_DOUBLED] = "packets_doubled",
	[PULSE_PACKETS_EARLY] = "packets_early",
	[PULSE_PACKETS_REFUSED] = "packets_refused",
	[PULSE_PACKETS_MALFORMED] = "packets_malformed",
	[PULSE_PACKETS_FOREIGN] = "packets_foreign",
	[PULSE_PACKETS_OLD] = "packets_old",
	[PULSE_PACKETS_FORGED] = "packets_forged",
};

static void pulse_version_raise(struct pulse *p)
{
	uint32_t version = atomic_load_explicit(&p->version, memory_order_relaxed);
	/*
	 * pulse.R4, release; acquired in pulse_read(): what lies between two versions is read
	 * whole, or again.
	 */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&p->version, version + 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

void pulse_wait(struct pulse *p, const char *text, uint32_t whom, const uint64_t *awaited,
		uint64_t since, bool asleep)
{
	uint64_t word[PULSE_TEXT / 8] = { 0 };
	memcpy(word, text, strnlen(text, PULSE_TEXT - 1));
	pulse_version_raise(p);
	for (int i = 0; i < PULSE_TEXT / 8; i++)
		stats_set(&p->text[i], word[i]);
	for (int i = 0; awaited && i < PULSE_SET; i++)
		stats_set(&p->awaited[i], awaited[i]);
	atomic_store_explicit(&p->many, awaited != NULL, memory_order_relaxed);
	atomic_store_explicit(&p->whom, whom, memory_order_relaxed);
	atomic_store_explicit(&p->asleep, asleep, memory_order_relaxed);
	stats_set(&p->since, since);
	pulse_version_raise(p);
}

void pulse_go(struct pulse *p)
{
	stats_set(&p->since, 0);
}

static void pulse_copy(const struct pulse *p, struct rank_wait *out)
{
	uint64_t word[PULSE_TEXT / 8];
	uint32_t whom = atomic_load_explicit(&p->whom, memory_order_relaxed);
	for (int i = 0; i < PULSE_TEXT / 8; i++)
		word[i] = stats_get(&p->text[i]);
	*out = (struct rank_wait){ .since = stats_get(&p->since),
				   .known = whom != 0,
				   .whom = whom - 1,
				   .asleep =
					   atomic_load_explicit(&p->asleep, memory_order_relaxed) };
	memcpy(out->text, word, PULSE_TEXT);
	bool many = atomic_load_explicit(&p->many, memory_order_relaxed);
	for (int i = 0; many && i < PULSE_SET; i++)
		out->awaited[i] = stats_get(&p->awaited[i]);
}

bool pulse_read(const struct pulse *p, struct rank_wait *out)
{
	for (int i = 0; i < READS; i++) {
		uint32_t version =
			atomic_load_explicit(&p->version, memory_order_acquire); /* pulse.R4 */
		pulse_copy(p, out);
		atomic_thread_fence(memory_order_acquire);
		if (version % 2 == 0 &&
		    version == atomic_load_explicit(&p->version, memory_order_relaxed))
			return out->since != 0;
	}
	return false;
}
