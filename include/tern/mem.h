/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: a heap that every rank of the machine maps, and moving blocks to and
 * from other ranks' memory.
 *
 * A global address names a byte of a rank's memory in one word, so it travels in
 * a message. It points into the rank's heap, or into private memory which that
 * rank has registered; anything else is refused before a byte moves.
 *
 * Heap memory of a rank on this machine is plain memory: tern_addr_local() gives the
 * pointer, and loads, stores and C11 atomics on it agree with messages: what a
 * rank wrote before it sent a message is seen by the message's handler.
 *
 * Conventions are those of <tern/tern.h>. Calls that move data may be made in a
 * handler when both sides are heap memory, or registered by a rank of the same
 * process or with its file; otherwise they are refused there (-EPERM), because they may wait.
 */
#ifndef TERN_MEM_H
#define TERN_MEM_H

#include <tern/op.h>
#include <tern/tern.h>

TERN_BEGIN_

/* -- Addresses ------------------------------------------------------------------ */

typedef uint64_t tern_addr; /* rank << 48 | 1 << 47, of a heap | offset */

#define TERN_ADDR_NONE ((tern_addr)0)

/* The address of `p` in this rank's heap or registered memory. -EFAULT if it is in neither. */
int tern_addr_of(tern *t, const void *p, tern_addr *a);

/*
 * The address at `rank` of `p`, which is memory of tern_alloc_all(); of other memory
 * TERN_ADDR_NONE, which every call refuses with a sentence.
 */
tern_addr tern_addr_at(tern *t, uint32_t rank, const void *p);
TERN_INLINE_ uint32_t tern_addr_rank(tern_addr a);

TERN_INLINE_ uint32_t tern_addr_rank(tern_addr a)
{
	return (uint32_t)(a >> 48);
}

/*
 * A pointer to the `len` bytes at `a`, if this process can load and store them:
 * heap memory of this machine, memory that was registered there with its file, or what a rank of
 * this process registered. With TERN_GRANT=1, memory of other ranks only where it was granted.
 * -EXDEV if it cannot, -EFAULT or -ERANGE if they are no memory of the job, and -EOWNERDEAD or
 * -ESHUTDOWN if their rank has left.
 */
int tern_addr_local(tern *t, tern_addr a, size_t len, void **p);

/* -- The heap -------------------------------------------------------------------- */

/*
 * `bytes` of this rank's heap, aligned to 64, zero when first given out. -ENOMEM
 * when the heap (TERN_HEAP) or the job's budget (TERN_MEMORY) is
 * spent. Only the rank itself allocates and frees in its heap. Freed
 * memory stays in the heap: the use of an address after its free is not detected.
 */
int tern_alloc(tern *t, size_t bytes, void **p);
/*
 * The same, aligned to `align`, a power of two of which `bytes` is a multiple: -EINVAL if not. Less
 * than 64 is 64.
 */
int tern_alloc_aligned(tern *t, size_t bytes, size_t align, void **p);
int tern_free(tern *t, void *p); /* -EINVAL if `p` is not the beginning of an allocation */

/*
 * Collective: every rank calls it with the same size, in the same order, and gets
 * memory at the same offset. -EINVAL at every rank if the sizes differ. *p is
 * written before any handler of the program can run. tern_free_all() is collective too.
 */
int tern_alloc_all(tern *t, size_t bytes, void **p);
int tern_free_all(tern *t, void *p);

/* -- Registered memory -------------------------------------------------------------- */

/*
 * Lets other ranks put to, get from and operate on [p, p + len) of this process; *a
 * is its address. A rank may have 16,384 regions: -ENOBUFS. tern_unregister() waits until
 * nobody touches the memory; what others had not moved by then fails at their rank.
 */
int tern_register(tern *t, void *p, size_t len, tern_addr *a);
/*
 * The same of memory that the program mapped, shared, from `fd` at `offset`, a multiple of a page.
 * Ranks of the same machine map it at first use, and then load and store as in a heap:
 * tern_addr_local() gives a pointer, which is good until the memory is unregistered. `fd` may be
 * closed; a file that gets shorter ends with SIGBUS who touches what is gone. -EBADF, -EACCES if
 * `fd` is not open for both, -EINVAL for the offset, -ERANGE for a file that is too short.
 */
int tern_register_fd(tern *t, void *p, size_t len, int fd, uint64_t offset, tern_addr *a);
int tern_unregister(tern *t, tern_addr a);

/* -- Who may store to a heap -------------------------------------------------------- */

/*
 * With TERN_GRANT=1 a process maps the heaps of other ranks read-only, and a stray store into one
 * ends it with SIGSEGV. tern_grant() lets `rank`, or TERN_RANK_ALL, store to the `len` bytes at `p`
 * of this rank's heap, or of tern_register_fd(), and to what else lies in their pages. A grant to
 * all is one grant to each rank. tern_revoke() of the same bytes takes one grant back at `rank`, or
 * at each rank that has one. Both wait until the ranks concerned have answered. What is not granted
 * is put to, and operated on, by its owner when it polls, as across machines; gets need no grant.
 * Without TERN_GRANT both do nothing but check the arguments. -EFAULT if the bytes are not all of
 * that memory, -ENXIO to revoke what `rank`, or no rank, has been granted, -ENOBUFS for more than
 * 1,024 at one rank.
 */
int tern_grant(tern *t, uint32_t rank, void *p, size_t len);
int tern_revoke(tern *t, uint32_t rank, void *p, size_t len);

/* -- Put and get ------------------------------------------------------------------ */

/*
 * Blocking: on return the data is at its place, and a message sent after it finds
 * it there. Who moves it at the target is as for atomics, below. Zero bytes are a success and touch
 * nothing, the address included.
 */
int tern_put(tern *t, tern_addr dst, const void *src, size_t len);
int tern_get(tern *t, void *dst, tern_addr src, size_t len);

/*
 * Split-phase. The local memory belongs to the operation until it completes. Data
 * moves while this rank polls or waits, in pieces, in turn with other
 * operations and with messages. -EAGAIN when TERN_OPS_MAX are under way and this
 * is a handler or under a hold; elsewhere the call makes room first.
 */
TERN_INLINE_ int tern_put_start(tern *t, tern_addr dst, const void *src, size_t len, tern_op *op);
TERN_INLINE_ int tern_get_start(tern *t, void *dst, tern_addr src, size_t len, tern_op *op);

/*
 * As tern_put_start(), with local completion apart: `local` is told when `src` may be changed, `op`
 * when the target has the data. Of mapped memory that is at the same time. Elsewhere up to
 * TERN_PAYLOAD_MAX bytes are copied by the call, so that `local` is complete on return, and of more
 * `local` is told with the last acknowledgement. `local` has no errors. Without `op` the call
 * blocks; without `local` it is tern_put_start().
 */
int tern_put_local_start(tern *t, tern_addr dst, const void *src, size_t len, tern_op *local,
			 tern_op *op);

enum { TERN_OPS_MAX = 1024, TERN_DIMS_MAX = 20 };

/*
 * Memory at one side of a transfer: runs of `run` bytes, count[0] of them stride[0] bytes apart,
 * count[1] such rows, and so on; strides may be negative. `dims` 0 is one run. Here it begins at
 * `base`, at another rank at `addr`.
 */
typedef struct tern_part {
	union {
		void *base;
		tern_addr addr;
	};
	size_t run;
	unsigned dims;
	const size_t *count;
	const ptrdiff_t *stride;
} tern_part;

/*
 * Put and get of scattered memory: the bytes of `src`, in order, go to those of `dst`; only the
 * totals must agree (-EMSGSIZE). Parts of one list may lie at several ranks. All of it is
 * checked before a byte moves. The lists, their counts and their strides may be changed on return.
 * Local completion apart, and a message behind the data: tern_long, below.
 */
static inline int tern_put_parts(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
				 size_t srcs);
static inline int tern_get_parts(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
				 size_t srcs);
int tern_put_parts_start(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
			 size_t srcs, tern_op *op);
int tern_get_parts_start(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
			 size_t srcs, tern_op *op);

/*
 * A long active message: tern_put_request(t, dst, id, src, len, ...) puts the data and
 * then sends request `id` with up to 8 words to the rank of `dst`; its handler finds the
 * data in place.
 */
#define tern_put_request(t, dst, id, src, ...)                    \
	tern_put_any_(t, dst, id, src, TERN_COUNT1_(__VA_ARGS__), \
		      TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_put_request_array(tern *t, tern_addr dst, unsigned id, const void *src, size_t len,
			   unsigned n, const uint64_t *words);
int tern_put_then_(tern *t, tern_addr dst, const void *src, size_t len, unsigned n, unsigned id,
		   TERN_SIX_);

/*
 * The same, split-phase: tern_put_request_start(t, dst, id, src, len, local, op, ...) tells `local`
 * when `src` may be changed and `op` when the target has the data; either may be NULL, and without
 * both the call blocks until the message has left. The message does not wait for an answer. Where
 * this process can touch the target, up to 64 KiB are in place and the message has left on return;
 * elsewhere up to TERN_PAYLOAD_MAX bytes are copied by the call (`local` is complete on return),
 * and of more `local` is told when the last byte is copied. Errors go to `op`, else to `local`.
 *
 * tern_put_reply(t, m, dst, id, src, len, local, ...) is for the handler of request `m`: data of
 * any length to an address of whoever sent it, and a reply whose handler finds the data in place.
 * It always has room. Where this process can touch the target, it copies; elsewhere what a reply
 * cannot carry is sent by polls, and that rank's next request is handled after it. `local` is told
 * when `src` may be changed; if it is NULL, that is on return, and what polls send is copied.
 */
#define tern_put_request_start(t, dst, id, src, len, local, ...)                      \
	tern_put_start_words_(t, dst, id, src, len, local, TERN_COUNT1_(__VA_ARGS__), \
			      TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
#define tern_put_reply(t, m, dst, id, src, len, ...)                              \
	tern_put_reply_words_(t, m, dst, id, src, len, TERN_COUNT1_(__VA_ARGS__), \
			      TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))

/*
 * The same with the words in an array; tern_put_reply_array() does not look at `op` and `parts`.
 *
 * With `parts`, tern_put_request_start_array() puts scattered memory, as tern_put_parts_start(),
 * and does not look at `dst`, `src` and `len`. When all of it is in place, the request goes to the
 * rank of the first part, and both handles are told. With TERN_HANDLER_NONE as `id` there is no
 * request.
 */
#define TERN_HANDLER_NONE UINT32_MAX /* no request */
typedef struct tern_parts {
	const tern_part *dst, *src;
	size_t dsts, srcs; /* how many */
} tern_parts;
typedef struct tern_long {
	tern_addr dst;
	unsigned id, n; /* the handler, and how many words */
	const void *src;
	size_t len;
	tern_op *local, *op;
	const uint64_t *words;
	const tern_parts *parts;
} tern_long;
int tern_put_request_start_array(tern *t, const tern_long *what);
int tern_put_reply_array(tern *t, const tern_msg *m, const tern_long *what);

/*
 * Memory copy between any two addresses, neither of which need be here. The two must not overlap.
 * Where this rank can touch neither side, the source's owner moves the data, from
 * its queue of transfers.
 */
static inline int tern_copy(tern *t, tern_addr dst, tern_addr src, size_t len);
int tern_copy_start(tern *t, tern_addr dst, tern_addr src, size_t len, tern_op *op);

/*
 * Gets `len` bytes, at most TERN_PAYLOAD_MAX, from `src` once the 64-bit word at `when->flag`,
 * memory of the same rank, is at least `when->least`. The owner holds the request: it has
 * TERN_WHEN_MAX places, and one that finds none is sent again. While an owner on another machine
 * computes, a thread of it answers (TERN_SERVE). -EAGAIN when TERN_WHEN_MAX of this rank's own are
 * waiting.
 */
typedef struct tern_when {
	tern_addr flag;
	uint64_t least;
} tern_when;
static inline int tern_get_when(tern *t, void *dst, tern_addr src, size_t len,
				const tern_when *when);
int tern_get_when_start(tern *t, void *dst, tern_addr src, size_t len, const tern_when *when,
			tern_op *op);

/*
 * Named memory. tern_block_name() publishes, under a number below TERN_BLOCKS_MAX, the block
 * of `bytes` that *where points to whenever it is asked for. tern_block_get() gets a part of rank
 * `rank`'s block and lays its runs down at `dst`, `dst_stride` bytes apart.
 */
typedef struct tern_block {
	unsigned name;
	size_t offset; /* where the first run begins in the block */
	size_t stride; /* from one run to the next */
	size_t run;    /* bytes of each, at most TERN_PAYLOAD_MAX */
	size_t count;  /* of runs */
} tern_block;
int tern_block_name(tern *t, unsigned name, void *const *where, size_t bytes);
static inline int tern_block_get(tern *t, void *dst, size_t dst_stride, uint32_t rank,
				 const tern_block *from);
int tern_block_get_start(tern *t, void *dst, size_t dst_stride, uint32_t rank,
			 const tern_block *from, tern_op *op);
/*
 * Asks that rank to send the runs here instead, as a message with id `id`, which is received as
 * <tern/send.h> says. They are read when the receive is there. Returns when the rank has agreed.
 */
int tern_block_ask(tern *t, uint32_t rank, const tern_block *from, tern_id id);

enum { TERN_WHEN_MAX = 64, TERN_BLOCKS_MAX = 64 };

/* -- Communication segments, as in CMAM --------------------------------------------- */

/*
 * A segment is memory here that any number of ranks fill. When `bytes` have come, in
 * whatever order, `end` is called in the handler of the last of them; what it returns is
 * a new count of bytes, or 0 to close the segment. The id travels in a message, and
 * an offset may be added to it. -ENOBUFS when TERN_SEGMENTS_MAX are open.
 */
typedef uint64_t tern_segment;
typedef size_t tern_segment_end(tern *t, void *base, void *arg);

int tern_segment_open(tern *t, void *base, size_t bytes, tern_segment_end *end, void *arg,
		      tern_segment *s);
/* The sender has less than was asked for: takes `bytes` off what is still to come. */
int tern_segment_shorten(tern *t, tern_segment s, size_t bytes);
int tern_segment_close(tern *t, tern_segment s);

/*
 * Transfers into a segment; 32 bytes travel as words. What is stale, foreign, out of range or more
 * than is still to come is refused at arrival, nothing is written of that part (long data travels
 * in parts of TERN_PAYLOAD_MAX), and the operation ends with that error. tern_segment_reply() is
 * for the handler of a request whose sender opened the segment: at most TERN_PAYLOAD_MAX bytes, and
 * what is refused is reported at the segment's owner.
 */
static inline int tern_segment_put(tern *t, tern_segment s, const void *data, size_t len);
int tern_segment_put_start(tern *t, tern_segment s, const void *data, size_t len, tern_op *op);
int tern_segment_reply(tern *t, const tern_msg *m, tern_segment s, const void *data, size_t len);

enum { TERN_SEGMENTS_MAX = 256 };

/* -- Store, as in Split-C ----------------------------------------------------------- */

/*
 * Puts the data, then adds `len` to the bytes counted at the target, even if its program computes.
 * Over a network that is one message, which nobody answers; more than TERN_PAYLOAD_MAX bytes are
 * put first, and the message has their number. tern_store_sync() serves messages until `bytes` have
 * been stored here, then takes them off the count.
 */
int tern_store(tern *t, tern_addr dst, const void *src, size_t len);
int tern_store_sync(tern *t, uint64_t bytes);
/* For at most `ns` nanoseconds: then -ETIMEDOUT, and nothing is taken off. */
int tern_store_sync_for(tern *t, uint64_t bytes, uint64_t ns);
/* Every rank calls it; returns when all stores of all ranks have landed. Clears the count. */
int tern_store_sync_all(tern *t);

/* -- Atomics -------------------------------------------------------------------------- */

enum tern_amo {
	TERN_AMO_ADD,
	TERN_AMO_AND,
	TERN_AMO_OR,
	TERN_AMO_XOR,
	TERN_AMO_MIN,
	TERN_AMO_MAX,
	TERN_AMO_SWAP,
	TERN_AMO_LOAD, /* the operand is not looked at */
	TERN_AMO_STORE,
	TERN_AMO_MUL,
	TERN_AMO_SMIN_, /* what TERN_AMO_MIN of signed integers is, */
	TERN_AMO_SMAX_, /* and TERN_AMO_MAX */
};

/*
 * tern_amo(t, a, what, operand, old) does one atomic operation on naturally aligned memory, atomic
 * against every other of these and against C11 atomics of the same width on it. The type of `old`,
 * a pointer to uint64_t, int64_t, uint32_t, int32_t, double or float, says what the memory holds.
 * It gets the value before, unless it is NULL: (uint64_t *)NULL. tern_cas(t, a, expected, desired,
 * old) writes `desired` if the memory holds `expected`, an integer. The _start forms take a handle
 * last; `old` is written when the operation completes.
 *
 * Floating point has ADD, MUL, MIN, MAX, SWAP, LOAD and STORE only. There MIN and MAX leave the old
 * value unless the operand is less, or greater: also when one of the two is a NaN, or both are
 * zeros. -EINVAL for an address that is not aligned, or an unknown operation.
 *
 * Heap memory of this machine, and what was registered there with its file: one instruction here,
 * nobody at the target is involved. Memory of
 * another machine: the owner's process does it, on a thread of the library while its program
 * computes (TERN_SERVE). Memory that another process of this machine registered, and heap memory
 * that TERN_GRANT protects: its owner does it when it polls or waits, or delivers by thread or
 * interrupt. Atomics of network adapters, which are atomic among themselves alone, are not used.
 */
#define tern_amo(t, a, what, operand, old) tern_amo_start(t, a, what, operand, old, NULL)
#define tern_cas(t, a, expected, desired, old) tern_cas_start(t, a, expected, desired, old, NULL)
#ifndef __cplusplus /* which has overloads, below */
#define tern_amo_start(t, a, what, operand, old, op) \
	_Generic((old), uint64_t *                   \
		 : tern_amo64_, int64_t *            \
		 : tern_amo_int64_, uint32_t *       \
		 : tern_amo32_, int32_t *            \
		 : tern_amo_int32_, double *         \
		 : tern_amo_double_, float *         \
		 : tern_amo_float_)(t, a, what, operand, old, op)
#define tern_cas_start(t, a, expected, desired, old, op) \
	_Generic((old), uint64_t *                       \
		 : tern_cas64_, int64_t *                \
		 : tern_cas_int64_, uint32_t *           \
		 : tern_cas32_, int32_t *                \
		 : tern_cas_int32_)(t, a, expected, desired, old, op)
#endif

/* What the macros call; without a handle they block. Other languages call these. */
int tern_amo64_(tern *t, tern_addr a, enum tern_amo what, uint64_t operand, uint64_t *old,
		tern_op *op);
int tern_amo32_(tern *t, tern_addr a, enum tern_amo what, uint32_t operand, uint32_t *old,
		tern_op *op);
int tern_amo_double_(tern *t, tern_addr a, enum tern_amo what, double operand, double *old,
		     tern_op *op);
int tern_amo_float_(tern *t, tern_addr a, enum tern_amo what, float operand, float *old,
		    tern_op *op);
int tern_cas64_(tern *t, tern_addr a, uint64_t expected, uint64_t desired, uint64_t *old,
		tern_op *op);
int tern_cas32_(tern *t, tern_addr a, uint32_t expected, uint32_t desired, uint32_t *old,
		tern_op *op);

/* -- Signals: words that tern_wait_word() waits for --------------------------------------- */

/*
 * Puts the data, and then does `what` with `value` on the 64-bit word at `word`, in the heap of the
 * same rank: whoever sees the word changed finds the data in place, and the rank is woken if it
 * sleeps in tern_wait_word(). 0 bytes are a signal alone. Over a network data of up to
 * TERN_PAYLOAD_MAX bytes and the signal are one message.
 */
typedef struct tern_change {
	tern_addr word;
	enum tern_amo what; /* TERN_AMO_STORE, TERN_AMO_ADD or another */
	uint64_t value;
} tern_change;
static inline int tern_put_signal(tern *t, tern_addr dst, const void *src, size_t len,
				  const tern_change *change);
int tern_put_signal_start(tern *t, tern_addr dst, const void *src, size_t len,
			  const tern_change *change, tern_op *op);

/* -- Order and completion ---------------------------------------------------------------- */

/*
 * Serves messages until every operation of this endpoint but tern_get_when_start() has completed;
 * handles have the errors. Puts before it land before those after it. It does not wait for stores.
 */
int tern_flush(tern *t);

/* -- The inline path ----------------------------------------------------------------- */

/*
 * The rules are checked before the data moves; where they do not plainly hold, the library says
 * why.
 */
static inline int tern_put_then_inline_(tern *t, tern_addr dst, const void *src, size_t len,
					unsigned n, unsigned id, TERN_SIX_)
{
	uint32_t rank = tern_addr_rank(dst);
	if (TERN_UNLIKELY(rank >= t->reach || n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX ||
			  !t->known[id]))
		return tern_put_then_(t, dst, src, len, n, id, TERN_SIX_VALUES_);
	int rc = tern_put(t, dst, src, len);
	return rc ? rc : tern_request_inline_(t, n, rank, id, TERN_SIX_VALUES_);
}

#ifdef TERN_NO_INLINE
#define tern_put_words_ tern_put_then_
#else
#define tern_put_words_ tern_put_then_inline_
#endif

static inline int tern_put_any_(tern *t, tern_addr dst, unsigned id, const void *src, unsigned n,
				size_t len, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_put_words_(t, dst, src, len, n, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_put_request_array(t, dst, id, src, len, n, words);
}

static inline int tern_put_start_words_(tern *t, tern_addr dst, unsigned id, const void *src,
					size_t len, tern_op *local_op, unsigned n, tern_op *op,
					TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	const tern_long what = { dst, id, n, src, len, local_op, op, words, NULL };
	return tern_put_request_start_array(t, &what);
}

static inline int tern_put_reply_words_(tern *t, const tern_msg *m, tern_addr dst, unsigned id,
					const void *src, size_t len, unsigned n, tern_op *local_op,
					TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	const tern_long what = { dst, id, n, src, len, local_op, NULL, words, NULL };
	return tern_put_reply_array(t, m, &what);
}

/* Split-phase with a handle for certain, which a compiler mostly sees. */
int tern_put_handle_(tern *t, tern_addr dst, const void *src, size_t len, tern_op *op);
int tern_get_handle_(tern *t, void *dst, tern_addr src, size_t len, tern_op *op);

TERN_INLINE_ int tern_put_start(tern *t, tern_addr dst, const void *src, size_t len, tern_op *op)
{
	return op ? tern_put_handle_(t, dst, src, len, op) : tern_put(t, dst, src, len);
}

TERN_INLINE_ int tern_get_start(tern *t, void *dst, tern_addr src, size_t len, tern_op *op)
{
	return op ? tern_get_handle_(t, dst, src, len, op) : tern_get(t, dst, src, len);
}

/* -- Blocking forms: the split-phase ones without a handle, which other languages call -- */

static inline int tern_put_parts(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
				 size_t srcs)
{
	return tern_put_parts_start(t, dst, dsts, src, srcs, NULL);
}

static inline int tern_get_parts(tern *t, const tern_part *dst, size_t dsts, const tern_part *src,
				 size_t srcs)
{
	return tern_get_parts_start(t, dst, dsts, src, srcs, NULL);
}

static inline int tern_put_signal(tern *t, tern_addr dst, const void *src, size_t len,
				  const tern_change *change)
{
	return tern_put_signal_start(t, dst, src, len, change, NULL);
}

static inline int tern_copy(tern *t, tern_addr dst, tern_addr src, size_t len)
{
	return tern_copy_start(t, dst, src, len, NULL);
}

static inline int tern_get_when(tern *t, void *dst, tern_addr src, size_t len,
				const tern_when *when)
{
	return tern_get_when_start(t, dst, src, len, when, NULL);
}

static inline int tern_block_get(tern *t, void *dst, size_t dst_stride, uint32_t rank,
				 const tern_block *from)
{
	return tern_block_get_start(t, dst, dst_stride, rank, from, NULL);
}

static inline int tern_segment_put(tern *t, tern_segment s, const void *data, size_t len)
{
	return tern_segment_put_start(t, s, data, len, NULL);
}

/* -- Atomics on signed integers: the same bits, and other minima and maxima -------------- */

static inline enum tern_amo tern_amo_signed_(enum tern_amo what)
{
	return what == TERN_AMO_MIN ? TERN_AMO_SMIN_ : what == TERN_AMO_MAX ? TERN_AMO_SMAX_ : what;
}

static inline int tern_amo_int64_(tern *t, tern_addr a, enum tern_amo what, int64_t operand,
				  int64_t *old, tern_op *op)
{
	return tern_amo64_(t, a, tern_amo_signed_(what), (uint64_t)operand, (uint64_t *)old, op);
}

static inline int tern_amo_int32_(tern *t, tern_addr a, enum tern_amo what, int32_t operand,
				  int32_t *old, tern_op *op)
{
	return tern_amo32_(t, a, tern_amo_signed_(what), (uint32_t)operand, (uint32_t *)old, op);
}

static inline int tern_cas_int64_(tern *t, tern_addr a, int64_t expected, int64_t desired,
				  int64_t *old, tern_op *op)
{
	return tern_cas64_(t, a, (uint64_t)expected, (uint64_t)desired, (uint64_t *)old, op);
}

static inline int tern_cas_int32_(tern *t, tern_addr a, int32_t expected, int32_t desired,
				  int32_t *old, tern_op *op)
{
	return tern_cas32_(t, a, (uint32_t)expected, (uint32_t)desired, (uint32_t *)old, op);
}

TERN_END_

#ifdef __cplusplus
#define TERN_AMO_OF_(type, call)                                                                 \
	static inline int tern_amo_start(tern *t, tern_addr a, enum tern_amo what, type operand, \
					 type *old, tern_op *op)                                 \
	{                                                                                        \
		return call(t, a, what, operand, old, op);                                       \
	}
#define TERN_CAS_OF_(type, call)                                                            \
	static inline int tern_cas_start(tern *t, tern_addr a, type expected, type desired, \
					 type *old, tern_op *op)                            \
	{                                                                                   \
		return call(t, a, expected, desired, old, op);                              \
	}
TERN_AMO_OF_(uint64_t, tern_amo64_)
TERN_AMO_OF_(int64_t, tern_amo_int64_)
TERN_AMO_OF_(uint32_t, tern_amo32_)
TERN_AMO_OF_(int32_t, tern_amo_int32_)
TERN_AMO_OF_(double, tern_amo_double_)
TERN_AMO_OF_(float, tern_amo_float_)
TERN_CAS_OF_(uint64_t, tern_cas64_)
TERN_CAS_OF_(int64_t, tern_cas_int64_)
TERN_CAS_OF_(uint32_t, tern_cas32_)
TERN_CAS_OF_(int32_t, tern_cas_int32_)
#undef TERN_AMO_OF_
#undef TERN_CAS_OF_
#endif

#endif
