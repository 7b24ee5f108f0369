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
 * Numbers wrap within the search: there are NUMBERS of them, the first packet has FIRST, and two are compared by how far one lies
 * behind the other.
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
 * the count of one that says less than it knew), NO_WRAP (numbers are compared as if they did not wrap).
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

#define NUMBERS 16 /* more than twice what the wire may bring late */
#define FIRST 14
#define OF(i) ((FIRST + (i)) % NUMBERS) /* the number of the i-th packet */
#define AHEAD(a, b) (((a) + NUMBERS - (b)) % NUMBERS)
#ifdef NO_WRAP
#define FURTHER(from, to) ((to) > (from))
#else
#define FURTHER(from, to) (AHEAD(to, from) > 0 && AHEAD(to, from) < NUMBERS / 2)
#endif

#ifdef NO_CREDIT
#define ALLOWED true
#else
#define ALLOWED FURTHER(next, granted)
#endif
#define BIT(n) (1 << (n))
#define SENT(n) ((wire & BIT(n)) && (FURTHER(n, expected) || AHEAD(n, expected) < WINDOW))
#define LOW (BIT(OF(0)) | BIT(OF(2)))
#ifdef NO_NOTE
#define NEW(n) SENT(n)
#else
#define NEW(n) (SENT(n) && !FURTHER(n, expected) && !(came & BIT(n))) /* another one would change nothing */
#endif

/* The sender. */
byte first = FIRST, next = FIRST; /* under way: [first, next) */
int landed;                       /* of those, a bit each */
byte granted = OF(CREDIT);

/* The wire. */
int wire; /* numbers of packets that were sent, a bit each */
typedef acknowledgement {
	byte expected = FIRST;
	byte granted = FIRST;
	int came
}
acknowledgement ack[2]; /* that says nothing in the beginning */

/* The receiver. */
byte expected = FIRST; /* retry: all below, */
int came;              /* and bits above */
byte turn = FIRST;     /* order: the next to pass up, */
int held;              /* and those that wait, a bit each */
byte ring;           /* messages that have come and were not handled */
byte handled;

inline pass_up(n)
{
	assert(n == OF(handled + ring)); /* once, and in order */
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
	:: FURTHER(n, turn)
	:: n == turn ->
		pass_up(n);
		turn = (turn + 1) % NUMBERS;
		do
		:: (held & BIT(turn)) -> held = held & ~BIT(turn); pass_up(turn); turn = (turn + 1) % NUMBERS
		:: else -> break
		od
	:: FURTHER(turn, n) -> /* there may be no memory to hold it */
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
	:: (came & BIT(expected)) -> came = came & ~BIT(expected); expected = (expected + 1) % NUMBERS
	:: else -> break
	od
}

#ifdef NO_COUNT
#define COUNTS(a) false
#else
#define COUNTS(a) FURTHER(first, a.expected)
#endif
#ifdef TAKE_LATE
#define LATE(a) false
#else
#define LATE(a) FURTHER(a.expected, first) /* nothing of it is new but what it grants */
#endif
#define BELIEVED(a) (!LATE(a) && (COUNTS(a) || FURTHER(a.expected, first) || (a.came & ~landed)))
#define MORE(a) FURTHER(granted, a.granted)

inline advance()
{
	landed = landed & ~BIT(first);
	first = (first + 1) % NUMBERS
}

/* Takes one that says something new. */
inline ack_take(a)
{
	assert(AHEAD(next, a.expected) < NUMBERS / 2);
	if
	:: MORE(a) -> granted = a.granted
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
		:: first != next && landed != 0 -> advance()
#else
		:: first != next && (COUNTS(a) || (landed & BIT(first))) -> advance()
#endif
		:: else -> break
		od;
		assert(AHEAD(expected, first) < NUMBERS / 2); /* it has got what is forgotten */
		assert(AHEAD(next, first) <= WINDOW)
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
	a.granted = OF(handled + CREDIT)
#endif
}

#ifdef NO_GRANT
#define TOLD(a) (a.expected == expected && a.came == came)
#else
#define TOLD(a) (a.expected == expected && a.came == came && a.granted == OF(handled + CREDIT))
#endif

active proctype sender()
{
	do
	:: atomic { next != OF(N) && AHEAD(next, first) < WINDOW && ALLOWED ->
		wire = wire | BIT(next); next = (next + 1) % NUMBERS }
	:: d_step { MORE(ack[0]) || BELIEVED(ack[0]) -> ack_take(ack[0]) }
	:: d_step { MORE(ack[1]) || BELIEVED(ack[1]) -> ack_take(ack[1]) }
	:: first == OF(N) -> break
	od;
#ifndef NO_ORDER
	assert(turn == OF(N)) /* all was passed up, and will be handled */
#endif
}

active proctype receiver()
{
	byte n;
	bit taken;
	do
	:: atomic { /* a packet that was sent, whichever */
		if
		:: NEW(OF(0)) -> n = OF(0)
		:: NEW(OF(1)) -> n = OF(1)
		:: NEW(OF(2)) -> n = OF(2)
		:: NEW(OF(3)) -> n = OF(3)
		:: NEW(OF(4)) -> n = OF(4)
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
	:: handled == N && first == OF(N) -> break
	od
}
