/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathered messages. Each destination has at most one open buffer, which items are appended to, and
 * a queue of full ones. A buffer leaves as the payload of one request, a batch. docs/posts.md has
 * the design.
 *
 * A batch is a list of runs. A run is a header (how many items, which handler, how many words), and
 * the words of its items. What is open is known by the struct tern_post_lane in its lane,
 * which the inline path moves; everything else is here.
 */
#ifndef TERN_POST_POST_H
#define TERN_POST_POST_H

#include <tern/mem.h>
#include <tern/post.h>

#include "core/layer.h"
#include "layers.h"
#include "post/threshold.h"

_Static_assert((int)POST_LANE == 0 && sizeof(struct tern_post_lane) <= TERN_LANE_LAYERS,
	       "the inline path knows where in a lane it has its place");

enum post_handler {
	POST_BATCH = POST_HANDLERS,
	POST_SLOT, /* the same, in the sender's heap: where, and how many words */
	POST_PACE, /* whether the sender's queues are too long: 1, or short again: 0 */
};

enum {
	GATHER_WORDS = GATHER_BYTES / 8, /* of a buffer, */
	/* and in a job of more than so many ranks, so that all of them */
	GATHER_WORDS_MANY = GATHER_BYTES_MANY / 8,
	GATHER_MANY = 512,      /* take at most 1 MiB */
	GATHERS_OPEN = 1024,    /* of a rank; the oldest leaves when another one is opened */
	CHUNK_BYTES = 64 << 10, /* in which buffers are made */
	QUEUED_LONG = 512,      /* buffers in queues when programs that post here must wait, */
	QUEUED_SHORT = 256,     /* and when they may go on */
	QUEUED_MOST = 1 << 15,  /* 64 MiB: a handler's post is refused */
	SLOTS_EACH = 8,         /* batches that one rank has not handled, of those in slots, */
	SLOTS_MOST = 512,       /* and all ranks together: 1 MiB */
	SLOTS_TOGETHER = 16,    /* are made */
	FLUSH_EVERY = 16,       /* polls that handled something, after which everything leaves */
	LOOK_EVERY = 4,         /* full buffers of the program, after which it looks for arrivals */
	ROOM_LEAST = 8,         /* words of a buffer that tern_post_limit() leaves */
};

/* The header of a run: items, handler, words. */
enum { RUN_COUNT_SHIFT = 32 };

struct gather {
	struct gather *next,
		*before;      /* in its queue, or among the open ones; `before` only there */
	uint32_t rank, words; /* words: once it is closed */
	uint64_t *run;        /* the header of the run that is open */
	uint64_t word[];
};

/* What goes to a rank. */
struct outbox {
	struct gather *open;
	struct gather *first, *last;   /* full ones */
	struct outbox *next_waiting;   /* of those that have full ones */
	struct flight *out, *last_out; /* slots that it has not given back */
	uint32_t outs;
	bool waiting;    /* among them */
	bool source;     /* batches have come from it */
	bool paced;      /* it was told to wait */
	bool overloaded; /* it has told us to wait */
};

struct post {
	struct endpoint *e;
	struct outbox *out;             /* [rank] */
	struct gather *oldest, *newest; /* open */
	struct outbox *waiting, *last_waiting;
	struct gather *free;
	struct flight *idle; /* slots */
	struct slots_made *slots_made;
	uint32_t slots, slots_most;
	void *made;     /* all buffers, in batches that are linked by their first word */
	uint32_t words; /* of a buffer, as it was made, */
	uint32_t room;  /* and those that are used: fewer after tern_post_limit() */
	uint32_t most;  /* buffers that may be open */
	uint32_t opened, queued;
	uint32_t rooms;                                    /* posts that wait for room */
	uint32_t busy;                                     /* polls since everything left */
	uint32_t looks;                                    /* full buffers */
	uint64_t served;                                   /* by the endpoint, at the last poll */
	uint64_t left;                                     /* buffers, ever */
	bool pacing;                                       /* sources are told to wait */
	bool paces;                                        /* some source has yet to be told */
	tern_post_handler *_Atomic many[TERN_HANDLER_MAX]; /* where batch_one() is the handler */
	uint32_t dropped; /* a rank plus 1: items for it were dropped */
};

extern const struct layer post_layer;

static inline struct post *post_of(tern *t)
{
	return t->own->layer[LAYER_POST];
}

static inline uint32_t post_stride(uint64_t kind)
{
	uint32_t n = kind & TERN_HEAD_WORDS;
	return n ? n : 1;
}

/* -- gather.c: buffers, open and full -- */
void gather_free(struct post *p);
/* Makes room for an item of that kind in the open buffer; false: there is none with room. */
bool gather_run(struct post *p, uint32_t rank, uint32_t kind);
int gather_open(struct post *p, uint32_t rank); /* -ENOMEM */
/* From the open ones to the queue of its rank. */
void gather_close(struct post *p, uint32_t rank);
void gather_close_all(struct post *p);
/* Sends what there is room for, to one rank or all; how many batches. Never waits. */
unsigned gather_send(struct post *p, struct outbox *o);
unsigned gather_send_all(struct post *p);
/* The rank takes nothing any more. */
void gather_drop(struct post *p, uint32_t rank);
/* Closes the open run; the words that the buffer has. */
uint32_t gather_words(struct post *p, uint32_t rank);
/* The open buffer, whose items have left, is empty again, for items of that kind. */
void gather_again(struct post *p, uint32_t rank, uint32_t kind);
/* The layer has work while something is open or queued, or some source is to be told. */
void gather_work(struct post *p);

/* -- quick.c: a full buffer in the common case; false: this is not it, and nothing was sent -- */
bool post_quick(struct post *p, uint32_t rank);

/* -- slot.c: batches to ranks that map this rank's heap -- */
bool post_slots_serve(struct post *p, uint32_t rank); /* whether batches to that rank go so */
/* -EAGAIN: no slot, or no room */
int post_slot_send(struct post *p, uint32_t rank, const uint64_t *word, uint32_t words);
void post_slots_lost(struct post *p, struct outbox *o); /* the rank gives nothing back any more */
void post_slots_free(struct post *p);
/* The receiver's: the words, or NULL if there is no such slot. Given back when they are handled. */
const uint64_t *post_slot_reach(tern *t, tern_addr a, uint64_t words);
void post_slot_give(const uint64_t *word);

/* -- batch.c: what comes -- */
void batch_one(tern *t, const tern_msg *m); /* a handler that takes many items gets one */
void batch_register(struct endpoint *e);
unsigned pace_tell(struct post *p); /* sources that were told */

#endif
