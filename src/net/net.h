/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the core and a network.
 *
 * A network gives the core rings. For every rank that it reaches it provides the
 * lane that requests go into, the inlet that requests come out of, and the same
 * for replies; the core writes and reads those and never asks what lies at their
 * far end. On shared memory it is the peer. On a network of packets it is staging
 * memory: the lane's heed byte is always 0, so each send ends in knock(), which
 * flushes what is staged; and what arrives is written into the inlet's ring by
 * whoever the bell wakes. So the inline path is the same everywhere.
 *
 * What a network of packets lacks (order, room, reliability) is added by services
 * (src/service); `provides` says what need not be added.
 *
 * Every function is called by the thread that has the endpoint. None blocks,
 * none calls a handler. Waiting and the clock belong to the endpoint's world, so
 * that a simulator can own both.
 */
#ifndef TERN_NET_NET_H
#define TERN_NET_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/world.h"
#include "net/block.h"
#include "ring/ring.h"

struct job;
struct net;
struct site;
struct sleep;

enum provides {
	PROVIDES_ORDER = 1,    /* messages of one lane arrive in the order they were sent */
	PROVIDES_ROOM = 2,     /* a message that was sent has a place at its receiver */
	PROVIDES_RELIABLE = 4, /* a message that was sent arrives, or its receiver is lost */
	PROVIDES_SHARED = 8,   /* memory of the peer can be mapped */
};

/* Which ranks a network reaches. An endpoint has at most one of each span. */
enum net_span {
	SPAN_SELF,    /* itself */
	SPAN_MACHINE, /* those of its machine */
	SPAN_JOB,     /* all */
};

/* What a rank tells others of memory that they may reach by themselves. */
struct window {
	uint64_t base, key;
};

/* A move that has ended, and how. */
struct moved {
	uint64_t tag;
	int error;
};

/*
 * Of a network that reads and writes memory of a peer without the peer's program: what is put and
 * got by messages elsewhere can then be moved so. The caller knows that the peer has the memory.
 */
struct net_rma {
	/*
	 * Lets peers reach [base, base + bytes) of this rank, until it closes; 0, or a negative
	 * code without a sentence.
	 */
	int (*expose)(struct net *net, void *base, size_t bytes, struct window *w);
	/*
	 * Begins to move `len` bytes between `local`, which stays as it is until then, and what is
	 * `offset` bytes behind the beginning of `rank`'s window. -EAGAIN: there is no room, later.
	 * A put has ended when the peer would see it.
	 */
	int (*move)(struct net *net, uint32_t rank, const struct window *w, uint64_t offset,
		    void *local, size_t len, bool put, uint64_t tag);
	/* Moves that have ended, up to `n`; each is told once. */
	unsigned (*ended)(struct net *net, struct moved *m, unsigned n);
};

/*
 * Devices that a network is made for, and the question whether this machine has one: in a file of
 * its own, so that tern-link can ask without having the network.
 */
struct net_device {
	const char *network;
	const char *const *folders; /* that are not empty where there is a device */
	bool (*usable)(char *why, size_t len);
};

struct net_ops {
	const char *name;
	const char *reach; /* which ranks, in words */
	enum net_span span;
	/* TERN_NET=auto prefers it where every machine has one. NULL: it needs none. */
	const struct net_device *device;
	/*
	 * What TERN_NET can say if it takes more than the name: a slash and what open() gets. NULL:
	 * the name alone.
	 */
	const char *variants;
	unsigned provides;
	/* The world that its ranks live in, see base/world.h; NULL: the real one. */
	const struct world *world;

	/*
	 * Makes the network of the rank that `site` describes. `job` must outlive it. `local`: the
	 * network among the ranks of this machine, if there is one behind it; else NULL. `how`:
	 * what TERN_NET says behind the name. A code with a sentence.
	 */
	int (*open)(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how);

	/*
	 * Whether it can be used on this machine; if not, why and what to do, in `why`; else how,
	 * or nothing.
	 */
	bool (*usable)(char *why, size_t len);

	/*
	 * Makes the request lane to `rank` and the inlet for its replies, and puts the
	 * inlet into the poll set. -ENOMEM, -ESHUTDOWN, -EOWNERDEAD with a sentence.
	 */
	int (*connect)(struct net *net, uint32_t rank);

	/*
	 * The lane's receiver does not look: tell it. On a packet network: flush. NULL, only where
	 * site.asks: a poll has ended, and what its handlers have replied must leave.
	 */
	void (*knock)(struct net *net, struct tern_lane *lane);

	/* The bell has rung: bring in the inlets of whoever knocked. */
	void (*answer)(struct net *net);

	/*
	 * 0 while `rank` can answer, or what it sent before may still come; -ESHUTDOWN or
	 * -EOWNERDEAD, -EHOSTUNREACH if it was given up though it may live, or -EPROTO if it has
	 * chosen another network, with a sentence that names it. NET_ALL: how many of the ranks it
	 * reaches have left, or cannot be talked with; grows, and a bell rings when it does.
	 */
	int (*check)(struct net *net, uint32_t rank);

	/*
	 * A free block of this endpoint's pool, claimed, of the class that `len` bytes need.
	 * -ENOMEM when the class has no memory yet and gets none, -EAGAIN when every block of
	 * it is in use, -ENOBUFS when this endpoint itself claims or keeps all of them. No
	 * sentence but for -ENOMEM.
	 */
	int (*take)(struct net *net, size_t len, struct block **out);

	/* Takes back the blocks that `rank`, which has left, will never give back. */
	void (*reclaim)(struct net *net, uint32_t rank);

	/* Takes silent peers out of the poll set. Costly, and called rarely. */
	void (*demote)(struct net *net);

	/*
	 * Makes sure that whatever arrives from now on ends the sleep, and adds to `s` what to
	 * sleep on. False if something has arrived already. NULL, then, and after a sleep: undoes
	 * it.
	 */
	bool (*arm)(struct net *net, struct sleep *s);

	/*
	 * The barrier among the ranks this network reaches, and those of the network below it:
	 * arrive() takes a ticket, passed() tells whether everybody has (NET_ALL). The core asks
	 * the last network only. passed() of a rank that has left: whether it had passed the
	 * barrier that the ticket is for; then nothing is missing, and passed() may say so from now
	 * on. False where whoever sees that a rank has left sees what it did before.
	 */
	uint64_t (*arrive)(struct net *net);
	bool (*passed)(struct net *net, uint64_t ticket, uint32_t rank);

	/*
	 * Whether everything that was sent has arrived: asked, for a while, before close(). When it
	 * is late, ranks of this machine that do not poll count as having it: it waits there until
	 * they do. May be NULL: what was sent is where its receiver finds it.
	 */
	bool (*settled)(struct net *net, bool late);

	/*
	 * Writes to standard error how far messages with each rank are, for a wait that is stuck.
	 * May be NULL: there is nothing between the two ends of a ring.
	 */
	void (*report)(struct net *net);

	/* Frees everything. Peers that talk with this endpoint are told. */
	void (*close)(struct net *net);
};

/* Stands for every rank that a network reaches. */
#define NET_ALL UINT32_MAX

/* Whole blocks for `most` bytes, each `step` bytes or a multiple of it behind `at`. */
struct block_range {
	uintptr_t at;
	size_t bytes, step, most;
};

/*
 * One other rank, this one, or a worker, as an endpoint sees it; the network that reaches it fills
 * it.
 */
struct peer {
	struct tern_lane answer;    /* replies to it */
	struct tern_inlet requests; /* from it */
	struct tern_inlet replies;  /* from it */
	const struct pool *pool;    /* where the payloads that it sends nearly always lie */
	struct block_range may[3];  /* blocks that its messages may name */
	/*
	 * Our block for a reply to it, kept for when the pool is empty; NULL where the network has
	 * spares for all peers.
	 */
	struct block *reserve;
	struct net *net;
	bool lost; /* has closed, is gone or dead: nothing can be sent to it any more */
	/* Of a lost one: empty looks left until layers hear of it (core/layer.h). */
	uint8_t draining;
	bool forgiven; /* tern_forgive() */
	bool told;     /* the program was, tern_lost_on() */
	/* The rest of a long reply to it has not left yet: its requests stay behind the gate. */
	bool owing;
};

/*
 * Which line a drain fetches at its first message, so many lines ahead of it. Then it fetches none
 * until a few in a row have been handled: the sender of a burst is about to write these lines. A
 * round trip needs the fetch at its one message: without it the look at the next line would take
 * that line away from the other side, which is about to write it.
 */
enum fetch {
	FETCH_NONE = 0,
	FETCH_NEXT = 2,
	FETCH_ALWAYS = TERN_PREFETCH, /* and at all others, too: whoever polls, and sends */
};

/* An endpoint's side of its networks. */
struct site {
	uint32_t rank, size;
	uint32_t member; /* its place in the job's memory: the rank, or the seat of a worker */
	struct tern_lane *lane;   /* request lanes, one a rank and one a seat */
	struct peer *peer;        /* likewise */
	struct tern_lane *refuse; /* the lane that stands for "no answer is allowed" */
	struct tern_inlet bell;   /* always in the poll set, and its beginning */
	uint32_t pollset;         /* inlets in it, the bell not counted */
	struct tern_inlet *peek;  /* the one that is looked at next */
	/* The number of the light thread that runs; NULL: there are none. */
	uint64_t (*context)(void);
	enum fetch fetch; /* which lines a drain fetches ahead */
	bool asks;        /* a network wants to be asked by every poll: its bell is always rung */
	/* The bell of shared memory, where that is there beside a network that asks. */
	_Atomic uint64_t *behind;
	bool mute;    /* what arrives at such a network cannot raise a signal */
	bool idle;    /* whoever polls waits for it: looking again at once disturbs nobody */
	bool passing; /* whoever polls has sent something and looks in passing */
	/* The progress thread serves memory messages, while the program may write to lanes. */
	bool serving;
	/*
	 * The barrier that arrive() begins is for no message: what was sent need not have landed.
	 */
	bool silent;
	bool timer_armed; /* a knock has left a timer that a computing program would miss */
};

struct net {
	const struct net_ops *ops;
	struct site *site;
	const struct net_rma *rma; /* NULL: it has none, or it is not to be used */
	unsigned provides;         /* with the services that are in force: enum provides */
	struct block_range own;    /* where blocks of this endpoint can lie, */
	struct block_range large;  /* and its large ones */
	struct block_range any[2]; /* blocks that messages of every rank may name */
	struct pool *pool;         /* this endpoint's blocks; NULL until they have memory */
	unsigned blocks; /* how many there are: a network may have more behind those of a pool */
	unsigned next;   /* the one of the pool which is to be taken next */
	unsigned larges; /* large blocks that there are so far */
	struct block
		*spare; /* blocks for replies to any peer, one each; NULL: peers have reserves */
	unsigned spares;
	bool (*spare_more)(struct net *net); /* makes more of them; false: there is no memory */
	uint32_t served; /* entries of site.peer whose requests they may be for */
};

static inline struct block *pool_at(const struct net *net, unsigned i)
{
	return (struct block *)(void *)net->pool + i;
}

static inline struct block *large_at(const struct net *net, unsigned i)
{
	return (struct block *)(net->large.at + i * net->large.step);
}

/* The blocks of the class that `len` bytes need. */
static inline unsigned net_blocks(const struct net *net, size_t len)
{
	return len > TERN_PAYLOAD_MAX ? net->larges : net->blocks;
}

static inline struct block_range blocks_short(const void *at, size_t n)
{
	return (struct block_range){ (uintptr_t)at, n * sizeof(struct block), sizeof(struct block),
				     TERN_PAYLOAD_MAX };
}

static inline struct block_range blocks_large(const void *at, size_t n)
{
	return (struct block_range){ (uintptr_t)at, n * sizeof(struct large_block),
				     sizeof(struct large_block), TERN_REQUEST_MAX };
}

static inline bool range_has(const struct block_range *x, const struct block *b)
{
	uintptr_t offset = (uintptr_t)b - x->at;
	return offset < x->bytes && offset % x->step == 0;
}

/* Whether `b` is a block of this endpoint's. */
static inline bool net_ours(const struct net *net, const struct block *b)
{
	return range_has(&net->own, b) || range_has(&net->large, b);
}

/* Whether [data, data + len) is a block that a message from `rank` may name. */
bool net_owns(const struct net *net, uint32_t rank, const char *data, size_t len);

static inline uint32_t net_left(struct net *net)
{
	return (uint32_t)net->ops->check(net, NET_ALL);
}

static inline void net_disarm(struct net *net)
{
	net->ops->arm(net, NULL);
}

/* An inlet of the poll set where something lies, looking from `in` on; NULL if there is none. */
static inline struct tern_inlet *pollset_find(const struct site *site, struct tern_inlet *in)
{
	for (uint32_t left = site->pollset + 1; left; left--, in = in->next)
		if (inlet_arrived(in))
			return in;
	return NULL;
}

/*
 * Whether something may lie in the poll set, or was announced; not because a network wants to be
 * asked by every poll.
 */
static inline bool pollset_waits(const struct site *site)
{
	struct tern_inlet *found = pollset_find(site, site->bell.next);
	if (!found || !site->asks || found->kind != TERN_KIND_BELL)
		return found;
	return site->behind &&
	       atomic_load_explicit(site->behind, memory_order_relaxed) >= BELL_RUNG;
}

/* The poll set of inlets that are polled. */
void pollset_begin(struct site *site, _Atomic uint64_t *bell);
void pollset_join(struct site *site, struct tern_inlet *in); /* which is not in */
static inline void pollset_add(struct site *site, struct tern_inlet *in)
{
	if (!in->hot)
		pollset_join(site, in);
}
void pollset_remove(struct site *site, struct tern_inlet *in);
bool pollset_has(const struct site *site); /* whether something lies in an inlet of it */

/* Opens both ends that a requester has of a talk, or both that a server has. */
struct rings;
/* The other one is `member`, on behalf of `rank`. The network gives whom it serves a reserve. */
void talk_ask(struct site *site, const struct rings *k, uint32_t member, uint32_t rank,
	      _Atomic uint8_t *heed);
void talk_serve(struct site *site, const struct rings *k, uint32_t member, uint32_t rank,
		_Atomic uint8_t *heed);

/*
 * The block for a reply to `member` while the pool is empty; NULL if it is in use, or all spares
 * are. A gate is open only while there is one. A peer that does not poll has one at most.
 */
struct block *reserve_find(const struct site *site, uint32_t member);
/*
 * Claims it. The gate of `member` closes; and those of all when this was the last spare, and there
 * is no memory for another.
 */
void reserve_claim(struct site *site, uint32_t member, struct block *b);

/* A spare that is free, whoever needs it; NULL if there is none. */
struct block *spare_find(const struct net *net);

/* A free block of the network's pool, claimed; -EAGAIN or -ENOBUFS as net_ops.take. */
int pool_take(struct net *net, size_t len, struct block **out);
void pool_reclaim(struct net *net, uint32_t rank);

#endif
