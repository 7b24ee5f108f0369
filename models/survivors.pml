/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agreement on a team of survivors: RANKS members, any of which may die between any two of its
 * steps, as long as one lives [tern_team_survivors].
 *
 * Modelled, with the C function in brackets: in turn each member leads a round. The leader tells
 * every other member its view, one message after another, and makes one of what it knows only if it
 * has none yet [round_pass, view_make, view_tell]. Another member waits until the leader's view has
 * come, and adopts it, or until the leader is known to be lost [round_over]. What a rank that dies
 * has sent may come or get lost, each message for itself. What a member knows of deaths when it
 * makes a view is any part of the deaths that there are [lost_look]: news travels at its own pace.
 * After the last round the view is the team. With GIVE_UP, a member may give up another one that
 * lives [member_given_up]. Then it tells no view any more, but that it has none; it gets no team,
 * and ends [say_nothing].
 *
 * Checked: any two members that end have the same team, whether they die later or not; who ends is
 * in it; a member whose death was known to everybody before the call is not; everybody who lives
 * ends.
 *
 * Left out: outboxes and their places, ids, the messages of other calls. There is one message from one
 * member to another, so their order is no question.
 *
 * Ways to break it: REMAKE (a leader makes its view anew of what it knows), GUESS (a living leader
 * may be taken for dead), ONE_ROUND (the first living member alone leads), BLIND (nobody hears of a
 * leader's death), SPEAKS (who has given up a member still tells its view).
 */
#ifndef RANKS
#define RANKS 4
#endif
#define ALL ((1 << RANKS) - 1)
#define OVER (RANKS + 1)
#define HAS(set, i) (((set) >> (i)) & 1)
#define EMPTY (1 << RANKS) /* what a member says that has no say */

byte alive = ALL;         /* a set */
byte known;               /* deaths from before the call, which everybody knows of */
byte told[RANKS * RANKS]; /* [leader, member]: the view that the one has sent the other; 0: none */
byte doubters;            /* those who may give up a member that lives: a set */
byte team;                /* ghost: of those who have ended; 0: nobody has */
byte ended;               /* ghost: a set */

#ifdef SPEAKS
#define SAID view
#else
#define SAID EMPTY
#endif

/* What does not matter any more is made equal, so that there are fewer states. */
inline die()
{
	alive = alive & ~(1 << me);
	for (i : 0 .. RANKS - 1) {
		told[i * RANKS + me] = 0
	}
	i = 0;
	leader = 0;
	next = 0;
	gave_up = 0;
	view = 0
}

/* Of the deaths that there are, some are known. */
inline view_make()
{
	view = ALL & ~known;
	for (i : 0 .. RANKS - 1) {
		if
		:: !HAS(alive, i) -> view = view & ~(1 << i)
		:: true
		fi
	}
}

/* Tells the next member. What is known when the first is told has been known since, or before. */
inline view_tell()
{
	if
#ifdef REMAKE
	:: next == 0 -> view_make()
	:: next != 0
#else
	:: !view -> view_make()
	:: view
#endif
	fi;
	if
	:: next == me
	:: next != me && !gave_up -> told[me * RANKS + next] = (HAS(alive, next) -> view : 0)
	:: next != me && gave_up && HAS(alive, next) -> told[me * RANKS + next] = SAID
	:: next != me && gave_up /* it cannot be reached, or is dead */
	fi;
	next++
}

inline round_next()
{
	told[leader * RANKS + me] = 0;
	next = 0;
	i = 0;
#ifdef ONE_ROUND
	leader = (view -> RANKS : leader + 1)
#else
	leader++
#endif
}

inline end_check()
{
	assert(HAS(view, me));
	assert((view & known) == 0);
	assert(!team || team == view);
	team = view;
	ended = ended | (1 << me);
	view = 0;
	leader = OVER
}

proctype member(byte me)
{
	byte leader, next, view, i;
	bit gave_up;
end:	do
	:: atomic { leader == me && next < RANKS -> view_tell(); i = 0 }
	:: atomic { leader == me && next == RANKS && !gave_up -> round_next() }
	:: atomic { leader == me && next == RANKS && gave_up -> die(); break }
	:: atomic { leader < RANKS && leader != me && told[leader * RANKS + me] ->
			view = (told[leader * RANKS + me] == EMPTY -> view : told[leader * RANKS + me]);
			round_next() }
#ifdef GIVE_UP
	/* It has no say: it tells so whom it can, unless it has led already, and ends. */
	:: atomic { leader < RANKS && leader != me && HAS(alive, leader) && HAS(doubters, me) &&
		    !gave_up && !told[leader * RANKS + me] ->
			gave_up = 1;
			next = (leader < me -> 0 : RANKS);
			leader = me }
#endif
#ifndef BLIND
	/* Also if there is a view: what the dead have sent may get lost. */
	:: atomic { leader < RANKS && leader != me && !HAS(alive, leader) -> round_next() }
#endif
#ifdef GUESS
	:: atomic { leader < RANKS && leader != me -> round_next() }
#endif
	:: atomic { leader == RANKS -> end_check() }
	:: atomic { (alive & ~(1 << me)) != 0 -> die(); break } /* at any step, and later */
	od
}

init
{
	byte i;
	atomic {
		/* One may be dead already, and everybody knows. */
		if
		:: skip
		:: known = 1
		:: known = 1 << (RANKS - 1)
		fi;
		alive = ALL & ~known;
#ifdef GIVE_UP
		/* One of them, so that nobody else ends its wait; or all. */
		if
		:: doubters = 1
		:: doubters = 1 << (RANKS - 2)
		:: doubters = 1 << (RANKS - 1)
		:: doubters = ALL
		fi;
#endif
		for (i : 0 .. RANKS - 1) {
			if
			:: HAS(alive, i) -> run member(i)
			:: else
			fi
		}
	}
	timeout;
	assert((alive & ~ended) == 0)
}
