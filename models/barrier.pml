/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier on shared memory: RANKS ranks meet ROUNDS times and may sleep while
 * they wait [barrier_pass].
 *
 * Modelled, with the C function in brackets: the rank that arrives last raises generation, and then, as long as there are
 * sleepers, rings every bell that says ASLEEP [shm_arrive]. Whoever wants to sleep counts itself among the sleepers, goes
 * from QUIET to ASLEEP [shm_arm], looks at generation again [shm_passed], waits on the futex, and is awake [shm_disarm].
 * Rank 0's bell may also be rung once by a message. Who sleeps in the futex for some other
 * reason than the barrier is woken too and looks again.
 *
 * Checked: nobody leaves a round before all have come; everybody leaves every round.
 *
 * Both counts are changed by locked instructions, which are full fences (in C11: seq_cst,
 * with seq_cst loads after them; on aarch64 a weaker order is PLAIN_STORE).
 *
 * Left out: messages served meanwhile (sleep.pml), ranks that die.
 *
 * Ways to break it: NO_RECHECK (generation is not looked at after ASLEEP), LATE_SLEEPERS
 * (counted after that look), RING_FIRST (bells before generation), PLAIN_STORE (generation's
 * store passes the loads after it).
 */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define QUIET 0
#define RUNG 1
#define ASLEEP 2

byte arrived, generation, sleepers;
byte done; /* ghost: ranks that have left the last round */
byte bell[RANKS];
bit waiting[RANKS];
bit posted, answered; /* the message for rank 0 */

bit pending; /* PLAIN_STORE: generation's increment is in the store buffer */

inline bell_answer()
{
	bell[me] = QUIET;
	if
	:: me == 0 -> answered = posted
	:: else
	fi
}

inline ring_sleepers()
{
	do
	:: i < RANKS && sleepers > 0 -> /* asked before each: who comes later sees generation */
		if
		:: bell[i] == ASLEEP ->
			d_step { old = bell[i]; bell[i] = RUNG };
			if
			:: old == ASLEEP -> waiting[i] = 0
			:: else
			fi
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od
}

inline generation_raise()
{
#ifdef PLAIN_STORE
	pending = 1
#else
	generation++
#endif
}

inline sleep_in_round()
{
#ifndef LATE_SLEEPERS
	sleepers++;
#endif
	atomic {
		if
		:: bell[me] == QUIET -> bell[me] = ASLEEP; armed = 1
		:: else -> armed = 0
		fi
	}
#ifndef NO_RECHECK
	if
	:: generation > round -> armed = 0
	:: else
	fi;
#endif
#ifdef LATE_SLEEPERS
	sleepers++;
#endif
	atomic { /* futex_wait */
		if
		:: armed && bell[me] == ASLEEP -> waiting[me] = 1
		:: else
		fi
	}
	!waiting[me];
	bell_answer();
	sleepers--
}

proctype rank(byte me)
{
	byte round, i, old, came;
	bit armed;
	do
	:: round < ROUNDS ->
		atomic { arrived++; came = arrived };
		if
		:: came == (round + 1) * RANKS ->
#ifdef RING_FIRST
			ring_sleepers();
			generation_raise()
#else
			generation_raise();
			ring_sleepers()
#endif
		:: else
		fi;
		came = 0;
		do
		:: generation > round -> break
		:: generation == round -> sleep_in_round()
		:: bell[me] == RUNG -> bell_answer()
		od;
		assert(arrived >= (round + 1) * RANKS);
		round++
	:: else -> break
	od;
	done++
}

proctype store_buffer()
{
end:	do
	:: atomic { pending -> pending = 0; generation++ }
	od
}

proctype message()
{
	byte old;
	posted = 1;
	d_step { old = bell[0]; bell[0] = RUNG };
	if
	:: old == ASLEEP -> waiting[0] = 0
	:: else
	fi
}

init
{
	byte i;
	atomic {
		for (i : 0 .. RANKS - 1) {
			run rank(i)
		}
		run message();
		run store_buffer()
	}
	timeout;
	assert(done == RANKS);
	assert(answered == posted || bell[0] == RUNG)
}
