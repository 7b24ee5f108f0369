/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interrupts: a program that computes is called by a signal when a message arrives, by SENDERS ranks.
 *
 * Modelled, with the C function in brackets:
 *  - the program: calls that poll or do not, holds with a call inside, and waits in which it polls
 *    and sleeps on the bell, in any order; or it computes for ever. Whoever leaves looks at the alert
 *    and, if PENDING is set, polls; and a call, or whoever polled, starts the timer if nothing is
 *    armed;
 *  - the signal handler: runs between any two steps of the program, never inside itself. It
 *    takes back CALL. If the program is inside, it sets PENDING. Otherwise it polls, and if the
 *    program has come by since the last time, starts the timer again; if not, it arms the bell. It
 *    may give up a stream of messages and start the timer instead;
 *  - the timer: one shot, at any time. `timer` is what the program believes of it;
 *  - the senders: sleep.pml's, with store buffers, heed, knock and bell. Whoever rings a bell that
 *    says CALL sends the signal. Signals are not counted: two may be one.
 *
 * Checked, if nothing is kept from going on for ever (weak fairness): the handler never polls while the
 * program is inside; every message is handled at some time, whatever the program does.
 *
 * Why it works: while the program is outside, there is CALL, or a timer, or a signal under way.
 * Under a guard the handler gives up the timer and CALL, but leaves PENDING, and whoever leaves
 * subtracts before it looks: so it sees PENDING, or the signal comes after it has left.
 *
 * Left out: the timer's length. Both sides are one thread, so guard and alert have no store buffer.
 *
 * Ways to break it: LOOK_FIRST (leaving: the alert, then the guard), NO_GUARD (the handler does not
 * look at it), NO_RELOOK (before CALL), NO_PENDING, NO_CAS (CALL stored over RUNG), IDLE_TIMER (for a
 * program that came by the timer is started again and nothing handled), KEEP_CALL (the handler does
 * not take it back from a program that is inside: the poll knows only a bell that says RUNG),
 * NO_RESTART (whoever polled because of PENDING does not start the timer), LATE_TIMER (started
 * first, believed in later).
 */
#ifndef SENDERS
#define SENDERS 1
#endif
#ifndef M
#define M 2 /* messages a sender sends */
#endif

/* The bell. */
#define QUIET 0
#define RUNG 1
#define ASLEEP 2 /* the program sleeps: wake it */
#define CALL 4   /* nobody looks: send the signal */

byte guard; /* its low half */
bit came;   /* its count of entries has changed since the handler looked */
bit pending; /* the alert */
byte bell;
bit on_bell; /* in the futex */

bit signal;   /* sent, not delivered */
bit handling; /* the signal handler runs, the program does not */
bit timer;    /* the program's belief */
bit running;  /* the truth */

byte sent[SENDERS], seen[SENDERS], got[SENDERS]; /* as in sleep.pml */
bit heed[SENDERS], knocker[SENDERS];
bit hot[SENDERS];

bit inside; /* ghost: the program works on the endpoint */

#define ARRIVED(s) (hot[s] && got[s] < seen[s])
#if SENDERS > 1
#define ANY_ARRIVED (ARRIVED(0) || ARRIVED(1))
#define ALL_GOT (got[0] == M && got[1] == M)
#else
#define ANY_ARRIVED ARRIVED(0)
#define ALL_GOT (got[0] == M)
#endif
#define ALL(i) i : 0 .. SENDERS - 1

proctype sender(byte s)
{
	byte old;
	do
	:: sent[s] < M ->
		sent[s]++; /* into the store buffer */
		if
		:: heed[s]
		:: !heed[s] ->
			d_step { seen[s] = sent[s]; knocker[s] = 1 };
			d_step { seen[s] = sent[s]; old = bell; bell = bell | RUNG };
			if
			:: old & ASLEEP -> on_bell = 0
			:: old & CALL -> signal = 1
			:: else
			fi;
			old = 0
		fi
	:: else -> break
	od
}

proctype sender_stores(byte s)
{
	do
	:: atomic { seen[s] < sent[s] -> seen[s]++ }
	od
}

active proctype clock()
{
	do
	:: atomic { running -> running = 0; signal = 1 }
	od
}

inline peer_on(s)
{
	if
	:: knocker[s] -> knocker[s] = 0; heed[s] = 1; hot[s] = 1
	:: else
	fi
}

inline bell_answer()
{
	bell = QUIET;
	d_step {
		peer_on(0)
#if SENDERS > 1
		;
		peer_on(1)
#endif
	}
}

/* Handles all that has arrived. */
inline poll()
{
	do
	:: ARRIVED(0) -> got[0]++
#if SENDERS > 1
	:: ARRIVED(1) -> got[1]++
#endif
	:: bell == RUNG -> bell_answer()
	:: bell != RUNG && !ANY_ARRIVED -> break
	od
}

inline heed_hot(value)
{
	d_step {
		for (ALL(i)) {
			heed[i] = hot[i] && value
		}
		i = 0
	}
}

inline senders_barrier()
{
	d_step {
		for (ALL(i)) {
			seen[i] = sent[i]
		}
		i = 0
	}
}

/* [sleep_arm] */
inline arm(how)
{
	heed_hot(0);
	senders_barrier();
	if
#ifndef NO_RELOOK
	:: ANY_ARRIVED -> armed = 0
	:: !ANY_ARRIVED ->
#else
	:: true ->
#endif
		atomic {
			if
#ifdef NO_CAS
			:: true -> bell = how; armed = 1
#else
			:: bell == QUIET -> bell = how; armed = 1
			:: else -> armed = 0
#endif
			fi
		}
	fi;
	if
	:: armed ->
		d_step {
			for (ALL(i)) {
				hot[i] = 0
			}
			i = 0
		}
	:: else -> heed_hot(1)
	fi
}

/* -- The program -------------------------------------------------------------------- */

inline enter()
{
	d_step { guard++; came = 1 };
	inside = 1
}

/* The guard first: the alert shall be looked at by one that is outside. */
inline subtract_and_look()
{
	inside = guard > 1;
#ifdef LOOK_FIRST
	look = pending;
	guard--
#else
	guard--;
	look = pending
#endif
}

inline timer_start()
{
	if
	:: !(bell & CALL) ->
		if
		:: !timer ->
#ifdef LATE_TIMER
			running = 1;
			timer = 1
#else
			timer = 1;
			running = 1
#endif
		:: else
		fi
	:: else
	fi
}

/* [tern_release] */
inline leave()
{
	subtract_and_look();
	do
	:: look && !guard ->
		guard = 1;
		pending = 0;
		inside = 1;
		poll();
		subtract_and_look();
#ifndef NO_RESTART
		timer_start()
#endif
	:: else -> look = 0; break
	od
}

/* [door_close] */
inline call_leave()
{
	leave();
	timer_start()
}

/* In a wait: sleeps until the bell rings, or until so much time has passed. */
inline doze()
{
	bell = bell & ~CALL;
	arm(ASLEEP);
	if
	:: armed ->
		armed = 0;
		atomic { /* futex_wait */
			if
			:: bell == ASLEEP -> on_bell = 1
			:: else
			fi
		}
		if
		:: true -> !on_bell
		:: true -> on_bell = 0
		fi;
		bell = bell & ~ASLEEP
	:: else
	fi
}

active proctype program() provided (!handling)
{
	byte i;
	bit look, armed;
	enter(); /* opens the endpoint */
	call_leave();
	do
	:: enter(); call_leave()                  /* a call */
	:: enter(); poll(); call_leave()          /* one that polls */
	:: enter(); leave()                       /* a hold */
	:: enter(); enter(); call_leave(); leave() /* and one with a call under it */
	:: enter();                               /* a wait */
		do
		:: poll(); doze()
		:: break
		od;
		call_leave()
	:: break                                  /* off to compute */
	od
}

/* -- The signal handler ------------------------------------------------------------- */

#ifdef NO_GUARD
#define INSIDE false
#else
#define INSIDE guard
#endif

/* The program is inside, and will handle what there is. */
inline postpone()
{
	timer = 0;
#ifndef KEEP_CALL
	bell = bell & ~CALL;
#endif
#ifndef NO_PENDING
	pending = 1
#endif
}

inline serve()
{
	assert(!inside);
	bell = bell & ~CALL;
	if
#ifdef IDLE_TIMER
	:: came -> came = 0
#else
	:: came -> came = 0; poll()
#endif
	:: else ->
		do
		:: poll();
			arm(CALL);
			if
			:: armed -> timer = 0; goto served
			:: !armed
			:: !armed -> break /* a stream without end: the program shall have its turn */
			fi
		od
	fi;
	timer = 1;
	running = 1;
served:	armed = 0
}

active proctype handler()
{
	byte i;
	bit armed;
	do
	:: atomic { signal -> signal = 0; handling = 1 };
		if
		:: INSIDE -> postpone()
		:: else -> serve()
		fi;
		handling = 0
	od
}

init
{
	byte s;
	atomic {
		for (ALL(s)) {
			run sender(s);
			run sender_stores(s)
		}
	}
}

ltl delivered { <> ALL_GOT }
