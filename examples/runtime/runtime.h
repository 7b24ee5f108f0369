/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the runtime of a language with a global address space needs, on Tern's public interface:
 * a segment in each rank, active messages with 32-bit arguments, puts and gets of blocks and of
 * scattered memory with local and remote completion, atomics, teams and collectives, events.
 *
 * Remote memory is named by a rank and a pointer that is valid at that rank. Operations that begin
 * and end apart have an event (RT_EVENT), or belong to the implicit group (RT_IMPLICIT), which
 * rt_sync() waits for. A failure is fatal: it ends the job with a sentence. One thread calls.
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

/* An event is NULL once it is complete. It is complete locally and remotely at the same time. */
typedef struct rt_event {
	tern_op op;
	struct rt_event *next;
} rt_event;

enum rt_mode { RT_BLOCK, RT_EVENT, RT_IMPLICIT };

/* Kinds of implicit operations. RT_SOURCES are local completions. */
enum rt_kind { RT_PUTS = 1, RT_GETS = 2, RT_ATOMICS = 4, RT_TEAMS = 8, RT_SOURCES = 16 };
enum { RT_KINDS = 5, RT_ALL = 31 };

struct rt {
	tern *t;
	uint32_t rank, size, machines;
	char **base;       /* [rank] of its segment, as a pointer there */
	tern_addr *origin; /* [rank] what a pointer there is added to */
	rt_event *spare;
	rt_event **group; /* [RT_KINDS] the implicit group: of the program, or of a region */
	tern_team *world;
	unsigned first;           /* handler's number */
	void (*last)(int signal); /* called when the job ends this rank, unless NULL */
};
extern struct rt rt;

__attribute__((noreturn)) void rt_fail(int rc);
void *rt_memory(size_t bytes); /* as malloc(), or ends the job */

static inline void rt_must(int rc)
{
	if (__builtin_expect(rc < 0, 0))
		rt_fail(rc);
}

/* -- Start, end, progress ---------------------------------------------------------------- */

/* Joins the job; then handlers are registered; then every rank gets a segment of `bytes`. */
void rt_open(void);
void rt_attach(size_t bytes);
void rt_close(void);      /* every rank calls it */
void rt_exit(int status); /* one rank ends the job */

/*
 * Serves what has arrived. With rt.t the program may also call tern_wait_until(), tern_hold() and
 * tern_release(), tern_defer(), whose function may send requests, and with an address
 * tern_addr_local().
 */
static inline void rt_poll(void)
{
	rt_must(tern_poll(rt.t));
}

/* Memory of this rank for others beside its segment, from a page on if `align` says so. */
static inline void *rt_shared(size_t align, size_t bytes)
{
	void *p;
	rt_must(tern_alloc_aligned(rt.t, (bytes + align - 1) & ~(align - 1), align, &p));
	return p;
}

static inline tern_addr rt_addr(uint32_t rank, const void *p)
{
	return rt.origin[rank] + (uintptr_t)p;
}

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
	return tern_msg_is_reply(rt.t, token->m);
}

/* Every rank registers the same handlers, before rt_attach(). */
#define rt_on(number, fn) rt_on_named(number, fn, #fn)
void rt_on_named(unsigned number, rt_handler *fn, const char *name);

/*
 * A message whose data is NULL is a short one. `data` may be changed on return; of a long request
 * `local` says when: RT_NOW, RT_GROUP or an event. Requests return 1 under tern_hold() if there is
 * no room, and then nothing was sent; else 0. A long reply has any length up to RT_LONG_ARGS
 * arguments.
 */
int rt_request(uint32_t rank, unsigned handler, const void *data, size_t len, unsigned n,
	       const uint32_t *args);
int rt_request_long(uint32_t rank, unsigned handler, void *dst, const void *data, size_t len,
		    rt_event **local, unsigned n, const uint32_t *args);
void rt_reply(rt_token *token, unsigned handler, const void *data, size_t len, unsigned n,
	      const uint32_t *args);
void rt_reply_long(rt_token *token, unsigned handler, void *dst, const void *data, size_t len,
		   unsigned n, const uint32_t *args);
/*
 * A message composed in place: of what tern_claim() gave, or tern_reply_claim() for a token, the
 * first `len` bytes travel. tern_abandon() gives either back.
 */
void rt_commit(rt_token *token, void *claimed, unsigned handler, size_t len, unsigned n,
	       const uint32_t *args);

/* -- Events ------------------------------------------------------------------------------ */

void rt_wait(rt_event *e); /* the event is used up */
void rt_wait_all(rt_event **events, size_t n);
int rt_test(rt_event **events, size_t n); /* polls; 1: all were complete, and are NULL now */
/* Returns when one of them is complete at least, at once if all are NULL; how many are NULL now. */
size_t rt_wait_some(rt_event **events, size_t n);

/* Waits for the implicit operations of these kinds, or tests whether they are complete. */
void rt_sync(unsigned kinds);
int rt_try_sync(unsigned kinds);
/* Implicit operations between the two belong to the event that the second returns. */
void rt_region_begin(void);
rt_event *rt_region_end(void);

rt_event *rt_event_more(void); /* for the functions below */

static inline rt_event *rt_event_take(void)
{
	rt_event *e = rt.spare ? rt.spare : rt_event_more();
	rt.spare = e->next;
	return e;
}

/* NULL, and the event is spare again, if its operation is complete already. */
static inline rt_event *rt_event_settle(rt_event *e)
{
	if (__atomic_load_n(&e->op.pending, __ATOMIC_ACQUIRE) || e->op.error)
		return e;
	e->next = rt.spare;
	rt.spare = e;
	return NULL;
}

/* Every call in a mode begins and ends with these: its event, its handle, what it returns. */
static inline rt_event *rt_begin(enum rt_mode mode, enum rt_kind kind)
{
	return mode == RT_EVENT      ? rt_event_take()
	       : mode == RT_IMPLICIT ? rt.group[__builtin_ctz(kind)]
				     : NULL;
}

static inline tern_op *rt_op(rt_event *e)
{
	return e ? &e->op : NULL;
}

static inline rt_event *rt_begun(enum rt_mode mode, rt_event *e, int rc)
{
	rt_must(rc);
	return mode == RT_EVENT ? rt_event_settle(e) : NULL;
}

/* -- Put and get ------------------------------------------------------------------------- */

/*
 * When the source of a put may be changed: with the put itself (NULL), when the call returns
 * (RT_NOW), when rt_sync(RT_SOURCES) returns (RT_GROUP), or when an event says so.
 */
extern rt_event *rt_now_, *rt_group_;
#define RT_NOW (&rt_now_)
#define RT_GROUP (&rt_group_)

/* Around a call that takes the handle for its source apart. */
tern_op *rt_local_begin(rt_event **local, tern_op *own);
void rt_local_begun(rt_event **local, tern_op *own);
rt_event *rt_put_local(enum rt_mode mode, uint32_t rank, void *dst, const void *src, size_t len,
		       rt_event **local);

static inline rt_event *rt_put(enum rt_mode mode, uint32_t rank, void *dst, const void *src,
			       size_t len, rt_event **local)
{
	if (local)
		return rt_put_local(mode, rank, dst, src, len, local);
	rt_event *e = rt_begin(mode, RT_PUTS);
	return rt_begun(mode, e, tern_put_start(rt.t, rt_addr(rank, dst), src, len, rt_op(e)));
}

static inline rt_event *rt_get(enum rt_mode mode, void *dst, uint32_t rank, const void *src,
			       size_t len)
{
	rt_event *e = rt_begin(mode, RT_GETS);
	return rt_begun(mode, e, tern_get_start(rt.t, dst, rt_addr(rank, src), len, rt_op(e)));
}

/* Values of 1, 2, 4 or 8 bytes. */
static inline rt_event *rt_put_value(enum rt_mode mode, uint32_t rank, void *dst, uint64_t value,
				     size_t len)
{
	rt_event *e = rt_begin(mode, RT_PUTS);
	tern_addr to = rt_addr(rank, dst);
	tern_op copied = TERN_OP; /* on return: the value is on this stack */
	return rt_begun(mode, e, tern_put_local_start(rt.t, to, &value, len, &copied, rt_op(e)));
}

static inline uint64_t rt_get_value(uint32_t rank, const void *src, size_t len)
{
	uint64_t value = 0;
	rt_must(tern_get(rt.t, &value, rt_addr(rank, src), len));
	return value;
}

/* -- Scattered memory -------------------------------------------------------------------- */

/* Elements of `element` bytes, count[0] of them stride[0] bytes apart, count[1] such rows, ... */
typedef struct rt_shape {
	size_t element;
	unsigned dims;
	const size_t *count;
	const ptrdiff_t *dst_stride, *src_stride;
} rt_shape;

typedef struct rt_piece {
	void *at;
	size_t len;
} rt_piece;

/*
 * `put` is RT_PUTS or RT_GETS: whether `dst` or `src` lies at the other rank. Only the totals of
 * the two must agree. Shapes, lists and what they point to may be changed on return.
 */
rt_event *rt_strided(enum rt_mode mode, enum rt_kind put, uint32_t rank, void *dst, const void *src,
		     const rt_shape *shape);
rt_event *rt_indexed(enum rt_mode mode, enum rt_kind put, uint32_t rank, const rt_piece *dst,
		     size_t dsts, const rt_piece *src, size_t srcs);

/* -- Atomics ----------------------------------------------------------------------------- */

typedef union rt_value {
	uint32_t u32;
	uint64_t u64;
	int32_t i32;
	int64_t i64;
	float f;
	double d;
} rt_value;

enum rt_type { RT_32, RT_64, RT_INT32, RT_INT64, RT_FLOAT, RT_DOUBLE };

/*
 * The value before goes to *old, unless that is NULL, when the operation completes. Operations are
 * Tern's. Compare-and-swap compares bits.
 */
rt_event *rt_atomic(enum rt_mode mode, enum rt_type type, enum tern_amo what, uint32_t rank,
		    void *at, rt_value operand, rt_value *old);
rt_event *rt_compare_swap(enum rt_mode mode, enum rt_type type, uint32_t rank, void *at,
			  rt_value expected, rt_value desired, rt_value *old);

/* -- Teams ------------------------------------------------------------------------------- */

/*
 * Teams are Tern's: rt.world has all ranks, and tern_team_split(), tern_team_list() with a list for
 * each team, tern_team_rank(), tern_team_member() and the like do for others. In collectives `root`
 * is a place in the team; `how` may be TERN_REDUCE_BY() with a function of the program.
 */
#define RT_EVERYONE UINT32_MAX /* as the root of a reduction */

rt_event *rt_barrier(enum rt_mode mode, tern_team *team);
rt_event *rt_broadcast(enum rt_mode mode, tern_team *team, uint32_t root, void *dst,
		       const void *src, size_t len);
rt_event *rt_reduce(enum rt_mode mode, tern_team *team, uint32_t root, void *dst, const void *src,
		    size_t n, enum tern_type type, uintptr_t how);

#endif
