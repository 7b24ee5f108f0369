/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spawn layer's state in an endpoint. A thread is two messages: CREATE, which its creator
 * sends, and DONE, which its rank sends when it has ended.
 *
 * Nothing holds a ring up. A CREATE is taken off its ring at once and written into the inbox, which
 * has room for it: a creator has TERN_SPAWN_CREDITS for each target, a CREATE takes one and DONE
 * brings it back. Creations beyond that wait at their creator (create.c), in order, and so does
 * whoever would create more than TERN_THREADS_MAX. So the messages that a rank's threads wait for
 * get through however many threads others create there, which is what SCMP needs a virtual channel
 * of its own for (3.3).
 *
 * Nothing in a message is a pointer: a function travels as its number, and the creator's callback
 * as the index of a ticket and its generation.
 */
#ifndef TERN_SPAWN_STATE_H
#define TERN_SPAWN_STATE_H

#include <string.h>
#include <tern/thread.h>

#include "base/pool.h"
#include "base/role.h"
#include "core/layer.h"
#include "layers.h"
#include "spawn/machine.h"
#include "spawn/stack.h"

extern const struct layer spawn_layer;

/* Tern's own handlers of this layer. */
enum spawn_handler {
	SPAWN_CREATE = SPAWN_HANDLERS, /* label, five words; other words, then data,
							are the payload */
	SPAWN_DONE,                    /* label, code, result */
};

enum { SPAWN_LINE = TERN_LINE_WORDS - 1 }; /* words beside the label */

/*
 * The first word of both: which ticket of the creator, and of CREATE the function.
 */
struct label {
	uint32_t ticket; /* its name */
	uint8_t id, words;
	uint16_t zero;
};

_Static_assert(sizeof(struct label) == sizeof(uint64_t), "a label is a word");
_Static_assert(TERN_THREAD_IDS_MAX <= UINT8_MAX + 1, "a label has room");

/* A thread that has been created here and not started. */
struct creation {
	uint32_t from;
	struct label label;
	uint64_t word[TERN_WORDS_MAX];
	void *data; /* from memory_new(), freed when the thread has ended; NULL: none */
	size_t len;
};

/* Words beyond SPAWN_LINE, and data, of one call: for all tickets of it that were not sent yet. */
struct payload {
	uint32_t users;
	size_t len;
	unsigned char bytes[];
};

/* A place that threads run in, one after another: a stack, and where it left off. See context.h. */
struct context;

/* What a creator has under way. */
struct ticket {
	struct record record;
	tern_thread_done *done;
	void *arg;
	uint32_t rank;
	bool queued;
	struct label label;
	struct ticket *next; /* of the same queue */
	uint64_t word[SPAWN_LINE];
	struct payload *payload; /* NULL: all of it is in the line */
};

/* Another rank, or this one. */
struct party {
	uint32_t credits;            /* threads that may be created there now */
	uint32_t here;               /* threads of its creation that are in the inbox or run */
	struct ticket *first, **end; /* those that wait for credits */
};

struct spawn {
	struct endpoint *e;
	struct thread_function {
		tern_thread_fn *fn;
		void *arg;
	} function[TERN_THREAD_IDS_MAX];

	/* What follows has memory from the first tern_thread_on() on. */
	struct party *party;
	struct pool_of tickets;
	uint32_t queued; /* tickets, in the queues of all */

	struct creation *inbox; /* a ring */
	uint32_t inbox_size, inbox_first, inbox_count;

	/* Threads: see context.c. */
	struct context *contexts; /* all of them */
	struct context *parked;   /* those that nobody runs in */
	unsigned made, limit;
	unsigned busy;   /* not parked */
	unsigned hungry; /* of those, the ones that will look into the inbox */
	uint64_t started;
	size_t stack_bytes;
	uint64_t slice_ns;  /* 0: threads are not preempted */
	struct spawn *next; /* of those that this kernel thread has threads for */
	bool listed;
	bool leaving; /* the endpoint closes: nothing starts any more */
};

static inline struct spawn *spawn_of(const tern *t)
{
	return t->own->layer[LAYER_SPAWN];
}

/* How many of a thread's words are in the payload. */
static inline unsigned label_more(struct label l)
{
	unsigned n = l.words < TERN_WORDS_MAX ? l.words : TERN_WORDS_MAX;
	return n > SPAWN_LINE ? n - SPAWN_LINE : 0;
}

static inline uint64_t label_word(struct label l)
{
	uint64_t word;
	memcpy(&word, &l, sizeof word);
	return word;
}

static inline struct label word_label(uint64_t word)
{
	struct label l;
	memcpy(&l, &word, sizeof l);
	return l;
}

/* -- create.c: the creator's side -- */
int create_open(struct spawn *s);
void create_close(struct spawn *s);
void create_end_lost(struct spawn *s,
		     uint32_t rank);      /* ends what was created at a rank that has left */
unsigned create_flush(struct spawn *s);   /* sends what has waited for credits; how many */
bool create_waits(const struct spawn *s); /* something has credits, and could not be sent yet */
void on_thread_done(tern *t, const tern_msg *m);

/* -- inbox.c: the target's side -- */
int inbox_open(struct spawn *s);
void inbox_close(struct spawn *s);
void on_thread_create(tern *t, const tern_msg *m);
bool inbox_take(struct spawn *s, struct creation *c);
void inbox_answer(struct spawn *s, struct creation *c, int rc, uint64_t result);

#endif
