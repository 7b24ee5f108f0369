/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the core, and the layers on it, call of each other. */
#ifndef TERN_CORE_CORE_H
#define TERN_CORE_CORE_H

#include "endpoint/misuse.h"

/* -- rules.c: each returns 0, or a code with a sentence that names rule, handler and rank -- */
int rules_send(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len);
int rules_reply_to(struct endpoint *e, uint32_t dst, unsigned id, unsigned n);
int rules_post(struct endpoint *e, uint32_t dst, unsigned id, unsigned n); /* in handlers, too */
int rules_reply(struct endpoint *e, const tern_msg *m, unsigned id, unsigned n, size_t len);
int rules_destination(struct endpoint *e, uint32_t dst);
int rules_target(struct endpoint *e, uint32_t dst);
int rules_handling(struct endpoint *e, const tern_msg *m, const char *what);
int rules_program(struct endpoint *e, const char *what); /* attaches on first use */
/* The same of what a deferred function may not call either. */
int rules_outermost(struct endpoint *e, const char *what);
int rules_wait(struct endpoint *e, const char *what);
/* -ENOTSUP at a worker; rules_forked() too. The second form: and rules_wait(). */
int rules_rank(struct endpoint *e, const char *what);
static inline int rules_rank_waits(struct endpoint *e, const char *what)
{
	int rc = rules_rank(e, what);
	return rc ? rc : rules_wait(e, what);
}
/*
 * Numbers that programs give to what they register, `most` of them: `what` is "a procedure", and
 * the second form is for registering it.
 */
int rules_number(const char *what, unsigned id, unsigned most);
int rules_function(const struct endpoint *e, const char *what, unsigned id, unsigned most,
		   bool has_function);
/* In a child of the endpoint's process; and where there is no endpoint, see endpoint/misuse.h. */
int rules_forked(const struct endpoint *e);
const tern_msg *rules_handled(const struct endpoint *e); /* the message whose handler runs */
unsigned rules_handler(const struct endpoint *e);        /* and the number of that */

/* -- attach.c: which process, and which of its threads, has an endpoint -- */
void attach_first(struct endpoint *e);
bool attach_is_mine(const struct endpoint *e);
bool attach_has_thread(const struct endpoint *e);
uintptr_t attach_token(void);                  /* names the calling thread */
bool attach_is_lent(const struct endpoint *e); /* to a thread that waits in another one */
/* The caller's, which has not borrowed it and is not its progress thread. */
bool attach_is_own(const struct endpoint *e);
bool attach_is_alone(const struct endpoint *e); /* the caller has no other, nor may borrow one */
void attach_opened(struct group *g);
/* Nobody has the endpoint any more: the next thread to use it does. */
void attach_release(struct endpoint *e);
/*
 * Around a rest of a wait, if true: meanwhile workers of the rank may serve it, and the caller
 * touches nothing of it. attach_rested() takes it back.
 */
bool attach_rests(struct endpoint *e);
void attach_rested(struct endpoint *e);
/*
 * In a wait of a worker: calls `fn` with the endpoint of its rank if that rests; its result or 0.
 */
unsigned attach_main(const struct endpoint *worker, unsigned (*fn)(struct endpoint *main));
/* Workers of a rank: a new one is listed; one that is parked is taken; how many are not. */
void attach_worker(struct endpoint *worker);
struct endpoint *attach_parked(struct endpoint *main, struct endpoint *after);
void attach_park(struct endpoint *worker);
uint32_t attach_workers(struct endpoint *main);
/* Closes nothing: all its endpoints are closed already. */
void group_free(struct group *g);
void endpoint_free(struct endpoint *e); /* may be NULL */
void attach_closed(void);
/* The sum of fn over the endpoints but `e` that this thread serves while it waits in `e`. */
unsigned attach_each(struct endpoint *e, unsigned (*fn)(struct endpoint *sibling, void *arg),
		     void *arg);

/* -- poll.c: taking messages in -- */
enum {
	KINDS_REQUESTS = 1 << TERN_KIND_REQUEST,
	KINDS_REPLIES = 1 << TERN_KIND_REPLY,
	KINDS_BOTH = 6
};
unsigned poll_inlet(struct endpoint *e, struct tern_inlet *in);
unsigned poll_once(struct endpoint *e, unsigned kinds);
/* A poll of the program's, with all the checks; `what` is for a sentence. */
int poll_kinds(tern *t, unsigned kinds, const char *what);
/* What follows when a send's look has handled so many messages. */
void poll_passed(struct endpoint *e, unsigned handled);
/* The end of one that has been round and handled so many messages: what it returns. */
int poll_finish(struct endpoint *e, unsigned handled);
/* Handles what lies in an inlet, until it has had its turn; how many messages. */
unsigned inlet_drain(struct endpoint *e, struct tern_inlet *in);
/*
 * Handles the message that comes next there, of which the endpoint has been told, and nothing else:
 * 1; 0 if there is none, or its reply has no room.
 */
unsigned inlet_handle(struct endpoint *e, struct tern_inlet *in);
/* poll_mark() notes what lies in the inlets; poll_is_due(): some of that has not been handled. */
void poll_mark(struct endpoint *e);
bool poll_is_due(const struct endpoint *e);
void poll_networks(struct endpoint *e); /* whatever they have to do; no handler runs */
/* The next poll returns the code, with the sentence that was set last. */
void poll_trouble(struct endpoint *e, int code);
void poll_trouble_warn(struct endpoint *e, int code); /* the same, and warns at once */
/*
 * Stands for every handler that is not registered: the message is dropped, and the next poll
 * returns -ENXIO.
 */
void handler_unknown(tern *t, const tern_msg *m);

/* -- served.c: memory messages, while the program computes -- */
/*
 * Handles those that came over the network, and leaves all others where they lie: how many. `look`:
 * what has arrived there is taken in first. By the progress thread, as the owner.
 */
unsigned served_poll(struct endpoint *e, bool look);

/* -- defer.c -- */
/* Calls `fn` after the handlers of a poll; there must be a place. */
void defer_add(struct endpoint *e, void (*fn)(tern *t, void *arg), void *arg);
void defer_run(struct endpoint *e); /* by a poll: calls them, unless it is not the time for it */

/* -- lost.c: ranks that have left -- */
uint32_t lost_count(struct endpoint *e);
void lost_find(struct endpoint *e); /* stops sending to those */
/* Layers hear of the rank when what it had sent is handled, which lost_drain() finds out. */
void lost_drain_begin(struct endpoint *e, uint32_t rank);
unsigned lost_drain(struct endpoint *e); /* as progress in struct layer */
static inline void lost_look(struct endpoint *e)
{
	if (lost_count(e))
		lost_find(e);
}

/* -- end.c: the program's last function when its process is ended from outside -- */
extern _Atomic int end_raised;
void end_look(struct endpoint *e);           /* the signal has come: defers the function */
bool end_deferred(const struct endpoint *e); /* and it has not been called */
void end_close(struct endpoint *e);

/* -- payload.c: an uncommitted reply claim is forgotten when its handler is over -- */
void payload_drop_reply(struct endpoint *e);
static inline void payload_forget_reply(struct endpoint *e)
{
	if (TERN_UNLIKELY(e->reply.block))
		payload_drop_reply(e);
}

/*
 * In a handler: gives the payload back before the handler returns; the message has none any more.
 */
void payload_return(struct endpoint *e);

/* Drops every message that is kept. */
void keep_drop_all(struct endpoint *e);
/*
 * In the handler of one of Tern's own messages: it becomes one of the program's, whose handler is
 * called. It has as many lines as that needs. `data` is its payload, or NULL.
 */
void message_become(tern *t, const tern_msg *piece, unsigned id, unsigned n, const uint64_t *words,
		    const char *data, size_t len);

/* -- target.c: requests to ranks, or to workers by their ids; as their counterparts in send.c -- */
uint32_t target_member(const struct endpoint *e, uint32_t dst); /* the rank, or the worker's seat */
int target_reachable(struct endpoint *e, uint32_t dst);
int target_room(struct endpoint *e, uint32_t dst);
int target_request(struct endpoint *e, uint32_t dst, const struct parcel *p);

/* -- send.c -- */
/* The i-th word, or 0 where there is none; more than fit are refused with their number. */
static inline uint64_t word_at(const uint64_t *words, unsigned n, unsigned i)
{
	return i < n ? words[i] : 0;
}
#define WORDS_AT(words, n)                                                                      \
	word_at(words, n, 0), word_at(words, n, 1), word_at(words, n, 2), word_at(words, n, 3), \
		word_at(words, n, 4), word_at(words, n, 5)

/* Into a lane that has room; inside a scope, or in a handler. */
void send_put(struct endpoint *e, struct tern_lane *lane, const struct parcel *p);
/* 0 if `dst` can be sent to, after connecting if need be; else why not. */
int send_reachable(struct endpoint *e, uint32_t dst);

/*
 * Connects if need be, and serves what arrives until a request to `dst` has room; else why it
 * cannot have. `behind`: bytes of payload behind the request, in a ring that takes them.
 */
enum { NOTHING_BEHIND = TERN_CARRY_MAX + 1 };
int send_room(struct endpoint *e, uint32_t dst, size_t behind);

/* Sends a request whose rules are checked; waits for room. */
int send_request(struct endpoint *e, uint32_t dst, const struct parcel *p);

/* Sends the reply to the current request, whose rules are checked; never waits. */
int send_reply(struct endpoint *e, const struct parcel *p);

/* Whether `dst` has sent a request to here, so that it looks for replies; asked in the program. */
bool send_reply_expected(struct endpoint *e, uint32_t dst);

/* Whether a message of the reply class to `dst`, which has sent a request here, has room. */
bool send_reply_ready(struct endpoint *e, uint32_t dst);

/*
 * Sends one, whose rules are checked. Never waits: -EAGAIN without a sentence if there is no room.
 */
int send_reply_to(struct endpoint *e, uint32_t dst, const struct parcel *p);

/*
 * -- attach.c: an endpoint that several threads use, one call at a time. The lock is taken by the
 * outermost call or hold of a thread and given back by its end. --
 */
int share_open(struct endpoint *e);
void share_close(struct endpoint *e); /* gives the lock back; a sibling's thread may still try it */
void share_free(struct endpoint *e);
void share_lock(struct endpoint *e);
bool share_try(struct endpoint *e); /* false if another thread has it */
void share_unlock(struct endpoint *e);
bool share_is_mine(const struct endpoint *e);

/* Between two steps of a wait: lets other threads in, for `ns` if that is not 0. */
void share_breathe(struct endpoint *e, uint64_t ns);

/* -- barrier.c -- */
/* Ends the barrier of tern_barrier_start() if everybody has come: how many it has ended. */
unsigned barrier_progress(struct endpoint *e);
/* -EBUSY while the rank is in a barrier: what a collective call asks before it changes anything. */
int barrier_busy(const struct endpoint *e, const char *call);

/* -- barrier.c: the end of a collective call that hands out what handlers may need -- */
/* After every rank has entered. */
void quiesce_begin(struct endpoint *e);
/* After every rank has begun; `rc` is what has gone wrong so far, and is returned then, at once. */
int quiesce_end(struct endpoint *e, int rc);

/* -- rest.c: what every sleep of an endpoint does -- */
/* False if something is there, or the machine has no such sleep: some networks may be armed. */
bool endpoint_arm(struct endpoint *e, struct sleep *s);
void endpoint_disarm(struct endpoint *e);

/* -- stats.c -- */
int stats_read(uint64_t *print);      /* TERN_STATS; -EINVAL with a sentence */
void pulse_open(struct endpoint *e);  /* what others see of it, rank or worker */
int stats_open(struct endpoint *e);   /* begins to count, if TERN_STATS says so: a rank alone */
void stats_close(struct endpoint *e); /* prints, if TERN_STATS says so */

#endif
