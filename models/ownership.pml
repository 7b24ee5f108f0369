/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ownership: a program that computes and its progress thread take turns with one
 * endpoint, to which SENDERS ranks send.
 *
 * Modelled, with the C function in brackets:
 *  - the program: enters (guard + 1, look at the alert) and leaves (guard - 1, look again), by
 *    calls that poll or do not, holds with a call inside, and waits in which it polls and
 *    sleeps on the bell, for as long as it likes, in any order; or it computes for
 *    ever. Its stores to the guard wait in a store buffer, which its own locked
 *    instructions and the thread's membarrier empty; all changes of the alert are locked;
 *  - the progress thread: watches (naps, sets PENDING for a program that is inside or came
 *    by, parks for one that sleeps inside), claims, serves, gives back, arms, sleeps. One bit
 *    stands for "the count of entries has changed since the last nap";
 *  - the senders: sleep.pml's, with store buffers, heed, knock and bell;
 *  - futexes: the bell's wakes one sleeper of two, the alert's and `parked` have one.
 *
 * Checked, if nothing is kept from going on for ever (weak fairness): the program and the thread never
 * own the endpoint together; every message is handled at some time, whatever the program does; and
 * the program never waits for ownership for ever.
 *
 * Why the guard needs no fence: let the thread set CLAIM, issue its membarrier, and read the
 * guard. A program that looked at the alert too early for CLAIM had added to the guard
 * before, and the membarrier makes that visible. The same holds for leaving: whoever did not
 * see CLAIM had subtracted. Whoever did see it, and no PENDING, may go off to compute while its
 * subtraction is still in the buffer; then the thread takes it for one that is inside, sets
 * PENDING, which nobody will look at, and claims again after a nap.
 *
 * Handlers that hold and release on the thread add to the guard too, by plain additions; of two
 * at once one is lost. So ownership is given back with a bit in the alert (REGAIN or
 * ASLEEP), and whoever finds it writes the guard anew, until the thread has not had ownership since.
 *
 * Left out: the endpoint's own data (stores become visible in order, so that a guard of 0 comes
 * after them), handlers that block, the end of the thread, naps' lengths, LIBRARY.
 *
 * Ways to break it: NO_BARRIER (in claiming), LOOK_FIRST (the alert, then the guard), NO_RELOOK
 * (after arming), NO_PENDING (the thread never sets it), IDLE_WATCH (not for a program that came by),
 * NO_WAKE (of a program that sleeps until the thread gives back), SAME_SLEEP (program and
 * thread write the same into the bell when they sleep: the thread, late, sleeps on the
 * program's), PARK_BY_BELL (a program is taken for asleep because the bell says that somebody is),
 * NO_REGAIN (given back with no bit), NO_REWRITE (of the guard), REGAIN_LATE (not if CLAIM is gone at the
 * first look), GUARD_ONLY (SLEEPER is not taken for a wish for ownership). NO_HOLDS: handlers do not hold.
 */
#ifndef SENDERS
#define SENDERS 1
#endif
#ifndef M
#define M 1 /* messages a sender sends */
#endif
#ifndef DEPTH
#define DEPTH 2 /* of the program's store buffer */
#endif

/* The alert. */
#define CLAIM 1
#define PENDING 2
#define ASLEEP 4
#define SLEEPER 8
#define REGAIN 16 /* the thread has had ownership */

/* The bell. */
#define QUIET 0
#define RUNG 1
#define SOMEBODY 2 /* sleeps: wake it */
#define PROGRESS 4    /* it is the progress thread */
#define P_SLEEPS SOMEBODY
#ifdef SAME_SLEEP
#define C_SLEEPS SOMEBODY
#else
#define C_SLEEPS (SOMEBODY | PROGRESS)
#endif

byte guard; /* its low half, visible */
#define HOLD 4  /* of a handler's, on the thread */
#define LOW 7
bit came; /* its count of entries has changed since the thread looked, visible */
#define ENTRY 8
chan stores = [DEPTH] of { byte }; /* to the guard, not visible yet: low half, and ENTRY */

byte alert;
byte bell;
bit dozing; /* the program sleeps on the bell, in a wait */
bit parked;

bit p_on_alert, p_on_bell, c_on_bell, c_on_parked; /* in the futex */

byte sent[SENDERS], seen[SENDERS], got[SENDERS]; /* as in sleep.pml */
bit heed[SENDERS], knocker[SENDERS];
bit hot[SENDERS]; /* polled by the owner */

bit won; /* the thread has had ownership since the program looked: `claims` is not `claims_seen` */

bit p_has, c_has; /* ghosts: ownership */

#define ARRIVED(s) (hot[s] && got[s] < seen[s])
#if SENDERS > 1
#define ANY_ARRIVED (ARRIVED(0) || ARRIVED(1))
#define ALL_GOT (got[0] == M && got[1] == M)
#else
#define ANY_ARRIVED ARRIVED(0)
#define ALL_GOT (got[0] == M)
#endif
#define ALL(i) i : 0 .. SENDERS - 1

inline guard_see(store)
{
	guard = store & LOW;
	came = came || (store & ENTRY)
}

/* In a d_step: what a locked instruction of the program's does besides, or the thread's membarrier. */
inline guard_drain()
{
	do
	:: stores ? v -> guard_see(v)
	:: empty(stores) -> break
	od;
	v = 0
}

inline bell_wake()
{
	atomic {
		if
		:: c_on_bell -> c_on_bell = 0
		:: p_on_bell -> p_on_bell = 0
		:: !c_on_bell && !p_on_bell
		fi
	}
}

proctype sender(byte s)
{
	byte old;
	do
	:: sent[s] < M ->
		sent[s]++; /* into the store buffer */
		if
		:: heed[s]
		:: !heed[s] ->
			if
			:: knocker[s] ->
				if
				:: (bell & (RUNG | SOMEBODY)) == RUNG -> goto told
				:: else
				fi
			:: else
			fi;
			d_step { seen[s] = sent[s]; knocker[s] = 1 };
			d_step { seen[s] = sent[s]; old = bell; bell = bell | RUNG };
			if
			:: old & SOMEBODY -> bell_wake()
			:: else
			fi;
			old = 0;
told:			skip
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

proctype program_stores()
{
	byte v;
	do
	:: atomic { stores ? v -> guard_see(v); v = 0 }
	od
}

/* -- What the owner does ------------------------------------------------- */

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

/* One that holds finds an alert on the thread, and undoes what it did to the guard; so does its release. */
inline handle(on_thread)
{
	if
	:: true
#ifndef NO_HOLDS
	:: on_thread ->
		v = guard;
		guard = v ^ HOLD;
		v = guard;
		guard = v ^ HOLD;
		v = 0
#endif
	fi
}

/* Handles all that has arrived. */
inline poll(on_thread)
{
	do
	:: ARRIVED(0) -> handle(on_thread); got[0]++
#if SENDERS > 1
	:: ARRIVED(1) -> handle(on_thread); got[1]++
#endif
	:: bell & RUNG -> bell_answer()
	:: !(bell & RUNG) && !ANY_ARRIVED -> break
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
inline arm(asleep)
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
			:: !(bell & RUNG) -> bell = asleep; armed = 1
			:: else -> armed = 0
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

#define VIEW (len(stores) == 0 -> guard : last) /* what the program reads */

inline guard_add(n, entry)
{
	atomic { nfull(stores) -> last = (VIEW + n) & LOW; stores ! last | entry }
}

inline guard_set(value)
{
	atomic { nfull(stores) -> last = value; stores ! last }
}

/* Sleeps until CLAIM is gone. */
inline claim_sleep()
{
	atomic { /* compare-and-swap */
		if
		:: alert == look -> d_step { guard_drain(); look = look | SLEEPER; alert = look }
		:: else -> look = 0
		fi
	}
	atomic { /* futex_wait */
		if
		:: look && alert == look -> p_on_alert = 1
		:: else
		fi
	}
	!p_on_alert
}

inline claim_wait()
{
	do
	:: look & CLAIM ->
		if
		:: true /* spins */
		:: claim_sleep()
		fi;
		look = alert
	:: else -> break
	od
}

/*
 * Having added to the guard and seen something in the alert. The low half is written again
 * if the thread has had ownership: a handler's hold there may have undone the addition.
 */
inline ownership_regain()
{
#ifdef REGAIN_LATE
	if
	:: alert & CLAIM
	:: else -> won = 0
	fi;
#endif
	do
	:: true ->
		look = alert;
		claim_wait();
		if
#ifdef NO_REWRITE
		:: true -> break
#else
		:: !won -> break
		:: won -> won = 0; guard_set(1)
#endif
		fi
	od;
	atomic { guard_drain(); look = alert; alert = alert & ~(REGAIN | ASLEEP) };
	if
	:: look & ASLEEP -> bell = bell & RUNG; bell_wake()
	:: else
	fi
}

inline ownership_check()
{
	if
	:: look & (CLAIM | ASLEEP | REGAIN) -> ownership_regain()
	:: else
	fi;
	look = 0;
	d_step { p_has = 1; assert(!c_has) }
}

inline enter()
{
#ifdef LOOK_FIRST
	look = alert;
	guard_add(1, ENTRY);
#else
	guard_add(1, ENTRY);
	look = alert;
#endif
	depth++;
	ownership_check()
}

inline leave()
{
	depth--;
	p_has = depth > 0;
	guard_add(LOW, 0); /* - 1 */
	look = alert;
	do
	:: !VIEW && (look & PENDING) ->
		guard_add(1, 0);
		d_step { guard_drain(); look = alert; alert = alert & ~PENDING };
		ownership_check();
		poll(0);
		p_has = 0;
		guard_add(LOW, 0);
		look = alert
	:: else -> break
	od;
	look = 0
}

/* In a wait: sleeps until the bell rings, or until so much time has passed. */
inline doze()
{
	arm(P_SLEEPS);
	if
	:: armed ->
		armed = 0;
		dozing = 1;
		atomic { /* futex_wait */
			if
			:: bell == P_SLEEPS -> p_on_bell = 1
			:: else
			fi
		}
		if
		:: true -> !p_on_bell
		:: true -> p_on_bell = 0
		fi;
		dozing = 0;
		bell = bell & RUNG;
		d_step { guard_drain(); parked = 0 };
		c_on_parked = 0
	:: else
	fi
}

active proctype program()
{
	byte depth, last, look, v, i;
	bit armed;
	do
	:: enter(); leave()                   /* a call */
	:: enter(); poll(0); leave()           /* one that polls */
	:: enter(); enter(); leave(); leave() /* a hold, and a call under it */
	:: enter();                           /* a wait */
		do
		:: poll(0); doze()
		:: break
		od;
		leave()
	:: break                              /* off to compute */
	od
}

/* -- The progress thread ------------------------------------------------------- */

/* Clears CLAIM and sets `bits` instead. */
inline unclaim(bits)
{
	d_step {
		wake = alert & SLEEPER;
		alert = (alert & ~(CLAIM | SLEEPER)) | bits;
		c_has = 0
	}
	if
#ifndef NO_WAKE
	:: wake -> p_on_alert = 0
#endif
	:: else
	fi;
	wake = 0
}

#ifdef NO_PENDING
#define THEN_PENDING 0
#else
#define THEN_PENDING PENDING
#endif

#ifdef PARK_BY_BELL
#define DOZING (bell & SOMEBODY)
#else
#define DOZING dozing
#endif

/* Until the program's sleep is over; `parked` is a locked store. */
inline park()
{
	parked = 1;
	if
	:: DOZING ->
		atomic { /* futex_wait */
			if
			:: parked -> c_on_parked = 1
			:: else
			fi
		}
		!c_on_parked
	:: else
	fi;
	parked = 0
}

#ifdef NO_REGAIN
#define GIVEN 0
#else
#define GIVEN REGAIN
#endif

#ifdef GUARD_ONLY
#define WANTED guard
#else
#define WANTED (guard || (alert & SLEEPER))
#endif

active proctype thread()
{
	byte wake, v, i;
	bit armed;
watch:
	/* a nap */
	if
	:: atomic { came -> came = 0 };
#ifndef IDLE_WATCH
		alert = alert | THEN_PENDING;
#endif
		goto watch
	:: !came && guard ->
		alert = alert | THEN_PENDING;
		if
		:: DOZING -> park()
		:: else
		fi;
		goto watch
	:: !came && !guard
	fi;
claim:
	alert = alert | CLAIM;
#ifndef NO_BARRIER
	d_step { guard_drain() };
#endif
	if
	:: guard -> unclaim(THEN_PENDING); goto watch
	:: !guard -> d_step { c_has = 1; assert(!p_has) }
	fi;
	won = 1;
	if
	:: alert & ASLEEP -> alert = alert & ~ASLEEP; bell = bell & RUNG
	:: else
	fi;
	do
	:: WANTED -> unclaim(GIVEN); goto watch
	:: else ->
		poll(1);
		if
		:: true
		:: arm(C_SLEEPS);
			if
			:: armed -> armed = 0; break
			:: else
			fi
		fi
	od;
	unclaim(ASLEEP);
	atomic { /* futex_wait */
		if
		:: bell == C_SLEEPS -> c_on_bell = 1
		:: else
		fi
	}
	!c_on_bell;
	if
	:: alert & ASLEEP -> goto claim
	:: else -> goto watch
	fi
}

init
{
	byte s;
	atomic {
		run program_stores();
		for (ALL(s)) {
			run sender(s);
			run sender_stores(s)
		}
	}
}

ltl delivered { <> ALL_GOT && [] <> !p_on_alert }
