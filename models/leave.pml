/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective calls of RANKS members, of which one may leave too early, or die at any step, and each
 * leaves when it has done its part of all calls [fail.c].
 *
 * Modelled, with the C function in brackets: in each of CALLS calls a member sends to those that
 * need its part, one after another, and waits for the parts that it needs [send_turn, run_wait].
 * Members are late by any time. A member that waits and lacks a part fails if the one that it lacks
 * it from has left [run_lacks], if it has heard of a death [coll_lost], or if it was told that this
 * call or one before it has failed elsewhere [on_failed]; a member that sends to one that has left
 * fails, too [message_failed]. A death is heard of by all, at their own pace. Any other failure is
 * told to all, one after another [team_tell]. Who has failed goes on without leaving. Everybody
 * needs everybody; with CHAIN, each needs the member before it. With MAKE, the first call makes a
 * team of the members but 1, on which the others are called; its failure is told whatever the
 * reason is, and then the team fails at those that have it [made_fail].
 *
 * Checked: no call fails where nobody has died or left too early; no call waits for ever.
 *
 * Left out: what the parts are, how they travel, and that a part which was sent is there before it
 * is heard that its sender has left, on which all of this rests [lost_drain].
 *
 * Ways to break it: FAIL_ON_LEAVE (a call fails as soon as a member has left), NO_LACK (nobody
 * minds that a member has left), NO_TELL (failures are not told).
 */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifdef CHAIN
#define NEEDS(i, j) ((j) + 1 == (i))
#else
#define NEEDS(i, j) ((i) != (j))
#endif
#ifdef MAKE
#define IN(c, i) ((c) == 0 || (i) != 1)
#else
#define IN(c, i) true
#endif
#define AT(c, from, to) sent[((c) * RANKS + (from)) * RANKS + (to)]
#define TOLD(from, to) told[(from) * RANKS + (to)]

bit sent[CALLS * RANKS * RANKS];
byte told[RANKS * RANKS]; /* the call that has failed, plus 1 */
bit left[RANKS], dead[RANKS];
bit died, early; /* somebody has, too early */

/* Whether member `me` is told of a failure that ends its call c, or hears of a death. */
#define FAILED(c, me, i) (IN(c, i) && (dead[i] || (TOLD(i, me) && TOLD(i, me) <= (c) + 1)))
#define ANY_FAILED(c, me) (FAILED(c, me, 0) || FAILED(c, me, 1) || FAILED(c, me, 2))
#ifdef FAIL_ON_LEAVE
#define LACKS(j) (left[0] || left[1] || left[2])
#elif defined(NO_LACK)
#define LACKS(j) false
#else
#define LACKS(j) left[j]
#endif

inline may_die()
{
#ifdef DEATH
	if
	:: atomic { !died -> died = 1; dead[me] = 1; goto over }
	:: true
	fi
#endif
	skip
}

proctype member(byte me)
{
	byte c, j;
	bool death;
	do
	:: c == CALLS || !IN(c, me) -> break
	:: else ->
#ifdef EARLY
		if
		:: atomic { !early -> early = 1; left[me] = 1; goto over }
		:: true
		fi;
#endif
		for (j : 0 .. RANKS - 1) {
			if
			:: IN(c, j) && NEEDS(j, me) ->
				may_die();
				if
				:: left[j] -> goto failed
				:: AT(c, me, j) = 1
				fi
			:: else
			fi
		}
		for (j : 0 .. RANKS - 1) {
			if
			:: IN(c, j) && NEEDS(me, j) ->
				if
				:: AT(c, j, me)
				:: !AT(c, j, me) && (LACKS(j) || ANY_FAILED(c, me)) -> goto failed
				fi
			:: else
			fi
		}
		c++
	od;
	atomic { left[me] = 1; goto over };
failed:
	atomic {
		assert(died || early);
		death = (dead[0] && IN(c, 0)) || (dead[1] && IN(c, 1)) || (dead[2] && IN(c, 2))
	}
#ifdef MAKE
	if
	:: c == 0 -> death = false
	:: else
	fi;
#endif
#ifndef NO_TELL
	for (j : 0 .. RANKS - 1) {
		if
		:: j != me && !death ->
			may_die();
			TOLD(me, j) = c + 1
		:: else
		fi
	}
#endif
over:
	skip
}

init
{
	atomic {
		run member(0);
		run member(1);
		run member(2)
	}
}
