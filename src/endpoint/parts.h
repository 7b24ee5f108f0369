/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of an endpoint: each belongs to the file that its comment names. */
#ifndef TERN_ENDPOINT_PARTS_H
#define TERN_ENDPOINT_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tern/tern.h>

struct block;
struct interrupt;
struct progress;
struct share;
struct wait;

/* core/payload/claim.c: a reply's claim, a fresh block composed for the request being handled. */
struct reply_claim {
	struct block *block;
	size_t len;
	/* Which request that is: where its inlet stood, and in which leaf. */
	const char *cursor;
	uint64_t leaf;
};

/* core/payload/keep.c: messages beyond their handlers. */
struct kept;
struct keeps {
	struct kept *kept; /* TERN_KEEP_MAX of them, allocated with the first */
	uint16_t free[TERN_KEEP_MAX];
	uint32_t left;
	/* Where the inlet stood, and in which leaf, at the last keep. */
	const char *cursor;
	uint64_t leaf;
};

/* core/defer.c: functions that run after the handler. */
struct deferred {
	void (*fn)(tern *t, void *arg);
	void *arg;
};
struct deferral {
	bool running;
	/* One place each is core/lost.c's, core/wait/op.c's and core/end.c's. */
	struct deferred queue[TERN_DEFER_MAX + 3];
	uint32_t first;
	uint64_t thread; /* the light thread in which they run; 0: the program */
	uintptr_t by;    /* and the kernel thread: attach_token() */
	struct tern_op *ops_done, *ops_done_last; /* whose `done` is to be called */
};

/* core/lost.c: who is told of ranks that are lost. */
struct lost_told {
	tern_lost_handler *fn; /* tern_lost_on() */
	void *arg;
	bool deferred; /* telling of those that are not told */
};

/* core/wait/barrier.c: the barrier under way. */
struct barrier_call {
	bool inside;
	/* Of tern_barrier_start(): everybody has come, and what is due is being handled. */
	bool passed;
	uint64_t ticket;
	struct tern_op *op;
	bool quiescing; /* at the end of a collective call: what is deferred waits */
	/* With TERN_CHECK: see core/called.c. */
	const char *call; /* that barriers are a part of; NULL: they are a call of their own */
	uint64_t round;   /* barriers begun */
	struct called *called;
};

/* core/wait/wait.c, core/wait/rest.c */
struct wait_state {
	uint32_t spin;                /* looks before a wait yields */
	uint64_t crowded;             /* until when none does: other programs want the cores */
	uint32_t long_yields;         /* in a row */
	const struct wait *recv_only; /* leaves unmatched messages in the ring; else NULL */
	bool unmatched;               /* such a message has come */
	uint64_t grace_ns;
	uint64_t stuck_ns; /* after which a wait says what is under way; 0: never */
};

/* core/delivery: who may touch the endpoint, and who runs its handlers. */
struct ownership {
	_Atomic uint64_t *guard; /* in the pulse */
	enum tern_delivery delivery;
	bool guarded;     /* others may run handlers: calls must open scopes, and serve */
	bool serves;      /* the progress thread serves memory messages of the network alone */
	bool scoped;      /* one of the two: calls must open scopes */
	bool sliced;      /* because light threads take turns by the clock, too */
	bool fenced;      /* the machine has no membarrier: the program's side needs a fence */
	bool checked;     /* TERN_CHECK: notice a second thread */
	bool by_progress; /* the progress thread is the owner, */
	uint32_t progress_holds; /* and holds so many times itself */
	bool process_barrier;    /* membarrier among the threads of this process */
	bool entered; /* while its thread waits in another endpoint and touches this one */
	bool armed;   /* for interrupts: senders will call */
	int signal;   /* for interrupts; 0 if none is allotted */
	struct progress *progress; /* NULL unless a thread delivers */
	struct interrupt *interrupt;
	struct share *shared;     /* NULL unless several threads use it */
	_Atomic uint64_t scratch; /* what inline holds add to in a shared endpoint, to no effect */
};

/* Numbers of handlers behind the program's. */
enum { HANDLERS_OWN = TERN_HANDLER_SLOTS - TERN_HANDLER_MAX };

/* endpoint/handler.h, core/delivery/served.c */
struct handlers {
	tern_handler **meant; /* where the table has another function; else NULL */
	const char *name[TERN_HANDLER_SLOTS];
	void *arg[TERN_HANDLER_MAX]; /* of tern_on_with() */
	unsigned ranged; /* those that tern_on_range() has given out, from the last one down */
	/* Those of layers that may run while the program computes, a bit each. */
	uint64_t servable[HANDLERS_OWN / 64];
	unsigned serve_asks; /* the one of them that may only if */
	bool (*serve_may)(tern *t, const tern_msg *m);
};

#endif
