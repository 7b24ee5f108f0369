/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retry, order and credit over a wire that may lose, double and reorder anything.
 *
 * Modelled, with the C function in brackets: a sender's window [retry_down, ack_take, window_advance], what its receiver has
 * noted [retry_up, came_note], acknowledgements with a count and a bit for each number above it [header_write], order above
 * retry [order_up, order_release], and a ring of CREDIT places that the receiver's program empties [flow]. The wire is a
 * set of packets and two acknowledgements: whatever was put in may be taken out any number of times, in any order,
 * or never, so losing and doubling need no steps of their own, nor does sending again. An acknowledgement is what the receiver
 * had noted at some moment [ack_send], or, with PARTIAL, of the bits only some [came_choose]; a new one replaces either, which is then
 * lost, so that the states stay few. The one that stays may be taken long after others that said more.
 *
 * Checked: what is passed up is passed up once and in order; no more is under way than the window; nothing is
 * forgotten by the sender that its receiver has not got; no more lies in the ring than has a place; and everything is
 * handled: steps that change nothing are left out, so if nothing new can happen before the end, spin finds that nobody
 * can take a step.
 *
 * Ways to break it: NO_NOTE (what has come is not noted: without order it is passed up twice), NOTE_REFUSED (a packet that was
 * refused above is noted all the same), FORGET_ABOVE (the sender forgets what was acknowledged above a gap, and what is
 * below it), NO_ORDER (packets are passed up as they come), NO_CREDIT (nothing limits what is sent), NO_GRANT (nobody says
 * that places were emptied), NO_COUNT (the sender looks at the bits of an acknowledgement alone), TAKE_LATE (it believes
 * the count of one that says less than it knew).
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
#define SENT(n) ((wire & BIT(n)) && n < expected + WINDOW)
#define LOW 3
#ifdef NO_NOTE
#define NEW(n) SENT(n)
#else
#define NEW(n) (SENT(n) && n >= expected && !(came & BIT(n))) /* another one would change nothing */
#endif

/* The sender. */
byte first, next; /* under way: [first, next) */
byte landed;      /* of those, a bit each */
byte granted = CREDIT;

/* The wire. */
byte wire; /* numbers of packets that were sent, a bit each */
typedef acknowledgement {
	byte expected, came, granted
}
acknowledgement ack[2]; /* that says nothing in the beginning */

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
	:: (came & BIT(expected)) -> came = came & ~BIT(expected); expected++
	:: else -> break
	od
}

#ifdef NO_COUNT
#define COUNTS(a) false
#else
#define COUNTS(a) (a.expected > first)
#endif
#ifdef TAKE_LATE
#define LATE(a) false
#else
#define LATE(a) (a.expected < first) /* nothing of it is new but what it grants */
#endif
#define BELIEVED(a) (!LATE(a) && (COUNTS(a) || a.expected < first || (a.came & ~landed)))

/* Takes one that says something new. */
inline ack_take(a)
{
	assert(a.expected <= next);
	if
	:: a.granted > granted -> granted = a.granted
	:: else
	fi;
	if
	:: BELIEVED(a) ->
		landed = landed | a.came;
#ifdef TAKE_LATE
		first = a.expected;
#endif
		do
#ifdef FORGET_ABOVE
		:: first < next && (landed >> first) != 0 -> first++
#else
		:: first < next && (COUNTS(a) || (landed & BIT(first))) -> first++
#endif
		:: else -> break
		od;
		assert(first <= expected); /* it has got what is forgotten */
		assert(next - first <= WINDOW)
	:: else
	fi
}

inline ack_send(a)
{
	a.expected = expected;
#ifdef PARTIAL
	if
	:: a.came = came
	:: a.came = came & LOW
	:: a.came = came & ~LOW
	fi;
#else
	a.came = came;
#endif
#ifndef NO_GRANT
	a.granted = handled + CREDIT
#endif
}

#ifdef NO_GRANT
#define TOLD(a) (a.expected == expected && a.came == came)
#else
#define TOLD(a) (a.expected == expected && a.came == came && a.granted == handled + CREDIT)
#endif

active proctype sender()
{
	do
	:: atomic { next < N && next - first < WINDOW && ALLOWED -> wire = wire | BIT(next); next++ }
	:: d_step { ack[0].granted > granted || BELIEVED(ack[0]) -> ack_take(ack[0]) }
	:: d_step { ack[1].granted > granted || BELIEVED(ack[1]) -> ack_take(ack[1]) }
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
		:: NEW(0) -> n = 0
		:: NEW(1) -> n = 1
		:: NEW(2) -> n = 2
		:: NEW(3) -> n = 3
		:: NEW(4) -> n = 4
		fi;
		order_take(n, taken);
#ifdef NOTE_REFUSED
		note(n)
#else
		if
		:: taken -> note(n)
		:: else
		fi
#endif
	   }
	:: atomic { ring > 0 -> ring--; handled++ }
	:: atomic { !TOLD(ack[0]) -> ack_send(ack[0]) }
	:: atomic { !TOLD(ack[1]) -> ack_send(ack[1]) }
	:: handled == N && first == N -> break
	od
}
