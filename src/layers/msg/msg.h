/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of sends and receives in an endpoint, and how they travel.
 *
 * Everything a sender has to say goes to the receiver as requests, in one ring, in order:
 * small messages whole (WORDS, EAGER, EACH), others as a question (RTS), later their bytes
 * (DATA, or none when they are put straight into the receiver's memory) and FIN. What the
 * receiver has to say (TELL: clear to send, taken, refused, room again) goes as the reply to the
 * message at hand, or as a request of its own. An RTS that finds no receive is
 * written down and holds nothing up: the four classes of SCMP (RTS, CTS, data,
 * thread) cannot block each other, because whatever arrives is taken off its ring at once.
 *
 * That needs room for what is written down, so senders have limits, given back as receives
 * match: cells of memory for small messages, and unmatched RTSs. A sender without cells asks
 * (RTS) instead; one without RTSs keeps its sends in a queue of its own, in order.
 */
#ifndef TERN_MSG_STATE_H
#define TERN_MSG_STATE_H

#include <tern/mem.h>
#include <tern/send.h>

#include "base/pool.h"
#include "base/role.h"
#include "core/messages.h"
#include "core/wait.h"
#include "layers.h"
#include "msg/layout.h"
#include "msg/table.h"
#include "msg/threshold.h"

extern const struct layer msg_layer;

#define MSG_ID_EXACT (~UINT64_C(0)) /* the mask under which an id is itself */

#define MSG_MESSAGES(X)                                                                       \
	X(MSG_WORDS, on_send_words)   /* id, meta, up to 48 bytes of it */                    \
	X(MSG_EAGER, on_send_eager)   /* id, meta; bytes in the payload */                    \
	X(MSG_EACH, on_send_each)     /* meta, parts; an id, a length and bytes for each */   \
	X(MSG_RTS, on_send_rts)       /* id, meta, total, data's address or TERN_ADDR_NONE */ \
	X(MSG_DATA, on_send_data)     /* the receive's name; bytes */                         \
	X(MSG_FIN, on_send_fin)       /* the receive's name, error */                         \
	X(MSG_CANCEL, on_send_cancel) /* the send's name */                                   \
	X(MSG_BLOCK, on_ask_block)    /* name and slot, offset, stride, run, count, id */     \
	/* kind and send's name, error or share, cells, receive's name, address, id */        \
	X(MSG_TELL, on_send_status)
enum msg_handler { MSG_BEFORE = MSG_HANDLERS - 1, MSG_MESSAGES(LAYER_NUMBER) };
MSG_MESSAGES(LAYER_HANDLER)

enum tell {
	TELL_ROOM,      /* nothing but cells */
	TELL_CLEAR,     /* to send: CTS */
	TELL_TAKEN,     /* a receive has it, or why it could not be read: the end of the send */
	TELL_REFUSED,   /* and why */
	TELL_CANCELLED, /* it was not matched, and will not be */
	TELL_KEPT,      /* it was matched already */
	TELL_READ, /* the receiver has read what is not the sender's share; may precede CLEAR */
};

/* The second word of what a send sends: length, flags, the send's name (0: it has none). */
enum { META_FLAGS_SHIFT = 16, META_NAME_SHIFT = 32 };

enum {
	CELLS = 4096,      /* of messages that no receive has taken, for all ranks together, */
	CELLS_EACH = 1024, /* at most, for one */
	CELLS_HELD = 64,   /* besides: for ready messages that came while their receive was busy */
	RTS_ALL = 16384,   /* unmatched, from all ranks together */
	RTS_LEAST = 16,    /* for each, however many there are */
	OFFERS_MOST = 5,   /* sources that are lent at a time */
	BLOCKS_LEAST =
		8, /* sends that each rank may have asked for, however many ranks there are */
};

struct cell {
	struct record record;
	struct cell *next;
	char bytes[CELL_BYTES];
};

static inline uint32_t cells_of(size_t len)
{
	return len <= CELL_BYTES ? 1 : (uint32_t)((len + CELL_BYTES - 1) / CELL_BYTES);
}

/* A send that is not over. */
struct sending {
	struct record record;
	struct node node; /* rank: to whom; of those to be announced there, or of those that move */
	enum tern_state state;
	uint8_t flags;
	bool announced; /* its receiver knows of it */
	bool counted;   /* among the RTSs that the receiver has written down */
	bool started;   /* the data move */
	bool sending;   /* in a call that sends for it, and may wait for room */
	bool block;     /* asked for by its receiver */
	bool read;      /* the receiver has read its share of the data, or was never to, */
	bool finned;    /* and the rest is there */
	struct layout layout;
	struct run_walk walk; /* over what has been sent in messages, */
	size_t sent;          /* so many bytes */
	tern_op *op;
	tern_op moving;     /* what is put straight into the receiver's memory */
	tern_addr to;       /* where that is; TERN_ADDR_NONE: in messages */
	size_t share;       /* bytes that go there: the receiver takes the others by itself */
	tern_addr lent;     /* the source, if it was lent for that */
	uint32_t recv_name; /* the receive that takes it */
	int *asked;         /* who waits for its being taken back, and for how that went */
};

/* A receive that is not over. */
struct receiving {
	struct record record;
	struct node node; /* rank: from whom, or TERN_RANK_ANY */
	enum tern_state state;
	uint8_t flags;
	bool masked, wild; /* has a mask; or that, or is from any rank */
	uint64_t seq;      /* the order in which receives were started */
	tern_id mask;
	struct layout layout;
	struct run_walk walk; /* over what has come in messages */
	size_t due;           /* bytes that are still to come in messages */
	tern_envelope *env;
	tern_envelope got;
	tern_op *op;
	uint32_t send_name;
	tern_addr source; /* of the data, for this rank to read, or TERN_ADDR_NONE */
	size_t share;     /* bytes that the sender brings; the others are taken from `source` */
	struct node puller;
	tern_op pull;
	bool pulling;  /* in the list of those */
	bool pulls;    /* not all of the others are read yet, */
	size_t pulled; /* so many are */
	bool finned;   /* the sender's are there */
	int fin_error;
	tern_addr lent; /* its memory, for the sender to write to, if that had to be registered */
};

/* A message, or the question for one, that no receive has taken. */
struct arrival {
	struct record record;
	struct node key;     /* under its rank and id, */
	struct node any;     /* under its id, */
	struct node ordered; /* and among all */
	size_t len;
	uint32_t src;
	uint32_t name; /* of the send */
	tern_addr source;
	uint8_t flags;
	bool whole; /* its bytes are here */
	struct cell *cells;
};

/* What this rank knows of another. */
struct msg_peer {
	uint32_t cells;    /* of its memory that we may still fill */
	uint32_t rts;      /* that we may still have unmatched there */
	uint32_t owed;     /* cells of ours that it may fill again and has not been told of */
	uint32_t blocks;   /* sends under way that it has asked for */
	struct list sends; /* waiting to be announced, in order */
};

struct msg {
	struct endpoint *e;
	uint32_t window; /* cells that each rank may fill of another's */
	uint64_t seq;
	struct pool_of sends, recvs, arrivals, cells;
	struct pool_of copies; /* of the lists of parts of sends and receives */
	struct table recv_table, by_key, by_id;
	struct list masked;  /* receives with a mask */
	struct list ordered; /* arrivals */
	struct list clear;   /* sends that move */
	struct list pulls;   /* receives that read from their senders */
	uint32_t wild;       /* receives from any rank, or with a mask */
	uint32_t offers;     /* sources that are lent */
	bool moving;         /* in the middle of its progress */
	bool flush;          /* a queue may go on */
	bool lost;           /* a rank has left, and what needs it may have to be ended */
	uint32_t held;       /* of CELLS_HELD */
	struct msg_peer peer[];
};

static inline struct msg *msg_of(tern *t)
{
	return t->own->layer[LAYER_MSG];
}

/* A wait for the message `id` to or from a rank. */
struct wait msg_wait(const char *call, const char *way, uint32_t rank, tern_id id);

/* Why the pool, of which `what` is one, has no record. */
int msg_refuse(const struct msg *m, const struct pool_of *p, const char *what);
void msg_print(const struct msg *m, int fd);
int msg_lost_error(
	struct msg *m,
	uint32_t rank);       /* of a rank that has left, when all it sent is handled; else 0 */
void msg_busy(struct msg *m); /* tells polls whether there is anything to carry on */

/* -- send.c -- */
void send_over(struct msg *m, struct sending *s, int error);
void send_cancelled(struct msg *m, struct sending *s); /* it is over: it was taken back */
int send_matched(const struct sending *s); /* the error of one that cannot be taken back */
int send_check(struct msg *m, uint32_t dst, unsigned flags);
void send_answer(struct sending *s,
		 int outcome); /* to whoever wants it taken back, and there is one */
void send_flush(
	struct msg *m); /* announces what waits for that, as far as its receivers have room */
/*
 * Puts a send of this rank's memory into the queue, on behalf of `dst`: -EAGAIN when there are too
 * many.
 */
int send_for(struct msg *m, uint32_t dst, tern_id id, const struct layout *l);

/* -- recv.c -- */
void recv_over(struct msg *m, struct receiving *r, int error);
/*
 * Of the receives in that state which match a message of `id` from `src`, the first: IN_USE, it
 * takes the message; IN_PROGRESS, it is just being filled. NULL: there is none.
 */
struct receiving *recv_match(struct msg *m, uint32_t src, tern_id id, enum tern_state state);
/* 0 if `r` can take `len` bytes; otherwise it is over, with the code. */
int recv_accept(struct msg *m, struct receiving *r, uint32_t src, tern_id id, size_t len);
/* The same, and if it can, it has them: it is over. */
int recv_take(struct msg *m, struct receiving *r, uint32_t src, tern_id id, const char *bytes,
	      size_t len);
/* Takes back the receives of a handle; 0, or -EALREADY if one of them was matched. */
int recv_cancel_of(struct msg *m, const tern_op *op, unsigned *found);

/* -- arrival.c: what came and was not expected -- */
struct arrival *arrival_find(struct msg *m, uint32_t src, tern_id id, tern_id mask);
struct arrival *arrival_named(struct msg *m, uint32_t src, uint32_t name);
void arrival_take(struct msg *m, struct arrival *a, struct receiving *r); /* a receive takes it */
void arrival_drop(struct msg *m, struct arrival *a);
void arrivals_forget(struct msg *m); /* the questions of ranks that have left */

/* -- flow.c: the conversation after an RTS -- */
unsigned flow_progress(struct msg *m);
/* The address of a send's data for its receiver to read, or TERN_ADDR_NONE; and its end. */
tern_addr flow_offer(struct msg *m, struct sending *s);
void flow_withdraw(struct msg *m, struct sending *s);
void flow_read(struct msg *m, struct sending *s, int error); /* the receiver has read its share */
/*
 * The receive is ready for its send: what that is told, to be sent as reply or request. False if it
 * is told nothing yet: the receiver reads the data by itself, and tells when it has them.
 */
bool flow_clear(struct msg *m, struct receiving *r, uint64_t words[6]);

/* -- tell.c -- */
enum { TELL_WORDS = 6 };
void tell_words(struct msg *m, uint64_t words[TELL_WORDS], uint32_t to, enum tell kind,
		uint32_t name, int error, tern_id id);
void tell(struct msg *m, uint32_t to, const uint64_t words[TELL_WORDS]); /* outside handlers */
static inline bool tell_due(const struct msg *m, uint32_t to) /* cells should be given back */
{
	return m->peer[to].owed * 2 >= m->window;
}

#endif
