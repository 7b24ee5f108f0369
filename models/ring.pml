/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings and gated replies: two ranks flood each other with requests, their
 * handlers reply, and neither ever sleeps (flood.pml adds that).
 *
 * Modelled, with the C function in brackets:
 *  - a ring of LEAVES leaves of K lines, the last of each a control line; a line
 *    is words and then a header with a lap [tern_line_write_];
 *  - with TWO_LINES, messages that take two lines, before and behind any other; a message
 *    begins at the latest 3 lines before the end of its leaf [put_line, LEAF_KEPT];
 *  - the credit line into the next leaf, tried at once after the last message line of a
 *    leaf and again when room is needed [lane_next, lane_ready, lane_put];
 *  - the look that takes a header for new that is not smaller than what is expected [inlet_arrived], and so the
 *    clearing of a leaf in the lap behind a wrap [leaf_clear];
 *  - the receiver that handles a message where it lies, meets the credit line and gives
 *    the leaf back [inlet_drain, inlet_advance];
 *  - with GROW, rings that grow once, at any credit line or never: the header that leads out of a leaf
 *    then leads into other memory, with leaves of K2 lines and a count of its own, and the
 *    receiver that meets it goes on there [lane_grow, lane_move, inlet_move];
 *  - the gate: a request is handled only when its reply has room; a handler
 *    replies at most once and may poll for replies first;
 *  - every order in which a program can send and poll. A rank whose every guard
 *    is false is one that polls in vain, so a deadlock is a state with no step.
 *
 * Checked: no line is written before its message has been handled; each message is
 * handled once, in order, with the words it was sent with; a look finds what is new and nothing else; when no
 * step is left, every request has been handled and every reply has arrived.
 *
 * Left out: pieces that share a line, payload blocks, source and handler numbers.
 * Laps are 1, 2, 1, 2, ...: the shortest wrap. Stores become visible in order and at
 * once: a release store that is seen later is a slower sender, nothing more, and the
 * only load that may pass it (of freed) is then older, which is on the safe side.
 *
 * Ways to break it: NO_GATE, NO_SERVE (a blocked send does not serve), EARLY_CREDIT
 * (the leaf given back before its last message is handled), NO_LAP (any header
 * counts), HEADER_FIRST (no release order), OFF_BY_ONE (one leaf too many), NO_CLEAR (leaves are not cleared
 * behind the wrap), SECOND_LATE (the first line's header is published before the second line is written), LATE_TWO
 * (a message of two lines may begin where one of one line could be the last: the credit line lies behind the leaf).
 * Of GROW: GROW_DIRTY (the larger memory is not zero), GROW_AHEAD (the receiver goes on there as soon
 * as something lies there), GROW_RENUMBER (leaves are counted from 0 there), GROW_OLD_COUNT (the receiver
 * gives leaves back where it did before).
 * FIRST_FOUND: a poll drains the first inlet that its look finds, that of replies first, and no
 * other; GATE_HIDES: the same with that of requests first.
 */
#ifndef LEAVES
#define LEAVES 2
#endif
#ifndef K
#define K 2
#endif
#ifndef N
#define N 5 /* requests a rank sends */
#endif
#ifndef N1
#define N1 N /* and rank 1 */
#endif
#define TO_SEND(i) (i == 0 -> N : N1)

#ifdef GROW
#ifndef K2
#define K2 3 /* lines of a leaf of the larger memory */
#endif
#define LINES (LEAVES * (K + K2))
#else
#define K2 K
#define LINES (LEAVES * K)
#endif
#define CREDIT 4 /* in a header, besides the lap */
#define LONG 8 /* of the first of two lines */
#define SECOND 12
#define GROWN 16

typedef ring_t {
	byte head[LINES + 1]; /* what LATE_TWO writes behind the last is there */
	byte word[LINES + 1];
	bit unread[LINES + 1]; /* ghost: written and not handled yet */
	byte freed;
	byte larger_freed;
	bit moved, asked; /* the lane is in the larger memory; has asked for it */
	bit in_moved;     /* the inlet is */
	/* the lane */
	byte leaf, tail, lap, sent;
	/* the inlet */
	byte in_leaf, cursor, expect, got;
};

ring_t ring[4];
#define REQUESTS(i) ring[i]       /* written by rank i */
#define REPLIES(i) ring[2 + (i)]  /* written by rank i */

byte handling[2]; /* ghost: a handler is running */
#ifdef TWO_LINES
byte pattern; /* bit n: the n-th message of each ring takes two lines; every one is searched */
#endif

#ifdef GROW
#define FREED(R) (R.moved -> R.larger_freed : R.freed)
#define LEAF_LINES(R) (R.moved -> K2 : K)
#define WRITE_AT(R) ((R.leaf % LEAVES) * LEAF_LINES(R) + R.tail + R.moved * LEAVES * K)
#define READ_AT(R) ((R.in_leaf % LEAVES) * (R.in_moved -> K2 : K) + R.cursor + R.in_moved * LEAVES * K)
#else
#define FREED(R) R.freed
#define LEAF_LINES(R) K
#define WRITE_AT(R) ((R.leaf % LEAVES) * K + R.tail)
#define READ_AT(R) ((R.in_leaf % LEAVES) * K + R.cursor)
#endif
#ifdef OFF_BY_ONE
#define LEAF_FREE(R) (R.leaf + 1 - FREED(R) <= LEAVES)
#else
#define LEAF_FREE(R) (R.leaf + 1 - FREED(R) < LEAVES)
#endif
#ifdef TWO_LINES
#ifdef LATE_TWO
#define STUCK(R) (R.tail >= LEAF_LINES(R) - 1)
#else
#define STUCK(R) (R.tail >= LEAF_LINES(R) - 2)
#endif
#else
#define STUCK(R) (R.tail == LEAF_LINES(R) - 1)
#endif
#define READY(R) (!STUCK(R) || LEAF_FREE(R))

#define HEAD(R) R.head[READ_AT(R)]
#ifdef NO_LAP
#define ARRIVED(R) (HEAD(R) == 1 || HEAD(R) == 2)
#define ADVANCED(R) (HEAD(R) / 4 == CREDIT / 4)
#else
#define ARRIVED(R) (HEAD(R) == R.expect || HEAD(R) == R.expect + LONG)
#define ADVANCED(R) (HEAD(R) == R.expect + CREDIT)
#endif

#ifndef GROW
#define GREW(R) false
#elif defined(GROW_AHEAD)
#define GREW(R) (!R.in_moved && (HEAD(R) == R.expect + GROWN || \
	R.moved && R.unread[LEAVES * K + ((R.in_leaf + 1) % LEAVES) * K2]))
#else
#define GREW(R) (HEAD(R) == R.expect + GROWN)
#endif

#define LAP_OF(h) (h % 4)
#define IS_LONG(R) (HEAD(R) / 4 == LONG / 4)
#define LOOKS(R) (LAP_OF(HEAD(R)) >= R.expect)

#ifdef NO_GATE
#define GATE_OPEN(i) true
#else
#define GATE_OPEN(i) READY(REPLIES(i))
#endif

inline lane_next(R)
{
	d_step {
		assert(!R.unread[WRITE_AT(R)]);
		R.head[WRITE_AT(R)] = R.lap + CREDIT;
		R.unread[WRITE_AT(R)] = 1;
		R.leaf++;
		R.tail = 0;
		if
		:: R.leaf % LEAVES == 0 -> R.lap = 3 - R.lap
		:: else
		fi;
#ifndef NO_CLEAR
		if
		:: R.lap == 1 && R.leaf >= LEAVES ->
			do
			:: R.tail < LEAF_LINES(R) -> R.head[WRITE_AT(R)] = 0; R.tail++
			:: else -> break
			od;
			R.tail = 0
		:: else
		fi
#endif
	}
}

/* The larger memory is there. What a line of the small ring holds is not written again. */
inline lane_move(R)
{
	d_step {
		assert(!R.unread[WRITE_AT(R)]);
		R.larger_freed = R.leaf + 1;
		R.head[WRITE_AT(R)] = R.lap + GROWN;
		R.unread[WRITE_AT(R)] = 1;
		R.moved = 1;
		R.tail = 0;
#ifdef GROW_RENUMBER
		R.leaf = 0;
		R.lap = 1
#else
		R.leaf++;
		if
		:: R.leaf % LEAVES == 0 -> R.lap = 3 - R.lap
		:: else
		fi
#endif
	}
}

inline lane_write_words(R)
{
	R.word[WRITE_AT(R)] = R.sent + 1
}

inline lane_write_head(R)
{
	d_step {
		R.head[WRITE_AT(R)] = R.lap + two * LONG;
		R.unread[WRITE_AT(R)] = 1;
		if
		:: two -> R.unread[WRITE_AT(R) + 1] = 1
		:: else
		fi
	}
}

inline lane_write_second(R)
{
	if
	:: two ->
		d_step {
			R.word[WRITE_AT(R) + 1] = R.sent + 1;
			R.head[WRITE_AT(R) + 1] = R.lap + SECOND
		}
	:: else
	fi
}

/* Sees that the lane is stuck and the next leaf free, and goes on: what it read of freed can only have grown. */
inline lane_next_if_stuck(R)
{
	atomic {
		if
#ifdef GROW
		:: STUCK(R) && !R.asked -> R.asked = 1; lane_move(R)
		:: STUCK(R) && !R.asked -> R.asked = 1; /* in vain */
			if
			:: LEAF_FREE(R) -> lane_next(R)
			:: else
			fi
		:: STUCK(R) && !R.asked && LEAF_FREE(R) -> lane_next(R) /* it is not time yet */
		:: STUCK(R) && R.asked && LEAF_FREE(R) -> lane_next(R)
		:: !STUCK(R) || R.asked && !LEAF_FREE(R)
#else
		:: STUCK(R) && LEAF_FREE(R) -> lane_next(R)
		:: else
#endif
		fi
	}
}

/* Caller has seen READY(R). */
inline lane_put(R)
{
	atomic {
		lane_next_if_stuck(R);
		assert(!R.unread[WRITE_AT(R)]);
#ifdef TWO_LINES
		two = pattern >> R.sent & 1;
		assert(!two || !R.unread[WRITE_AT(R) + 1])
#endif
	}
#ifndef SECOND_LATE
	lane_write_second(R);
#endif
#ifdef HEADER_FIRST
	lane_write_head(R);
	lane_write_words(R);
#else
	lane_write_words(R);
	lane_write_head(R);
#endif
#ifdef SECOND_LATE
	lane_write_second(R);
#endif
	atomic {
		d_step { R.sent++; R.tail = R.tail + 1 + two; two = 0 };
		lane_next_if_stuck(R)
	}
}

inline inlet_begin(R)
{
	d_step {
		assert(R.word[READ_AT(R)] == R.got + 1); /* in order, once, and whole */
		assert(!IS_LONG(R) || R.word[READ_AT(R) + 1] == R.got + 1);
#ifdef EARLY_CREDIT
		if
		:: R.cursor == K - 2 -> R.freed++
		:: else
		fi
#endif
	}
}

inline inlet_end(R)
{
	d_step {
		assert(R.word[READ_AT(R)] == R.got + 1); /* not overwritten under the handler */
		R.unread[READ_AT(R)] = 0;
		R.got++;
		if
		:: IS_LONG(R) ->
			assert(R.word[READ_AT(R) + 1] == R.got);
			R.unread[READ_AT(R) + 1] = 0;
			R.cursor = R.cursor + 2
		:: else -> R.cursor++
		fi
	}
}

inline inlet_advance(R)
{
	d_step {
		R.unread[READ_AT(R)] = 0;
		R.in_leaf++;
		R.cursor = 0;
		if
		:: R.in_leaf % LEAVES == 0 -> R.expect = 3 - R.expect
		:: else
		fi;
#ifndef EARLY_CREDIT
#if defined(GROW) && !defined(GROW_OLD_COUNT)
		if
		:: R.in_moved -> R.larger_freed = R.in_leaf
		:: else -> R.freed = R.in_leaf
		fi
#else
		R.freed = R.in_leaf
#endif
#endif
	}
}

inline inlet_move(R)
{
	d_step {
		R.unread[READ_AT(R)] = 0;
		R.in_moved = 1;
		R.in_leaf++;
		R.cursor = 0;
		if
		:: R.in_leaf % LEAVES == 0 -> R.expect = 3 - R.expect
		:: else
		fi
	}
}

inline poll_reply()
{
	if
	:: ARRIVED(REPLIES(peer)) -> inlet_begin(REPLIES(peer)); inlet_end(REPLIES(peer))
	:: ADVANCED(REPLIES(peer)) -> inlet_advance(REPLIES(peer))
	:: GREW(REPLIES(peer)) -> inlet_move(REPLIES(peer))
	fi
}

#define REPLY_THERE (ARRIVED(REPLIES(peer)) || ADVANCED(REPLIES(peer)) || GREW(REPLIES(peer)))

inline handle_request()
{
	atomic {
		handling[me] = 1;
		inlet_begin(REQUESTS(peer))
	}
	do
	:: REPLY_THERE -> poll_reply()
	:: break
	od;
	if
#ifdef NO_GATE
	:: skip -> READY(REPLIES(me)); lane_put(REPLIES(me))
#else
	:: skip -> assert(READY(REPLIES(me))); lane_put(REPLIES(me)) /* a reply never waits */
#endif
#ifndef ALWAYS_REPLY
	:: skip
#endif
	fi;
	atomic {
		inlet_end(REQUESTS(peer));
		handling[me] = 0
	}
}

#ifdef FIRST_FOUND
#define SEES_REQUESTS !LOOKS(REPLIES(peer))
#else
#define SEES_REQUESTS true
#endif
#ifdef GATE_HIDES
#define SEES_REPLIES !LOOKS(REQUESTS(peer))
#else
#define SEES_REPLIES true
#endif
#define REQUEST_THERE (ARRIVED(REQUESTS(peer)) || ADVANCED(REQUESTS(peer)) || GREW(REQUESTS(peer)))

proctype rank(byte me; byte peer)
{
	bit two; /* what is being sent takes two lines */
end:	do
	:: REQUESTS(me).sent < TO_SEND(me) && READY(REQUESTS(me)) -> lane_put(REQUESTS(me))
#ifdef NO_SERVE
	:: REQUESTS(me).sent < TO_SEND(me) && !READY(REQUESTS(me)) -> READY(REQUESTS(me))
#endif
	:: SEES_REPLIES && REPLY_THERE -> poll_reply()
	:: SEES_REQUESTS && ADVANCED(REQUESTS(peer)) -> inlet_advance(REQUESTS(peer))
	:: SEES_REQUESTS && GREW(REQUESTS(peer)) -> inlet_move(REQUESTS(peer))
	:: SEES_REQUESTS && ARRIVED(REQUESTS(peer)) && GATE_OPEN(me) -> handle_request()
#ifndef FIRST_FOUND
	:: LOOKS(REPLIES(peer)) && !REPLY_THERE -> assert(false)
	:: LOOKS(REQUESTS(peer)) && !REQUEST_THERE -> assert(false)
#endif
	od
}

init
{
	byte i;
	d_step {
		for (i : 0 .. 3) {
			ring[i].lap = 1;
			ring[i].expect = 1
		}
#ifdef GROW_DIRTY
		for (i : 0 .. 3) {
			ring[i].head[LEAVES * K] = 2;
			ring[i].head[LEAVES * K + 1] = 2
		}
		i = 0
#endif
	}
#ifdef TWO_LINES
	atomic {
		do
		:: pattern < (1 << N) - 1 -> pattern++
		:: break
		od
	}
#endif
	atomic {
		run rank(0, 1);
		run rank(1, 0)
	}
	timeout;
	for (i : 0 .. 1) {
		assert(!handling[i]);
		assert(REQUESTS(i).sent == TO_SEND(i) && REQUESTS(i).got == TO_SEND(i));
		assert(REPLIES(i).got == REPLIES(i).sent)
	}
}
