/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of packets. The core writes messages into a ring and reads messages from a ring, as on
 * shared memory; here both rings are private, and this is their other end:
 *
 *    core   lane -> [ ring of out ] -> place     place -> fill -> [ ring of in ] -> inlet   core
 *                                        |                  ^
 *                                     records of a packet, down and up the services, a datagram
 *
 * The ring of an `out` and the ring of the `in` that it leads to have the same shape, and a ring's
 * layout follows from the messages in it alone. So the two are copies of one another: what has room
 * in one has room in the other, and `freed`, which the consumer over there writes, is all the
 * credit that messages without payloads need.
 *
 * A packet is described by a slice, the places in the rings where it begins and ends, and can be
 * made again from it: messages are kept in their ring, and payloads in their block, until they are
 * acknowledged. Nothing is copied for the sake of sending it again.
 *
 * Invariants.
 *  P1  A line of an `out` is overwritten only after its packet was acknowledged (or, without retry,
 *      sent); where a receiver may refuse what it has no room for, only after it was taken.
 *  P2  A block that a message names is free only then, too, unless its peer is lost.
 *  P3  What is put into an `in` came in a packet that was authenticated and looked through whole: a
 *      packet is taken with everything in it or not at all. Flow that tries takes or refuses
 *      requests and replies separately.
 *  P4  With credits, tokens or permission, what is sent has a place: a line, and a block for its
 *      payload.
 */
#ifndef TERN_NET_PACKET_PACKET_H
#define TERN_NET_PACKET_PACKET_H

#include "base/wrap.h"
#include "job/job.h"
#include "net/net.h"
#include "net/packet/pace.h"
#include "net/packet/terms.h"
#include "net/packet/wire.h"
#include "net/talk.h"

enum {
	STREAM_REQUESTS,
	STREAM_REPLIES,
	STREAMS,

	PACKET_FRONT = 160, /* bytes before the records that headers may take */
	PACKET_TAG = 16,    /* and behind them */
	PACKET_PARTS = 16,
	/* Messages in a packet: an empty ring of replies takes them in any case. */
	PACKET_RECORDS = 120,
	/* Payloads are copied into a packet up to this many bytes, and named above. */
	PACKET_COPY = 512,
	PACKET_BATCH = 32, /* packets sent with one call */
	ROUNDS_MAX = 11,   /* of a barrier */

	/* Blocks that payloads are sent from when a peer is far: those of a second at 16 Mbit/s,
	   and of 16 ms at 1 Gbit/s. */
	POOL_LONG = 256,
	LARGE_LONG = POOL_LONG / (TERN_REQUEST_MAX / TERN_PAYLOAD_MAX), /* as many bytes */
	/* Blocks where payloads land: more than a rank sends at once, so that some can come while
	   others are handled. */
	LANDING = 2 * POOL_LONG,
	LANDING_WORDS = LANDING / 64,
};

/* What the network itself has to say; at most one in a packet, in the place of a record. */
enum news { NEWS_NONE, NEWS_FLOW, NEWS_BARRIER, NEWS_ASK, NEWS_CONFIRM, NEWS_LOST, NEWS_KINDS };

/* How a record begins: handler, number of words, and these. */
enum {
	RECORD_WORDS_SHIFT = 10,
	/* In the place of a number of words: there are more than a line has, and 16 bits that say
	   how many come before them. */
	RECORD_WORDS_MORE = 7,
	RECORD_IS_REPLY = 1 << 13,
	/* Length, offset, bytes here, and bytes that are skipped before those follow the words,
	   each in 16 bits. */
	RECORD_HAS_PAYLOAD = 1 << 14,
	/* The kind is where the handler is; a round and a generation follow. */
	RECORD_IS_NEWS = 1 << 15,
};

/* A place in a ring, and how much of the payload there has been sent. */
struct place {
	char *cursor;
	uint64_t expect, leaf;
	uint32_t offset;
};

/* What a packet carries: from where to where. */
struct until {
	uint64_t leaf;
	uint32_t offset;
};
struct slice {
	struct place from[STREAMS];
	struct until to[STREAMS];
	uint32_t begin[STREAMS];    /* messages before it */
	uint16_t messages[STREAMS]; /* that end in it */
	uint8_t news, round;
	uint64_t generation;
};

/* A packet that was sent: what it takes to send it again. */
enum flight_state { FLIGHT_FLYING, FLIGHT_LANDED, FLIGHT_LOST };
struct flight {
	struct slice slice;
	uint64_t sent; /* when, ns */
	uint32_t bytes;
	uint32_t order;  /* its number there */
	uint32_t number; /* its number in retry */
	uint8_t state;
};

/*
 * What is under way to a peer. A service that sends again keeps it, and the path and other services
 * read it: all zero without one.
 */
struct transit {
	struct flight *window; /* by number; NULL: nothing is sent again */
	uint32_t size;         /* how many there are places for, a power of two */
	uint32_t first, next;  /* numbers that may be under way: [first, next) */
	uint32_t lost;         /* of those, how many are to be sent again */
	uint32_t tries;        /* timeouts in a row, */
	uint64_t overdue;      /* and when the first of them was, ns */
	uint64_t timer;        /* when the first is taken for lost, ns; 0: nothing is under way */
	struct pace pace;
	unsigned unacked; /* packets that have come from the peer and were not acknowledged */
};

/* The place of a packet in the window. */
static inline struct flight *flight_at(const struct transit *t, uint32_t number)
{
	return &t->window[number & (t->size - 1)];
}

/* What a path has of each service; the highest first. */
enum service_kind { SERVICE_FLOW, SERVICE_ORDER, SERVICE_RETRY, SERVICE_KINDS };

/* The network's end of a ring that the core writes. */
struct out {
	struct place next; /* what is sent next */
	struct place done; /* what the peer has not taken, where it may refuse */
	char *base;        /* NULL until the core may write there */
	uint32_t leaf_lines;
	_Atomic uint64_t *freed; /* the core's lane looks at it */
	struct tern_lane *lane;
	uint64_t acked;   /* messages */
	uint64_t sent;    /* messages, all of each */
	uint64_t may;     /* messages that may be begun */
	uint64_t blocks;  /* payloads begun */
	uint64_t allowed; /* that may be */
	bool by_line;     /* a message of two lines counts as two of `may` */
};

/* The network's end of a ring that the core reads. */
struct in {
	struct tern_lane fill;
	struct tern_inlet *inlet;
	_Atomic uint64_t *freed; /* by the core */
	/*
	 * LANDING places. Each is a short block and, of requests, a large one: whichever its
	 * payload needs. So a payload of any length takes one place, and one credit.
	 */
	struct block *landing;
	struct large_block *landing_large; /* NULL: of replies */
	/* A bit for each that may be in use: others surely are not, */
	uint64_t given[LANDING_WORDS];
	uint64_t large[LANDING_WORDS]; /* and a bit for those whose large block was given; */
	unsigned words;                /* and only so many words have ever had one */
	struct block *open;            /* a payload of which more is to come */
	uint32_t got;                  /* bytes of it */
	uint64_t landed;               /* payloads begun */
	struct parcel parcel;
};

/* A packet on its way out. What services write grows towards the front of `bytes`. */
struct packet {
	struct path *path;
	struct flight flight; /* what it is, for who has to send it again */
	bool again;
	bool full;               /* there was more to say */
	unsigned char *at, *end; /* of what is written in `bytes` */
	struct iovec part[PACKET_PARTS];
	int parts;
	size_t named; /* bytes in parts that lie elsewhere */
	unsigned records;
	bool carries[STREAMS]; /* a message of that stream, or a part of one */
	uint64_t context;      /* as of struct outgoing */
	unsigned char bytes[PACKET_FRONT + DATAGRAM_MAX];
};

/* And on its way in. */
struct arrival {
	const unsigned char *at;
	size_t len;
	const unsigned char *floor; /* bytes from here to `at` are needed no more, */
	struct pinned *pinned;      /* if payloads can stay where they are; NULL: they cannot */
};

/* Whether a peer answers, see silence.c. */
enum verdict { VERDICT_WAIT, VERDICT_CUT, VERDICT_REFUSED, VERDICT_LOSSY };
struct silence {
	enum verdict over; /* it was given up, and why */
	bool warned;       /* the user knows that it does not answer */
	unsigned again;    /* how often it came back after a warning */
	/* Since when it has owed an answer, as of the last review, ns; 0: it did not. */
	uint64_t owing;
	uint64_t polls;   /* of the peer, by then; only of one on this machine */
	uint64_t asked;   /* packets and moves of memory that it was last asked about */
	uint64_t lossy;   /* when a loss was found on a wire that promised to lose nothing, ns */
	bool missed;      /* that loss was of what it sent, and nothing behind it is taken */
	struct failure f; /* as of when it was given up */
};

/* One peer. Private memory, zero until it is used; the state of its services lies behind it. */
struct path {
	struct packet_net *net;
	uint32_t rank;
	/* Lost, or given up: nothing is sent to it, though what it sent may still come. */
	bool gone;
	size_t most; /* bytes of a datagram to it; 0: its card is not there yet */
	/* Bytes of headers that the last one had; the next nearly always has as many. */
	size_t front;
	size_t staged;            /* bytes written by the core and not sent, about, */
	unsigned staged_messages; /* and messages */
	uint64_t sent;            /* when messages last were, ns, */
	uint64_t spoken;          /* and when anything first was; 0: never */
	bool heard;               /* something has come from it */
	uint64_t ended;           /* when it was first seen to have left or died, ns; 0: not yet */
	uint64_t empties;         /* looks in vain by then */
	uint64_t due;             /* when it must be looked after, ns */
	bool dirty;               /* among those to be looked after at the next look */
	uint32_t pending_control; /* news to send, a bit each */
	uint64_t token;           /* generation << 8 | round of NEWS_BARRIER */
	uint64_t mark[STREAMS];   /* messages that had been written when the barrier was come to */
	/*
	 * Of a wire that is reliable by itself, where nothing is acknowledged unless it was asked
	 * for.
	 */
	struct {
		uint64_t sent; /* packets that matter: with messages, or tokens */
		/* How many of them the peer was last asked about, plus 1; 0: it has answered. */
		uint64_t asked;
		uint64_t landed; /* of which it said that they have come */
		uint64_t goal;   /* of which it must, for what was marked */
		uint64_t answer; /* what the peer asked about last */
		uint64_t since;  /* when it was asked, ns */
		uint64_t moves;  /* of memory, by the wire itself: they have no packet */
	} confirm;
	struct silence silence;
	unsigned ahead;    /* packets sent in */
	uint64_t ahead_in; /* that round */
	struct out out[STREAMS];
	struct in in[STREAMS];
	struct transit transit;
	void *state[SERVICE_KINDS]; /* of services in force, behind the path; NULL for others */
	struct talk ask, serve;     /* what we request, and what it does */
	struct block landing[STREAMS][LANDING];
	struct large_block large[LANDING]; /* of requests */
};

/*
 * Who may speak, and how that is known. A datagram begins with DATAGRAM_HEAD bytes of the guard's,
 * and may end with PACKET_TAG of them.
 */
enum { DATAGRAM_HEAD = 16 };
enum seal { SEAL_BROKEN, SEAL_UNMET, SEAL_GOOD };
struct guard_ops {
	bool (*open)(struct packet_net *n,
		     uint32_t rank); /* makes keys; false if its card is not there yet */
	/* Fills the bytes from k->at, and adds to the last part. */
	void (*seal)(struct packet_net *n, struct packet *k);
	/*
	 * Takes off what seal() put on. SEAL_BROKEN if it is to be dropped. That has been counted
	 * if it is not of this job or session, not of the rank it claims, or has come before; or it
	 * comes behind a gap on a wire that promised none, and silence_missed() knows. SEAL_UNMET
	 * if that rank's card is not there yet, so that nobody can tell.
	 */
	enum seal (*unseal)(struct packet_net *n, struct datagram *d, uint32_t *rank,
			    struct arrival *a);
	void (*close)(struct packet_net *n);
};

struct service;

/* See barrier.c. */
enum barrier_stage { BARRIER_OVER, BARRIER_LANDING, BARRIER_LOCAL, BARRIER_ROUNDS };
struct barrier {
	uint64_t arrived, passed; /* generations, */
	uint64_t told;            /* and that of which all tokens have been sent */
	enum barrier_stage stage;
	bool silent;            /* the one under way waits for no message */
	uint64_t ticket;        /* of the machine's own barrier */
	unsigned round, rounds; /* the one whose token is awaited */
	uint64_t heard[ROUNDS_MAX];
	uint32_t machine, machines; /* ours among them */
	/* Ranks, by machine; and where those of each begin, up to one behind the last. */
	uint32_t *member;
	uint32_t *first;
	uint32_t place; /* ours among those of our machine */
};

/* How the wire calls a program that computes. */
struct call {
	bool on;        /* what arrives raises the signal, */
	int32_t thread; /* of which thread; 0: not said yet */
	int signal;
};

struct packet_net {
	struct net net;
	struct job *job;
	struct wire *wire;
	unsigned records; /* that a packet may have, at most PACKET_RECORDS */
	const struct guard_ops *guard;
	void *keys;        /* the guard's */
	bool copies;       /* payloads into packets, because their bytes are changed there */
	bool confirms;     /* the wire is reliable, and nobody acknowledges */
	unsigned services; /* enum provides: those that are added; and FLOW_SHIFT */
	const struct service *flow;     /* the strategy; NULL without flow */
	const struct service *layer[4]; /* the highest first */
	unsigned layers;
	/* How an arrival goes up: the records' own at 0, then each layer's, the highest first. */
	bool (*up[5])(struct path *p, struct arrival *a, unsigned level);
	bool (*ready[4])(struct path *p); /* of those layers that have one */
	unsigned readies;
	void (*hear)(struct path *p); /* of the layer that has one, or NULL */
	const struct service *const *service_table;
	size_t path_bytes;  /* of a path and the state of its services */
	struct path **path; /* one a rank; NULL until the two talk */
	uint32_t *active;   /* ranks with a path */
	uint32_t actives;
	uint32_t *dirty; /* ranks where something is to be done */
	uint32_t dirty_count;
	uint32_t *flushing;    /* those of the look under way */
	uint64_t due;          /* when the first of the others wants to be looked after */
	_Atomic uint64_t bell; /* always rung: a poll asks the network */
	_Atomic uint8_t heed;  /* always 0: a send ends in a knock */
	struct packet *batch;  /* PACKET_BATCH of them */
	unsigned filled;
	bool replied;  /* a reply was written since the last poll, and not sent */
	bool put_off;  /* the last look brought one packet, and dirty paths were not looked after */
	bool sleeping; /* the bell says so */
	bool leaving;  /* packet_settled() was asked */
	/* After this look there may be none for long: nothing that can be said is put off. */
	bool resting;
	struct call call;
	uint64_t now, looked; /* ns */
	uint64_t ticked;      /* when the clock was last asked by who sends, in ticks */
	uint64_t empties;     /* looks that found nothing */
	uint64_t round;       /* looks at which nothing was held back for company */
	uint32_t known_left;
	/* Shared memory with the ranks of this machine; NULL: they are reached like all others. */
	struct net *local;
	int wake;             /* a socket of loopback that ends a sleep */
	struct terms terms;   /* ours, */
	uint8_t *met;         /* and whether those of each rank are the same, see terms.c; */
	uint64_t patience;    /* with a rank that owes an answer, ns; 0: it has no end */
	bool fails;           /* such a rank is given up, and not only warned of */
	uint32_t unreachable; /* ranks that were given up */
	struct unmet *unmets; /* datagrams of ranks whose card has not come yet, in their order, */
	size_t unmet_bytes;   /* and what they take */
	uint32_t unmet;       /* those ranks, */
	uint32_t strangers;   /* and those who have others */
	uint64_t review, review_gap; /* when cards are looked for again, ns */
	struct barrier barrier;
	/* Where packets are counted, and what has gone wrong and was dealt with. */
	struct pulse *pulse;
};

static inline struct packet_net *packet_of(struct net *net)
{
	return (struct packet_net *)(void *)net;
}

static inline void packet_count(struct packet_net *n, enum pulse_count what, uint64_t packets)
{
	stats_add(&n->pulse->count[what], packets);
}

/* Packets sent since whatever was staged had to leave. */
static inline unsigned path_ahead(const struct path *p)
{
	return p->ahead_in == p->net->round ? p->ahead : 0;
}

/* Where payloads of a stream are counted from. */
static inline uint64_t payload_first(void)
{
	return wrap_first(32, 0);
}

/* -- record.c: walking along a ring -- */
const tern_msg *place_look_on(const struct out *o, struct place *p); /* over control lines */

/* Whether the ring goes on there, be it with a control line. */
static inline bool place_has(const struct place *p)
{
	const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
	uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
	return !(x >> TERN_LAP_SHIFT);
}

/* The message there; NULL if there is none. */
static inline const tern_msg *place_look(const struct out *o, struct place *p)
{
	const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
	uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
	if (TERN_LIKELY(x < TERN_HEAD_CONTROL))
		return m;
	return x >> TERN_LAP_SHIFT ? NULL : place_look_on(o, p);
}

/* Over a turn, if there is one: the line that it lies in may be given back. */
static inline void place_settle(const struct out *o, struct place *p)
{
	if (place_has(p))
		place_look(o, p);
}

static inline void place_pass(struct place *p, const tern_msg *m)
{
	p->cursor += head_bytes(atomic_load_explicit(&m->head, memory_order_relaxed));
	p->offset = 0;
}

/* -- record.c: messages become records -- */
/*
 * Writes what fits of what has been staged, and says in the packet's slice what that is. False if
 * it is nothing.
 */
bool record_write(struct path *p, struct packet *k, size_t most);
void record_again(struct path *p, struct packet *k); /* the packet's slice, once more */
void record_landed(struct path *p,
		   const struct slice *s); /* acknowledged, though others before it may not be, */
void record_acked(struct path *p, const struct slice *s); /* and those too */

/* -- landing.c: and messages again -- */
bool landing_take(struct path *p, struct arrival *a, unsigned level); /* all, or nothing: false */
/* Of the streams `wanted`, a bit each, those that go on where the last left off and have room. */
struct landing {
	unsigned present, taken, full; /* streams in the packet; taken; without room */
};
struct landing landing_take_each(struct path *p, const struct arrival *a, unsigned wanted);
void landing_forget(struct in *in);            /* the payload of which more was to come */
uint64_t landing_begun(const struct in *in);   /* messages, since ever */
unsigned landing_lines(const struct in *in);   /* that the ring surely has room for */
unsigned landing_free(const struct in *in);    /* blocks */
uint64_t landing_allowed(const struct in *in); /* payloads that may be begun, since ever */

/* -- path.c -- */
struct path *path_to(struct packet_net *n, uint32_t rank); /* made if need be; NULL: no memory */
void path_ask(struct path *p);                             /* our requests to it, and its replies */
void path_serve_open(struct path *p);                      /* the same the other way round, */
static inline void path_serve(struct path *p)              /* if it has not been */
{
	if (TERN_UNLIKELY(!p->in[STREAM_REQUESTS].fill.base))
		path_serve_open(p);
}
/* Something is to be done for it at the next look. */
static inline void path_mark_dirty(struct path *p)
{
	if (p->dirty)
		return;
	p->dirty = true;
	p->net->dirty[p->net->dirty_count++] = p->rank;
}
/* Sends what may be sent; `all`: though more might join it. */
void path_pump(struct path *p, bool all);
bool path_full(const struct path *p);  /* what is staged makes a packet */
bool path_quiet(const struct path *p); /* everything was acknowledged */
void path_mark(struct path *p);        /* what has been written by now, */
bool path_landed(struct path *p);      /* and whether that has come to its receiver */
void path_question(struct path *p); /* asks it to say that all has come; one question at a time */
void path_give_up(struct path *p);
void path_wake(struct path *p, uint64_t due); /* to be looked after then */
void path_service(struct path *p, bool all);  /* its services, its time, what is staged */

/*
 * Where the first message of a stream begins that may be sent again; where the next one does if
 * there is none.
 */
const struct place *path_unacked(const struct path *p, unsigned stream);

/* -- unmet.c: datagrams that came before the card of who sent them -- */
enum { CARD_NS = 1000000 }; /* between two looks for a card */
bool unmet_keeps(const struct packet_net *n, uint32_t rank);
void unmet_keep(struct packet_net *n, uint32_t rank, const struct datagram *d);
void unmet_review(struct packet_net *n); /* takes in those whose card has come */
void unmet_forget(struct packet_net *n, uint32_t rank);
void unmet_close(struct packet_net *n);

/* -- silence.c: peers that do not answer -- */
int silence_open(struct packet_net *n);        /* -EINVAL with a sentence for a bad setting */
int unreachable_judge(void);                   /* TERN_UNREACHABLE */
uint64_t silence_review(struct packet_net *n); /* when it wants to be asked again, ns */
void silence_missed(struct packet_net *n,
		    uint32_t rank);          /* packets of `rank` were lost on a reliable wire */
void silence_told(struct path *p);           /* it has missed some of ours */
void silence_watch(struct path *p);          /* from now on, */
bool silence_computes(const struct path *p); /* it is of this machine and has not polled since */
int silence_check(struct path *p);           /* 0, or -EHOSTUNREACH with a sentence */

/* -- post.c: packets in and out -- */
void post_take(struct packet_net *n, struct datagram *d); /* one that has come */
struct packet *post_begin(struct path *p);
void post_end(struct packet *k); /* with the headers of its services */
void post_flush(struct packet_net *n);
void post_send(struct packet_net *n);           /* whatever may be sent */
void post_look(struct packet_net *n, bool all); /* receives, minds the time, sends */
uint64_t post_due(struct packet_net *n);

/* -- packet.c -- */
struct packet_options {
	struct net *local;
	struct wire *wire;
	const struct guard_ops *guard;
	void *keys;
	bool copies;
	struct terms terms; /* without a name of the network: whatever others have */
	const struct service *const
		*services; /* that may be added to the wire, as service_list; service.h */
};
int packet_open(struct packet_net *n, const struct net_ops *ops, struct site *site, struct job *job,
		const struct packet_options *o);
void packet_free(struct packet_net *n); /* what packet_open() has made */
/* The same, with its guard and wire, and its own memory. */
void packet_dispose(struct packet_net *n);
void packet_close(struct net *net);
int packet_connect(struct net *net, uint32_t rank);
void packet_knock(struct net *net, struct tern_lane *lane);
void packet_answer(struct net *net);
void packet_report(struct net *net);
int packet_check(struct net *net, uint32_t rank);
int packet_take(struct net *net, size_t len, struct block **out);
void packet_reclaim(struct net *net, uint32_t rank);
void packet_demote(struct net *net);
bool packet_arm(struct net *net, struct sleep *s);
bool packet_settled(struct net *net, bool late);

/* -- barrier.c -- */
uint64_t packet_arrive(struct net *net);
bool packet_passed(struct net *net, uint64_t ticket, uint32_t rank);
int barrier_open(struct packet_net *n);
void barrier_close(struct packet_net *n);
void barrier_token(struct packet_net *n, unsigned round, uint64_t generation);
void barrier_go_on(struct packet_net *n);
void barrier_tell(struct packet_net *n); /* after a flush: whether our part in it is over */

/* What every network of packets has in its table. */
#define PACKET_OPERATIONS                                                            \
	.connect = packet_connect, .knock = packet_knock, .answer = packet_answer,   \
	.check = packet_check, .take = packet_take, .reclaim = packet_reclaim,       \
	.demote = packet_demote, .arm = packet_arm, .arrive = packet_arrive,         \
	.passed = packet_passed, .settled = packet_settled, .report = packet_report, \
	.close = packet_close

#endif
