/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory layer's state in an endpoint, shared by its files. */
#ifndef TERN_MEM_STATE_H
#define TERN_MEM_STATE_H

#include <tern/mem.h>

#include "core/messages.h"
#include "layers.h"
#include "mem/follow/follow.h"
#include "mem/heap/heap.h"
#include "mem/slot.h"
#include "mem/threshold.h"
#include "mem/transfer.h"

extern const struct layer mem_layer;

/*
 * An address: the rank, a bit that says that it is of the heap, and the offset, in the heap or in a
 * space from which regions take theirs (region.c). So the distance from the heap's first address
 * to an address of a region is huge, and a comparison with the heap's length refuses it.
 */
enum { ADDR_RANK_SHIFT = 48, ADDR_OFFSET_BITS = 47 };
#define ADDR_HEAP (UINT64_C(1) << ADDR_OFFSET_BITS)

/* Tern's own handlers of this layer, counted from TERN_HANDLER_MAX. */
#define MEM_MESSAGES(X)                                                                        \
	X(MEM_PUT, on_put)                                                                     \
	X(MEM_GET, on_get)                                                                     \
	X(MEM_AMO, on_amo)                                                                     \
	X(MEM_COPY, on_copy)                                                                   \
	X(MEM_WHEN, on_when)                                                                   \
	X(MEM_BLOCK, on_get_block)                                                             \
	X(MEM_XFER, on_xfer)                                                                   \
	X(MEM_REPLY_XFER, on_reply_xfer)                                                       \
	X(MEM_DONE, on_mem_answer) /* the answer to any: slot, error, a word; or data */       \
	X(MEM_AGREE, on_agree)                                                                 \
	X(MEM_WINDOW, on_window_query) /* which part of a heap a network may move by itself */ \
	X(MEM_WINDOW_IS, on_window_reply)                                                      \
	X(MEM_PUT_PARTS, on_put_parts) /* scattered memory: what lies where, and the bytes */  \
	X(MEM_GET_PARTS, on_get_parts)                                                         \
	X(MEM_PIECE, on_piece)     /* of a put that a message follows, */                      \
	X(MEM_THEN, on_then)       /* and that message */                                      \
	X(MEM_INVITE, on_invite)   /* asks for a first request, */                             \
	X(MEM_INVITED, on_invited) /* which is this */                                         \
	X(MEM_GRANT, on_grant)     /* memory of the asker may be stored to, or no more */      \
	X(MEM_SIGNAL, on_signal)   /* a put, or none, and then an operation on a word; a store */

enum mem_handler { MEM_BEFORE = MEM_HANDLERS - 1, MEM_MESSAGES(LAYER_NUMBER) };
MEM_MESSAGES(LAYER_HANDLER)

/* How an atomic operation travels: what to do, on what. */
enum amo_type { AMO_U64, AMO_U32, AMO_DOUBLE, AMO_CAS64, AMO_CAS32, AMO_FLOAT };

static inline unsigned amo_code(enum amo_type type, unsigned what)
{
	return (unsigned)type << 8 | (what < 0xff ? what : 0xff);
}

/* What a rank has said in a collective call. */
struct odd {
	bool is; /* another word than this one */
	uint32_t rank;
	uint64_t word;
};
/* A rank that has heard all may begin the next round while another still listens. */
enum { AGREE_ROUNDS = 2 };

/* A half of a heap, as far as it can be reached: the own one, or that of collective allocations. */
enum { HALF_OWN, HALF_COMMON, HALVES };
struct half {
	uint64_t bytes; /* from its beginning; 0: none */
	struct window window;
};

struct when { /* a request that is held here */
	bool used;
	uint32_t asker, slot;
	tern_addr src;
	size_t len;
	tern_addr flag;
	uint64_t least;
};

struct segment {
	bool open;
	uint8_t generation;
	char *base;
	size_t bytes; /* offsets are below this */
	size_t left;  /* still to come */
	tern_segment_end *end;
	void *arg;
};

struct agreement {
	uint64_t round;
	struct heard {
		uint32_t n;
		struct odd first, odd; /* odd: a word that is not the first */
	} of[AGREE_ROUNDS];
};

/* What is known of another rank. */
struct mem_peer {
	bool lost;                /* the rank has left */
	bool invited;             /* it waits for a first request from here */
	struct files *files;      /* what is mapped of its regions; made with the first */
	bool asked;               /* about its heap, */
	struct half half[HALVES]; /* which a network reaches so far */
};

struct mem {
	struct endpoint *e;
	struct job *job;
	uint32_t rank, size;
	struct heap own;    /* this rank's alone: from the beginning of its heap */
	struct heap common; /* of tern_alloc_all(): from the middle, the same at every rank */
	struct transfers transfers;
	struct slots slots;
	struct follows follows;
	bool lost; /* a rank has left, and what it was asked for may have to be ended */
	struct when when[TERN_WHEN_MAX];
	bool telling; /* one of them is being answered */
	struct segment segment[TERN_SEGMENTS_MAX];
	struct regions *regions; /* made when the first is registered or lent */
	struct {
		void *const *where;
		size_t bytes;
	} name[TERN_BLOCKS_MAX];
	struct agreement agreement; /* where ranks do not share memory */
	struct half mine[HALVES];   /* of the heap that others may reach through a network */
	uint32_t moving;            /* chunks that networks move */
	uint32_t waiting;           /* requests that are held here */
	bool moves;                 /* they may */
	bool let_in; /* the kernel knows whose processes may read and write this one's memory */
	bool single_copy;      /* the kernel lets us read and write the memory of other processes */
	struct grant *grants;  /* what others have opened to this rank; see grant.c */
	unsigned granted;      /* how many; 0 unless it is guarded */
	bool guarded;          /* TERN_GRANT: nothing else of their heaps may be stored to */
	struct job_span *span; /* one a rank, in the job's memory; of no heap until one is used */
	struct mem_peer peer[]; /* one a rank */
};

struct wait;
/* A free record in `*out`; waits, as `w` says, until there is one; -EAGAIN where nothing ends. */
int mem_record(struct mem *m, struct pool_of *p, struct wait *w, void *out);
bool mem_room(struct mem *m, size_t bytes); /* whether tern_alloc() would find the addresses */
char *span_look(struct mem *m, tern_addr a, size_t len);

static inline char *heap_base(const struct mem *m, uint32_t rank)
{
	return m->job->base + job_heap_at(m->job, rank);
}

static inline char *heap_pointer(const struct mem *m, uint64_t at)
{
	return heap_base(m, m->rank) + at;
}

static inline uint64_t heap_offset(const struct mem *m, const void *p)
{
	return (uint64_t)((const char *)p - heap_pointer(m, 0));
}

/* Whether the heap of `rank` is mapped, and messages do not go over a network. */
static inline bool mem_near(const struct mem *m, uint32_t rank)
{
	return m->e->site.peer[rank].net->ops->provides & PROVIDES_SHARED;
}

/* Whether `rank` is of this process, so that its private memory is here. */
static inline bool mem_same_process(const struct mem *m, uint32_t rank)
{
	return atomic_load(&m->job->rank[rank].pid) == atomic_load(&m->job->rank[m->rank].pid);
}

/* Whether nothing of the rank's memory may be used any more. */
static inline bool mem_dead(const struct mem *m, uint32_t rank)
{
	return m->peer[rank].lost || job_rank_state(m->job, rank) == RANK_DEAD;
}

static inline struct mem *mem_of(tern *t)
{
	return t->own->layer[LAYER_MEM];
}

static inline uint64_t addr_offset(tern_addr a)
{
	return a & (ADDR_HEAP - 1);
}

static inline bool addr_in_heap(tern_addr a)
{
	return a & ADDR_HEAP;
}

static inline tern_addr addr_of_heap(uint32_t rank, uint64_t offset)
{
	return (uint64_t)rank << ADDR_RANK_SHIFT | ADDR_HEAP | offset;
}

/* The same place of another rank's memory. */
static inline tern_addr addr_moved(tern_addr a, uint32_t rank)
{
	return (a & ((UINT64_C(1) << ADDR_RANK_SHIFT) - 1)) | (uint64_t)rank << ADDR_RANK_SHIFT;
}

/* Whether [at, at + len) of a heap is committed, in its own half or in the common one. */
static inline bool halves_hold(uint64_t at, size_t len, uint64_t middle, uint64_t own,
			       uint64_t common)
{
	uint64_t beyond = at - middle; /* huge if it is before that */
	return (at < own && len <= own - at) || (beyond < common && len <= common - beyond);
}

/*
 * The bytes [a, a + len) of a heap, else NULL. What a rank has committed only grows until it dies,
 * so a copy of it answers nearly always; span_look() brings the copy up to date.
 */
static inline char *heap_reach(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	if (TERN_UNLIKELY(rank >= m->size))
		return NULL;
	const struct job_span *s = &m->span[rank];
	uint64_t at = a - s->first; /* huge if `a` is not of the heap */
	if (TERN_LIKELY(halves_hold(at, len, s->middle, s->own, s->common)))
		return s->base + at;
	return span_look(m, a, len);
}

/*
 * The place `a` if this rank knows already that so many bytes from there on are heap memory: the
 * whole check of a put or a get of that size. A word is moved as one, so that nobody sees half of
 * it. No scope: the progress thread may bring the span up to date at the same moment, or another
 * process clear it, but what is read here are words that only grow, or become 0.
 */
enum span_size { SPAN_WORD, SPAN_WIDE };

static inline const struct job_span *spans_of(const tern *t) /* one a rank */
{
	return t->heaps;
}

__attribute__((no_sanitize("thread"))) static inline char *span_reach(const tern *t, tern_addr a,
								      enum span_size size)
{
	uint32_t rank = tern_addr_rank(a);
	if (TERN_UNLIKELY(rank >= t->size))
		return NULL;
	const struct job_span *s = spans_of(t) + rank;
	uint64_t own = size == SPAN_WORD ? s->own_words : s->own_wides;
	uint64_t at = a - s->first;
	if (at < own ||
	    (at >= s->middle && at < (size == SPAN_WORD ? s->common_words : s->common_wides))) {
		/* Lines are walked, for which compilers make better code of a pointer. */
		char *found = size == SPAN_WORD ? (char *)(uintptr_t)(a + s->shift) : s->base + at;
		if (!found)
			__builtin_unreachable(); /* so that no caller tests it again */
		return found;
	}
	return NULL;
}

/* The same for any number of bytes; heap_reach() brings the span up to date where it has to. */
__attribute__((no_sanitize("thread"))) static inline char *span_part(const struct job_span *s,
								     tern_addr a, size_t len)
{
	uint64_t at = a - s->first; /* huge if `a` is not of the heap */
	return halves_hold(at, len, s->middle, s->own, s->common) ? s->base + at : NULL;
}

static inline char *span_holds(const tern *t, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	return TERN_LIKELY(rank < t->size) ? span_part(spans_of(t) + rank, a, len) : NULL;
}

char *region_reach(struct mem *m, tern_addr a, size_t len); /* mem_reach() for a region */
/* The bytes [a, a + len) if this process can touch them, else NULL. No sentence. */
static inline char *mem_reach(struct mem *m, tern_addr a, size_t len)
{
	return addr_in_heap(a) ? heap_reach(m, a, len) : region_reach(m, a, len);
}

/* The same of memory of this rank alone. */
static inline char *own_reach(struct mem *m, tern_addr a, size_t len)
{
	return tern_addr_rank(a) == m->rank ? mem_reach(m, a, len) : NULL;
}

/* -- grant.c: under TERN_GRANT, what of other ranks' heaps may be stored to -- */
int grants_open(struct mem *m);
bool grant_covers(const struct mem *m, tern_addr a, size_t len);
void grants_apply(const struct mem *m, const struct job_region *g); /* to what is newly mapped */
char *grant_read(struct mem *m, tern_addr a, size_t len); /* mem_reach() to read; NULL: not even */

/* heap_reach() for bytes that are only read. */
static inline char *heap_read(struct mem *m, tern_addr a, size_t len)
{
	char *p = heap_reach(m, a, len);
	return p || !m->guarded || !addr_in_heap(a) ? p : grant_read(m, a, len);
}

/* -- mem.c: what an address reaches -- */
/* The address of `p` in this rank's heap or registered memory, else TERN_ADDR_NONE. */
tern_addr mem_addr(struct mem *m, const void *p);
tern_addr mem_addr_all(struct mem *m, const void *p, size_t len); /* that of all `len` bytes */
/* 0 if [a, a + len) can be used, by whatever means; else a code with a sentence. */
int mem_check(struct mem *m, tern_addr a, size_t len, const char *what);
/*
 * Copies between memory that this process can touch, one side of which its owner may have
 * unmapped behind our back: 0, or -EFAULT.
 */
int mem_copy_guarded(void *to, const void *from, size_t len);
/*
 * Whether memory of this process can be read, or written, as far as the kernel can be asked without
 * copying; it is for this thread's own memory, which nobody unmaps meanwhile.
 */
bool mem_there(void *p, size_t len, bool write);
/* Whether a few bytes of this process can be written; they stay as they are. */
bool mem_writable(void *p, size_t len);
int mem_gone(tern_addr a); /* the error of a region that was unregistered under way */

/* -- region.c -- */
struct job_region *places_of(const struct mem *m, uint32_t rank); /* a rank's, in use or not */
/* The region that has [a, a + len), and is registered; else NULL. */
struct job_region *region_find(const struct mem *m, tern_addr a, size_t len);
/* The address of `len` bytes that this rank has registered; TERN_ADDR_NONE if it has not. */
tern_addr region_addr(const struct mem *m, const void *p, size_t len);
/* Holds off unregistering: where `a` is in its owner's process, or 0 if it is too late. */
uint64_t region_enter(const struct mem *m, tern_addr a);
void region_leave(const struct mem *m, tern_addr a);
/* Whether it is of a region that another thread, or process, may unregister at any time. */
static inline bool region_others(const struct mem *m, tern_addr a)
{
	return !addr_in_heap(a) && tern_addr_rank(a) != m->rank;
}

/* Around each use of memory that this process can touch. */
static inline int region_hold(const struct mem *m, tern_addr a)
{
	return region_others(m, a) && !region_enter(m, a) ? mem_gone(a) : 0;
}

static inline void region_release(const struct mem *m, tern_addr a)
{
	if (region_others(m, a))
		region_leave(m, a);
}

/*
 * Memory for one rank to write to, until region_unlend(): that rank is done with it, so there is
 * nobody to wait for. TERN_ADDR_NONE when too much is lent already.
 */
tern_addr region_lend(struct mem *m, void *p, size_t len);
/* Lets the processes of other ranks read and write the memory of this one. */
void mem_let_in(struct mem *m);
void region_unlend(struct mem *m, tern_addr a);
void regions_close(struct mem *m);

/* -- file.c: memory that was registered with its file, as near ranks map it -- */
/* Where `a` of region `g` is mapped here, which it is at first use; NULL if it cannot be. */
char *file_reach(struct mem *m, const struct job_region *g, tern_addr a);
char *file_mapped(const struct mem *m, tern_addr a); /* NULL: it is not */
void files_close(struct mem *m);

/* -- whens, names, segments, copies -- */
unsigned when_progress(struct mem *m);
bool when_serves(tern *t, const tern_msg *msg); /* whether a thread may answer it */
/* Sends the request that the slot waits for: for `op`, or if that is NULL once more. */
int when_ask(struct mem *m, struct slot *s, tern_op *op);
/* Where the runs of a named block begin in this rank's memory; NULL if it has not all of them. */
char *name_reach(const struct mem *m, const tern_block *c);
/* -- agree.c: what collective calls compare -- */
int all_agree(struct mem *m, const char *call, uint64_t mine, struct odd *odd);
void copy_done(struct mem *m, const struct transfer *x); /* tells the rank that asked for it */

/* -- signal.c: puts with a signal, and waits for a word -- */
/* Waits for a word of this rank's heap, as `how` says: UINT64_MAX ns are no limit. */
int word_await(struct mem *m, const uint64_t *word, enum tern_word what, uint64_t value,
	       const struct wait *how, uint64_t ns);
/* The same of any word, where it is known that the caller may wait. */
int word_reach(struct mem *m, const _Atomic uint64_t *word, enum tern_word what, uint64_t value,
	       const struct wait *how, uint64_t ns);

/* Tells polls whether there is anything to carry on. */
static inline void mem_busy(struct mem *m)
{
	layer_work(m->e, LAYER_MEM,
		   m->transfers.pool.used || m->waiting || m->slots.again || m->lost ||
			   m->follows.first || m->follows.invited);
}

/* -- message.c: transfers as messages, where nothing better works -- */
/* Memory of this rank, which a request names, moved to or from `bytes`: 0 or EFAULT. */
int own_move(struct mem *m, tern_addr a, char *bytes, size_t len, bool put);
/* In the handler of a request of this layer: answers its slot. */
void message_answer(tern *t, uint64_t slot, int error, uint64_t word);
void message_answer_data(tern *t, uint64_t slot, const void *data,
			 size_t len); /* -EFAULT if it is NULL */
/*
 * Sends up to one message's worth of the run; bytes under way, 0 if there is no slot, or a negative
 * code.
 */
ptrdiff_t message_move(struct mem *m, struct transfer *x);
/*
 * A slot for one message of a transfer; NULL if as many as may be are under way. When it was sent,
 * or could not be: what message_move() returns.
 */
struct slot *chunk_slot(struct mem *m, struct transfer *x, uint32_t rank);
ptrdiff_t chunk_sent(struct transfer *x, struct slot *s, size_t len, int rc);
/* Starts an atomic operation at its home rank; `old` may be NULL. */
int message_amo(struct mem *m, tern_addr a, unsigned what, const uint64_t operand[2], void *old,
		tern_op *op, bool blocks);

/* -- staged.c -- */
/* Puts up to TERN_PAYLOAD_MAX bytes in one message; waits for its room, and not for the answer. */
int staged_put(struct mem *m, tern_addr dst, const void *data, size_t len, tern_op *op);
/* One message, which takes the bytes with it; `op` is told when the owner has them. */
int staged_send(struct mem *m, struct slot *s, tern_addr dst, const void *data, size_t len,
		tern_op *op);

/* -- rows.c -- */
/* A list of parts. */
struct parts {
	const tern_part *part;
	size_t n;
};
/*
 * Moves two lists of single runs that are within reach and cut alike, or one of them is a single
 * part. More than `most` bytes are only checked; what else there is, is not.
 */
enum lists_are { LISTS_ODD, LISTS_CHECKED, LISTS_MOVED };
enum lists_are lists_move(struct mem *m, struct parts remote, struct parts local, bool put,
			  size_t most);
/*
 * Moves all of two parts, if they are alike and have at most `most` bytes; false, and nothing
 * moved, if that takes more than a loop.
 */
bool rows_move(struct mem *m, const tern_part *remote, const tern_part *local, size_t most,
	       bool put);
/* Moves the next runs of both sides that lie in a row, in at most `most` bytes: bytes, or 0. */
size_t rows_next(struct mem *m, struct runs *r, bool put, size_t most);

/* -- pack.c: many runs in one message -- */
ptrdiff_t pack_move(struct mem *m, struct transfer *x, uint32_t rank); /* as message_move() */

/* -- window.c: transfers that a network does by itself -- */
bool window_has(struct mem *m,
		const struct transfer *x); /* whether what `x` moves next can go so */
ptrdiff_t window_move(struct mem *m, struct transfer *x); /* as message_move() */
unsigned window_progress(struct mem *m);                  /* ends what has been moved; how much */
bool window_owed(const struct mem *m,
		 struct slot *s); /* of a rank that is lost: it may still end by itself */

/* -- amo.c -- */
/* Does `what` (an enum amo_code) on memory that this process can touch. */
uint64_t amo_apply(void *at, unsigned what, const uint64_t operand[2]);
size_t amo_width(unsigned what);
bool amo_known(unsigned what);

/* -- transfer.c -- */
/* The local side of what `x` moves next; NULL if it is memory that has been unregistered. */
char *transfer_local(struct mem *m, const struct transfer *x, size_t len);
void transfer_landed(struct transfer *x, int error); /* a chunk was acknowledged */
/* Queues a transfer on behalf of another rank. From a handler: -EAGAIN when all are under way. */
int transfer_for(struct mem *m, const struct runs *r, tern_addr source, uint32_t asker,
		 uint32_t slot);

#endif
