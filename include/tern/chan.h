/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: one-way pipes between ranks, whose put and get are a few instructions
 * because nothing but data travels.
 *
 * One rank opens the sending end to another rank, or to a list of them, the others open
 * the receiving end under the same name. What is put comes out in order, and is got in
 * the sizes it was put in: a value or block takes as many words of 8 bytes as it fills.
 *
 * The ends that puts and gets work on are values: take one into a local variable, so that
 * it lives in registers, and give it back when the loop is over:
 *
 *     tern_out out = tern_chan_out(c);
 *     for (...)
 *             rc = tern_chan_put(&out, &value, sizeof value);
 *     tern_chan_out_back(&out);
 *
 * Everything put so far is one message until tern_chan_end(); it may be written in pieces,
 * at any distance in time, and arrives uninterrupted, since every producer has a ring of
 * its own. A message may name a procedure that the receiver runs, with its parameters
 * following.
 *
 * Between ranks without memory in common what is put travels in messages: it leaves with the put,
 * in a burst at the latest when the sender next ends a message, polls or waits, and arrives where
 * the receiver does one of the latter.
 *
 * Conventions are those of <tern/tern.h>. The calls that do not wait do not serve messages either.
 * A put without room and a get without data wait and serve messages; where waiting is not allowed
 * they return -EPERM (in a handler) or -EDEADLK (under a hold).
 */
#ifndef TERN_CHAN_H
#define TERN_CHAN_H

#include <errno.h>
#include <tern/tern.h>

TERN_BEGIN_

typedef struct tern_chan tern_chan; /* one end of a channel */

/* -- The inline layout, which TERN_LAYOUT covers ---------------------------------- */

/*
 * A line is a count and seven words. The count runs from -TERN_CHAN_FULL to 0, in bytes: how
 * far from the line's end the next word will be. It lies in the line that it counts, so
 * one cache line moves for each value at most, and the producer opens a line's successor
 * before it uses the line: a line that is full has an open successor. The first
 * line of a leaf has no words: whoever comes there goes to the library.
 */
struct tern_chan_line {
	TERN_ATOMIC_(int32_t) count;
	TERN_ATOMIC_(uint32_t)
	mark; /* not ~0: the line ends at its count, and word 6 tells what
		 follows */
	uint64_t word[7];
};

enum { TERN_CHAN_FULL = 56, TERN_CHAN_LEAF = 8192 };

TERN_ASSERT_(sizeof(struct tern_chan_line) == TERN_LINE, "a channel's line is a cache line");

typedef struct tern_out {
	struct tern_chan_line
		*next; /* the line behind the one being written, which has room for a word */
	intptr_t at;   /* where, from its end */
	tern_chan *chan;
} tern_out;

typedef struct tern_in {
	struct tern_chan_line *line;
	intptr_t at;
	tern_chan *chan;
} tern_in;

/* Where an end goes on; line NULL: nowhere, and tern_chan_trouble_() has the reason. */
struct tern_chan_place {
	struct tern_chan_line *line;
	intptr_t at;
};

/* -- Opening and closing ------------------------------------------------------------ */

/*
 * Opens the sending end of channel `name` to `rank`, or to each of `n` ranks: every one gets
 * all that is put. What is put waits in the channel until the other end is opened.
 * -EEXIST if this rank has one of that name open to one of them already; -EINVAL for a rank that is
 * twice in the list; -ENOBUFS when the other rank has TERN_CHANS_MAX offers that it has not taken,
 * or this rank's share of them; -ENOMEM when the heap or the job's memory is spent.
 */
int tern_chan_to(tern *t, uint32_t rank, uint64_t name, tern_chan **c);
int tern_chan_to_list(tern *t, const uint32_t *ranks, unsigned n, uint64_t name, tern_chan **c);

/* Opens the receiving end; waits until `rank` has opened the other one. */
int tern_chan_from(tern *t, uint32_t rank, uint64_t name, tern_chan **c);

/*
 * Closes this end. Of the sending end: what was put still arrives, and then gets return
 * -EPIPE. Of the receiving end: what was not got is dropped, and puts return -EPIPE, though not at
 * once: the sender finds out when it has filled a leaf (TERN_CHAN_LEAF), and with several readers
 * when none is left. When the other side has died the code is -EOWNERDEAD, when it has left without
 * closing -ESHUTDOWN.
 */
int tern_chan_close(tern_chan *c);

enum { TERN_CHANS_MAX = 1024, TERN_PROCS_MAX = 256 };

/*
 * The ends, as values; one at a time of each channel. Giving it back is remembering where it
 * stands.
 */
TERN_INLINE_ tern_out tern_chan_out(tern_chan *c);
TERN_INLINE_ tern_in tern_chan_in(tern_chan *c);
TERN_INLINE_ void tern_chan_out_back(const tern_out *o);
TERN_INLINE_ void tern_chan_in_back(const tern_in *i);

/* -- Putting and getting ------------------------------------------------------------- */

/*
 * A `len` of 4, 8 or 16 that the compiler knows is a few instructions; so is what gets it.
 */
int tern_chan_put(tern_out *o, const void *data, size_t len);
/*
 * -ENOMSG: a procedure waits and not data; -ENODATA: the message ends here; see tern_chan_next().
 * -EMSGSIZE: the message ends within `len`.
 */
int tern_chan_get(tern_in *i, void *data, size_t len);

/*
 * 0 if `bytes` can be put, or got, as one block without waiting; -EAGAIN if not now, -EMSGSIZE if
 * never (about 20 KiB).
 */
int tern_chan_room(tern_out *o, size_t bytes);
int tern_chan_ready(tern_in *i, size_t bytes);
/*
 * What can be put, or got, of a block of `len` bytes, of which *done have been already; about 20
 * KiB at most. 0: that was the rest; 1: there is more to do; -EAGAIN: no room, or no data, for now.
 */
int tern_chan_put_some(tern_out *o, const void *data, size_t len, size_t *done);
int tern_chan_get_some(tern_in *i, void *data, size_t len, size_t *done);

/* -- Messages and procedures ------------------------------------------------------------ */

/* Ends the message: what is put from now on is the next one. */
int tern_chan_end(tern_out *o);
/* Passes what is left of the message, its end included; waits for that. */
int tern_chan_next(tern_in *i);

/*
 * A procedure, registered under the same number at both ranks. tern_chan_call() names it in
 * the message, its parameters are what is put next; tern_chan_run() runs the one that waits
 * (it waits for it; -EPROTO if data waits there) with the end to get them from, which is the one to
 * use until it returns. -ENXIO, at either side, if nothing is registered under the number.
 */
typedef void tern_proc(tern *t, tern_in *i, void *arg);
int tern_chan_on(tern *t, unsigned id, tern_proc *fn, void *arg);
int tern_chan_call(tern_out *o, unsigned id);
int tern_chan_run(tern_in *i);

enum tern_chan_kind {
	TERN_CHAN_NOTHING,
	TERN_CHAN_DATA,
	TERN_CHAN_PROCEDURE,
	TERN_CHAN_END,
	TERN_CHAN_CLOSED
};

/* What waits at the end of a channel; never waits itself. */
enum tern_chan_kind tern_chan_peek(tern_in *i);

enum tern_chan_flags { TERN_CHAN_NOWAIT = 1 };

/*
 * The first of `n` ends, looking on from *next, where something waits: its index, and *next is set
 * so that each is looked at first in turn. Waits for one, or with TERN_CHAN_NOWAIT returns -EAGAIN.
 */
int tern_chan_any(tern_in *const *ends, unsigned n, unsigned *next, unsigned flags);

/* -- The inline path ------------------------------------------------------------------- */

struct tern_chan_place tern_chan_where_(tern_chan *c);
struct tern_chan_place tern_chan_next_leaf_(tern_chan *c, struct tern_chan_line *line);
struct tern_chan_place tern_chan_more_(tern_chan *c, struct tern_chan_line *line, intptr_t at);
int tern_chan_trouble_(tern_chan *c);
void tern_chan_stand_(tern_chan *c, struct tern_chan_line *line, intptr_t at);

/*
 * The calls above take an end by its address, which would keep the program's own out of registers:
 * so programs call them with a copy.
 */
#define TERN_CHAN_COPY_(kind, end, type, call) \
	kind copy = *end;                      \
	type rc = call;                        \
	*end = copy;                           \
	return rc

TERN_INLINE_ tern_out tern_chan_out(tern_chan *c)
{
	struct tern_chan_place p = tern_chan_where_(c);
	tern_out out = { p.line + 1, p.at, c };
	return out;
}

TERN_INLINE_ tern_in tern_chan_in(tern_chan *c)
{
	struct tern_chan_place p = tern_chan_where_(c);
	tern_in in = { p.line, p.at, c };
	return in;
}

static inline int tern_chan_put_block_(tern_out *o, const void *data, size_t len)
{
	TERN_CHAN_COPY_(tern_out, o, int, tern_chan_put(&copy, data, len));
}

static inline int tern_chan_get_block_(tern_in *i, void *data, size_t len)
{
	TERN_CHAN_COPY_(tern_in, i, int, tern_chan_get(&copy, data, len));
}

static inline int tern_chan_put_some_(tern_out *o, const void *data, size_t len, size_t *done)
{
	TERN_CHAN_COPY_(tern_out, o, int, tern_chan_put_some(&copy, data, len, done));
}

static inline int tern_chan_get_some_(tern_in *i, void *data, size_t len, size_t *done)
{
	TERN_CHAN_COPY_(tern_in, i, int, tern_chan_get_some(&copy, data, len, done));
}

static inline int tern_chan_room_(tern_out *o, size_t bytes)
{
	TERN_CHAN_COPY_(tern_out, o, int, tern_chan_room(&copy, bytes));
}

static inline int tern_chan_ready_(tern_in *i, size_t bytes)
{
	TERN_CHAN_COPY_(tern_in, i, int, tern_chan_ready(&copy, bytes));
}

static inline int tern_chan_end_(tern_out *o)
{
	TERN_CHAN_COPY_(tern_out, o, int, tern_chan_end(&copy));
}

static inline int tern_chan_next_(tern_in *i)
{
	TERN_CHAN_COPY_(tern_in, i, int, tern_chan_next(&copy));
}

static inline int tern_chan_call_(tern_out *o, unsigned id)
{
	TERN_CHAN_COPY_(tern_out, o, int, tern_chan_call(&copy, id));
}

static inline int tern_chan_run_(tern_in *i)
{
	TERN_CHAN_COPY_(tern_in, i, int, tern_chan_run(&copy));
}

static inline enum tern_chan_kind tern_chan_peek_(tern_in *i)
{
	TERN_CHAN_COPY_(tern_in, i, enum tern_chan_kind, tern_chan_peek(&copy));
}

TERN_INLINE_ void tern_chan_out_back(const tern_out *o)
{
	/* By numbers: an end that was never taken has no line, and none lies before NULL. */
	uintptr_t line = (uintptr_t)o->next - sizeof *o->next;
	tern_chan_stand_(o->chan, (struct tern_chan_line *)line, o->at);
}

TERN_INLINE_ void tern_chan_in_back(const tern_in *i)
{
	tern_chan_stand_(i->chan, i->line, i->at);
}

/* The word `at` bytes from the end of its line; `at` is negative. */
static inline uint64_t *tern_chan_word_(struct tern_chan_line *line, intptr_t at)
{
	return (uint64_t *)(void *)((char *)(line + 1) + at);
}

/* Whether the count says `at`. chan.R4, acquire; released in tern_chan_publish_(). */
static inline int tern_chan_stands_(const struct tern_chan_line *line, intptr_t at)
{
#if defined(__x86_64__) && !defined(TERN_WATCHED_) && !defined(TERN_NO_INLINE)
	int same; /* one instruction, where compilers make two of an atomic load */
	__asm__ volatile("cmpl %2, %1"
			 : "=@cce"(same)
			 : "m"(line->count), "ri"((int32_t)at)
			 : "memory");
	return same;
#else
	return atomic_load_explicit(&line->count, memory_order_acquire) == (int32_t)at;
#endif
}

/* Makes an empty line, without a mark, of what an earlier lap left. */
static inline void tern_chan_open_line_(struct tern_chan_line *line)
{
	typedef int64_t __attribute__((may_alias)) both; /* the count and the mark in one store */
	__atomic_store_n((both *)(void *)&line->count, -TERN_CHAN_FULL, __ATOMIC_RELAXED);
}

/*
 * Publishes what has been written up to `at`; a line that is full is left for the next. That an end
 * knows the next line, and not its own, saves an instruction here.
 */
static inline int tern_chan_publish_(tern_out *o)
{
	/*
	 * chan.R4, release; acquired in tern_chan_stands_(): the words, and the next line's
	 * opening, come first.
	 */
	atomic_store_explicit(&o->next[-1].count, (int32_t)o->at, memory_order_release);
	if (TERN_UNLIKELY(o->at == 0)) {
		if (TERN_UNLIKELY(((uintptr_t)o->next & (TERN_CHAN_LEAF - 1)) == 0)) {
			struct tern_chan_place p = tern_chan_next_leaf_(o->chan, o->next);
			o->next = p.line + 1;
			o->at = p.at;
			return tern_chan_trouble_(o->chan);
		}
		tern_prefetch_write_(o->next + TERN_PREFETCH + 1);
		tern_chan_open_line_(o->next + 1);
		o->at = -TERN_CHAN_FULL;
		o->next++;
	}
	return 0;
}

/* 4 or 8 bytes as a word. */
static inline uint64_t tern_chan_load_(const void *data, size_t len)
{
	uint64_t word = 0;
	memcpy(&word, data, len);
	return word;
}

static inline int tern_chan_put8_(tern_out *o, uint64_t value)
{
	*tern_chan_word_(o->next - 1, o->at) = value;
	o->at += 8;
	return tern_chan_publish_(o);
}

static inline int tern_chan_put16_(tern_out *o, const void *value)
{
	uint64_t two[2];
	if (TERN_UNLIKELY(o->at > -16))
		return tern_chan_put_block_(o, value, 16);
	memcpy(two, value, 16);
	tern_chan_word_(o->next - 1, o->at)[0] = two[0];
	tern_chan_word_(o->next - 1, o->at)[1] = two[1];
	o->at += 16;
	return tern_chan_publish_(o);
}

/*
 * Goes to where the next word is. Within a leaf that is the next line; everything else,
 * waiting included, is the library's. Neither way is likelier than the other, as far as
 * the compiler is told, and -TERN_CHAN_FULL is hidden from it, so that it lays the code out in one
 * line.
 */
static inline int tern_chan_seek_(tern_in *i)
{
	if (__builtin_expect_with_probability(tern_chan_stands_(i->line, i->at), 1, 0.5)) {
		int there = 0;
		if (i->at == 0) {
			i->line++;
			i->at = -TERN_CHAN_FULL;
			__asm__("" : "+r"(i->at));
			there = !tern_chan_stands_(i->line, -TERN_CHAN_FULL);
		}
		if (!there) {
			struct tern_chan_place p = tern_chan_more_(i->chan, i->line, i->at);
			if (!p.line)
				return tern_chan_trouble_(i->chan);
			i->line = p.line;
			i->at = p.at;
		}
	}
	return 0;
}

static inline int tern_chan_get8_(tern_in *i, void *value, size_t len)
{
	int rc = tern_chan_seek_(i);
	if (TERN_UNLIKELY(rc))
		return rc;
	memcpy(value, tern_chan_word_(i->line, i->at), len);
	i->at += 8;
	return 0;
}

static inline int tern_chan_get16_(tern_in *i, void *value)
{
	int rc = tern_chan_seek_(i);
	if (TERN_UNLIKELY(rc))
		return rc;
	if (TERN_UNLIKELY(atomic_load_explicit(&i->line->count, memory_order_acquire) - i->at < 16))
		return tern_chan_get_block_(i, value, 16);
	uint64_t two[2] = { tern_chan_word_(i->line, i->at)[0],
			    tern_chan_word_(i->line, i->at)[1] };
	memcpy(value, two, 16);
	i->at += 16;
	return 0;
}

/* A length that the compiler knows and that has a path of its own; evaluates each argument once. */
#define TERN_CHAN_QUICK_(len) \
	(__builtin_constant_p(len) && ((len) == 4 || (len) == 8 || (len) == 16))
#define tern_chan_put(o, data, len)                                  \
	(!TERN_CHAN_QUICK_(len) ? tern_chan_put_block_(o, data, len) \
	 : (len) == 16          ? tern_chan_put16_(o, data)          \
				: tern_chan_put8_(o, tern_chan_load_(data, len)))
#define tern_chan_get(i, data, len)                                  \
	(!TERN_CHAN_QUICK_(len) ? tern_chan_get_block_(i, data, len) \
	 : (len) == 16          ? tern_chan_get16_(i, data)          \
				: tern_chan_get8_(i, data, len))
#define tern_chan_put_some(o, data, len, done) tern_chan_put_some_(o, data, len, done)
#define tern_chan_get_some(i, data, len, done) tern_chan_get_some_(i, data, len, done)
#define tern_chan_room(o, bytes) tern_chan_room_(o, bytes)
#define tern_chan_ready(i, bytes) tern_chan_ready_(i, bytes)
#define tern_chan_end(o) tern_chan_end_(o)
#define tern_chan_next(i) tern_chan_next_(i)
#define tern_chan_call(o, id) tern_chan_call_(o, id)
#define tern_chan_run(i) tern_chan_run_(i)
#define tern_chan_peek(i) tern_chan_peek_(i)

TERN_END_

#endif
