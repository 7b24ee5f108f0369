/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring, gate and sleep together: two ranks flood each other through rings with
 * hardly any room, their handlers reply, and both go to sleep when they can.
 *
 * Modelled, with the C function in brackets: ring.pml's rings with one message line a
 * leaf, as counts (lines 0, 2, 4, ... are messages, 1, 3, 5, ... credit lines; contents and
 * order are ring.pml's matter), the gate, and sleep.pml's knock, bell and arming (a knock
 * and its answer are one step each here; sleep.pml takes them apart). Every
 * header and every freed count goes through a store buffer of its own, which is weaker
 * than x86. A rank may sleep in a wait [tern_wait: a reply is still to come, or all
 * requests are sent] or in a request without room [tern_request_rare_].
 *
 * Room comes without a message: the peer's inlet_advance() stores freed, and no header
 * that the sleeper's polls would see. So there are two rules, either of which is right:
 *  - naps (what the code does, and the default here): whoever waits for room takes timed
 *    naps and never sleeps for good. A gated request counts as "something is there" in the
 *    look before sleeping, and a blocked request does not arm;
 *  - ROOM_KNOCK: freed is treated as a message. After the store, inlet_advance() loads the
 *    heed byte of the lane's rank and knocks if it is 0; the sleeper looks at freed
 *    again after its membarrier.
 *
 * LONG: the answer to a request takes that many messages of the reply ring [tern_put_reply]. The
 * handler sends the first; polls send the rest when there is room [follow_progress], and the gate
 * stays closed until they have left [peer.owing]. TO_ALL: each rank also sends so many messages of
 * the reply class from the program [tern_reply_to], behind a long reply, and serves while it waits.
 *
 * With BLOCKS each request also carries a payload, in one of so many blocks of its sender's
 * [block_wait]: large ones, or short ones. Its receiver gives the block back after the handler,
 * through a store buffer, too [drain_payload, block_set]. A reply needs none of them: its own
 * block, the reserve, belongs to the gate.
 *
 * A request that finds room handles nothing here, and in the code one of 16 to 32 looks at the inlets
 * [tern_look_around_]. So nothing that is checked relies on that look.
 *
 * Checked: when no step is left, all requests have been handled and all replies have come.
 *
 * Ways to break it: SLEEP_BLOCKED (a blocked request sleeps, without ROOM_KNOCK), GATED_SLEEP
 * (a gated request does not count, without ROOM_KNOCK), ROOM_KNOCK with NO_FREED_LOOK (freed
 * is not looked at after the membarrier), NO_BARRIER, NO_OWING (the gate does not count what is
 * left of a long reply), NO_ORDER (the program's messages go past it), OWING_SLEEP (a rank sleeps
 * that has not sent all of it, without ROOM_KNOCK), NO_GATE (too many states for check.sh;
 * ring.pml has it), REPLY_BLOCK (a reply waits for a block of the requests' class).
 */
#ifndef N0
#define N0 3 /* requests that rank 0 sends */
#endif
#ifndef N1
#define N1 3 /* and rank 1 */
#endif
#ifndef LONG
#define LONG 1
#endif
#ifndef TO_ALL
#define TO_ALL 0
#endif
#define REQUESTS(i) (i == 0 -> N0 : N1)
#define LEAVES 2

#define QUIET 0
#define RUNG 1
#define ASLEEP 2

/* Ring i: requests of rank i; ring 2 + i: replies of rank i. */
byte wrote[4], seen[4];   /* lines written; of these, visible */
byte passed[4];           /* lines that the receiver is done with */
byte freed[4];            /* leaves given back, visible; passed / 2 are given back in all */

#ifdef BLOCKS
byte back[2]; /* blocks of rank i that have been given back, visible */
#define IN_USE(i) (MESSAGES(wrote[Q(i)]) - back[i])
#define BLOCK_FREE(i) (IN_USE(i) < BLOCKS)
#else
#define BLOCK_FREE(i) true
#endif
#ifdef REPLY_BLOCK
#define REPLY_FREE(i) BLOCK_FREE(i)
#else
#define REPLY_FREE(i) true
#endif

bit heed[2];    /* owned by rank i: it polls its peer */
bit knocker[2]; /* of rank i: the peer has knocked */
byte bell[2];
bit waiting[2];
byte owed[2];   /* messages of a long reply of rank i that have not left */
byte told[2];   /* of the reply class from the program of rank i */

#define Q(i) i
#define P(i) (2 + i)
#define STUCK(r) (wrote[r] % 2)
#define LEAF_FREE(r) ((wrote[r] + 1) / 2 - freed[r] < LEAVES)
#define READY(r) (!STUCK(r) || LEAF_FREE(r))
#define THERE(r) (passed[r] < seen[r])
#define MESSAGE(r) (THERE(r) && passed[r] % 2 == 0)
#define ADVANCED(r) (THERE(r) && passed[r] % 2 == 1)
#define MESSAGES(count) ((count + 1) / 2)

#ifdef NO_GATE
#define GATE_OPEN true
#else
#ifdef NO_OWING
#define GATE_OPEN READY(P(me))
#else
#define GATE_OPEN (READY(P(me)) && !owed[me])
#endif
#endif

#define TO_SEND (MESSAGES(wrote[Q(me)]) < REQUESTS(me))
#define TO_TELL (told[me] < TO_ALL)
#define MAY_SEND (READY(Q(me)) && BLOCK_FREE(me))
#define BLOCKED (TO_SEND && !MAY_SEND)
#ifdef OWING_SLEEP
#define AT_REST true
#else
#define AT_REST (!owed[me] && !TO_TELL) /* layers have no work, and the program waits for no room */
#endif
#define WAITS (AT_REST && (!TO_SEND || MESSAGES(passed[P(peer)]) < LONG * MESSAGES(wrote[Q(me)])))

/* What the look before sleeping finds: in the rings of a peer that was polled, and in lanes. */
#define RUNNABLE (THERE(P(peer)) || ADVANCED(Q(peer)) || (MESSAGE(Q(peer)) && GATE_OPEN))
#ifdef ROOM_KNOCK
#define MAY_SLEEP (WAITS || BLOCKED)
#define FOUND_ROOM (blocked && READY(Q(me)))
#ifdef NO_FREED_LOOK
#define FOUND (THERE(P(peer)) || ADVANCED(Q(peer)) || (MESSAGE(Q(peer)) && !gated))
#else
#define FOUND RUNNABLE
#endif
#else
#define FOUND_ROOM false
#ifdef SLEEP_BLOCKED
#define MAY_SLEEP (WAITS || BLOCKED)
#else
#define MAY_SLEEP WAITS
#endif
#ifdef GATED_SLEEP
#define FOUND RUNNABLE
#else
#define FOUND (THERE(P(peer)) || THERE(Q(peer)))
#endif
#endif

/* A locked instruction of rank i, or a membarrier of its peer. */
inline drain(i, j)
{
	seen[Q(i)] = wrote[Q(i)];
	seen[P(i)] = wrote[P(i)];
	freed[Q(j)] = passed[Q(j)] / 2;
	freed[P(j)] = passed[P(j)] / 2
#ifdef BLOCKS
	;
	back[j] = MESSAGES(passed[Q(j)])
#endif
}

/* The store before this load is buffered, so the two can be one step without being one. */
inline knock_if_unheeded()
{
	if
	:: heed[peer]
	:: !heed[peer] ->
		drain(me, peer);
		knocker[peer] = 1;
		if
		:: bell[peer] == ASLEEP -> waiting[peer] = 0
		:: else
		fi;
		bell[peer] = RUNG
	fi
}

/* Turns first if it must, and afterwards if it can. */
inline lane_put(r)
{
	wrote[r] = wrote[r] + 1 + STUCK(r);
	if
	:: LEAF_FREE(r) -> wrote[r]++
	:: else
	fi;
	knock_if_unheeded()
}

inline inlet_advance(r)
{
	passed[r]++;
#ifdef ROOM_KNOCK
	knock_if_unheeded()
#endif
}

inline bell_answer()
{
	bell[me] = QUIET;
	if
	:: knocker[me] -> knocker[me] = 0; hot = 1; heed[me] = 1
	:: else
	fi
}

/* heed := 0, membarrier, look again; the peer stays on the list if something is there. */
inline peers_demote()
{
	atomic {
		gated = MESSAGE(Q(peer)) && !GATE_OPEN;
		heed[me] = 0
	}
#ifndef NO_BARRIER
	d_step { drain(peer, me) }
#endif
	atomic {
		if
		:: hot && FOUND -> heed[me] = 1; found = 1
		:: else -> hot = 0; found = 0
		fi
	}
}

inline sleep_arm()
{
	peers_demote();
	if
	:: found || FOUND_ROOM -> goto awake
	:: else
	fi;
	atomic { /* compare-and-swap, futex_wait */
		if
		:: bell[me] == QUIET -> bell[me] = ASLEEP; waiting[me] = 1
		:: else -> goto awake
		fi
	}
end_asleep:
	atomic { !waiting[me]; bell_answer() };
awake:	skip
}

proctype rank(byte me; byte peer)
{
	bit hot, found, blocked, gated;
end:	do
	:: atomic { TO_SEND && MAY_SEND -> lane_put(Q(me)) }
	:: atomic { hot && MESSAGE(P(peer)) -> passed[P(peer)]++ }
	:: atomic { hot && ADVANCED(P(peer)) -> inlet_advance(P(peer)) }
	:: atomic { hot && ADVANCED(Q(peer)) -> inlet_advance(Q(peer)) }
	:: hot && MESSAGE(Q(peer)) && GATE_OPEN ->
#ifndef NO_GATE
		assert(READY(P(me))); /* a reply never waits */
#endif
		atomic {
			READY(P(me)) && REPLY_FREE(me) ->
			assert(!owed[me]); /* its record is free */
			lane_put(P(me));
			owed[me] = LONG - 1
		};
		passed[Q(peer)]++
	:: atomic { owed[me] && READY(P(me)) -> lane_put(P(me)); owed[me]-- }
#ifdef NO_ORDER
	:: atomic { TO_TELL && READY(P(me)) -> assert(!owed[me]); lane_put(P(me)); told[me]++ }
#else
	:: atomic { TO_TELL && READY(P(me)) && !owed[me] -> lane_put(P(me)); told[me]++ }
#endif
	:: atomic { bell[me] == RUNG -> bell_answer() }
	:: hot -> peers_demote()
	:: atomic { MAY_SLEEP -> blocked = BLOCKED }; sleep_arm()
	od
}

proctype store_buffers(byte me; byte peer)
{
end:	do
	:: atomic { seen[Q(me)] < wrote[Q(me)] -> seen[Q(me)]++ }
	:: atomic { seen[P(me)] < wrote[P(me)] -> seen[P(me)]++ }
	:: atomic { freed[Q(peer)] < passed[Q(peer)] / 2 -> freed[Q(peer)]++ }
	:: atomic { freed[P(peer)] < passed[P(peer)] / 2 -> freed[P(peer)]++ }
#ifdef BLOCKS
	:: atomic { back[peer] < MESSAGES(passed[Q(peer)]) -> back[peer]++ }
#endif
	od
}

init
{
	byte i;
	atomic {
		run rank(0, 1);
		run rank(1, 0);
		run store_buffers(0, 1);
		run store_buffers(1, 0)
	}
	timeout;
	for (i : 0 .. 1) {
		assert(MESSAGES(wrote[Q(i)]) == REQUESTS(i) && MESSAGES(passed[Q(i)]) == REQUESTS(i));
		assert(MESSAGES(wrote[P(1 - i)]) == LONG * REQUESTS(i) + TO_ALL);
		assert(MESSAGES(passed[P(1 - i)]) == LONG * REQUESTS(i) + TO_ALL)
	}
}
