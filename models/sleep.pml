/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping, waking and silent peers: SENDERS ranks send to one receiver, which
 * may at any moment take silent peers off its list or go to sleep.
 *
 * Modelled, with the C function in brackets:
 *  - the sender: store the header, load heed, knock if it is 0 [tern_unheeded_,
 *    shm_knock]. The store waits in a store buffer (sent - seen messages) and may
 *    become visible long after the load; a locked instruction of the sender and the
 *    receiver's membarrier empty the buffer, the latter one sender after another;
 *  - the knock: a bit for the sender, then the bell by exchange, then futex_wake if
 *    the bell said ASLEEP; neither if bit and bell are seen set (the shortcut);
 *  - the receiver: polls hot peers, answers the bell (bell first, bits second)
 *    [bell_answer], takes any set of hot peers off (heed := 0, membarrier, look
 *    again at each) [peers_demote], or all of them, and then goes from QUIET to ASLEEP
 *    by compare-and-swap and waits on the futex [sleep_arm];
 *  - one futex_wait that returns for no reason.
 *
 * Checked: when no step is left (the receiver sleeps for good), every message has
 * been handled. A receiver that spins for ever past a message is found too: it could
 * have gone to sleep instead, in the same state.
 *
 * Why the shortcut is safe: only the receiver clears the bit, so a bit that is seen
 * set will be taken after that moment; then heed becomes 1 and the ring is polled up to
 * the next membarrier, by which the header is out of the store buffer.
 *
 * With KILL, sender 1 is killed at any moment and the launcher tells the receiver
 * [job_rank_ended]; sender 0's messages and the news must still arrive. The cure is
 * WAKE_ALWAYS (the launcher calls futex_wake whatever the bell said) or STICKY (a knock
 * ors RUNG into the bell and ASLEEP stays until the receiver clears it, so that every
 * knock wakes).
 *
 * With CONNECT, sender 1's first M messages (replies, say) are followed by a second ring:
 * it stores `begun` (item M of its store buffer), knocks in any case, and sends one message
 * there; the receiver polls that ring once it has seen `begun` while answering a knock
 * [shm_connect, peer_heed]. That knock must not take the shortcut, or a full fence must come
 * before it (CONNECT_FENCE). CONNECT_SHORTCUT alone lets the loads of bit and bell pass the
 * store of `begun`: the receiver answers the old bit without seeing it, and from then on heed
 * is 1 for a ring that is not polled.
 *
 * Left out: the rings (ring.pml), replies and room (flood.pml). A heed := 1 that is seen
 * late is a sender that knocks once more, which it may do anyhow.
 *
 * Ways to break it: NO_BARRIER, EARLY_LOOK (look, then membarrier), NO_RELOOK,
 * RELOOK_FIRST (stop looking at the first find), BITS_FIRST (bits taken before the bell
 * is quieted), NO_CAS (ASLEEP stored over RUNG), BLIND (shortcut by the bell alone),
 * NO_KNOCKER (bell without bit), KILL alone, CONNECT with CONNECT_SHORTCUT.
 */
#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef M
#define M 2 /* messages a sender sends */
#endif

#define QUIET 0
#define RUNG 1
#define ASLEEP 2

byte sent[SENDERS]; /* written, perhaps still in the store buffer */
byte seen[SENDERS]; /* of these, visible */
byte got[SENDERS];  /* of these, handled */
bit heed[SENDERS];
bit knocker[SENDERS];
byte bell = QUIET;
bit waiting; /* in the futex */

bit losses, noticed; /* KILL */

#ifdef KILL
#define KILLED(s) (s == 1 && losses)
#else
#define KILLED(s) false
#endif

#ifdef CONNECT
#define TOTAL(s) (s == 1 -> M + 2 : M)
#define JUST_BEGUN(s) (sent[s] == M + 1)
#define ARRIVED(p) (got[p] < seen[p] && (got[p] < M || served))
#else
#define TOTAL(s) M
#define JUST_BEGUN(s) false
#define ARRIVED(p) (got[p] < seen[p])
#endif
#ifdef CONNECT_SHORTCUT
#define SHORTCUT(s) true
#else
#define SHORTCUT(s) !JUST_BEGUN(s)
#endif

#define ALL(i) i : 0 .. SENDERS - 1

#ifdef STICKY
#define BELL_RING bell = bell | RUNG
#define WAS_ASLEEP (old & ASLEEP)
#else
#define BELL_RING bell = RUNG
#define WAS_ASLEEP (old == ASLEEP)
#endif

proctype sender(byte s)
{
	byte old;
	{
	do
	:: sent[s] < TOTAL(s) ->
		sent[s]++; /* into the store buffer */
		if
		:: heed[s] && !JUST_BEGUN(s)
		:: !heed[s] || JUST_BEGUN(s) ->
#ifdef BLIND
			if
			:: bell == RUNG -> goto told
			:: else
			fi;
#else
#ifdef CONNECT_FENCE
			if
			:: JUST_BEGUN(s) -> seen[s] = sent[s]
			:: else
			fi;
#endif
			if
			:: knocker[s] && SHORTCUT(s) ->
				if
				:: bell == RUNG -> goto told
				:: else
				fi
			:: else
			fi;
#endif
#ifndef NO_KNOCKER
			d_step { seen[s] = sent[s]; knocker[s] = 1 };
#endif
			d_step { seen[s] = sent[s]; old = bell; BELL_RING };
			if
			:: WAS_ASLEEP -> waiting = 0
			:: else
			fi;
told:			skip
		fi
	:: else -> break
	od
	} unless { KILLED(s) }
}

/* The store buffer empties by itself, at some time. */
proctype store_buffer(byte s)
{
end:	do
	:: atomic { seen[s] < sent[s] -> seen[s]++ }
	od
}

/* Off the list: every hot peer if `all`, else perhaps. */
inline peer_off(p, all)
{
	atomic {
		if
		:: hot[p] -> heed[p] = 0; hot[p] = 0; batch[p] = 1
		:: hot[p] && !all
		:: !hot[p]
		fi
	}
}

inline peer_look(p)
{
	atomic {
		if
#ifdef RELOOK_FIRST
		:: batch[p] && ARRIVED(p) && !found -> heed[p] = 1; hot[p] = 1; found = 1
#elif !defined(NO_RELOOK)
		:: batch[p] && ARRIVED(p) -> heed[p] = 1; hot[p] = 1; found = 1
#endif
		:: else
		fi;
		batch[p] = 0
	}
}

inline peer_barrier(p)
{
#ifdef NO_BARRIER
	skip
#else
	seen[p] = sent[p]
#endif
}

inline peers_barrier()
{
	peer_barrier(0);
	peer_barrier(1)
#if SENDERS > 2
	; peer_barrier(2)
#endif
}

inline peers_look()
{
	peer_look(0);
	peer_look(1)
#if SENDERS > 2
	; peer_look(2)
#endif
}

/* Sets `found` if one of those it takes off has sent something; that one stays on. */
inline peers_demote(all)
{
	found = 0;
	peer_off(0, all);
	peer_off(1, all);
#if SENDERS > 2
	peer_off(2, all);
#endif
#ifdef EARLY_LOOK
	peers_look();
	peers_barrier()
#else
	peers_barrier();
	peers_look()
#endif
}

inline take_bits()
{
	d_step {
		for (ALL(i)) {
			batch[i] = knocker[i];
			knocker[i] = 0
		}
		i = 0
	}
}

inline peer_on(p)
{
	if
	:: batch[p] ->
#ifdef CONNECT
		served = served || (p == 1 && seen[1] > M); /* begun is visible */
#endif
		atomic { heed[p] = 1; hot[p] = 1; batch[p] = 0 }
	:: else
	fi
}

inline bell_answer()
{
#ifdef BITS_FIRST
	take_bits();
	bell = QUIET;
#else
	bell = QUIET;
	take_bits();
#endif
	peer_on(0);
	peer_on(1);
#if SENDERS > 2
	peer_on(2);
#endif
#ifdef KILL
	noticed = losses
#endif
}

inline sleep_arm()
{
	peers_demote(true);
	atomic { /* the compare-and-swap */
		if
#ifdef NO_CAS
		:: !found -> bell = ASLEEP
#else
		:: !found && bell == QUIET -> bell = ASLEEP
		:: !found && bell != QUIET -> goto awake
#endif
		:: found -> goto awake
		fi
	}
	atomic { /* futex_wait */
		if
		:: bell == ASLEEP -> waiting = 1
		:: else
		fi
	}
end_asleep:
	!waiting;
	bell_answer();
awake:	skip
}

proctype receiver()
{
	byte i;
	bit hot[SENDERS], batch[SENDERS];
#ifdef CONNECT
	bit served;
#endif
	bit found;
	do
	:: hot[0] && ARRIVED(0) -> got[0]++
	:: hot[1] && ARRIVED(1) -> got[1]++
#if SENDERS > 2
	:: hot[2] && ARRIVED(2) -> got[2]++
#endif
	:: bell & RUNG -> bell_answer()
	:: peers_demote(false)
	:: sleep_arm()
	od
}

proctype spurious()
{
	if
	:: waiting -> waiting = 0
	:: true
	fi
}

#ifdef KILL
proctype launcher()
{
	byte old;
	losses = 1; /* kills sender 1, and counts it */
	d_step { old = bell; BELL_RING };
	if
#ifdef WAKE_ALWAYS
	:: true -> waiting = 0
#else
	:: WAS_ASLEEP -> waiting = 0
	:: else
#endif
	fi
}
#endif

init
{
	byte s;
	atomic {
		run receiver();
		for (ALL(s)) {
			run sender(s);
			run store_buffer(s)
		}
#ifndef NO_SPURIOUS
		run spurious();
#endif
#ifdef KILL
		run launcher()
#endif
	}
	timeout;
	assert(waiting);
#ifdef KILL
	assert(got[0] == M && noticed == losses);
#else
	for (ALL(s)) {
		assert(got[s] == TOTAL(s))
	}
#endif
}
