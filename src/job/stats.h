/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank shows of itself, in the job's memory. Only that rank writes it, with plain
 * stores, so whoever maps the job can read it at any time and disturbs nobody.
 *
 * The pulse is always there: what is counted on slow paths, and what the rank waits for.
 * The statistics have memory only in ranks that count (TERN_STATS).
 */
#ifndef TERN_JOB_STATS_H
#define TERN_JOB_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tern/tern.h>

/* What slow paths count. The names of the tools are in stats.c, in the same order. */
enum pulse_count {
	PULSE_WAITS,  /* that outlasted looking */
	PULSE_YIELDS, /* of the core */
	PULSE_NAPS,
	PULSE_SLEEPS,
	PULSE_SLEPT,        /* ns */
	PULSE_BELLS,        /* answered: somebody had to knock here */
	PULSE_KNOCKS,       /* at others */
	PULSE_ROOM_STALLS,  /* requests that found their ring full */
	PULSE_ROOM_TICKS,   /* how long; 0 unless the rank counts */
	PULSE_BLOCK_STALLS, /* payloads that found no block */
	PULSE_BLOCK_TICKS,
	PULSE_GATES,      /* opened: requests that had waited for room for their reply */
	PULSE_INTERRUPTS, /* that delivered messages */
	PULSE_CLAIMS,     /* of ownership, by the progress thread */
	PULSE_DEFERRED,   /* the most functions that waited at once */
	/* On a network of packets: */
	PULSE_PACKETS_SENT,
	PULSE_PACKETS_RECEIVED, /* from ranks of the job */
	PULSE_PACKETS_AGAIN,    /* sent once more */
	PULSE_PACKETS_DOUBLED,  /* had come before, and were sent again for nothing */
	PULSE_PACKETS_EARLY,    /* kept until those before them had come */
	PULSE_PACKETS_REFUSED,  /* there was no room for what was in them */
	/* And dropped there, because they were */
	PULSE_PACKETS_MALFORMED, /* nothing that a rank writes, */
	PULSE_PACKETS_FOREIGN,   /* of nobody in this job, */
	PULSE_PACKETS_OLD,       /* of another session, or copies of what had come, */
	PULSE_PACKETS_FORGED     /* not written by the rank that they name, or changed on the way */
};
enum {
	PULSE_COUNTS = PULSE_PACKETS_FORGED + 1,
	PULSE_PACKETS = PULSE_PACKETS_SENT,              /* the first of those, */
	PULSE_PACKETS_DROPPED = PULSE_PACKETS_MALFORMED, /* and of those; both go on to the end */
	PULSE_TEXT = 72,
	PULSE_SET = TERN_RANKS_MAX / 64, /* words of a set of ranks */
	PULSE_HOLDS_MOST = 0x1fff        /* holds of the program's that the guard counts */
};

struct pulse {
	_Alignas(64) _Atomic uint64_t served; /* messages handled */
	_Atomic uint64_t guard;               /* see core/scope.h, and pulse_holds() */
	_Atomic uint32_t counting;            /* 1: the rank's statistics may be read */
	_Atomic uint64_t count[PULSE_COUNTS];
	/* What it waits for. `version` is odd while the rest is being written. */
	_Alignas(64) _Atomic uint32_t version;
	_Atomic uint32_t whom;  /* a rank plus 1; 0: nobody in particular */
	_Atomic uint64_t since; /* CLOCK_MONOTONIC in ns; 0: it does not wait */
	_Atomic uint32_t asleep;
	_Atomic uint32_t many;                 /* 1: `awaited` says whom, in bits */
	_Atomic uint64_t text[PULSE_TEXT / 8]; /* the call, in words; ends with 0 */
	_Atomic uint64_t awaited[PULSE_SET];
	/*
	 * Where, in the memory of its process, it says what it handles: `inlet` of its endpoint and
	 * `current` of its tern. 0: nowhere. For its launcher; see tools/run/overdue.h.
	 */
	_Atomic uint64_t inlet_at, current_at;
};

struct stats_handler {
	/* By the number of words, so that one count gives bytes too. */
	_Atomic uint64_t count[TERN_HEAD_WORDS + 1];
	_Atomic uint64_t payload;      /* bytes */
	_Atomic uint64_t timed, ticks; /* how many were timed, and how long those took */
	_Atomic uint64_t longest;
};

struct stats_peer {
	_Atomic uint64_t requests, replies; /* from it that were handled */
	_Atomic uint64_t bytes;
	_Atomic uint64_t most;        /* handled at a stretch: how long its queue was */
	_Atomic uint64_t requests_at; /* where the inlet stands: leaf << 32 | bytes into the leaf */
	_Atomic uint64_t unused_[3];
};

struct stats {
	_Atomic uint64_t begun_tick, begun_ns; /* both clocks when counting began */
	struct stats_handler handler[TERN_HANDLER_SLOTS];
	struct stats_peer peer[]; /* one a rank */
};

static inline uint64_t stats_get(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static inline void stats_set(_Atomic uint64_t *count, uint64_t value)
{
	atomic_store_explicit(count, value, memory_order_relaxed);
}

/* Not a read-modify-write: the rank that counts is the only one that writes. */
static inline void stats_add(_Atomic uint64_t *count, uint64_t n)
{
	stats_set(count, stats_get(count) + n);
}

/*
 * The same in one instruction, where compilers take three, for what every poll does. No other
 * thread is kept out, and none writes.
 */
static inline void stats_bump(_Atomic uint64_t *count, uint64_t n)
{
#if defined(__x86_64__) && !defined(TERN_WATCHED_)
	__asm__ volatile("addq %1, %0" : "+m"(*count) : "er"(n) : "cc");
#else
	stats_set(count, stats_get(count) + n);
#endif
}

static inline void stats_most(_Atomic uint64_t *count, uint64_t n)
{
	if (n > stats_get(count))
		stats_set(count, n);
}

/* Messages for a handler, and their bytes. */
static inline uint64_t stats_messages(const struct stats_handler *h)
{
	uint64_t sum = 0;
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++)
		sum += stats_get(&h->count[n]);
	return sum;
}

static inline uint64_t stats_message_bytes(const struct stats_handler *h)
{
	uint64_t sum = stats_get(&h->payload);
	for (unsigned n = 1; n <= TERN_WORDS_MAX; n++)
		sum += stats_get(&h->count[n]) * n * sizeof(uint64_t);
	return sum;
}

static inline size_t stats_bytes(uint32_t size)
{
	return sizeof(struct stats) + size * sizeof(struct stats_peer);
}

/* Holds of the program's that are in force; fewer than none, after a release too many, are none. */
static inline uint32_t pulse_holds(const struct pulse *p)
{
	uint32_t holds = (uint32_t)(stats_get(&p->guard) >> 16) & 0xffff;
	return holds > 0x7fff ? 0 : holds & PULSE_HOLDS_MOST;
}

/* What a rank waits for, read whole. False if it does not wait. */
struct rank_wait {
	uint64_t since;
	bool known; /* whom it waits for */
	uint32_t whom;
	bool asleep;
	char text[PULSE_TEXT + 1];
	uint64_t awaited[PULSE_SET]; /* ranks that it waits for, where it is for several */
};
bool pulse_read(const struct pulse *p, struct rank_wait *out);
/*
 * `whom` plus 1, or 0; `awaited` is a set of ranks, or NULL; `text` is cut where it is too long.
 */
void pulse_wait(struct pulse *p, const char *text, uint32_t whom, const uint64_t *awaited,
		uint64_t since, bool asleep);
void pulse_go(struct pulse *p); /* it does not wait any more */

extern const char *const pulse_names[PULSE_COUNTS];

#endif
