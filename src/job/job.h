/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's shared memory: one memfd, mapped whole by every rank of the machine
 * and by the launcher. It has no name, so nothing is left when its processes
 * are gone, however they went.
 *
 * A job over several machines has such a memory on each, with a place for every rank of the job.
 * What lies in the places of ranks that are not here is what was told of them
 * (job/exchange.h).
 *
 * The file is sparse. The front (head, ranks, heed bytes, bells, pulses) is committed
 * when the job is made. Behind it lie a pool of payload blocks per rank, committed when it
 * first sends a payload; its spare blocks for replies, committed when it opens; what it knows of
 * the heaps, committed when it first uses one; its regions, committed as it registers them; a page
 * per pair, committed when it first talks, and the large rings of pairs that keep talking
 * (net/talk.h); and the statistics of ranks that count. Nothing is touched before it is committed,
 * so too little memory is an error from a call and never a SIGBUS.
 */
#ifndef TERN_JOB_JOB_H
#define TERN_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cgroup.h"
#include "base/process.h"
#include "job/stats.h"

#define JOB_MAGIC UINT64_C(0x314e524554) /* "TERN1" */

#define JOB_PHASE_LEFT UINT64_C(0xffff) /* of `phase`: how many ranks have left */

enum { JOB_KEY = 32 };

/* Of job_head.fabric. */
enum job_fabric { FABRIC_UNKNOWN, FABRIC_SOME, FABRIC_ALL };

enum rank_state {
	RANK_EXPECTED, /* not opened yet in this session; messages to it wait in their rings */
	RANK_OPEN,
	RANK_CLOSED, /* has left this session */
	RANK_GONE,   /* its process ended with status 0, and was not open */
	RANK_DEAD,   /* its process failed, or ended while it was open */
};

/* What every rank of a job shares. Each hot word has a line of its own. */
struct job_head {
	uint64_t magic;
	uint32_t stamp; /* build_stamp of who made the job */
	uint32_t size;
	uint32_t seats;  /* that workers can take; see job/seat.c */
	uint32_t cores;  /* that the ranks share; each may be bound to fewer */
	uint64_t heap;   /* bytes of addresses for each rank's heap */
	uint64_t budget; /* bytes that may be committed in all */
	_Atomic uint64_t committed;
	_Atomic uint64_t phase; /* of the session: see session.c */
	/* Of this machine, from 1: the ranks of another may be in the next already. */
	_Atomic uint64_t session;
	/* How often a rank has asked whether its status records were sent; how often they were. */
	_Atomic uint32_t asked, carried;
	/* The process that watches the ranks here, under another launcher; 0: none. */
	_Atomic int32_t link;
	struct process_name launcher; /* which it watches, too */
	uint32_t machine, machines;   /* which one this is of how many */
	uint32_t here;                /* ranks that are on it */
	/* enum job_fabric: whether all machines have one, once it is known. */
	_Atomic uint32_t fabric;
	uint32_t grant;        /* TERN_GRANT of whoever made the memory, so the same for all */
	_Atomic uint32_t weak; /* a rank cannot take part in membarrier: nobody may rely on it */
	_Atomic uint32_t seats_used; /* seats that have been taken in this session */
	_Atomic uint32_t sleepers;   /* ranks in a futex; the barrier's last rank wakes them */
	_Atomic uint64_t end;        /* the rank that ended the job, and with which status: end.c */
	/* Port of loopback where a byte says that `end` is written; 0: nobody listens. */
	_Atomic uint32_t end_port;
	/* And where one says that a status record of a rank here has changed; 0: nobody asks. */
	_Atomic uint32_t notice;
	uint32_t end_signal;  /* with which the launcher ends ranks; 0: SIGTERM */
	uint64_t id;          /* of this job, on all its machines: names it and is no secret */
	uint8_t key[JOB_KEY]; /* of this job, made with it: what authenticates its datagrams */
	_Alignas(64) _Atomic uint64_t arrived; /* barrier: ranks that have come, over all rounds */
	_Alignas(64) _Atomic uint64_t generation; /* barrier: rounds completed */
};

/*
 * Private memory that a rank has registered. Written by that rank, except for `users`. Which one an
 * address is of follows from the address.
 */
struct job_region {
	_Alignas(64) _Atomic uint64_t first; /* what the first byte's address has as its offset */
	_Atomic uint64_t base; /* address in its process; 0 when the region is not in use */
	_Atomic uint64_t bytes;
	_Atomic uint32_t users; /* transfers under way by ranks that move the bytes themselves */
	_Atomic uint32_t lent;  /* by a layer, for a while: not the program's */
	/*
	 * What it is mapped from, for others to map, too: a descriptor of its owner, plus 1, or 0.
	 */
	_Atomic uint32_t fd;
	_Atomic uint64_t file_at; /* where the region begins in the file; a multiple of a page */
	_Atomic uint64_t inode;   /* of the file, for a descriptor may have been closed */
};

/* By length; those of a program, and all, some of which layers lend. */
enum { JOB_REGION_CLASSES = 3, JOB_REGIONS_OWN = 16384, JOB_REGIONS = 16384 + 1024 + 32 };
enum { JOB_REGION_BYTES = (JOB_REGIONS * sizeof(struct job_region) + 4095) / 4096 * 4096 };

/* What a rank says to all others of its machine in a call that all of them make. */
struct job_offer {
	_Alignas(64) _Atomic uint64_t ready; /* the call, plus 1 */
	uint64_t words[7];
};

struct job_rank {
	_Alignas(64) _Atomic uint64_t bell;  /* enum bell; looks like a line's header to the poll */
	_Atomic uint32_t workers_wait;       /* that may sleep until a word of it changes */
	_Alignas(64) _Atomic uint32_t state; /* enum rank_state */
	_Atomic int32_t pid;
	_Atomic int32_t thread, signal; /* whom to call, and how, when the bell says so */
	/* When that process began, if others watch it: pids are used again. */
	_Atomic uint64_t born;
	_Atomic uint64_t heap;          /* bytes committed from the beginning of its heap */
	_Atomic uint64_t word;          /* what ranks that make a call together compare */
	_Atomic uint64_t common;        /* and from its middle, which all ranks allocate alike */
	_Atomic uint64_t passed;        /* barriers that go by messages, in its session, */
	_Atomic uint64_t passed_before; /* and in the one before that */
	/* The session for which `passed` was last moved to `passed_before`. */
	_Atomic uint64_t moved;
	uint32_t machine;        /* that it is on */
	_Atomic uint32_t node;   /* NUMA node that it was on when it opened, plus 1 */
	_Atomic uint64_t serial; /* grows with whatever its status record says */
	/* What its machine said of it: session << 8 | state; nothing of a rank that is here. */
	_Atomic uint64_t told;
	/* The member of a worker that it writes a request for now, or 0: see core/target.c. */
	_Atomic uint32_t sending;
	/* Bytes that others have stored here and nobody has taken off. */
	_Alignas(64) _Atomic uint64_t stored;
	_Alignas(64) _Atomic uint32_t regions[JOB_REGION_CLASSES]; /* that may be touched */
	_Atomic int32_t status; /* as from waitpid, of a rank that is gone or dead */
	/* Port of loopback where a datagram of one byte ends a sleep; 0: the bell does. */
	_Atomic uint32_t port;
	/* Under another launcher, of the lowest rank of a machine: the link's address, 0 behind it.
	 */
	uint8_t link[32];
	struct job_offer offer[2];
};

/*
 * Bytes for the first outbox of a rank, committed with its first team. Those of all
 * ranks lie side by side, so that a rank that looks at all of them needs few page tables.
 */
enum { JOB_OUTBOX = 24 << 10 };

/* What a rank tells the others of itself when it opens; see job/exchange.h. */
enum { JOB_CARD_BYTES = 312 };
struct job_card {
	_Atomic uint64_t published; /* in which session; 0: not yet */
	char bytes[JOB_CARD_BYTES];
};

/* What a handler is called. The first rank to register it writes this. */
enum { JOB_NAME = 28 };
struct job_name {
	_Atomic uint32_t state;
	char text[JOB_NAME]; /* ends with 0 */
};

/*
 * What a worker has in place of a rank's entry, committed when it is opened. A seat is numbered
 * behind the ranks, and is a member of the job as they are: heed bytes, knockers, talks and pools
 * are counted by members.
 */
enum { JOB_SEATS_MAX = 1024, JOB_MEMBERS_MAX = TERN_RANKS_MAX + JOB_SEATS_MAX };

/* Where ids of workers begin: above all ranks. Below this bit are a generation and the seat. */
#define JOB_WORKER (UINT32_C(1) << 31)

struct job_seat {
	_Alignas(64) _Atomic uint64_t bell;
	struct pulse pulse;
	/* By which requests name the worker: a new one each time that it is opened; 0: closed. */
	_Atomic uint32_t id;
	_Atomic uint32_t sending; /* as in job_rank */
};

/*
 * What a member knows of a rank's heap: a copy of what that rank has committed, written by the
 * member alone until job_heap_withdraw() clears it.
 */
struct job_span {
	uint64_t first; /* the heap's first address (tern_addr) */
	char *base;
	uint64_t middle;
	uint64_t shift; /* an address, and this, are a pointer */
	/* From here on cleared when the rank has died; what is used most is in the first line. */
	uint64_t own; /* bytes committed from the beginning */
	/* Behind the last place in the half where a word may begin; 0 if there is none. */
	uint64_t own_words, common_words;
	uint64_t own_wides, common_wides; /* and where WIDE_MOST bytes may */
	uint64_t common;                  /* bytes committed from the middle */
	uint64_t unused_[6];              /* a power of two is found without a multiplication */
};
_Static_assert(sizeof(struct job_span) == 128, "spans are found by a shift");

#define STATUS_UNKNOWN (-1) /* nobody who knows could say */
#define STATUS_LOST (-2)    /* its machine is not heard of any more */

/* Of job.begun; the second in the row of the member with the lower number. */
enum begun {
	TALK_BEGUN = 1,     /* its small rings may be touched */
	PAIR_COMMITTED = 2, /* the page that they are in is committed and counted */
};

/* A part of the memory: where the first of its pieces lies, and what each of them has, in bytes. */
struct job_part {
	size_t at, bytes;
};

/* A mapped job. Filled by job_create() or job_map(); plain data, one per process and job. */
struct job {
	int fd;
	uint32_t size, seats;
	size_t bytes; /* of the whole mapping */
	char *base;
	struct job_head *head;
	struct job_rank *rank;
	_Atomic uint8_t *heed;        /* [receiver][sender], rows of heed_row bytes */
	_Atomic uint8_t *begun;       /* [server][requester]: enum begun */
	_Atomic uint64_t *knocker;    /* [receiver][sender / 64]: who has knocked */
	_Atomic uint32_t *owner;      /* [seat]: the rank that has taken it, plus 1 */
	_Atomic uint8_t *spanned;     /* [member]: its spans may be touched */
	struct pulse *pulse;          /* one a rank */
	struct job_card *card;        /* one a rank */
	struct job_name *name;        /* one a handler */
	struct cgroup cgroup;         /* of this process */
	size_t heed_row, knocker_row; /* in elements */
	/* Bytes that a core dump of this process has; UINT64_MAX: all there are. */
	_Atomic uint64_t dumped;
	/* Bytes that may be taken before the limits of the cgroup are read again. */
	_Atomic uint64_t trusted;
	struct job_part pool, seat, spare, span; /* one a member, or a seat */
	struct job_part large;                   /* blocks, TERN_POOL_BLOCKS a member */
	struct job_part stats, outbox, region;   /* one a rank; `region`: all that it may have */
	size_t pair_at, talk_at, heap_at, heap_bytes;
	/* This process tells of ranks that end: no other does for which it could wait. */
	bool watches;
};

/*
 * Makes the memory of a job of `size` ranks and maps it. `budget` 0: chosen from what the machine
 * has.
 */
int job_create(struct job *j, uint32_t size, uint64_t budget);
/*
 * Maps the job behind a descriptor that was inherited; checks magic, layout and size. Does not own
 * `fd`.
 */
int job_map(struct job *j, int fd);
/* The same, read only: for tools that look at a job from outside. */
int job_view(struct job *j, int fd);
void job_unmap(struct job *j);
/* What this process writes there from now on is a copy of its own. */
void job_disown(struct job *j);
void job_forget(struct job *j); /* closes the descriptor, which job_unmap() leaves alone */

/*
 * Says on which machine each rank is, and which one this is; before others map the memory, and
 * before any rank opens. Otherwise all are here.
 */
void job_spread(struct job *j, const uint32_t *machine, uint32_t mine, uint32_t machines);
/* Makes an identity at random: 0, or a code with a sentence. */
int job_identity_make(uint64_t *id, uint8_t key[JOB_KEY]);
/* The same job as on its other machines: what names it, and what its datagrams are known by. */
void job_identify(struct job *j, uint64_t id, const uint8_t key[JOB_KEY]);
static inline bool job_here(const struct job *j, uint32_t rank)
{
	return j->rank[rank].machine == j->head->machine;
}

/* Every machine has said whether it has a fabric; `all`: they have. */
static inline void job_fabric_agreed(struct job *j, bool all)
{
	atomic_store(&j->head->fabric, all ? FABRIC_ALL : FABRIC_SOME);
}

/*
 * What a job of `size` ranks takes: at its start, with a ring of neighbours talking, when all pairs
 * have said a few words, with all pairs talking.
 */
struct job_needs {
	uint64_t start, neighbours, few_words, all_pairs;
};
void job_needs(uint32_t size, struct job_needs *needs);

/*
 * Told by whoever saw a rank's process end (the launcher): `status` as from
 * waitpid. Marks it gone or dead and wakes every rank. A rank that
 * ends well after tern_close() is gone, and counted as left once; without it, it is dead. May be
 * called from any process.
 */
void job_rank_ended(struct job *j, uint32_t rank, int status);

void job_session_begin(struct job *j, uint64_t first); /* the first one, by whoever makes the job */
/*
 * A rank opens: false if it is not expected, being open already or still waiting for the next
 * session.
 */
bool job_rank_opens(struct job *j, uint32_t rank);
void job_rank_unopens(struct job *j, uint32_t rank); /* opening failed half-way */
bool job_renewing(const struct job *j);              /* the memory is being made new */
uint32_t job_renewer(const struct job *j);           /* by this rank, plus 1; 0: it is not */
void job_renewed(struct job *j);                     /* waits until it is not */
/* Ranks that have closed, are gone or dead in this session. */
static inline uint32_t job_left(const struct job *j)
{
	return (uint32_t)(atomic_load_explicit(&j->head->phase, memory_order_relaxed) &
			  JOB_PHASE_LEFT);
}
/*
 * A rank leaves the session; the last one of this machine to do so makes the memory new. The rank
 * may die at any instruction of this: job_rank_ended() then does the rest.
 */
void job_rank_leaves(struct job *j, uint32_t rank, enum rank_state state);
/*
 * What another machine said of its rank; rings every bell if it has left. By the one process that
 * hears it.
 */
void job_rank_told(struct job *j, uint32_t rank, uint64_t session, enum rank_state state);
enum rank_state job_rank_state(const struct job *j, uint32_t rank);
/*
 * The session that a rank is in, or in which it ended. Sessions are counted by each machine by
 * itself.
 */
uint64_t job_rank_session(const struct job *j, uint32_t rank);
/* How many barriers by messages it has passed in this session, as far as is known. */
uint64_t job_rank_passed(const struct job *j, uint32_t rank);
/* 0 while `rank` can answer; -ESHUTDOWN or -EOWNERDEAD with a sentence that names it. */
int job_rank_check(const struct job *j, uint32_t rank);

/*
 * The end of a job that one of its ranks has asked for. Only the first one counts. After it nobody
 * is told that a rank is dead: job_rank_check() ends the process with the job's status instead.
 */
struct job_end {
	uint32_t rank;
	int status; /* 0 to 255 */
};
/*
 * Writes that `rank`, which is here, ends the job, and wakes whoever is to end the other ranks.
 * `end` is then what counts, which another rank may have written before.
 */
void job_end_write(struct job *j, uint32_t rank, int status, struct job_end *end);
bool job_end_read(const struct job *j, struct job_end *end); /* false: the job goes on */
/* What a status record carries of it, 0 for nothing, and what becomes of it on another machine. */
uint64_t job_end_word(const struct job *j);
void job_end_take(struct job *j, uint64_t word);
bool job_end_decode(uint64_t word, uint32_t size, struct job_end *end); /* false: it says nothing */

/*
 * The status record of `rank`, which is here, has changed: whoever carries it to other machines is
 * woken.
 */
void job_tell(struct job *j, uint32_t rank);

/* The identifier that `text` is, perhaps behind an ampersand; NULL if it is none. */
const char *job_name_in(const char *text);
void job_name_set(struct job *j, unsigned id, const char *name);
bool job_name_get(const struct job *j, unsigned id, char text[JOB_NAME]); /* false if it has none */

/* Rings a member's bell; wakes it if it sleeps. */
void job_ring(struct job *j, uint32_t member);
/* Rings the workers of a rank that sleep. */
void job_ring_workers(struct job *j, uint32_t rank);
/* Rings every bell of this machine. */
void job_ring_all(struct job *j);

/* -- seat.c: workers -- */
/*
 * A seat for a worker of `rank`, for the rest of the session: its number as a member, or -ENOSPC.
 */
int job_seat_take(struct job *j, uint32_t rank, uint32_t *member);
struct job_seat *job_seat(const struct job *j, uint32_t member);
/* The member that `id` names, which is a rank or was a worker's once; UINT32_MAX if it is none. */
uint32_t job_target(const struct job *j, uint32_t id);
/* The next id of the worker in that seat. */
uint32_t job_worker_id(const struct job *j, uint32_t member, uint32_t before);
/* The rank of a member: itself, or that of the worker. */
uint32_t job_member_rank(const struct job *j, uint32_t member);
_Atomic uint64_t *job_bell(const struct job *j, uint32_t member);
struct pulse *job_pulse(const struct job *j, uint32_t member);
_Atomic uint32_t *job_sending(const struct job *j, uint32_t member);
/* Ranks, and the seats that have been taken. */
static inline uint32_t job_members(const struct job *j)
{
	return j->size + atomic_load_explicit(&j->head->seats_used, memory_order_relaxed);
}

/* Commits [at, at + bytes): 0, or -ENOMEM with a sentence that names `what` and the budget. */
int job_commit(struct job *j, size_t at, size_t bytes, const char *what);
/* The same with memory of the NUMA node that `rank` is on. Else it is of the caller's. */
int job_commit_near(struct job *j, size_t at, size_t bytes, uint32_t rank, const char *what);

/*
 * What a core dump of this process has of the memory: its front, and what this is called for, up to
 * a bound. Nothing else: most of the rest is other ranks', and not committed, and a dump would
 * commit it.
 */
void job_dump(struct job *j, size_t at, size_t bytes);

/* -- span.c -- */
/* Commits a member's spans, one a rank, if they are not: 0, or -ENOMEM with a sentence. */
int job_spans_open(struct job *j, uint32_t member, struct job_span **spans);
void job_span_clear(struct job_span *s); /* nothing of the heap is within reach */
/* Takes the heap of a rank that is dead away from all members of this machine. */
void job_heap_withdraw(struct job *j, uint32_t rank);

/* -- pair.c -- */
/* The page of two members. */
size_t job_pair_at(const struct job *j, uint32_t a, uint32_t b);
int job_pair_commit(struct job *j, uint32_t a, uint32_t b, const char *what);
size_t job_small_at(const struct job *j, uint32_t from, uint32_t to); /* struct small_talk */
size_t job_talk_at(const struct job *j, uint32_t from, uint32_t to);  /* struct large_talk */
size_t pair_area(uint32_t members); /* bytes that all pages and all talks span */
size_t talk_area(uint32_t members);

/* The i-th piece, as job_commit() takes it, and in memory. */
static inline size_t job_part_at(const struct job_part *p, size_t i)
{
	return p->at + i * p->bytes;
}

static inline void *job_part_in(const struct job *j, const struct job_part *p, size_t i)
{
	return j->base + job_part_at(p, i);
}

size_t job_heap_at(const struct job *j, uint32_t rank);
/* Not to be touched unless the rank's pulse says that it counts. */
struct stats *job_stats(const struct job *j, uint32_t rank);
/* Gives `rank`'s statistics memory; 0, or -ENOMEM with a sentence. */
int job_stats_begin(struct job *j, uint32_t rank);

#endif
