/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the runtime of a language with a global address space needs, on Tern's public interface:
 * a segment in each rank, active messages with 32-bit arguments, puts and gets of blocks and of
 * scattered memory with local and remote completion, atomics, teams and collectives, threads.
 *
 * Remote memory is named by a rank and a pointer that is valid at that rank. Events are Tern's
 * handles: an operation takes one of the program's last (TERN_OP), or rt_implicit(), or NULL, and
 * then it blocks. One handle may count many operations. A failure is fatal: it ends the job with a
 * sentence.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <tern/coll.h>

enum {
	RT_HANDLERS = 128,
	RT_NUMBERS = 4,   /* of Tern, that a handler has */
	RT_ARGS_MAX = 16, /* of 32 bits */
	RT_MEDIUM_MAX = TERN_REQUEST_MAX,
	RT_LONG_ARGS = 12,                      /* up to which a long message is one of Tern's */
	RT_LONG_REPLY_MAX = RT_MEDIUM_MAX - 16, /* bytes of a long reply with more arguments */
};

/* Kinds of implicit operations. RT_SOURCES are local completions. */
enum rt_kind { RT_PUTS = 1, RT_GETS = 2, RT_ATOMICS = 4, RT_TEAMS = 8, RT_SOURCES = 16 };
enum { RT_KINDS = 5, RT_ALL = 31 };

/* The job. */
struct rt {
	uint32_t rank, size, machines;
	struct rt_segment {
		char *base;       /* as a pointer at its rank */
		tern_addr origin; /* what a pointer there is added to */
	} * segment;              /* [rank] */
	tern_team *world;
	unsigned first; /* handler's number */
};
extern struct rt rt;

/* What each thread has of its own; in a handler `t` is the endpoint that runs it. */
struct rt_thread {
	tern *t;
	tern_op group[RT_KINDS], *region;
};
extern _Thread_local struct rt_thread rt_here;

__attribute__((noreturn)) void rt_fail(int rc);

static inline int rt_must(int rc)
{
	if (__builtin_expect(rc < 0, 0))
		rt_fail(rc);
	return rc;
}

/* -- Start, end, progress ---------------------------------------------------------------- */

/* Joins the job; then handlers are registered; then every rank has a segment of `bytes`. */
void rt_open(void);
/*
 * The segment is new memory at every rank if `own` is NULL; else what the program has there, and
 * `fd` says what it was mapped from, shared, so that ranks of the machine map it, too; -1: nothing.
 */
void rt_attach(void *own, size_t bytes, int fd);
void rt_close(void); /* every rank calls it */

/* One rank ends the job; and what is called at a rank that is ended so. */
static inline void rt_exit(int status)
{
	rt_must(tern_exit(rt_here.t, status));
}

static inline void rt_last(tern_end_handler *fn)
{
	rt_must(tern_end_on(rt_here.t, fn, NULL));
}

/*
 * Serves what has arrived. With rt_here.t the program may also call tern_wait_until(), tern_hold()
 * and tern_release(), tern_defer(), whose function may send requests, and with an address
 * tern_addr_local().
 */
static inline void rt_poll(void)
{
	rt_must(tern_poll(rt_here.t));
}

/*
 * Memory of this rank beside its segment, from a page on if `align` says so. Others name it by a
 * pointer as they name the segment, if that is new memory.
 */
static inline void *rt_shared(size_t align, size_t bytes)
{
	void *p;
	rt_must(tern_alloc_aligned(rt_here.t, (bytes + align - 1) & ~(align - 1), align, &p));
	return p;
}

static inline tern_addr rt_addr(uint32_t rank, const void *p)
{
	return rt.segment[rank].origin + (uintptr_t)p;
}

/* -- Threads ----------------------------------------------------------------------------- */

/*
 * The first thread opens a worker, tern_worker_open(), for each other one, which calls between
 * these two whatever moves data or sends messages. Requests to tern_worker_id(rt_here.t), used as a
 * rank, are handled by that thread. While the first thread computes or joins others, it lends its
 * endpoint, tern_detach(rt_here.t), so that waits of the others serve it.
 */
static inline void rt_thread_begin(tern *worker)
{
	rt_here = (struct rt_thread){ .t = worker };
}

void rt_thread_end(void);

/* -- Active messages --------------------------------------------------------------------- */

typedef struct rt_token {
	const tern_msg *m;
	uint32_t src;
} rt_token;

/*
 * `data` is the payload of a medium message, the destination of a long one, NULL of a short one.
 * A handler of a request may reply once; a handler of a reply (rt_is_reply()) sends nothing.
 */
typedef void rt_handler(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len);

static inline int rt_is_reply(const rt_token *token)
{
	return tern_msg_is_reply(rt_here.t, token->m);
}

/* Every rank registers the same handlers, before rt_attach(). */
#define rt_on(number, fn) rt_on_named(number, fn, #fn)
void rt_on_named(unsigned number, rt_handler *fn, const char *name);

/*
 * A message whose data is NULL is a short one. `data` may be changed on return; that of a long
 * request when `local` is complete. Requests return 1 under tern_hold() if there is no room, and
 * then nothing was sent; else 0. A long reply has any length up to RT_LONG_ARGS arguments.
 */
int rt_request(uint32_t rank, unsigned handler, const void *data, size_t len, unsigned n,
	       const uint32_t *args);
int rt_request_long(uint32_t rank, unsigned handler, void *dst, const void *data, size_t len,
		    tern_op *local, unsigned n, const uint32_t *args);
void rt_reply(rt_token *token, unsigned handler, const void *data, size_t len, unsigned n,
	      const uint32_t *args);
void rt_reply_long(rt_token *token, unsigned handler, void *dst, const void *data, size_t len,
		   unsigned n, const uint32_t *args);
/* Puts scattered data (see below); a short request to its rank follows when it is in place. */
int rt_request_parts(unsigned handler, const tern_parts *parts, tern_op *local, tern_op *op,
		     unsigned n, const uint32_t *args);
/*
 * A message composed in place: of what tern_claim() gave, or tern_reply_claim() for a token, the
 * first `len` bytes travel. tern_abandon() gives either back.
 */
void rt_commit(rt_token *token, void *claimed, unsigned handler, size_t len, unsigned n,
	       const uint32_t *args);

/* -- Events ------------------------------------------------------------------------------ */

/* tern_op_wait_any() and the like take handles, too. */
static inline void rt_wait(tern_op *op)
{
	rt_must(tern_op_wait(rt_here.t, op));
}

static inline int rt_test(tern_op *op) /* polls; 1: it is complete */
{
	return rt_must(tern_op_test(rt_here.t, op));
}

/* The thread's implicit operations of a kind; of rt_region_begin() while it has a handle. */
static inline tern_op *rt_implicit(enum rt_kind kind)
{
	return rt_here.region ? rt_here.region : &rt_here.group[__builtin_ctz(kind)];
}

static inline void rt_region_begin(tern_op *op) /* NULL ends it */
{
	rt_here.region = op;
}

/* Waits for the implicit operations of these kinds, or tests whether they are complete. */
void rt_sync(unsigned kinds);
int rt_try_sync(unsigned kinds);

/* -- Put and get ------------------------------------------------------------------------- */

static inline void rt_put(uint32_t rank, void *dst, const void *src, size_t len, tern_op *op)
{
	rt_must(tern_put_start(rt_here.t, rt_addr(rank, dst), src, len, op));
}

/* `local` is told when the source may be changed. */
static inline void rt_put_local(uint32_t rank, void *dst, const void *src, size_t len,
				tern_op *local, tern_op *op)
{
	rt_must(tern_put_local_start(rt_here.t, rt_addr(rank, dst), src, len, local, op));
}

static inline void rt_get(void *dst, uint32_t rank, const void *src, size_t len, tern_op *op)
{
	rt_must(tern_get_start(rt_here.t, dst, rt_addr(rank, src), len, op));
}

/* Values of 1, 2, 4 or 8 bytes. */
static inline void rt_put_value(uint32_t rank, void *dst, uint64_t value, size_t len, tern_op *op)
{
	tern_op copied = TERN_OP; /* on return: the value is on this stack */
	rt_put_local(rank, dst, &value, len, &copied, op);
}

static inline uint64_t rt_get_value(uint32_t rank, const void *src, size_t len)
{
	uint64_t value = 0;
	rt_get(&value, rank, src, len, NULL);
	return value;
}

/*
 * Scattered memory is a list of Tern's parts at either side. Those of another rank have pointers of
 * that rank until rt_at() makes them addresses, in place, and returns them. Only the totals must
 * agree. Lists may be changed on return.
 */
tern_part *rt_at(uint32_t rank, tern_part *part, size_t n);

static inline void rt_put_parts(const tern_parts *p, tern_op *op)
{
	rt_must(tern_put_parts_start(rt_here.t, p->dst, p->dsts, p->src, p->srcs, op));
}

static inline void rt_get_parts(const tern_parts *p, tern_op *op)
{
	rt_must(tern_get_parts_start(rt_here.t, p->dst, p->dsts, p->src, p->srcs, op));
}

/* -- Atomics ----------------------------------------------------------------------------- */

/*
 * Operations are Tern's. The type of `old` says what the memory holds; it gets the value before,
 * unless it is NULL, when the operation completes.
 */
#define rt_atomic(rank, at, what, operand, old, op) \
	rt_must(tern_amo_start(rt_here.t, rt_addr(rank, at), what, operand, old, op))
#define rt_compare_swap(rank, at, expected, desired, old, op) \
	rt_must(tern_cas_start(rt_here.t, rt_addr(rank, at), expected, desired, old, op))

/* -- Teams ------------------------------------------------------------------------------- */

/*
 * Teams are Tern's: rt.world has all ranks, and tern_team_split(), tern_team_list() with a list for
 * each team, tern_team_rank(), tern_team_member() and the like do for others. In collectives `root`
 * is a place in the team; `how` may be TERN_REDUCE_BY() with a function of the program.
 */
#define RT_EVERYONE UINT32_MAX /* as the root of a reduction */

static inline void rt_barrier(tern_team *team, tern_op *op)
{
	rt_must(tern_team_barrier_start(team, op));
}

void rt_broadcast(tern_team *team, uint32_t root, void *dst, const void *src, size_t len,
		  tern_op *op);
void rt_reduce(tern_team *team, uint32_t root, void *dst, const void *src, size_t n,
	       enum tern_type type, uintptr_t how, tern_op *op);

#endif
