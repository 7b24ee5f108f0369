/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated machine: what happens when. One clock orders everything.
 *
 * The machine lies in memory that all processes of the job map, so it has no pointers: what is
 * kept there is named by its index. Whoever runs drives it. A process runs until it has to wait
 * for the clock; the last one to wait takes the next event, and the next, until one of them wakes
 * a process. That one goes on, and no other runs meanwhile. So a switch from rank to rank costs
 * one switch of processes, and no process of its own does the simulating.
 *
 * Time is in picoseconds. Events of one time happen in the order of `order`: what a rank does is
 * numbered by the rank, what the network does by the network. So the order does not depend on
 * which process came first, and a run with a seed is the same each time on any number of cores.
 */
#ifndef TERN_NET_SIM_MACHINE_MACHINE_H
#define TERN_NET_SIM_MACHINE_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/chance.h"
#include "net/packet/wire.h"
#include "net/sim/machine/profile.h"
#include "net/sim/machine/use.h"

#define NEVER UINT64_MAX   /* a time, ps */
#define NOTHING UINT32_MAX /* an index */

enum { PS_NS = 1000 };

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

enum event_kind {
	EVENT_RESUME,  /* process `what` goes on, if it still waits for the `stamp`th time */
	EVENT_INJECT,  /* packet `what` leaves its node; `stamp`: its jitter is over */
	EVENT_ARRIVE,  /* packet `what` is at its destination, unless that took it (`stamp`) */
	EVENT_HANDLE,  /* the controller there has done with packet `what` */
	EVENT_CRASH,   /* node `what` ends */
	EVENT_NETWORK, /* the network's own: `what`, `stamp` */
	EVENT_LEFT,    /* the network's, too: flits of packet `what` have left its node */
};

struct event {
	uint64_t time, order;
	uint32_t what, stamp;
	uint32_t kind;
};

/* SCMP's types of messages: those that create threads, requests to send, answers to them, data. */
enum travel_type { TYPE_DATA, TYPE_THREAD, TYPE_RTS, TYPE_CTS, TYPES };

/* A packet in the network interface unit (NIU) of SCMP. */
struct niu_part {
	bool own;       /* the NIU sends it by itself: it is in no queue, */
	bool data;      /* and these are the data of a rendezvous */
	bool told;      /* its sender's RTS is answered, */
	bool clears;    /* by a CTS: the data may be sent */
	bool ends;      /* a thread ends with it, whose context is not free yet */
	bool watched;   /* the network says when its flits have left the node */
	uint32_t queue; /* that it is in, plus 1; 0: none */
	uint32_t name;  /* of RTS and CTS: the send's, and of its data: the receive's, */
	uint32_t other; /* of a CTS: the receive's */
	uint64_t total; /* of an RTS: bytes of the data */
	uint64_t after; /* of data: bytes of the message that later packets have */
	uint64_t mark;  /* flits that its queue ever held, up to it */
};

/* What travels. Its bytes lie in cells of the machine. */
struct travel {
	uint32_t src, dst;
	uint32_t bytes;     /* of the datagram, */
	uint32_t words;     /* arguments and data of the message in it, which are charged for, */
	uint32_t size;      /* and its bytes in the simulated network */
	uint32_t class;     /* enum packet_class */
	uint32_t cells;     /* the first of those that hold the bytes, */
	uint32_t room;      /* and how many there are, as a power of two */
	uint32_t next;      /* behind it in a queue */
	uint32_t args;      /* words of 8 bytes besides the data, */
	uint32_t registers; /* those of them that are not the library's own, */
	uint32_t data;      /* and bytes of data, of the message in it */
	bool damaged;       /* on its way */
	bool library;       /* its handler is the library's */
	enum travel_type type;
	struct niu_part niu; /* what SCMP's network interface knows of it */
	uint64_t context;
	uint64_t hold;          /* ps that its sender takes from its head to its tail, at least */
	uint64_t sent, arrived; /* ps; `arrived` is set as soon as it is known */
	uint32_t stamp;         /* of its EVENT_ARRIVE; an older one means nothing */
	uint64_t mine[2];       /* the network's, while it has the packet */
};

/* The first and last of a queue of packets. */
struct queue {
	uint32_t first, last;
};

struct node {
	uint32_t process; /* that it is simulated in */
	bool present, left;
	uint32_t coming;    /* packets to it that were sent and are not there, */
	uint32_t dated;     /* those of them whose arrival is known, */
	struct queue due;   /* in the order of that */
	struct queue inbox; /* packets that have arrived and were not taken */
	uint64_t free;      /* when its way into the network is, */
	uint64_t drained;   /* and its way out of it */
	uint64_t numbered;  /* what it has done, for `order` */
	uint64_t busy;      /* until when its controller is, or the way in of that, */
	uint64_t drawn;     /* and the way out */
	uint64_t latest;    /* when the last packet that it has sent enters */
	uint32_t threads;   /* contexts that threads of others have, on SCMP */
	uint64_t sent, received, sent_bytes, received_bytes;
};

/* A process has the number of the first node that it simulates. */
enum process_state { PROCESS_NONE, PROCESS_RUNS, PROCESS_WAITS, PROCESS_LEFT };

struct process {
	_Atomic uint64_t go; /* nonzero: it has the baton */
	uint32_t state;
	int32_t pid;
	uint32_t nodes;   /* of it that are open, */
	uint32_t pending; /* and packets in their inboxes */
	uint32_t stamp;   /* of its wait */
	uint64_t time;    /* how far it has come, ps; ahead of the clock while it runs */
	uint64_t since;   /* when it began to look in vain, ps; NEVER: it does not */
	uint64_t step;    /* of a wait for arrivals: it looks once in so many ps */
	bool suspended;   /* it waits for room in a transmission queue */
	uint64_t numbered;
};

/* What all processes share; arrays behind it. */
struct shared {
	_Atomic uint32_t state; /* 0: nobody has begun, 1: being made, 2: made */
	_Atomic uint32_t lock;
	_Atomic uint32_t opened; /* ranks, */
	uint32_t nodes, present; /* of so many; and those that have joined */
	uint32_t running;        /* processes */
	uint32_t events;         /* in the heap */
	uint32_t broken;         /* enum fault_kind, why the simulation cannot go on; 0: it can */
	uint64_t clock;
	uint64_t numbered;       /* what the network has done, for `order` */
	uint64_t happened;       /* events */
	uint64_t switches;       /* from process to process, */
	uint64_t looked;         /* and when they were last looked at, in real time, ns */
	uint32_t core;           /* that processes gather on, plus 1; 0: on none (core.c) */
	uint64_t cpu;            /* time of processes that have left, since all had opened, ns */
	uint32_t travels, cells; /* that were ever in use */
	uint32_t free_travel;
	uint32_t free_cells[16]; /* by size */
	uint32_t underway;       /* packets in the network */
	struct chance chance;
	uint64_t dropped, damaged; /* packets */
	uint64_t delivered;
	uint64_t flight;   /* from sending to arrival, of all of them, ps */
	uint64_t ended;    /* how far the node that was last came, ps */
	uint32_t gone;     /* nodes that have left */
	uint32_t crashing; /* a rank that ends now, plus 1; 0: none */
};

/* A light thread of this process, as its node sees it. */
enum { THREADS = 64 }; /* by its number, modulo */
struct thread {
	uint64_t idled; /* when it last had nothing to do, plus 1 */
	uint64_t mark;  /* flits that its transmission queue ever held, up to its last message */
};

enum {
	EVENTS_MOST = 1 << 22,
	TRAVELS_MOST = 1 << 22,
	CELL = 64, /* bytes */
	CELLS_MOST = 1 << 25,
	CELLS_SHIFTS = 11, /* the most bytes a packet can have, as cells: 128 KiB */
};

struct sim_network;

/* A process's view of the machine, or that of a program that plays a pattern. */
struct machine {
	struct profile profile;
	struct shared *shared;
	struct node *node;
	struct process *process;
	struct event *heap;
	struct travel *travel;
	unsigned char *cell;
	void *network; /* the network module's */
	const struct sim_network *net;
	struct use *use;       /* of each part of each node, and of each link */
	struct niu_queue *niu; /* of each node and thread, for SCMP */
	uint32_t width;        /* nodes in a row, of a grid */
	uint64_t ahead; /* what a rank does now, no other can see before so many ps have passed, */
	uint64_t least; /* nor what enters the network now */
	uint64_t measured; /* CPU time of our thread when it left the machine, ns */
	uint64_t began;    /* that of our process when all ranks had opened, ns */
	const struct sim_controller *controller;
	bool serving;        /* a handler of the library's runs on the controller, */
	uint64_t served;     /* at this time */
	uint64_t told;       /* the latest time that the rank has seen, ns */
	unsigned working;    /* threads that compute */
	uint64_t running;    /* the thread that did something last */
	bool met;            /* every rank has opened */
	uint32_t woken;      /* a process that has the baton and sleeps still; NOTHING */
	bool rested;         /* our process has just looked, in a wait of the library */
	bool active;         /* it has taken or sent something since it last looked in vain */
	bool scout;          /* others follow it to where it wakes */
	uint32_t core;       /* shared->core when our process last looked */
	uint32_t self;       /* our process; NOTHING: none, a pattern */
	uint64_t waits;      /* waits of our process for the machine, so far */
	uint64_t crash_wait; /* it crashes in that one; 0: in none. Tests set it */
	size_t bytes;
	struct job *job;                                          /* NULL: a pattern */
	void (*resume)(struct machine *m, const struct event *e); /* EVENT_RESUME */
	/* A packet has arrived and lies in the inbox of its destination. */
	void (*arrived)(struct machine *m, uint32_t travel);
	void (*room)(struct machine *m, uint32_t node); /* in one of its transmission queues */
	void (*crash)(struct machine *m, uint32_t node);
	void (*blocked)(struct machine *m); /* packets block each other, for ever */
	struct thread thread[THREADS];      /* last: what each run needs lies together */
};

/* -- Making it ------------------------------------------------------------------------------ */

size_t machine_bytes(const struct profile *p, uint32_t nodes);
/* Lays the view over `base`, which has machine_bytes() and is zero where nobody has begun. */
void machine_lay(struct machine *m, void *base, uint32_t nodes);
void machine_init(struct machine *m, uint32_t nodes);

/* -- Events --------------------------------------------------------------------------------- */

void event_add(struct machine *m, const struct event *e);
/* The network's own: what happens at `time`. */
void event_network(struct machine *m, uint64_t time, enum event_kind kind, uint32_t what,
		   uint32_t stamp);
bool event_next(struct machine *m, struct event *e);
/* Lets the first event happen. False if there is none. */
bool machine_step(struct machine *m);

/* -- Packets --------------------------------------------------------------------------------- */

/* A packet of `bytes` bytes; NOTHING if there is no room. */
uint32_t travel_new(struct machine *m, uint32_t bytes);
void travel_free(struct machine *m, uint32_t travel);
static inline unsigned char *travel_data(struct machine *m, uint32_t travel)
{
	return m->cell + (size_t)m->travel[travel].cells * CELL;
}
void queue_put(struct machine *m, struct queue *q, uint32_t travel);
uint32_t queue_take(struct machine *m, struct queue *q);
static inline bool queue_empty(const struct queue *q)
{
	return q->first == NOTHING;
}

/* The packet enters the network, now. */
void machine_enter(struct machine *m, uint32_t travel);
/* The network hands a packet over at its destination, now. */
void machine_deliver(struct machine *m, uint32_t travel);
/* The first packet of `due` arrives, though the clock may not have come to that. */
void machine_early(struct machine *m, struct node *n);
/* Drops events at the front of the heap that mean nothing any more. */
void event_skip(struct machine *m);
/* The processor takes it from the inbox at `time`. */
void machine_taken(struct machine *m, uint32_t travel, uint64_t time);

/* -- Processes (baton.c) ------------------------------------------------------------------------
 */

void machine_lock(struct machine *m);
void machine_unlock(struct machine *m);
/* This process simulates `node` from now on. */
void baton_join(struct machine *m, uint32_t node);
void baton_leave(struct machine *m, uint32_t node);
/*
 * Goes on when `until` has come or, if `step`, a packet has arrived at a node of this process:
 * then at the first multiple of `step` behind the present time. True if one has.
 */
bool baton_wait(struct machine *m, uint64_t until, uint64_t step);

enum { PATIENCE = 8 }; /* the part of a wait so far that a look in vain takes */

/*
 * Looks in vain for the `part`th part of the time that it has done so already, up to 0.1 s, at
 * least for `least`; if something is `due` before that, until then, and once that has passed for
 * the PATIENCEth part. It is a multiple of `poll`, so it ends when a rank that looks each `poll`
 * looks. A machine whose nodes have all done nothing else for STUCK_PS stands still.
 */
bool baton_look(struct machine *m, uint64_t part, uint64_t least, uint64_t due);

/* Whether a packet is on its way to a node of this process. */
bool baton_coming(const struct machine *m);

static inline uint64_t baton_time(const struct machine *m)
{
	return m->process[m->self].time;
}

/*
 * With `cpu`, the time that the program computes is measured: from baton_measure_begin(), where our
 * process leaves the machine, to baton_measure_end(), where it comes back.
 */
void baton_measure_begin(struct machine *m);
void baton_measure_end(struct machine *m);

/* CPU time counts as the simulation's from here on: every rank has opened. */
void baton_begin(struct machine *m);

/* The processor does something. */
static inline void baton_charge(struct machine *m, uint64_t ps)
{
	m->process[m->self].since = NEVER;
	m->process[m->self].time += ps;
}

/* The processor goes on with the light thread of that number. */
void baton_thread(struct machine *m, uint64_t number);
struct thread *baton_thread_of(struct machine *m, uint64_t number);
/*
 * The thread is suspended. If there is no other, or every other one has nothing to do either, time
 * goes on until a transmission queue has room, or a packet comes.
 */
void baton_idle(struct machine *m, uint64_t number, bool others);

/* -- The core (core.c) ------------------------------------------------------------------------- */

/* The baton goes to another process. */
void core_switched(struct machine *m);
/* Our process has the baton, and shared->core is another one, or it is the scout. */
void core_follow(struct machine *m);
/* Our process may run where it might before. */
void core_free(struct machine *m);

/* -- Packets of this process (baton.c) ----------------------------------------------------------
 */

/* The first packet that has arrived at `node`; NOTHING. It is for travel_free(), under the lock. */
uint32_t baton_take(struct machine *m, uint32_t node);
/* Sends a packet from `src`, now; it leaves when the event comes. */
uint32_t baton_send(struct machine *m, uint32_t src, const struct outgoing *o);

#endif
