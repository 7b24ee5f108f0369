/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tern: active messages between the ranks of a job.
 *
 * A message names the handler that runs when it arrives. A request handler may
 * reply once to its sender; a reply handler sends nothing. tern(7) states the
 * model: order, freedom from deadlock, atomic handlers, bounded memory, failure.
 *
 * Conventions. Functions return 0 or a negative errno code; tern_strerror()
 * gives the sentence. -EAGAIN always means: no room, nothing was taken, make
 * progress and try again. An endpoint belongs to one thread, the first that
 * uses it (see tern_attach), unless it is shared; nothing here may be called from a signal handler
 * of the program's.
 */
#ifndef TERN_TERN_H
#define TERN_TERN_H

#include <tern/lang.h>

TERN_BEGIN_

#define TERN_VERSION_MAJOR 0
#define TERN_VERSION_MINOR 1
#define TERN_VERSION "0.1.0"

enum {
	TERN_WORDS_MAX = 8,       /* words a message carries */
	TERN_PAYLOAD_MAX = 8192,  /* bytes of payload that a short block carries */
	TERN_REQUEST_MAX = 32768, /* bytes of payload a request carries, and a reply */
	TERN_HANDLER_MAX = 768,   /* handlers are numbered 0 .. TERN_HANDLER_MAX - 1 */
	TERN_RANKS_MAX = 1024,    /* ranks of a job on one machine */
};

typedef struct tern tern;         /* an endpoint: one rank's place in a job */
typedef struct tern_msg tern_msg; /* a message, where it lies */
typedef struct tern_op tern_op;   /* a handle for operations under way; tern/op.h */
typedef uint64_t tern_id;         /* names a message for receives; tern/send.h */

typedef void tern_handler(tern *t, const tern_msg *m);

/* Who runs the handlers while the program computes; tern-delivery(7) helps to choose. */
enum tern_delivery {
	TERN_DELIVERY_DEFAULT,   /* what TERN_DELIVERY says, or else polls */
	TERN_DELIVERY_POLL,      /* nobody: they run in calls that serve messages */
	TERN_DELIVERY_THREAD,    /* a thread of the library's */
	TERN_DELIVERY_INTERRUPT, /* the program's own thread, called by a signal */
};

/*
 * A function of the program's by which ranks join: every rank calls it with `len` bytes, and gets
 * those of rank r at all + r * len. 0, or what tern_open() is to return.
 */
typedef int tern_allgather(void *arg, const void *mine, void *all, size_t len);

/* What a program may ask for when it opens an endpoint; zero means the default. */
typedef struct tern_options {
	uint32_t spin;  /* polls before a wait yields its core (TERN_SPIN) */
	uint32_t grace; /* ms of silence after which a wait blames a dead rank (TERN_GRACE) */
	enum tern_delivery delivery;
	int signal; /* for interrupts: one that nothing else uses (TERN_SIGNAL) */
	int shared; /* 1: several threads use the endpoint, one call at a time (TERN_SHARED) */
	/* The job of the `size` processes that call this together, and not the environment's. */
	tern_allgather *allgather;
	void *allgather_arg; /* its first argument */
	uint32_t rank, size; /* of this process there */
} tern_options;

/* -- Opening and closing ------------------------------------------------------ */

/*
 * Joins the job that the environment names; without one, the endpoint is a job
 * of one rank. `o` may be NULL. Writes *t only on success. May be called again
 * after tern_close(): the job's next session begins when every rank has closed
 * the one before, and tern_open() waits for that.
 */
TERN_INLINE_ int tern_open(tern **t, const tern_options *o);

/*
 * Opens a job of `n` ranks inside this process: t[0] .. t[n-1]. Each belongs to the
 * thread that first uses it; until then the thread that opened them runs its
 * handlers while it waits in another.
 */
TERN_INLINE_ int tern_open_local(uint32_t n, tern **t);

/*
 * Leaves the job. Messages already sent are still delivered, messages not yet
 * handled here are dropped; a tern_barrier() before it makes sure there are
 * none. Kept messages and open claims become invalid. From a handler: -EPERM.
 */
int tern_close(tern *t);

/*
 * A worker: an endpoint of its own for one thread of this rank, with lanes of its own. It sends
 * requests as the rank and handles the replies; it puts, gets and does atomics. What it knows of
 * handlers is copied here. Any thread may call this. tern_close(*worker) comes before that of `t`.
 * See tern_worker_open(3).
 */
int tern_worker_open(tern *t, tern **worker);

/*
 * The number that names the worker where a request names a rank, at every rank and worker of the
 * job: requests to it are handled by the worker's thread. Of an endpoint of a rank, and where a
 * worker is that endpoint itself, it is the rank. TERN_RANK_NONE for NULL. See tern_worker_open(3).
 */
uint32_t tern_worker_id(const tern *worker);

/*
 * Ends the whole job with `status`, 0 to 255, without closing anything: the launcher ends the other
 * ranks and returns it. Says so on standard error unless it is 0. From everywhere. Returns only if
 * refused: -EINVAL for another status, -EPERM in a child of fork().
 */
int tern_exit(tern *t, int status);

/*
 * The same with status 1 and a sentence, which it writes with the rank to standard error. Returns
 * only in a child of fork(): -EPERM.
 */
int tern_abort(tern *t, const char *sentence);

/*
 * Gives the endpoint to the calling thread. Needed only to move an endpoint that
 * another thread has used already; the caller orders the two uses.
 */
void tern_attach(tern *t);

/*
 * Lends the endpoint: until this thread takes it back with tern_attach(), threads that wait in
 * workers of the rank, or in other endpoints that were opened with it, serve it and run its
 * handlers. In the program, under no hold: -EPERM, -EDEADLK.
 */
int tern_detach(tern *t);

/*
 * How messages are delivered, and another way from now on. Delivery by thread or interrupt begins
 * with the first call that sends, polls, waits or holds, or with tern_attach(): until then no
 * handler runs. Only where no handler and no hold is under way: -EPERM, -EDEADLK.
 */
enum tern_delivery tern_delivery_get(const tern *t);
int tern_delivery_set(tern *t, enum tern_delivery d);

uint32_t tern_rank(const tern *t);
uint32_t tern_size(const tern *t);

/* In place of a rank. A call that does not say that it takes one refuses it: -ERANGE. */
#define TERN_RANK_ANY UINT32_MAX        /* of receives: whoever sends */
#define TERN_RANK_NONE (UINT32_MAX - 1) /* nobody: sends, receives, exchanges do nothing */
#define TERN_RANK_ALL (UINT32_MAX - 2)  /* of grants and spawns: every rank */

/*
 * The machines of the job, numbered from 0: how many, and the one that a rank is on (UINT32_MAX if
 * there is no such rank). 1 if `rank` shares memory with this one, as ranks of a machine do unless
 * a setting makes them use a network.
 */
uint32_t tern_machines(const tern *t);
uint32_t tern_machine(const tern *t, uint32_t rank);
int tern_near_is(const tern *t, uint32_t rank);

/* Nanoseconds since some moment of this machine's: only differences mean something. */
uint64_t tern_time(const tern *t);

/*
 * The sentence for `rc`: the calling thread's last error if that was `rc`, with
 * the rule, handler and rank it names; else what `rc` means in general. Valid
 * until this thread's next call of a function of Tern.
 */
const char *tern_strerror(int rc);

/*
 * Registers `fn` under `id`; every rank uses the same numbers. -ERANGE if `id`
 * is not below TERN_HANDLER_MAX. A message to a number that its receiver has not registered yet is
 * dropped there, and the next poll returns -ENXIO. Tools, traces and errors
 * name the function as the call does.
 */
int tern_on(tern *t, unsigned id, tern_handler *fn);
/*
 * With a pointer for the handler, which finds it with tern_msg_handler_arg(), and a name: an
 * identifier that stays valid until tern_close(); NULL: none.
 */
int tern_on_with(tern *t, unsigned id, tern_handler *fn, void *arg, const char *name);
/*
 * `n` numbers from *first on, for a library that shares the endpoint with others: every rank makes
 * the same calls in the same order. They are taken from the end; -ENOSPC, -EEXIST.
 */
int tern_on_range(tern *t, unsigned n, unsigned *first);
#ifndef __cplusplus
#define tern_on(t, id, ...) \
	tern_on_with(t, id, __VA_ARGS__, NULL, TERN_FUNCTION_NAME_(#__VA_ARGS__, __VA_ARGS__))
/*
 * A function is named by its name; a variable that points to one would be named by the variable's.
 */
#define TERN_FUNCTION_NAME_(text, ...)                                                         \
	(__builtin_types_compatible_p(__typeof__(__VA_ARGS__), tern_handler) || *(text) == '&' \
		 ? (text)                                                                      \
		 : NULL)
#endif

/* -- Sending ------------------------------------------------------------------ */

/*
 * tern_request(t, dst, id, ...) sends up to 8 words to handler `id` of rank
 * `dst`; tern_reply(t, m, id, ...) answers request `m` from inside its handler.
 * A request without room serves what arrives until there is; a reply always has
 * room. An integer is converted to uint64_t; a float or a double travels as the bits of a
 * double, and tern_msg_double() reads it. Up to 6 words are one line of 64 bytes; 7 or 8
 * are two, and cost a call of the library at each side.
 */
#define tern_request(t, ...)                           \
	tern_request_any_(t, TERN_COUNT_(__VA_ARGS__), \
			  TERN_TEN_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
#define tern_reply(t, ...)                           \
	tern_reply_any_(t, TERN_COUNT_(__VA_ARGS__), \
			TERN_TEN_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))

/* The same with the words in an array, for callers that count at run time. */
int tern_request_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words);
int tern_reply_array(tern *t, const tern_msg *m, unsigned id, unsigned n, const uint64_t *words);

/*
 * tern_reply_to(t, dst, id, ...) sends a message of the reply class to any rank, in order with the
 * replies to it: its handler is a reply handler, and sends nothing. For the program and deferred
 * functions, -EPERM in a handler. Without room it serves what arrives until there is.
 */
#define tern_reply_to(t, ...)                             \
	tern_reply_to_words_(t, TERN_COUNT_(__VA_ARGS__), \
			     TERN_TEN_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_reply_to_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words);

/*
 * tern_request_data(t, dst, id, data, len, ...) and
 * tern_reply_data(t, m, id, data, len, ...) carry `len` bytes besides the words, 0 to
 * TERN_REQUEST_MAX. `data` is free again on return. 0 bytes are a payload, too: tern_msg_data()
 * gives an address. A reply always has room: of one above TERN_PAYLOAD_MAX, polls may send a part,
 * and the requester's next request is handled after it.
 */
#define tern_request_data(t, dst, id, data, ...)                            \
	tern_request_data_any_(t, dst, id, data, TERN_COUNT1_(__VA_ARGS__), \
			       TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
#define tern_reply_data(t, m, id, data, ...)                            \
	tern_reply_data_any_(t, m, id, data, TERN_COUNT1_(__VA_ARGS__), \
			     TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_request_data_array(tern *t, uint32_t dst, unsigned id, const void *data, size_t len,
			    unsigned n, const uint64_t *words);
int tern_reply_data_array(tern *t, const tern_msg *m, unsigned id, const void *data, size_t len,
			  unsigned n, const uint64_t *words);

/*
 * Composing in place. tern_claim() gives `len` writable bytes, at most TERN_REQUEST_MAX, that will
 * travel to `dst`; tern_commit(t, claimed, id, ...) sends them, tern_abandon() does
 * not. A claim holds no place in the order: messages are ordered by commit. In
 * between, every other call is legal. -ENOBUFS: this endpoint's own open claims
 * hold every block.
 */
int tern_claim(tern *t, uint32_t dst, size_t len, void **claimed);
/*
 * Makes an open claim shorter, one for a reply too: only its first `len` bytes travel. It does not
 * grow again. -EMSGSIZE: it is shorter already.
 */
int tern_claim_shorten(tern *t, void *claimed, size_t len);
#define tern_commit(t, claimed, ...)                            \
	tern_commit_any_(t, claimed, TERN_COUNT1_(__VA_ARGS__), \
			 TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_commit_array(tern *t, void *claimed, unsigned id, unsigned n, const uint64_t *words);
int tern_abandon(tern *t, void *claimed);

/*
 * A reply composed in place: in fresh bytes, or in the payload of request `m`, contents intact, so
 * that fields which do not change need no copy and the block returns to its sender; of a short one
 * that came in the ring the bytes are a copy. The latter
 * needs a request with a payload of at least `len` bytes: -ENOBUFS. Either has at most
 * TERN_REQUEST_MAX. tern_reply_commit(t, m, claimed, id, ...) sends it. A claim that the handler
 * does not commit is abandoned on return.
 */
enum tern_claim_from {
	TERN_CLAIM_ANY, /* the request's payload if it is long enough, else fresh bytes */
	TERN_CLAIM_SAME,
	TERN_CLAIM_FRESH,
};
int tern_reply_claim(tern *t, const tern_msg *m, size_t len, enum tern_claim_from from,
		     void **claimed);
#define tern_reply_commit(t, m, claimed, ...)                            \
	tern_reply_commit_any_(t, m, claimed, TERN_COUNT1_(__VA_ARGS__), \
			       TERN_NINE_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_reply_commit_array(tern *t, const tern_msg *m, void *claimed, unsigned id, unsigned n,
			    const uint64_t *words);

/* -- Reading a message -------------------------------------------------------- */

TERN_INLINE_ uint32_t tern_msg_src(const tern_msg *m);
TERN_INLINE_ unsigned tern_msg_count(const tern_msg *m);            /* how many words it carries */
TERN_INLINE_ uint64_t tern_msg_word(const tern_msg *m, unsigned i); /* i below that number */
#define tern_msg_arg tern_msg_word /* its name in programs written against 0.1 */
/* A word that was given as a double or a float. */
TERN_INLINE_ double tern_msg_double(const tern_msg *m, unsigned i);
TERN_INLINE_ unsigned tern_msg_handler(const tern_msg *m); /* the number it was sent to */
/* 1 if the message that is being handled is of the reply class, 0 if it can be answered. */
int tern_msg_is_reply(tern *t, const tern_msg *m);
/* What tern_on_with() was given as `arg` with the handler; NULL without it. */
void *tern_msg_handler_arg(const tern *t, const tern_msg *m);
/* The payload and, unless `len` is NULL, its length; NULL and 0 without one. */
TERN_INLINE_ const void *tern_msg_data(const tern_msg *m, size_t *len);

/*
 * Keeps `m` beyond its handler: *kept stays valid until tern_msg_drop(). Only
 * from the handler of `m`, once. -ENOBUFS when TERN_KEEP_MAX messages are kept
 * already. A kept payload pins its block at the sender, which
 * has TERN_POOL_BLOCKS of them, and as many for payloads above TERN_PAYLOAD_MAX. A short one that
 * came in the ring is copied and pins nothing.
 */
int tern_msg_keep(tern *t, const tern_msg *m, const tern_msg **kept);
int tern_msg_drop(tern *t, const tern_msg *kept);

/*
 * Runs fn(t, arg) at the next moment when sending is allowed: after the handlers
 * of the poll under way. Deferred functions run one after another, may send and
 * poll, and are bounded: -EAGAIN when TERN_DEFER_MAX are waiting.
 */
int tern_defer(tern *t, void (*fn)(tern *t, void *arg), void *arg);

enum { TERN_KEEP_MAX = 256, TERN_DEFER_MAX = 256, TERN_POOL_BLOCKS = 16 };

/* -- Progress ----------------------------------------------------------------- */

/* Handle what has arrived; return how many, or a negative code. */
int tern_poll(tern *t);
int tern_poll_requests(tern *t);
int tern_poll_replies(tern *t); /* also legal in a request handler */

/*
 * Serves messages until *flag >= n, then subtracts n. -EDEADLK under a hold,
 * -EOWNERDEAD (and *flag untouched) when a rank has died and nothing has
 * arrived for the grace time; tern_forgive() makes waits ignore that rank.
 */
int tern_wait(tern *t, tern_flag *flag, uint64_t n);
/* For at most `ns` nanoseconds: then -ETIMEDOUT, and *flag is untouched. 0: looks once. */
int tern_wait_for(tern *t, tern_flag *flag, uint64_t n, uint64_t ns);

/*
 * Serves messages until holds(t, arg) is not 0. The condition is called by this thread, where a
 * deferred function could be, and at least every millisecond, so it may depend on memory that other
 * ranks or threads write. tern_wait_until_for() ends with -ETIMEDOUT after `ns` nanoseconds.
 */
typedef int tern_condition(tern *t, void *arg);
int tern_wait_until(tern *t, tern_condition *holds, void *arg);
int tern_wait_until_for(tern *t, tern_condition *holds, void *arg, uint64_t ns);

/*
 * Serves messages until the word, of this rank's heap, compares so with `value`, as unsigned
 * numbers; what its writer had put before is there then. It wakes when tern_put_signal() changes
 * the word, and notices other puts, atomics and stores within a millisecond or so. Ends as
 * tern_wait() does when a rank dies. The word stays as it is.
 */
enum tern_word {
	TERN_WORD_EQ,
	TERN_WORD_NE,
	TERN_WORD_LT,
	TERN_WORD_LE,
	TERN_WORD_GT,
	TERN_WORD_GE
};
int tern_wait_word(tern *t, const uint64_t *word, enum tern_word what, uint64_t value);
/* For at most `ns` nanoseconds: then -ETIMEDOUT. */
int tern_wait_word_for(tern *t, const uint64_t *word, enum tern_word what, uint64_t value,
		       uint64_t ns);

int tern_forgive(tern *t, uint32_t rank);

/*
 * fn(t, rank, why, arg) is called once for each rank that is lost, also for those that are already:
 * where a deferred function would be. `why` is -EOWNERDEAD if it has died, -ESHUTDOWN if it has
 * closed or ended well. NULL: nothing is called any more.
 */
typedef void tern_lost_handler(tern *t, uint32_t rank, int why, void *arg);
int tern_lost_on(tern *t, tern_lost_handler *fn, void *arg);

/*
 * fn(t, signal, arg) is called once when this process is ended from outside: by the signal with
 * which the launcher ends ranks, SIGTERM or what `tern run --signal` says. It is called where a
 * deferred function would be, by the next poll or wait; it may send and wait, and may call exit().
 * When it returns, the process ends as the signal would have ended it. Launchers send SIGKILL after
 * a second, and a second signal ends the process at once. NULL: the signal is what it was before.
 * A process has one: -EBUSY if another endpoint of it has one.
 */
typedef void tern_end_handler(tern *t, int signal, void *arg);
int tern_end_on(tern *t, tern_end_handler *fn, void *arg);

/* What a handler calls to add n to a flag: unlocked where that is safe. */
TERN_INLINE_ void tern_signal(tern *t, tern_flag *flag, uint64_t n);

/*
 * Between the two no handler runs, however messages are delivered. They nest. A few instructions
 * each.
 */
void tern_hold(tern *t);
void tern_release(tern *t);

/* Returns when every rank has called it; serves messages meanwhile. */
int tern_barrier(tern *t);
/*
 * Enters, and returns: the handle tells when every rank has. -EBUSY while one is under way. Without
 * a handle it is tern_barrier().
 */
int tern_barrier_start(tern *t, tern_op *op);

TERN_END_

#include <tern/fast.h>

#endif
