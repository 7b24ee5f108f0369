/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed messages: the layer's state in an endpoint, shared by its files.
 *
 * A rank keeps a type queue for each type: a pool of buffers in its heap (bufpool.h), and, private,
 * a slot for each buffer that says what has landed in it. A sender looks a pool up once, with a
 * request; from then on it takes a buffer, copies the bytes into it and sends one line, a notice,
 * whose handler checks it and puts the slot at the end of the type's queue. A notice names a buffer
 * by number; nothing in it is followed.
 *
 * A send has three steps: take a buffer, fill it, announce it. An interruption between them harms
 * nobody. Only the last can be seen by the receiving program, and it is one line in a ring, which
 * is there or not. A signal or a hold only delays it. If the sender ends before, the buffer carries
 * its number, and the owner takes it back. If a send fails, the sender gives the buffer back
 * itself.
 *
 * A sender that cannot map the owner's memory is far. It does not take buffers, it uses credits:
 * credit.c is the owner's side of that, far.c the sender's.
 */
#ifndef TERN_TYPED_STATE_H
#define TERN_TYPED_STATE_H

#include <string.h>
#include <tern/mem.h>
#include <tern/typed.h>

#include "core/layer.h"
#include "layers.h"
#include "typed/bufpool.h"
#include "typed/threshold.h"

extern const struct layer typed_layer;

/* Tern's own handlers of this layer, counted from TERN_HANDLER_MAX. */
enum typed_handler {
	TYPED_LOOKUP = TYPED_HANDLERS, /* where is your pool? */
	TYPED_FOUND,                   /* the reply */
	TYPED_ARRIVED,                 /* a notice */
	TYPED_ASK,                     /* a buffer for one message, please */
	TYPED_ANSWER, /* the reply, if it is no: the type is closed, or all buffers are too short */
	TYPED_CREDIT, /* buffers, from the owner */
	TYPED_RETURN, /* one that is not used */
	TYPED_BROUGHT, /* a notice, and the message itself */
	TYPED_LANDED,  /* the reply, if one was asked for */
};

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
extern const size_t spill_cell[SPILL_POOLS]; /* bytes of a cell */

enum {
	SPILL_MOST = LONG_BYTES, /* bytes of a message that may be spilled */
	TYPED_IDLE_NS = 1000000,
	ORDERED = TERN_BUF_ORDER | TERN_BUF_ORDER_ALL,
};

/* -- What a sender says of a message that has landed ------------------------------------------- */

/* It travels as its words: all machines of a job have the same order of bytes. */
struct notice {
	uint8_t type;
	uint8_t order;       /* ORDERED flags of the type, so the sender thinks */
	uint16_t key;        /* of the pool in which it lies */
	uint32_t index;      /* of the buffer */
	uint32_t generation; /* of the type */
	uint8_t cancelled;   /* it failed, and stands here only for its number */
	uint8_t spoiled;     /* the buffer had been written to while it was free */
	uint16_t zero;
	uint64_t len;
	uint64_t number; /* in the order of its sender's messages */
};

enum { NOTICE_WORDS = 4 };
_Static_assert(sizeof(struct notice) == NOTICE_WORDS * sizeof(uint64_t), "it is whole words");

/* The lower half of its first word; the upper one is the index. */
static inline uint32_t notice_head(unsigned type, unsigned key, unsigned order)
{
	return key << 16 | order << 8 | (type & 0xff);
}

static inline void notice_write(const struct notice *n, uint64_t words[NOTICE_WORDS])
{
	memcpy(words, n, sizeof *n);
}

static inline struct notice notice_read(const uint64_t words[NOTICE_WORDS])
{
	struct notice n;
	memcpy(&n, words, sizeof n);
	return n;
}

/* With the message itself there is one word more. */
enum { BROUGHT_WORDS = NOTICE_WORDS + 1, BROUGHT_TELL = 1 /* reply when it has landed */ };

/* -- What an owner and a far sender tell each other -------------------------------------------- */

enum credit_flags {
	CREDIT_ASKED = 1,     /* it answers a question */
	CREDIT_REFUSED = 2,   /* no buffer is free, and the type refuses then */
	CREDIT_CLOSED = 4,    /* this use of the type is over */
	CREDIT_LONG = 8,      /* it is about a place for a long message */
	CREDIT_TOO_LONG = 16, /* no buffer of the type is as long as that */
};

struct credit_msg {
	uint8_t type;
	uint8_t flags;
	uint16_t count; /* of credits, or 1 for a place */
	uint32_t generation;
	uint16_t key; /* of the pool in which a place is, */
	uint16_t zero;
	uint32_t index;
	uint64_t value; /* and its address; of a question: the length of the message */
	uint64_t bytes; /* how long a place is */
};

enum { CREDIT_WORDS = 4 };
_Static_assert(sizeof(struct credit_msg) == CREDIT_WORDS * sizeof(uint64_t), "it is whole words");

static inline void credit_msg_write(const struct credit_msg *c, uint64_t words[CREDIT_WORDS])
{
	memcpy(words, c, sizeof *c);
}

/* False if it is none. */
static inline bool credit_msg_read(const tern_msg *m, struct credit_msg *c)
{
	memcpy(c, m->word, sizeof *c);
	return tern_msg_words(m) == CREDIT_WORDS;
}

/* -- At the receiver --------------------------------------------------------------------------- */

enum buf_slot_state {
	BUF_SLOT_NONE,
	BUF_SLOT_EARLY,
	BUF_SLOT_READY,
	BUF_SLOT_HELD,
	BUF_SLOT_RESERVED, /* for a message of a far sender that has a credit */
	BUF_SLOT_LANDING,  /* a far sender may be putting a long message there */
};

/* A buffer of this rank, and what has landed in it. */
struct buf_slot {
	char *data;               /* the buffer, and */
	struct type_queue *queue; /* whose it is: its type's, or the spill's; NULL: there is none */
	struct buf_slot *next;    /* in its type's queue */
	size_t len;
	uint32_t src;
	uint16_t type;
	uint8_t state;
	bool cancelled;
	uint32_t at;            /* the word of the pool in which it was free last */
	uint32_t dropped;       /* so many numbers after its own were dropped */
	uint64_t number;        /* in its sender's order */
	struct buf_slot *later; /* of the same sender, with a greater number */
};
_Static_assert(sizeof(struct buf_slot) == 64, "a slot is as long as a line");

/* The messages of one sender, where they have an order; see order.c. */
struct stream {
	uint64_t next; /* the number whose turn it is */
	struct buf_slot *first, *last;
};

/* What a far sender has of a type, and waits for; see credit.c. */
struct far_sender {
	uint64_t want_long; /* it waits to send a message of so many bytes */
	uint16_t credits;   /* it has, as far as is known */
	uint16_t share;     /* how many it should have */
	bool knows;         /* it has looked the type up */
	bool want_short;    /* it waits to send a short message */
	bool idle;          /* it has returned its share, and not asked since */
	bool due;           /* it should be told something */
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
	uint32_t held;            /* messages of this type that the program has */
	uint32_t room;            /* slots, and buffers that there are words for, */
	void *words;              /* in the heap */
	struct type_queue *spare; /* the next that no type uses */
	struct type_queue *more;  /* the next pool of the type */
	size_t most;              /* of a type: the length of its longest buffers */
	bool closing;             /* its buffers are not freed any more */
	uint32_t fars;            /* ranks that are far */
	uint32_t due, turn;       /* far senders that are, and with whom to begin */
	uint32_t shared;          /* buffers that are somebody's share */
	struct far_sender *far;   /* one a rank, if any rank is far; NULL otherwise */
	struct buf_slot *reserve; /* as many as there are credits */
	struct stream *stream;    /* TERN_BUF_ORDER: one a rank */
	struct buf_slot slot[];   /* one a buffer */
};

/* -- At the sender ----------------------------------------------------------------------------- */

enum target_state { TARGET_UNKNOWN, TARGET_ASKED, TARGET_KNOWN, TARGET_NONE };

/* What a far owner has given for a type; see far.c. */
struct far_target {
	_Atomic uint32_t now; /* stands for the word of that name in the pool */
	int refused[2]; /* for short and long messages: the last answer, 0, -ENOBUFS or -EMSGSIZE */
	bool asked[2];  /* the owner will answer */
	bool used[2];   /* since the last look */
	bool watched;   /* it is in the list of those that have something */
	bool place;     /* for a long message: */
	uint16_t key;
	uint32_t index;
	uint32_t place_generation;
	uint64_t bytes, too_long; /* its length, and one that was refused */
	tern_addr at;
	uint32_t credits;
	uint32_t waiting[2]; /* sends that wait */
	uint64_t since[2];   /* when it was seen that they were used */
	struct target *next;
};

/* What this rank knows of a pool of another. */
struct target {
	uint64_t name;     /* target_name() */
	uint64_t quick;    /* bytes that tern_buf_send() may copy there without a question */
	uint64_t head;     /* of a notice, but for the buffer */
	uint64_t *counter; /* of messages in its order */
	struct bufpool pool;
	enum target_state state;
	uint32_t rank;
	uint16_t key;
	uint16_t flags;
	bool is_far;
	bool checks; /* its owner wants free buffers compared with the pattern */
	tern_addr buffers;
	uint64_t number; /* of the next message: TERN_BUF_ORDER */
	struct far_target far;
};

static inline uint64_t target_name(uint32_t rank, unsigned key)
{
	return (uint64_t)rank << 32 | key;
}

/* What it knows of another rank; targets are made when they are needed. */
struct route {
	uint64_t number; /* of the next message: TERN_BUF_ORDER_ALL */
	struct target *target[KEYS];
	struct landings *landings; /* of short messages to a far rank; made with the first */
};

/* Handles of short messages to one far rank that have not landed there; they land in order. */
struct landings {
	uint32_t sent, landed;
	tern_op *op[TERN_BUF_SENDS_MAX];
};

enum outgoing_state { OUTGOING_FREE, OUTGOING_STARTING, OUTGOING_MOVING, OUTGOING_OVER };

/* A long message under way. */
struct outgoing {
	enum outgoing_state state;
	uint32_t rank;
	int error;
	struct notice notice;
	tern_op op;
	const char *data, *landed; /* the latter is NULL if it is out of sight */
	uint64_t sum;              /* of the data when it was accepted */
	tern_op *told;             /* the program's handle; NULL if a call waits for the end */
	bool forgotten;            /* nobody will ask for its result */
};

struct typed {
	struct endpoint *e;
	uint64_t check;                  /* TERN_CHECK */
	uint32_t generations;            /* of pools, all together: no two uses have the same */
	struct target *recent;           /* to which the last short message went */
	struct buf_slot *given;          /* what was received last */
	uint64_t spill_bytes;            /* TERN_SPILL */
	struct type_queue *queue[KEYS];  /* by key */
	struct type_queue *sorted[KEYS]; /* those there are, by address */
	unsigned queues;
	struct stream *all; /* TERN_BUF_ORDER_ALL: one a rank, made with the first such type */
	struct type_queue *spare;  /* type queues that no type uses */
	uint32_t due;              /* of all type queues */
	uint64_t idle_ns;          /* after which a far sender returns what it does not use */
	bool answering;            /* in the middle of dealing with those */
	struct type_queue *closed; /* types of whose end far senders have not heard */
	struct target *watched;    /* those that have something: a list */
	uint32_t *late;            /* a rank: cancelled slots without a buffer, in order */
	struct route **route;      /* one a rank, made when something is first sent to it */
	struct outgoing *outgoing; /* TERN_BUF_SENDS_MAX, made with the first long message */
	unsigned moving;           /* of those */
	bool finishing; /* in the layer's progress: a send that looks around may come back here */
};

static inline struct typed *typed_of(tern *t)
{
	return t->own->layer[LAYER_TYPED];
}

/* The same for a call of the program, which takes the endpoint if nobody has it yet. */
static inline struct typed *typed_here(tern *t)
{
	if (!t->reach && !attach_is_mine(t->own))
		attach_first(
			t->own); /* before anything is read: another thread may be serving it */
	return typed_of(t);
}

void typed_busy(struct typed *y); /* tells polls whether there is anything to carry on */
/* A message that no good peer sends: says so, and lets the next poll return -EBADMSG. */
void typed_refuse(struct typed *y, uint32_t src, const char *what);

/* -- type_queue.c -- */
int type_queue_make(struct typed *y, unsigned key, size_t bytes, uint32_t count, unsigned flags,
		    struct type_queue **out);
void type_queue_unmake(struct typed *y, struct type_queue *s);
void type_queue_spare(struct typed *y, struct type_queue *s); /* no type uses it */
void type_queues_free(struct typed *y);
int type_queue_more(struct typed *y, struct type_queue *s, size_t bytes, uint32_t count);
/* The slot whose buffer begins at `p`; NULL if there is none. */
struct buf_slot *buf_slot_at(const struct typed *y, const void *p);
/* Ends the generation of all pools of a type; false, and nothing has changed, if one is used. */
bool type_queue_shut(struct type_queue *s);
/* Whether `rank` has taken its buffer, and announced nothing. */
bool buf_slot_claimed(const struct buf_slot *l, uint32_t rank);
/* Takes back what `rank`, which has left, had claimed and not announced. */
void type_queue_reclaim(struct typed *y, struct type_queue *s, uint32_t rank);

/* -- type_queue.c: queues, and buffers that go back -- */
/* The owner takes a buffer itself, for a message from `src`; NULL if none is free. */
struct buf_slot *buf_slot_take(struct type_queue *of, unsigned type, uint32_t src,
			       enum buf_slot_state state);
void buf_slot_drop(struct typed *y, struct buf_slot *l); /* gives its buffer back */

static inline uint32_t buf_slot_index(const struct buf_slot *l)
{
	return (uint32_t)(l - l->queue->slot);
}

/* The buffer is free, or a far sender has it: a message may be announced that lies there. */
static inline bool buf_slot_open(const struct buf_slot *l)
{
	return l->state == BUF_SLOT_NONE || l->state == BUF_SLOT_LANDING;
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
	       (i != but && i < s->pool.count && s->slot[i].at == at && buf_slot_open(&s->slot[i]));
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

/* Puts it at the end of its type's queue. */
static inline void buf_slot_ready(struct type_queue *s, struct buf_slot *l)
{
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

/* -- order.c -- */
/* Gives the slot its place; false if its number has been seen. Makes ready whatever can be. */
bool order_arrived(struct typed *y, struct stream *s, struct buf_slot *l, bool all);
void order_received(struct typed *y, struct buf_slot *l); /* the program has it, or it is dropped */
/* Whether the slots of a type can be taken out: no earlier message of its senders is missing. */
bool order_can_close(const struct typed *y, const struct type_queue *s);
void order_close(struct typed *y, struct type_queue *s);
void order_free(struct typed *y);
void order_lost(struct typed *y, uint32_t rank); /* its sequence ends where something is missing */

/* -- type_queue.c -- */
int spill_make(struct typed *y);

/* The longest message that it holds. */
size_t spill_most(const struct typed *y);

/* -- credit.c: at the owner of a type -- */
void credit_register(struct endpoint *e);
int credit_open(struct typed *y, struct type_queue *s);
void credit_closed(struct typed *y, struct type_queue *s); /* far senders will hear of it */
unsigned credit_progress(struct typed *y);
/* `rank` has looked the type up: how many credits it gets with the answer. */
unsigned credit_known(struct typed *y, struct type_queue *s, uint32_t rank);
/* A message of `rank` has come: the slot for it; NULL if it has no credit. */
struct buf_slot *credit_use(struct typed *y, struct type_queue *s, uint32_t rank);
void credit_freed(struct typed *y, struct type_queue *s); /* somebody may wait for it */
void credit_lost(struct typed *y, uint32_t rank);

/* -- buffers.c: TERN_CHECK -- */
uint64_t check_sum(const char *data, size_t len);
void check_fill(char *buffer, size_t len);
bool check_filled(const char *buffer, size_t len);

/* -- target.c -- */
void target_register(struct endpoint *e);
/*
 * 0 and what is known; -EAGAIN while it is being asked for; -ENXIO, once, when there is none;
 * -ENOMEM.
 */
int target_find(struct typed *y, uint32_t rank, unsigned key, struct target **out);

/* -- far.c: at a far sender -- */
void far_register(struct endpoint *e);
void far_lost(struct typed *y, uint32_t rank);      /* it has left: ends what was sent to it */
void far_forget(struct far_target *h);              /* that use of the type is over */
void far_watch(struct typed *y, struct target *to); /* it has got something */
unsigned far_progress(struct typed *y);

/* -- arrive.c -- */
void arrive_register(struct endpoint *e);
void arrive_spoiled(struct typed *y, unsigned type); /* a free buffer had been written to */

/* -- outgoing.c -- */
struct outgoing *
outgoing_new(struct typed *y); /* NULL if all are under way, or there is no memory */
/* Sends the notice if the data is in place and there is room; true when it is over. */
bool outgoing_finish(struct typed *y, struct outgoing *o);
void outgoing_moves(struct typed *y, struct outgoing *o);
int outgoing_end(struct typed *y, struct outgoing *o); /* its result, with the sentence; frees it */
unsigned outgoing_progress(struct typed *y);

#endif
