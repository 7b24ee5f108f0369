/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads behind their messages: what they leave in a leaf looks like headers a lap later, and
 * the receiver never takes it for one.
 *
 * Modelled, with the C function in brackets:
 *  - a ring of LEAVES leaves of K lines with one producer and one consumer [lane_put, inlet_drain];
 *    a message begins at the latest 2 lines before the end of its leaf, as the credit line is behind it;
 *  - a message has one line, or two more with a payload: in the place of headers these
 *    hold what is greater than any header [tern_lane_carry_];
 *  - a payload that has no room in the leaf: the credit line comes early, and where the next leaf is not
 *    free the message goes without it, its payload in a block [lane_carries, block_copy];
 *  - the receiver, which clears the lines of a payload when its message has been handled
 *    [drain_carried, message_clear];
 *  - the look, which takes a header for new that is not smaller than what is expected
 *    [inlet_arrived], and the clearing of a leaf in the lap behind a wrap [leaf_clear].
 *
 * Checked: what a look finds has been written as a header in this lap and not been handled; no line
 * is written before its message has been handled; neither side is ever without a step.
 *
 * Left out: pieces, messages of two lines of words, growing (the larger memory is zero), the gate:
 * ring.pml has them. Laps are 1, 2, 3, 1, ...: three, so that what lay there two laps ago counts.
 * Leaves are numbered modulo 2 * LEAVES, so the search has no end in time. The order of messages
 * is ring.pml's.
 *
 * Ways to break it: NO_CLEAR (the lines of a payload are not cleared), CLEAR_ONE (only the first of
 * them is), CLEAR_LATE (they are cleared when the leaf has been given back), NO_WRAP (a leaf is not
 * cleared behind the wrap).
 */
#ifndef LEAVES
#define LEAVES 2
#endif
#ifndef K
#define K 7
#endif
#define LAST (K - 2) /* line of a leaf in which a message may begin */
#define CREDIT 4     /* in a header, besides the lap */
#define LONG 8
#define LAPS 3
#define NEXT_LEAF(leaf) ((leaf + 1) % (2 * LEAVES))
#define NEXT_LAP(lap) (lap % LAPS + 1)

byte head[LEAVES * K];
bit real[LEAVES * K], unread[LEAVES * K]; /* ghosts: a header of this lap; not handled yet */
byte freed;

#define AT(leaf, line) (((leaf) % LEAVES) * K + (line))
#define LEAF_FREE ((leaf + 1 + 2 * LEAVES - freed) % (2 * LEAVES) < LEAVES)
#define STUCK (tail > LAST)

inline advance()
{
	d_step {
		at = AT(leaf, tail);
		assert(!unread[at]);
		head[at] = lap + CREDIT;
		real[at] = 1;
		unread[at] = 1;
		leaf = NEXT_LEAF(leaf);
		tail = 0;
		if
		:: leaf % LEAVES == 0 -> lap = NEXT_LAP(lap)
		:: else
		fi;
		i = 0;
		do
		:: i < K ->
			real[AT(leaf, i)] = 0;
#ifndef NO_WRAP
			if
			:: lap == 1 -> head[AT(leaf, i)] = 0
			:: else
			fi;
#endif
			i++
		:: else -> break
		od;
		i = 0
	}
}

inline publish(kind)
{
	d_step {
		at = AT(leaf, tail);
		assert(!unread[at]);
		head[at] = lap + kind;
		real[at] = 1;
		unread[at] = 1;
		if
		:: kind == LONG -> unread[at + 1] = 1; unread[at + 2] = 1
		:: else
		fi;
		at = 0
	}
}

inline put_line()
{
	publish(0);
	tail++
}

inline put_carried()
{
	d_step {
		assert(!unread[AT(leaf, tail + 1)] && !unread[AT(leaf, tail + 2)]);
		head[AT(leaf, tail + 1)] = 3; /* a look takes it for new in any lap */
		head[AT(leaf, tail + 2)] = 3
	}
	publish(LONG);
	tail = tail + 3
}

active proctype producer()
{
	byte leaf, tail, at, i, lap = 1;
	bit carrying; /* the message has a payload */
	do
	:: atomic {
			if
			:: carrying = 0
			:: carrying = 1
			fi
		}
		if
		:: STUCK -> LEAF_FREE; advance()
		:: else
		fi;
		if
		:: carrying && tail + 3 > LAST && LEAF_FREE -> advance()
		:: else
		fi;
		if
		:: carrying && tail + 3 <= LAST -> put_carried()
		:: else -> put_line()
		fi;
		carrying = 0;
		if
		:: STUCK && LEAF_FREE -> advance()
		:: else
		fi
	od
}

#define HEAD head[AT(in_leaf, cursor)]

active proctype consumer()
{
	byte in_leaf, cursor, expect = 1, at;
#ifdef CLEAR_LATE
	byte late; /* the first line of the last payload, to be cleared */
#endif
	do
	:: HEAD % 4 >= expect ->
		d_step {
			at = AT(in_leaf, cursor);
			assert(real[at] && unread[at] && HEAD % 4 == expect)
		}
		if
		:: HEAD / 4 == CREDIT / 4 ->
			d_step {
				unread[at] = 0;
				in_leaf = NEXT_LEAF(in_leaf);
				cursor = 0;
				if
				:: in_leaf % LEAVES == 0 -> expect = NEXT_LAP(expect)
				:: else
				fi;
				freed = in_leaf
			}
#ifdef CLEAR_LATE
			if
			:: late -> head[late] = 0; head[late + 1] = 0; late = 0
			:: else
			fi
#endif
		:: HEAD / 4 == LONG / 4 ->
			d_step {
				unread[at] = 0;
				unread[at + 1] = 0;
				unread[at + 2] = 0;
				cursor = cursor + 3
			}
#ifdef CLEAR_LATE
			late = at + 1
#elif !defined(NO_CLEAR)
			head[at + 1] = 0;
#ifndef CLEAR_ONE
			head[at + 2] = 0
#endif
#endif
		:: else ->
			d_step {
				unread[at] = 0;
				cursor++
			}
		fi
	od
}
