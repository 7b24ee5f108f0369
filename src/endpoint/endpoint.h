/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint: what the library keeps behind the head that programs see.
 *
 * What may be called where. The endpoint is in one of three places: in the program, in the handler
 * of a request, in the handler of a reply. `inlet` tells which: it is the inlet whose message is
 * being handled, or NULL. The head's `reach` is 0 whenever a request must not simply be sent (in a
 * handler, before a thread has the endpoint, or while sends are traced), so the inline path needs
 * one comparison for the rank and for the rule.
 */
#ifndef TERN_ENDPOINT_ENDPOINT_H
#define TERN_ENDPOINT_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <tern/tern.h>

#include "base/error.h"
#include "base/world.h"
#include "endpoint/parts.h"
#include "job/job.h"
#include "net/net.h"

enum { NETS_MAX = 3, LAYERS_MOST = 16 };

/* In endpoint.forked: there is none, because it is closed or was never opened. */
enum { NO_ENDPOINT = -1 };

/* Every layer (core/layer.h) in the order of their numbers; ends with a NULL name. */
struct layer_place {
	const char *name;
	uint16_t first_handler, handlers;
};
extern const struct layer_place layer_places[];

/* The endpoints that were opened together. Freed when all of them are closed. */
struct group {
	_Atomic uint32_t open; /* members not closed yet */
	uint32_t size;
	bool made_job; /* here, and not by a launcher */
	bool gathered; /* by tern_options.allgather: its descriptor is the group's */
	struct job job;
	struct group *next;               /* of the thread that opened it */
	struct group *next_open;          /* of the process; see core/delivery/attach.c */
	struct endpoint *_Atomic workers; /* of its members, open and parked */
	struct endpoint *member[];
};

struct endpoint {
	tern *t;
	struct tern_inlet *inlet; /* whose message is being handled */
	/* The item of a batch whose handler runs, in the handler of the batch; else NULL. */
	const tern_msg *item;
	unsigned item_layer; /* whose batch that is */
	struct block *block; /* the payload being handled, if it has one */
	bool block_kept;     /* it will not be given back when its handler returns */
	/* The message being handled, if its payload lies behind it in the ring. */
	const tern_msg *carrying;
	struct reply_claim reply;
	struct long_reply *longs; /* see core/payload/long.c */
	uint64_t long_pieces;     /* sent so far */
	bool turn;                /* of work that was handed over, in which nothing waits */
	struct barrier_call barrier;
	uint32_t inner;   /* turns of layers under way */
	bool threaded;    /* messages may start light threads here */
	uint32_t threads; /* light threads that run here */
	/* Set by the owner: the kernel thread that has it is to call it when it next waits. */
	void (*_Atomic wanted)(struct endpoint *e);
	union {
		struct {
			uint32_t work;   /* layers that want to be called by polls, a bit each */
			int16_t trouble; /* what the next poll returns: something bad has arrived */
			uint16_t deferred_count;
		};
		uint64_t after; /* all of it: not 0 when a poll has to see to one of them */
	};
	uint32_t vain; /* looks at inlets where nothing was */

	struct stats *stats;  /* NULL in a rank that does not count; see count.h */
	struct pulse *pulse;  /* what the rank shows of itself in any case */
	uint64_t stats_print; /* TERN_STATS */

	struct site site;
	struct tern_lane refuse; /* the lane for answers where none is allowed */
	struct net *net[NETS_MAX];
	unsigned nets;
	const struct world *world;
	struct wait_state waiting;

	/* Of a worker (src/open/worker.c): the endpoint of its rank; NULL: this is one. */
	struct endpoint *main;
	struct endpoint *next_worker; /* of the group */
	bool parked;                  /* closed, and ready to be opened again */
	uint32_t id;                  /* by which requests name it; kept while it is parked */
	/* [member]: replies to the worker that was closed may still come; then its number. */
	uint32_t *owes;
	uint32_t asked; /* members below this were asked for the last of them */
	/* Workers that are this endpoint itself, because its network has no lanes for them. */
	_Atomic uint32_t aliases;

	struct group *group;
	_Atomic uintptr_t attached; /* the thread that has it; see core/delivery/attach.c */
	_Atomic bool closed;
	/* Not 0: this process, which is a child of the endpoint's, or NO_ENDPOINT; every call is
	   refused. See core/delivery/attach.c and endpoint/misuse.c. */
	pid_t forked;
	void *layer[LAYERS_MOST]; /* the state of each; see core/layer.h */
	struct handlers handlers;
	struct watchdog *watchdog; /* NULL unless TERN_WATCHDOG is set; see watchdog.h */
	bool watched; /* by thread sanitizer, which this library was not compiled with; watched.h */
	struct trace *trace; /* NULL unless TERN_TRACE is set; see trace.h */

	struct ownership owner; /* who may touch all this, and who delivers */
	struct deferral defer;
	struct lost_told lost;
	/* The sentence of `trouble`, which another thread may have found. */
	struct error_kept trouble_said;

	struct keeps keeps;
};

/* -- The guard and the alert; docs/design.md, Delivery -- */

enum alert {
	ALERT_LIBRARY = 1,  /* holds shall come to the library in any case */
	ALERT_CLAIM = 2,    /* the progress thread is taking ownership, or has it */
	ALERT_PENDING = 4,  /* something may have arrived: whoever leaves looks */
	ALERT_ASLEEP = 8,   /* the progress thread sleeps, and the bell is armed for it */
	ALERT_SLEEPER = 16, /* the program sleeps until CLAIM is gone */
	ALERT_REGAIN = 32, /* the progress thread has had ownership since the program last had it */
	ALERT_PAUSED = 64, /* the program keeps ownership until its next call; see scope_pause() */
	/* what whoever enters must see to */
	ALERT_ENTRY = ALERT_CLAIM | ALERT_ASLEEP | ALERT_REGAIN | ALERT_PAUSED,
};

enum { GUARD_INSIDE = 1, GUARD_MASK = 0xffff };
#define GUARD_ENTRY (INT64_C(1) << 32)
/* Counted in the upper bits of the holds. */
#define GUARD_LIBRARY_HOLD (TERN_GUARD_HOLD * (PULSE_HOLDS_MOST + 1))

/*
 * The half that says whether the program has ownership. guard.R5, acquire; released in
 * tern_guard_add_().
 */
static inline uint32_t guard_busy(const struct endpoint *e)
{
	return (uint32_t)atomic_load_explicit(e->owner.guard, memory_order_acquire);
}

/* How often the program came in; wraps. */
static inline uint32_t guard_entries(const struct endpoint *e)
{
	return (uint32_t)(atomic_load_explicit(e->owner.guard, memory_order_relaxed) >> 32);
}

/* Holds in force, as far as the owner is concerned. */
static inline uint32_t held(const struct endpoint *e)
{
	if (TERN_UNLIKELY(e->owner.by_progress))
		return e->owner.progress_holds;
	return (uint32_t)(atomic_load_explicit(e->owner.guard, memory_order_relaxed) >> 16) &
	       GUARD_MASK;
}

/*
 * Sets and clears bits of the alert; returns what it was. Clearing releases what was done before
 * (alert.R6). The default order: this is the rare side, and the instruction is locked in any case.
 * It does not order the alert against the guard; ownership_claim() has a barrier for that.
 */
static inline uint32_t alert_raise(struct endpoint *e, uint32_t bits)
{
	return atomic_fetch_or(&e->t->alert, bits);
}

static inline uint32_t alert_drop(struct endpoint *e, uint32_t bits)
{
	return atomic_fetch_and(&e->t->alert, ~bits);
}

/* Messages that it has handled. */
static inline uint64_t endpoint_served(const struct endpoint *e)
{
	return stats_get(&e->pulse->served);
}

static inline bool in_handler(const struct endpoint *e)
{
	return e->inlet != NULL;
}

#endif
