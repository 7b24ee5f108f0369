/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory model of tern_mem(7): small programs of 2 to 4 ranks, on a machine with store buffers.
 *
 * Modelled, with the C function in brackets:
 *  - a store waits in the buffer of its processor, in order, and its own processor alone sees it
 *    there (x86). With WEAK stores to different places leave the buffer in any order, as on a
 *    machine that orders less;
 *  - a put and a get of memory that the rank can touch: a store and a load [tern_put, tern_get]. On
 *    the weak machine a put waits first until earlier stores are out [word_before_put];
 *  - a put and a get by message: the owner of the memory does the store or the load in a handler
 *    and answers; the rank waits for the answer [move_send, on_put, on_get]. The owner may answer
 *    a get from its own store buffer;
 *  - a message through a ring: a store of its header, and a load at the other side
 *    [tern_line_write_, poll]; on the weak machine the header waits as a put does (release);
 *  - a message over a network: a call that empties the sender's store buffer, as a system call
 *    does;
 *  - a fence: answers of all split-phase puts, then an empty store buffer [tern_flush].
 *
 * Checked: that the outcome which the model forbids never appears. TEST chooses the program; X_FAR
 * and Y_FAR say that a place is reached by message.
 *
 *   MP        put x, put y | get y, get x: who sees y sees x
 *   REQUEST   put x, request | handler: get x
 *   STARTED   start a put of x, fence, request | handler: get x
 *   SB        put, fence, get on both sides: one sees the other
 *   TRIP      put x, request, reply, get y | put y, get x, and its handler replies at any time
 *   IRIW      two readers of two puts agree about their order
 *   WRC       put x | get x, request | handler: get x
 *
 * Left out: how a rank sleeps and is woken (sleep.pml), rings and laps (ring.pml), lost packets
 * (retry.pml), places longer than a word.
 *
 * Ways to break it: WEAK with NO_RELEASE (a put does not wait for earlier stores), NO_FENCE (SB,
 * STARTED), EARLY_ANSWER (the owner answers before it stores), NO_DRAIN (a call that sends over a
 * network leaves the store buffer as it is), AGENT (TRIP: another thread replies, while the program
 * puts and gets without asking it).
 */
#define MP 1
#define REQUEST 2
#define STARTED 3
#define SB 4
#define TRIP 5
#define IRIW 6
#define WRC 7

#ifndef X_FAR
#define X_FAR 0
#endif
#ifndef Y_FAR
#define Y_FAR 0
#endif

#define RANKS 4
#define OWNER 4 /* of the memory that is reached by message */
#define THREAD 5 /* the progress thread of rank 1 */
#define PROCESSORS 6

#define X 0
#define Y 1
#define HEAD 2 /* of a request to the last rank */
#define BACK 3 /* of its reply */
#define PLACES 4

#define PUT 0
#define GET 1

byte memory[PLACES];
byte latest[PROCESSORS * PLACES]; /* the newest value in the buffer */
byte waits[PROCESSORS * PLACES];  /* stores in the buffer */
chan buffer[PROCESSORS] = [3] of { byte, byte };

chan owner_inbox = [4] of { byte, byte, byte, byte }; /* what, place, value, who asks */
chan answer[RANKS] = [2] of { byte };

byte r0 = 9, r1 = 9, r2 = 9, r3 = 9, over;

inline store(p, place, value)
{
	atomic {
		buffer[p]!place,value;
		latest[(p) * PLACES + place] = value;
		waits[(p) * PLACES + place]++
	}
}

inline load(p, place, value)
{
	atomic {
		if
		:: waits[(p) * PLACES + place] -> value = latest[(p) * PLACES + place]
		:: else -> value = memory[place]
		fi
	}
}

inline empty_buffer(p)
{
	empty(buffer[p])
}

/* Before a store that publishes. */
inline release(p)
{
#if defined(WEAK) && !defined(NO_RELEASE)
	empty_buffer(p)
#else
	skip
#endif
}

inline system_call(p)
{
#ifndef NO_DRAIN
	empty_buffer(p)
#else
	skip
#endif
}

inline far_start(p, what, place, value)
{
	system_call(p);
	owner_inbox!what,place,value,p
}

inline put(p, far, place, value)
{
	if
	:: far ->
		far_start(p, PUT, place, value);
		answer[p]?_
	:: else ->
		release(p);
		store(p, place, value)
	fi
}

inline get(p, far, place, value)
{
	if
	:: far ->
		far_start(p, GET, place, 0);
		answer[p]?value
	:: else -> load(p, place, value)
	fi
}

inline fence(p)
{
#ifndef NO_FENCE
	empty_buffer(p)
#else
	skip
#endif
}

inline send(p, head)
{
	release(p);
	store(p, head, 1)
}

inline receive(p, head)
{
	do
	:: load(p, head, seen);
		if
		:: seen -> break
		:: else -> !waits[(p) * PLACES + head] && memory[head] /* nothing to do until then */
		fi
	od;
	seen = 0
}

/* A store leaves the buffer at some time. */
proctype leave(byte p)
{
	byte value;
end:	do
#ifdef WEAK
	:: atomic { buffer[p]??X,value -> memory[X] = value; waits[p * PLACES + X]-- }
	:: atomic { buffer[p]??Y,value -> memory[Y] = value; waits[p * PLACES + Y]-- }
	:: atomic { buffer[p]??HEAD,value -> memory[HEAD] = value; waits[p * PLACES + HEAD]-- }
	:: atomic { buffer[p]??BACK,value -> memory[BACK] = value; waits[p * PLACES + BACK]-- }
#else
	:: atomic { buffer[p]?X,value -> memory[X] = value; waits[p * PLACES + X]-- }
	:: atomic { buffer[p]?Y,value -> memory[Y] = value; waits[p * PLACES + Y]-- }
	:: atomic { buffer[p]?HEAD,value -> memory[HEAD] = value; waits[p * PLACES + HEAD]-- }
	:: atomic { buffer[p]?BACK,value -> memory[BACK] = value; waits[p * PLACES + BACK]-- }
#endif
	od
}

proctype owner()
{
	byte place, value, who;
end:	do
	:: owner_inbox?PUT,place,value,who ->
#ifdef EARLY_ANSWER
		answer[who]!0;
		store(OWNER, place, value)
#else
		store(OWNER, place, value);
		system_call(OWNER);
		answer[who]!0
#endif
	:: owner_inbox?GET,place,value,who ->
		load(OWNER, place, value);
		system_call(OWNER);
		answer[who]!value
	od
}

#if TEST == MP
#define ACTIVE 2
#define FORBIDDEN (r0 == 1 && r1 == 0)
proctype rank0() { put(0, X_FAR, X, 1); put(0, Y_FAR, Y, 1); over++ }
proctype rank1() { get(1, Y_FAR, Y, r0); get(1, X_FAR, X, r1); over++ }

#elif TEST == REQUEST
#define ACTIVE 2
#define FORBIDDEN (r0 == 0)
proctype rank0() { put(0, X_FAR, X, 1); send(0, HEAD); over++ }
proctype rank1() { byte seen; receive(1, HEAD); load(1, X, r0); over++ }

#elif TEST == STARTED
#define ACTIVE 2
#define FORBIDDEN (r0 == 0)
proctype rank0()
{
	far_start(0, PUT, X, 1);
#ifndef NO_FENCE
	answer[0]?_;
#endif
	fence(0);
	send(0, HEAD);
	over++
}
proctype rank1() { byte seen; receive(1, HEAD); load(1, X, r0); over++ }

#elif TEST == SB
#define ACTIVE 2
#define FORBIDDEN (r0 == 0 && r1 == 0)
proctype rank0() { put(0, X_FAR, X, 1); fence(0); get(0, Y_FAR, Y, r0); over++ }
proctype rank1() { put(1, Y_FAR, Y, 1); fence(1); get(1, X_FAR, X, r1); over++ }

#elif TEST == TRIP
#define ACTIVE 2
#define FORBIDDEN (r0 == 0 && r1 == 0)
proctype rank0()
{
	byte seen;
	put(0, false, X, 1);
	send(0, HEAD);
	receive(0, BACK);
	get(0, false, Y, r0);
	over++
}
#ifdef AGENT
proctype rank1() { put(1, false, Y, 1); get(1, false, X, r1); over++ }
proctype thread() { byte seen; receive(THREAD, HEAD); send(THREAD, BACK) }
#else
proctype rank1() /* polls before, between, or after */
{
	byte seen, turn;
	do
	:: turn == 0 -> put(1, false, Y, 1); turn = 1
	:: turn == 1 -> get(1, false, X, r1); turn = 2
	:: !seen && (memory[HEAD] || turn == 2) ->
		memory[HEAD];
		send(1, BACK);
		seen = 1
	:: turn == 2 && seen -> break
	od;
	over++
}
#endif

#elif TEST == IRIW
#define ACTIVE 4
#define FORBIDDEN (r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0)
proctype rank0() { put(0, X_FAR, X, 1); over++ }
proctype rank1() { put(1, Y_FAR, Y, 1); over++ }
proctype rank2() { get(2, X_FAR, X, r0); get(2, Y_FAR, Y, r1); over++ }
proctype rank3() { get(3, false, Y, r2); get(3, false, X, r3); over++ } /* on the owner's machine */

#elif TEST == WRC
#define ACTIVE 3
#define FORBIDDEN (r0 == 1 && r1 == 0)
proctype rank0() { put(0, X_FAR, X, 1); over++ }
proctype rank1()
{
	get(1, X_FAR, X, r0);
	send(1, HEAD);
	over++
}
proctype rank2() { byte seen; receive(2, HEAD); load(2, X, r1); over++ }
#endif

init
{
	atomic {
		byte p;
		run owner();
		for (p : 0 .. PROCESSORS - 1) {
			run leave(p)
		}
		run rank0();
		run rank1();
#if ACTIVE > 2
		run rank2();
#endif
#if ACTIVE > 3
		run rank3();
#endif
#ifdef AGENT
		run thread()
#endif
	}
	over == ACTIVE;
	assert(!(FORBIDDEN))
}
