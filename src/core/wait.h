/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting without burning the machine. A wait looks, then yields the core, then naps, then
 * sleeps until a bell rings: looking answers in nanoseconds, and sleeping costs nothing. The
 * longer a wait has lasted, the longer its next rest.
 */
#ifndef TERN_CORE_WAIT_H
#define TERN_CORE_WAIT_H

#include "core/scope.h"
#include "endpoint/record.h"

/* One wait: what it is for, what ends it, and how far its backoff is. */
struct wait {
	/*
	 * The condition, set by wait_until(). A wait that may sleep calls it again before the
	 * sleep, also for other light threads: unless the wait is bounded, it has no effects.
	 */
	bool (*over)(struct endpoint *e, void *arg);
	void *arg;
	bool bounded; /* no bell rings for what is waited for: nap, but do not sleep */
	/*
	 * A bell may ring for it, or not, so that no sleep is longer than this; and none comes
	 * after naps, from which a bell does not wake. 0: every sleep ends with a bell.
	 */
	uint64_t rest_ns;
	/*
	 * When it is over it handles no more messages that a layer has to keep because nobody waits
	 * for them (endpoint.unmatched): in the ring they cost nothing.
	 */
	bool recv_only;
	/*
	 * Where what is waited for comes, if `over` takes it from there by itself (layer_is());
	 * else NULL. The wait is bounded, or takes it only in a step.
	 */
	struct tern_inlet *takes;
	uint64_t limit, until; /* of wait_until_limit(): ns, and when that is over; 0: none */

	/* Why the wait may fail, asked before each step; both may be NULL. */
	const char *rule; /* the call, as rules_wait() names it when it may not wait (any more) */
	int (*stop)(struct endpoint *e, struct wait *w); /* nonzero: the code that ends the wait */

	/* In words, as in "tern_recv 0x7 from rank 2" and "a request to rank 3: ring full". */
	const char *call, *way, *lack; /* way: "from", "to", or NULL if no rank is meant */
	uint32_t whom;                 /* a rank plus 1; 0: any, or not known */
	bool has_id;
	uint64_t id;
	/* Of one for several ranks: sets their bits in `set`, and may set `lack`; may be NULL. */
	void (*awaits)(struct endpoint *e, struct wait *w, uint64_t *set);
	enum wait_what what; /* for a trace */

	/* The backoff. */
	bool begun;      /* as far as a trace knows */
	bool told;       /* that it takes long */
	bool passed;     /* the core, to another light thread, at least once */
	uint32_t busy;   /* steps that handled something */
	uint32_t linger; /* pauses before the next look */
	uint32_t run;    /* looks in a row that found something at once in one inlet, */
	const struct tern_inlet *from; /* which is this */
	uint32_t looks;
	uint64_t since; /* when the looking ended; 0 before */
	uint64_t quiet; /* when something last arrived, as far as we know; 0 before that is asked */
	uint64_t served; /* messages, as of then */
	/* Of wait_stalled(): when the count last changed, and the count. */
	uint64_t moved_at, moved;
};

/*
 * Light threads that share this kernel thread. After each step a wait gives the core to the next of
 * them, and looks again at what it waits for when its own thread runs again: so whatever waits in
 * the library can be waited for by a thread, and neither knows of the other.
 */
struct scheduler {
	/*
	 * Whether there is time to yield, nap or sleep: nobody has found anything to do in a whole
	 * round.
	 */
	bool (*idle)(struct wait *w);
	/* Another thread waits for what rings no bell. */
	bool (*bounded)(void);
	/* The longest sleep that all bear, `ns` or less. */
	uint64_t (*rest)(uint64_t ns);
	/* Another thread's wait is over. */
	bool (*over)(void);
	/*
	 * `w` is what the caller waits for, NULL if it does not; `handled` is what its step has
	 * done.
	 */
	void (*pass)(struct endpoint *e, struct wait *w, unsigned handled);
};

/* Of this kernel thread; NULL while there is nobody to give the core to. */
extern _Thread_local const struct scheduler *wait_scheduler
	__attribute__((tls_model("initial-exec")));

/* Calls what the endpoint's own kernel thread was wanted for, if it was. */
void wait_wanted(struct endpoint *e);

/* A wait in the program's call of that name. */
#define WAIT_IN(name) ((struct wait){ .call = (name), .rule = name "()" })

/*
 * Waits until `over(e, arg)` and returns 0; or the code of `w->rule` or `w->stop`. The condition
 * is asked first, so a wait that is over never fails.
 */
int wait_until(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
	       struct wait *w);

/*
 * The same, and -ETIMEDOUT with a sentence after `ns`. The last step is taken when the limit has
 * passed: with 0 ns it is the only one, and serves what has arrived.
 */
#define WAIT_FOREVER UINT64_MAX /* no limit */
int wait_until_limit(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		     struct wait *w, uint64_t ns);

/*
 * The same without a way out, for what must not go on after its caller has returned. The caller has
 * asked rules_wait() before; holds that handlers leave meanwhile begin when this returns. `stop`
 * is asked, and cannot stop it.
 */
void wait_through(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		  struct wait *w);

/* One step: serves what has arrived here and at the thread's other endpoints, or rests a little. */
void wait_step(struct endpoint *e, struct wait *w);

/*
 * -- lost.c: reasons to stop. This one: -EOWNERDEAD, or -ESHUTDOWN, when a rank has left, is not
 * forgiven, and nothing came for the grace time.
 */
int wait_blame(struct endpoint *e, struct wait *w);

/* For waits that need the rank `whom`: why it cannot be reached any more. */
int wait_unreachable(struct endpoint *e, struct wait *w);

/* -ETIMEDOUT when the count `moved` has not changed for the grace time. */
int wait_stalled(struct endpoint *e, struct wait *w, uint64_t moved);

/* -- rest.c: yields, naps and sleeps -- */
/* Yields the core, and true. False, and nothing: that has taken long lately. */
bool wait_yield(struct endpoint *e);
/* After a step that found nothing: yields, naps or sleeps, the longer the wait lasts. */
void wait_idle(struct endpoint *e, struct wait *w);
/* False if it cannot be slept on: something is there. */
bool wait_arm(struct endpoint *e, struct sleep *s);

/* -- sibling.c: the endpoints but `e` that this thread serves while it waits in `e` -- */
unsigned siblings_serve(struct endpoint *e);            /* how many messages it has handled */
bool siblings_arm(struct endpoint *e, struct sleep *s); /* as wait_arm() */
void siblings_disarm(struct endpoint *e);

/* -- stuck.c: a wait in words -- */
/* "tern_recv 0x7 from rank 2": the call, and the rank if one is meant. */
void wait_words(const struct endpoint *e, const struct wait *w, char *text, size_t room);
uint32_t wait_rank(const struct endpoint *e, const struct wait *w); /* whom, plus 1; or 0 */
/*
 * Once in a wait, when it has lasted TERN_STUCK: says on standard error in which call the rank
 * waits, for whom, and what is under way. `ns`: how long it has lasted.
 */
void stuck_report(struct endpoint *e, struct wait *w, uint64_t ns);

#endif
