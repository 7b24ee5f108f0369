/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting without burning the machine: look, then yield the core, then nap, then
 * sleep until a bell rings. The first rungs answer in nanoseconds, the last costs
 * nothing; how long one stands on each grows with how long one has waited.
 */
#ifndef TERN_CORE_WAIT_H
#define TERN_CORE_WAIT_H

#include "core/door.h"
#include "core/record.h"

struct ladder {
	bool bounded; /* what is waited for rings no bell: naps, but no sleep */
	bool begun;   /* as far as a trace knows */
	enum wait_what what;
	uint32_t busy;   /* steps that handled something */
	uint32_t linger; /* pauses before the next look */
	uint32_t looks;
	uint64_t since;  /* when the looking ended; 0 before */
	bool told;       /* that it takes long */
	uint64_t quiet;  /* when something last arrived, as far as we know; 0 before that is asked */
	uint64_t served; /* messages, as of then */
	bool passed;     /* the core, to another light thread, at least once */
	bool (*over)(struct endpoint *e, void *arg); /* asked once more before a sleep */
	void *arg;

	/* What it is for, as in "tern_recv 0x7 from rank 2" and "a request to rank 3: ring full". */
	const char *call, *way, *lack; /* way: "from", "to", or NULL if no rank is meant */
	uint32_t whom;                 /* a rank plus 1; 0: any, or not known */
	bool has_id;
	uint64_t id;
};

/*
 * Light threads that share this kernel thread (src/spawn). After each step a wait gives the core to the
 * next of them, and looks again at what it waits for when its turn comes: so whatever waits in the
 * library can be waited for by a thread, and neither knows of the other.
 */
struct turns {
	/* Whether there is time to yield, nap or sleep: nobody has found anything to do in a whole round. */
	bool (*idle)(struct ladder *l);
	/* Another thread waits for what rings no bell. */
	bool (*bounded)(void);
	/* Another thread's wait is over. */
	bool (*over)(void);
	/* `l` is what the caller waits for, NULL if it does not; `handled` is what its step has done. */
	void (*pass)(struct endpoint *e, struct ladder *l, unsigned handled);
};

/* Of this kernel thread; NULL while there is nobody to give the core to. */
extern _Thread_local const struct turns *wait_turns __attribute__((tls_model("initial-exec")));

/* Calls what the endpoint's own kernel thread was wanted for, if it was. */
void wait_wanted(struct endpoint *e);

/* Serves what has arrived here and at the thread's other endpoints; if nothing has, waits a little. */
void wait_step(struct endpoint *e, struct ladder *l);

/*
 * The same in a call of the program's: -EDEADLK when a handler or a deferred function has left a hold, under which
 * nothing would ever come.
 */
int wait_on(struct endpoint *e, struct ladder *l, const char *what);

/*
 * A barrier in which no handler runs, and nothing that could call one. It needs no other rank to handle anything: ranks
 * that are past it may send here without end, and those that are not need no reply.
 */
int wait_silent_barrier(struct endpoint *e);

/* -EOWNERDEAD, or -ESHUTDOWN, when a rank has left, is not forgiven, and nothing came for the grace time. */
int wait_blame(struct endpoint *e, struct ladder *l);

#endif
