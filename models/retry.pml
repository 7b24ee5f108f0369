/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retry, order and credit over a wire that may lose, double and reorder anything.
 *
 * Modelled, with the C function in brackets: a sender's window [retry_down, ack_take, window_advance], what its receiver has
 * noted [retry_up, came_note], acknowledgements with a count and a bit for each number above it [header_write], order above
 * retry [order_up, order_release], and a ring of CREDIT places that the receiver's program empties [flow]. The wire is a
 * set of packets and a set of acknowledgements: whatever was put in may be taken out any number of times, in any order,
 * or never, so losing and doubling need no steps of their own. An acknowledgement is what the receiver had noted at some moment
 * [ack_send], or of the bits only some [came_choose]; a new one replaces another, which is then lost, so that the states stay few.
 *
 * Checked: what is passed up is passed up once and in order; no more is under way than the window; nothing is
 * forgotten by the sender that its receiver has not got; no more lies in the ring than has a place; and when the sender
 * is done, everything was passed up.
 *
 * Ways to break it: NO_NOTE (what has come is not noted: without order it is passed up twice), NOTE_REFUSED (a packet that was
 * refused above is noted all the same), FORGET_ABOVE (the sender forgets what was acknowledged above a gap, and what is
 * below it), NO_ORDER (packets are passed up as they come), NO_CREDIT (nothing limits what is sent).
 */
#ifndef N
#define N 4 /* packets */
#endif
#ifndef WINDOW
#define WINDOW 3
#endif
#ifndef CREDIT
#define CREDIT 2 /* places in the ring */
#endif

#ifdef NO_CREDIT
#define ALLOWED true
#else
#define ALLOWED (next < granted)
#endif
#define BIT(n) (1 << (n))
#define LOW 3
#define SENT(n) (wire & BIT(n)) && n < expected + WINDOW

/* The sender. */
byte first, next; /* under way: [first, next) */
byte landed;      /* of those, a bit each */
byte granted = CREDIT;

/* The wire. */
byte wire;                                  /* numbers of packets that were sent, a bit each */
bit ack; byte ack_expected, ack_came, ack_granted; /* the last acknowledgement, if there is one */

/* The receiver. */
byte expected, came; /* retry: all below, and bits above */
byte turn, held;     /* order: the next to pass up, and those that wait, a bit each */
byte ring;           /* messages that have come and were not handled */
byte handled;

inline pass_up(n)
{
	assert(n == handled + ring); /* once, and in order */
	assert(ring < CREDIT);
	ring++;
}

/* Order: taken = 0 if it cannot be. */
inline order_take(n, taken)
{
	taken = 1;
#ifdef NO_ORDER
	pass_up(n);
#else
	if
	:: n < turn
	:: n == turn ->
		pass_up(n);
		turn++;
		do
		:: (held & BIT(turn)) -> held = held & ~BIT(turn); pass_up(turn); turn++
		:: else -> break
		od
	:: n > turn -> /* there may be no memory to hold it */
		if
		:: held = held | BIT(n)
		:: taken = 0
		fi
	fi
#endif
}

inline note(n)
{
	came = came | BIT(n);
	do
	:: (came & BIT(expected)) -> expected++
	:: else -> break
	od
}

active proctype sender()
{
	do
	:: atomic { next < N && next - first < WINDOW && ALLOWED -> wire = wire | BIT(next); next++ }
	:: d_step { ack -> /* may be taken again */
		assert(ack_expected <= next);
		if
		:: ack_granted > granted -> granted = ack_granted
		:: else
		fi;
		landed = landed | ack_came;
#ifdef FORGET_ABOVE
		do
		:: first < next && (landed >> first) != 0 -> first++
		:: else -> break
		od;
		assert(first <= expected);
#else
		do
		:: first < next && (ack_expected > first || (landed & BIT(first))) -> first++
		:: else -> break
		od;
		assert(first <= expected); /* it has got what is forgotten */
#endif
		ack = 0 }
	:: first == N -> break
	od;
#ifndef NO_ORDER
	assert(turn == N) /* all was passed up, and will be handled */
#endif
}

active proctype receiver()
{
	byte n;
	bit taken;
	do
	:: atomic { /* a packet that was sent, whichever */
		if
		:: SENT(0) -> n = 0
		:: SENT(1) -> n = 1
		:: SENT(2) -> n = 2
		:: SENT(3) -> n = 3
		:: SENT(4) -> n = 4
		fi;
		if
#ifndef NO_NOTE
		:: n < expected || (came & BIT(n)) /* again */
		:: else ->
#else
		:: true ->
#endif
			order_take(n, taken);
#ifdef NOTE_REFUSED
			note(n)
#else
			if
			:: taken -> note(n)
			:: else
			fi
#endif
		fi }
	:: atomic { ring > 0 -> ring--; handled++ }
	:: atomic { /* of the bits all, or those that there is room for */
		if
		:: ack_came = came
		:: ack_came = came & LOW
		:: ack_came = came & ~LOW
		fi;
		ack_expected = expected; ack_granted = handled + CREDIT; ack = 1 }
	:: handled == N && first == N -> break
	od
}
