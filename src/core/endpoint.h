/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint: what the library keeps behind the head that programs see.
 *
 * What may be called where. The endpoint is in one of three places: in the
 * program, in the handler of a request, in the handler of a reply. `inlet` tells
 * which: it is the inlet whose message is being handled, or NULL. The head's
 * `reach` is 0 whenever a request must not simply be sent (in a handler,
 * before a thread has the endpoint, or while sends are traced), so the inline path needs one
 * comparison for the rank and for the rule.
 */
#ifndef TERN_CORE_ENDPOINT_H
#define TERN_CORE_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <tern/tern.h>

#include "base/error.h"
#include "base/world.h"
#include "job/job.h"
#include "net/net.h"

enum { NETS_MAX = 3, LAYERS_MAX = 8 };

struct layer;

struct deferred {
	void (*fn)(tern *t, void *arg);
	void *arg;
};

/* The endpoints that were opened together. Freed when all of them are closed. */
struct group {
	_Atomic uint32_t open; /* members not closed yet */
	uint32_t size;
	bool made_job; /* here, and not by a launcher */
	struct job job;
	struct group *next;      /* of the thread that opened it */
	struct group *next_open; /* of the process; see fork.c */
	struct endpoint *member[];
};

struct endpoint {
	tern *t;
	struct tern_inlet *inlet;  /* whose message is being handled */
	struct block *block;       /* the payload being handled, if it has one */
	struct block *reply_claim; /* a fresh block, composed for the request being handled */
	size_t reply_len;
	const char
		*reply_cursor; /* which request that is: where its inlet stood, and in which leaf */
	uint64_t reply_leaf;
	const char *kept_cursor; /* where the inlet stood, and in which leaf, at the last keep */
	uint64_t kept_leaf;
	bool block_kept; /* the payload will not be given back when its handler returns */
	bool used;       /* a message was sent or handled: no handler may be added */
	bool deferring;
	bool turn;    /* of work that was handed over, in which nothing waits; see async/queue.c */
	bool barrier; /* in one */
	bool quiescing; /* at the end of a collective call: what is deferred waits; see quiesce.h */
	uint32_t inner; /* turns of layers under way */
	bool threaded;  /* messages may start light threads here */
	uint32_t threads; /* light threads that run here (src/spawn) */
	/*
	 * Set: the kernel thread that has it is to call it when it next waits. By the
	 * owner.
	 */
	void (*_Atomic wanted)(struct endpoint *e);
	int trouble;     /* what the next poll returns: something bad has arrived */
	uint32_t work;   /* layers that want to be called by polls, a bit each */
	uint64_t served; /* messages handled */
	uint32_t vain;   /* looks at inlets where nothing was */

	struct stats *stats;  /* NULL in a rank that does not count; see stats.h */
	struct pulse *pulse;  /* what the rank shows of itself in any case */
	uint64_t stats_print; /* TERN_STATS */

	struct site site;
	struct tern_lane refuse; /* the lane for answers where none is allowed */
	struct net *net[NETS_MAX];
	unsigned nets;
	const struct world *world;
	uint32_t spin; /* looks before a wait yields */
	uint64_t grace_ns;
	uint64_t stuck_ns; /* after which a wait says what is under way; 0: never */

	struct group *group;
	_Atomic uintptr_t attached; /* the thread that has it; see attach.c */
	_Atomic bool closed;
	pid_t forked; /* not 0: this process, which is a child of the endpoint's; see fork.h */
	const struct layer *const *layers;    /* the table of them; see layer.h */
	void *layer[LAYERS_MAX];              /* and the state of each */
	const char *name[TERN_HANDLER_SLOTS]; /* of handlers; see label.h */
	struct watchdog *watchdog;            /* NULL unless TERN_WATCHDOG is set; see watchdog.h */
	struct trace *trace;                  /* NULL unless TERN_TRACE is set; see trace.h */

	/* Who may touch all this, and who delivers; see scope.h. */
	_Atomic uint64_t *guard; /* in the pulse */
	enum tern_delivery delivery;
	bool guarded;     /* calls must open scopes */
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

	struct deferred deferred[TERN_DEFER_MAX + 1]; /* one place is lost.c's */
	uint32_t deferred_first, deferred_count;
	tern_lost_handler *lost_fn; /* tern_on_lost() */
	void *lost_arg;
	bool lost_deferred; /* telling of those that are not told */

	struct error_kept
		trouble_said; /* the sentence of `trouble`, which another thread may have found */

	struct tern_msg *kept; /* TERN_KEEP_MAX lines, allocated with the first */
	uint16_t kept_free[TERN_KEEP_MAX];
	uint32_t kept_left;
};

/* cost: protection control */
static inline bool in_handler(const struct endpoint *e)
{
	return e->inlet != NULL;
}

/* Closes nothing: all its endpoints are closed already. */
void endpoint_free(struct endpoint *e); /* may be NULL */
void group_free(struct group *g);

/* -- rules.c: each returns 0, or a code with a sentence that names rule, handler and rank -- */
int rules_send(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len);
int rules_reply(struct endpoint *e, const tern_msg *m, unsigned id, unsigned n, size_t len);
int rules_destination(struct endpoint *e, uint32_t dst);
int rules_handling(struct endpoint *e, const tern_msg *m, const char *what);
int rules_program(struct endpoint *e, const char *what); /* attaches on first use */
/* The same of what a deferred function may not call either. */
int rules_outermost(struct endpoint *e, const char *what);
int rules_wait(struct endpoint *e, const char *what);
int rules_forked(const struct endpoint *e);              /* in a child of the endpoint's process */
const tern_msg *rules_handled(const struct endpoint *e); /* the message whose handler runs */
unsigned rules_handler(const struct endpoint *e);        /* and the number of that */

/* -- attach.c -- */
void attach_first(struct endpoint *e);
bool attach_is_mine(const struct endpoint *e);
bool attach_has_thread(const struct endpoint *e);
uintptr_t attach_token(void);                  /* names the calling thread */
bool attach_is_lent(const struct endpoint *e); /* to a thread that waits in another one */
bool attach_is_own(const struct endpoint *e);  /* the caller's, which has not borrowed it and is not
						  its progress thread */
bool attach_is_alone(const struct endpoint *e); /* the caller has no other, nor may borrow one */
void attach_opened(struct group *g);
void attach_disown(struct endpoint *e); /* no thread has it, nor will */
void attach_closed(void);
/* The sum of fn over the endpoints but `e` that this thread serves while it waits in `e`. */
unsigned attach_each(struct endpoint *e, unsigned (*fn)(struct endpoint *sibling, void *arg),
		     void *arg);

/* -- poll.c -- */
enum { KINDS_REQUESTS = 1 << TERN_REQUEST, KINDS_REPLIES = 1 << TERN_REPLY, KINDS_BOTH = 6 };
unsigned poll_inlet(struct endpoint *e, struct tern_inlet *in);
unsigned poll_once(struct endpoint *e, unsigned kinds);
/* poll_mark() notes what lies in the inlets; poll_due() handles that much of each and no more. */
void poll_mark(struct endpoint *e);
bool poll_is_due(const struct endpoint *e);
unsigned poll_due(struct endpoint *e);
void poll_networks(struct endpoint *e); /* whatever they have to do; no handler runs */
uint32_t poll_left(struct endpoint *e); /* ranks that have left */
void poll_lost(struct endpoint *e);     /* stops sending to those */
void poll_trouble(struct endpoint *e,
		  int code); /* the next poll returns it, with the sentence that was set last */

void poll_defer(struct endpoint *e, void (*fn)(tern *t, void *arg),
		void *arg); /* there is a place */

/* -- lost.c -- */
void lost_found(struct endpoint *e); /* another rank is lost */

/* -- payload.c -- */
void payload_forget_reply(
	struct endpoint *e); /* an uncommitted reply claim, when its handler is over */

#endif

/* cost: base control */
