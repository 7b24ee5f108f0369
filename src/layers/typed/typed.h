/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed messages: the layer's state in an endpoint, shared by its files. README.md says how they
 * work.
 */
#ifndef TERN_TYPED_STATE_H
#define TERN_TYPED_STATE_H

#include <string.h>
#include <tern/buf.h>
#include <tern/mem.h>

#include "base/pool.h"
#include "core/messages.h"
#include "layers.h"
#include "typed/bufpool.h"
#include "typed/threshold.h"

extern const struct layer typed_layer;

/* Tern's own handlers of this layer, counted from TERN_HANDLER_MAX. */
#define TYPED_MESSAGES(X)                                                \
	X(TYPED_LOOKUP, on_pool_lookup)  /* where is your pool? */       \
	X(TYPED_FOUND, on_pool_found)    /* the reply */                 \
	X(TYPED_ARRIVED, on_notice)      /* a notice */                  \
	X(TYPED_OFFER, on_typed_offer)   /* a message of a far sender */ \
	X(TYPED_ANSWER, on_typed_answer) /* to an offer */
enum typed_handler { TYPED_BEFORE = TYPED_HANDLERS - 1, TYPED_MESSAGES(LAYER_NUMBER) };
TYPED_MESSAGES(LAYER_HANDLER)

/*
 * Pools are looked up by key: types are their own keys. Then come the spill's three pools, of small
 * cells to large ones, and pools that types got by further calls of tern_buf_alloc().
 */
enum {
	KEY_SPILL = TERN_BUF_TYPES_MAX,
	SPILL_POOLS = 3,
	KEY_MORE = KEY_SPILL + SPILL_POOLS,
	KEYS = KEY_MORE + TERN_BUF_MORE_MAX
};

/* -- Messages: they travel as their words, since all machines have the same order of bytes ----- */

/* A message has landed in a buffer, which nothing in here but its number names. */
struct notice {
	uint8_t type;
	uint8_t flags;       /* enum notice_flags */
	uint16_t key;        /* of the pool in which it lies */
	uint32_t index;      /* of the buffer */
	uint64_t generation; /* of the type */
	uint64_t len;
};

enum notice_flags {
	NOTICE_CANCELLED = 1, /* the send failed: only the buffer comes back */
	NOTICE_SPOILED = 2,   /* the buffer had been written to while it was free */
};

/* A far sender has a message. One of at most TERN_PAYLOAD_MAX bytes comes with it. */
struct offer_msg {
	uint32_t id; /* the name of the record at the sender */
	uint8_t type;
	uint8_t now; /* not to be kept until a buffer is free */
	uint16_t zero;
	uint64_t len;
};

/* Its owner's answer: an error; or where to put the message; or, without a place, it has landed. */
struct answer_msg {
	uint32_t id;
	int32_t error;
	uint32_t generation;
	uint16_t key, placed;
	uint64_t index;
	uint64_t at; /* the place's address; with -EMSGSIZE how long the first buffers are */
};

enum { NOTICE_WORDS = 3, OFFER_WORDS = 2, ANSWER_WORDS = 4 };
_Static_assert(sizeof(struct notice) == NOTICE_WORDS * sizeof(uint64_t) &&
		       sizeof(struct offer_msg) == OFFER_WORDS * sizeof(uint64_t) &&
		       sizeof(struct answer_msg) == ANSWER_WORDS * sizeof(uint64_t),
	       "they are whole words");

/* -- At the receiver --------------------------------------------------------------------------- */

enum buf_slot_state { BUF_SLOT_NONE, BUF_SLOT_READY, BUF_SLOT_HELD };

/* A buffer of this rank, and what has landed in it. */
struct buf_slot {
	_Alignas(64) char *data;  /* the buffer, and */
	struct type_queue *queue; /* whose it is: its type's, or the spill's */
	struct buf_slot *next;    /* in its type's queue */
	size_t len;
	uint32_t src;
	uint32_t at; /* the word of the pool in which it was free last */
	uint16_t type;
	uint8_t state;
};

/* An offer that is not over: no buffer was free, or its sender fills one. */
struct buf_offer {
	struct buf_offer *next;
	uint32_t rank;
	bool placed; /* its sender has been told where to put it */
	struct offer_msg msg;
};

/*
 * A type queue that is closed is kept for the next of its size, because senders may look at the
 * words of its pool for as long as the job lasts; only its buffers are given back.
 */
struct type_queue {
	struct bufpool pool;
	struct buf_slot *first, *last; /* what can be received, in order */
	uint32_t tail;                 /* the word of the pool into which a free buffer goes next */
	unsigned type, key, flags;
	uint32_t held;           /* messages of this type that the program has */
	uint32_t room;           /* slots, and buffers that there are words for, */
	void *words;             /* in the heap */
	struct type_queue *next; /* that is open, or of those that no type uses */
	struct type_queue *more; /* the next pool of the type, at last those of the spill */
	size_t most;             /* of a type: the length of its longest buffers */
	struct buf_slot slot[];  /* one a buffer */
};

/* -- At the sender ----------------------------------------------------------------------------- */

/* In flags that a pool's owner tells: it wants free buffers compared with the pattern. */
enum { POOL_CHECKED = 1 << 30 };

/* What this rank knows of a pool of another whose memory it maps. */
struct target {
	uint64_t quick;      /* bytes that tern_buf_send() may copy there without a question */
	struct bufpool pool; /* generation 0: not known */
	bool asked, none;    /* for it; and there was none */
	uint32_t flags;
	tern_addr buffers;
};

enum outgoing_state {
	OUTGOING_OFFERED, /* to a far owner */
	OUTGOING_PLACED,  /* it is known where to put the message */
	OUTGOING_MOVING,  /* or in its buffer, and not announced yet */
};

/* A message that has been accepted and not announced: a long one, or one to a far rank. */
struct outgoing {
	struct record record;
	enum outgoing_state state;
	uint32_t rank;
	struct notice notice;
	tern_op op; /* of the put */
	tern_addr at;
	const char *data, *landed; /* the latter is NULL if it is out of sight */
	uint64_t sum;              /* of the data when it was accepted */
	tern_op *told;
};

struct typed {
	struct endpoint *e;
	uint64_t check;                 /* TERN_CHECK */
	uint32_t generations;           /* of pools, all together: no two uses have the same */
	struct buf_slot *given;         /* what was received last */
	uint64_t spill_bytes;           /* TERN_SPILL */
	struct type_queue *queue[KEYS]; /* by key */
	struct type_queue *open;        /* the first of those */
	struct type_queue *spare;       /* type queues that no type uses */
	struct type_queue *spill;       /* its pool of the smallest cells; they are linked */
	struct buf_offer *offers;       /* of far senders, in the order in which they came */
	uint32_t waiting;               /* of those that have not been answered */
	struct pool_of outgoing;        /* TERN_BUF_SENDS_MAX */
	unsigned moving;                /* of those, what this rank's polls carry on */
	bool finishing; /* in the layer's progress: a send that looks around may come back here */
	struct target *target[]; /* by rank, and key; made when one is first sent to */
};

static inline struct typed *typed_of(tern *t)
{
	return t->own->layer[LAYER_TYPED];
}

/* The same for a call of the program, which takes the endpoint if nobody has it yet. */
static inline struct typed *typed_here(tern *t)
{
	if (!t->reach && !attach_is_mine(t->own))
		attach_first(t->own); /* before anything is read: another thread may serve it */
	return typed_of(t);
}

void typed_busy(struct typed *y); /* tells polls whether there is anything to carry on */
/* A message that no good peer sends: says so, and lets the next poll return -EBADMSG. */
void typed_refuse(struct typed *y, uint32_t src, const char *what);

/* -- type_queue.c -- */
/* A type, or a pool of the spill, or the next pool of a type that there is. */
int type_queue_make(struct typed *y, unsigned type, size_t bytes, uint32_t count, unsigned flags);
void type_queue_unmake(struct typed *y, struct type_queue *s);
/* The next pool that is the type's own. */
static inline struct type_queue *type_queue_next(const struct type_queue *s)
{
	return s->more && s->more->type == s->type ? s->more : NULL;
}
void type_queues_free(struct typed *y);
/* The slot whose buffer begins at `p`; NULL if there is none. */
struct buf_slot *buf_slot_at(const struct typed *y, const void *p);
/* Ends the generation of all pools of a type; false, and nothing has changed, if one is used. */
bool type_queue_shut(struct type_queue *s);
/* Whether `rank` has taken its buffer, and announced nothing. */
bool buf_slot_claimed(const struct buf_slot *l, uint32_t rank);
/* Takes back what `rank`, which has left, had claimed and not announced. */
void type_queue_reclaim(struct typed *y, struct type_queue *s, uint32_t rank);
/* The owner takes a buffer of the pool itself, for a message from `src`; NULL if none is free. */
struct buf_slot *buf_slot_take(struct type_queue *s, size_t len, uint32_t src);
void buf_slot_drop(struct typed *y, struct buf_slot *l); /* gives its buffer back */
int spill_make(struct typed *y, size_t *most); /* the longest that it holds, if *most was 0 */

static inline uint32_t buf_slot_index(const struct buf_slot *l)
{
	return (uint32_t)(l - l->queue->slot);
}

/*
 * Whether a word of the pool is in use: it has a free buffer, or a claim that has not been
 * announced. Buffer `but` is about to be put into one.
 */
static inline bool buf_word_used(const struct type_queue *s, uint32_t at, uint32_t but)
{
	uint64_t word = bufpool_read(&s->pool, at);
	uint32_t i = bufpool_index(word);
	return bufpool_is(&s->pool, word, BUFPOOL_FREE) ||
	       (i != but && i < s->pool.count && s->slot[i].at == at &&
		s->slot[i].state == BUF_SLOT_NONE);
}

/* The first word behind `at` that is not; half of them are not, unless somebody spoils them. */
uint32_t buf_word_unused(const struct type_queue *s, uint32_t at, uint32_t but);

static inline void buf_slot_free(struct type_queue *s, struct buf_slot *l)
{
	uint32_t i = (uint32_t)(l - s->slot), at = s->tail;
	if (TERN_UNLIKELY(buf_word_used(s, at, i)))
		at = buf_word_unused(s, at, i);
	l->state = BUF_SLOT_NONE;
	l->at = at;
	bufpool_put(&s->pool, at, i);
	s->tail = bufpool_step(&s->pool, at);
}

/* A message has landed: puts it at the end of its type's queue. */
static inline void buf_slot_ready(struct type_queue *s, struct buf_slot *l, uint32_t src,
				  size_t len)
{
	l->len = len;
	l->src = src;
	l->type = (uint16_t)s->type;
	l->state = BUF_SLOT_READY;
	l->next = NULL;
	*(s->first ? &s->last->next : &s->first) = l;
	s->last = l;
}

static inline struct buf_slot *buf_slot_pop(struct type_queue *s)
{
	struct buf_slot *l = s->first;
	s->first = l->next;
	return l;
}

/* -- offer.c: messages of far senders, at the owner of a type -- */
unsigned offer_progress(struct typed *y); /* answers those that wait, where a buffer is free */
void offer_landed(struct typed *y, unsigned type, uint32_t rank); /* where it was told to */
void offer_lost(struct typed *y, uint32_t rank);                  /* of every rank: UINT32_MAX */

/* -- buffers.c: TERN_CHECK -- */
uint64_t check_sum(const char *data, size_t len);
void check_fill(char *buffer, size_t len);
bool check_filled(const char *buffer, size_t len);

/* -- target.c -- */
/*
 * 0 and what is known; -EAGAIN while it is being asked for; -ENXIO, once, when there is none;
 * -ENOMEM.
 */
int target_find(struct typed *y, uint32_t rank, unsigned key, struct target **out);

/* -- receive.c -- */
void arrive_spoiled(struct typed *y, unsigned type); /* a free buffer had been written to */

/* -- send.c -- */
/* Why a message was not accepted, in words; `bytes` of the first buffers of the type. */
int send_refused(int code, uint32_t rank, unsigned type, size_t len, size_t bytes, const char *why);

/* -- outgoing.c -- */
/* Its place is known: carries it on as far as that can be done now. */
void outgoing_begin(struct typed *y, struct outgoing *o, tern_addr at);
unsigned outgoing_progress(struct typed *y);
void outgoing_lost(struct typed *y, uint32_t rank); /* it will not answer any more */

#endif
