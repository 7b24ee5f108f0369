/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel's ring: one rank puts words and ends messages, others read along.
 *
 * Modelled, with the C function in brackets:
 *  - LEAVES leaves of K lines of W words. A line has a count of its words and a mark, which are
 *    opened together with one store; a leaf has a control line with the number of the leaf
 *    that was entered last there;
 *  - the writer: words, then the count [tern_chan_publish_]; the next line but one opened when a line
 *    is full or marked [tern_chan_open_line_]; the leaf's first two lines and then its number
 *    [out_enter], if every reader has given back the leaf that had its place [out_limit],
 *    else the spill, where the next put waits for that [tern_chan_next_leaf_, spilt_settle]; a line that is
 *    ended early: the item in its last word, then the mark [out_mark];
 *  - the reader: the count, then a word [tern_chan_seek_, tern_chan_get8_]; where there is none, the mark,
 *    then the count once more, then the item [cursor_item]; the control line [cursor_enter];
 *    the leaf before given back when something was found in the new one [in_move].
 *
 * Memory is as weak as the code allows: the writer's stores go into a buffer and leave it in
 * any order, but for two to the same place, and for release stores (count, mark, number), which leave it
 * when they are the oldest. A count that is given back is a slower reader if it is seen late.
 * Lines are as an earlier lap may have left them, from the beginning.
 *
 * Checked: every word is got, in order, once, and as it was put; a count never falls behind what
 * was read; the end of a message is seen after the last word before it and before
 * the first one behind it; nobody waits for ever.
 *
 * Left out: blocks and pairs of words that are published at once (a slower writer), pads (ends that nobody asks
 * for), closing, sleep (waits of channels are bounded).
 *
 * Ways to break it: LATE_OPEN (a line is opened when it is come to), EARLY_BACK (a leaf is given
 * back when it is entered), OFF_BY_ONE (one leaf too many), PLAIN_COUNT, PLAIN_MARK, PLAIN_NUMBER (not
 * a release store), NO_RECOUNT (the count is not looked at again after the mark), ANY_NUMBER (a control
 * line is passed whatever its number), PAIRS (two words are got where the count has moved, and were put
 * one by one).
 */
#ifndef LEAVES
#define LEAVES 2
#endif
#ifndef K
#define K 2
#endif
#ifndef W
#define W 2
#endif
#ifndef N
#define N 10 /* words that are put */
#endif
#ifndef ENDS
#define ENDS 2 /* messages that are ended, at most, anywhere */
#endif
#ifndef READERS
#define READERS 1
#endif

#define LINES (LEAVES * K)
#define BUFFER 5
#define ITEM 100 /* and the words before it */

byte count[LINES];
bit mark[LINES];
byte word[LINES * W];
byte number[LEAVES];
byte freed[READERS];

/* The writer's store buffer, the oldest first. */
mtype = { WORD, COUNT, MARK, OPEN, NUMBER };
mtype kind[BUFFER];
byte place[BUFFER], value[BUFFER];
bit release[BUFFER];
byte stored;

/* Ghost. */
byte put, ended;
byte end_at[ENDS]; /* words before it */
byte done;         /* readers that have got all */

#ifdef PLAIN_COUNT
#define COUNT_RELEASE 0
#else
#define COUNT_RELEASE 1
#endif
#ifdef PLAIN_MARK
#define MARK_RELEASE 0
#else
#define MARK_RELEASE 1
#endif
#ifdef PLAIN_NUMBER
#define NUMBER_RELEASE 0
#else
#define NUMBER_RELEASE 1
#endif

inline store(k, p, v, r)
{
	assert(stored < BUFFER);
	kind[stored] = k;
	place[stored] = p;
	value[stored] = v;
	release[stored] = r;
	stored++
}

/* -- Memory -------------------------------------------------------------------------------- */

#define IN_HEAD(b) (kind[b] == COUNT || kind[b] == MARK || kind[b] == OPEN)
#define SAME(a, b) (place[a] == place[b] && (kind[a] == kind[b] || \
		    ((kind[a] == OPEN || kind[b] == OPEN) && IN_HEAD(a) && IN_HEAD(b))))
#define FREE(b) (stored > b && !release[b])

inline leave_buffer(b)
{
	d_step {
		if
		:: kind[b] == WORD -> word[place[b]] = value[b]
		:: kind[b] == COUNT -> count[place[b]] = value[b]
		:: kind[b] == MARK -> mark[place[b]] = 1
		:: kind[b] == OPEN -> count[place[b]] = 0; mark[place[b]] = 0
		:: kind[b] == NUMBER -> number[place[b]] = value[b]
		fi;
		stored--;
		i = b;
		do
		:: i < stored ->
			kind[i] = kind[i + 1];
			place[i] = place[i + 1];
			value[i] = value[i + 1];
			release[i] = release[i + 1];
			i++
		:: else -> break
		od;
		kind[stored] = WORD;
		place[stored] = 0;
		value[stored] = 0;
		release[stored] = 0;
		i = 0
	}
}

proctype memory()
{
	byte i;
end:	do
	:: atomic { stored > 0 -> leave_buffer(0) }
	:: atomic { FREE(1) && !SAME(0, 1) -> leave_buffer(1) }
	:: atomic { FREE(2) && !SAME(0, 2) && !SAME(1, 2) -> leave_buffer(2) }
	:: atomic { FREE(3) && !SAME(0, 3) && !SAME(1, 3) && !SAME(2, 3) -> leave_buffer(3) }
	:: atomic { FREE(4) && !SAME(0, 4) && !SAME(1, 4) && !SAME(2, 4) && !SAME(3, 4) -> leave_buffer(4) }
	od
}

/* -- The writer ---------------------------------------------------------------------------------- */

#ifdef OFF_BY_ONE
#define ROOM LEAVES + 1
#else
#define ROOM LEAVES
#endif
#if READERS == 2
#define LEAF_FREE (leaf < freed[0] + ROOM && leaf < freed[1] + ROOM)
#else
#define LEAF_FREE (leaf < freed[0] + ROOM)
#endif
#define LINE(j) ((leaf - 1) % LEAVES * K + j)

inline out_enter()
{
	leaf++;
	line = 0;
	at = 0;
	spilt = 0;
	store(OPEN, LINE(0), 0, 0);
#ifndef LATE_OPEN
	store(OPEN, LINE(1), 0, 0);
#endif
	store(NUMBER, (leaf - 1) % LEAVES, leaf, NUMBER_RELEASE)
}

/* The line is full, or marked. */
inline out_next()
{
	if
	:: line == K - 1 -> spilt = 1
	:: else ->
		line++;
		at = 0;
#ifdef LATE_OPEN
		store(OPEN, LINE(line), 0, 0)
#else
		if
		:: line + 1 < K -> store(OPEN, LINE(line + 1), 0, 0)
		:: else
		fi
#endif
	fi
}

proctype writer()
{
	byte leaf, line, at;
	bit spilt = 1; /* at first, as when a leaf is full */
end:	do
	:: atomic { spilt && LEAF_FREE && stored <= BUFFER - 3 && put < N -> out_enter() }
	:: atomic { !spilt && put < N && stored <= BUFFER - 3 ->
		put++;
		store(WORD, LINE(line) * W + at, put, 0);
		at++;
		store(COUNT, LINE(line), at, COUNT_RELEASE);
		if
		:: at == W -> out_next()
		:: else
		fi }
	:: atomic { !spilt && ended < ENDS && put < N && stored <= BUFFER - 3 ->
		end_at[ended] = put;
		ended++;
		store(WORD, LINE(line) * W + W - 1, ITEM + put, 0);
		store(MARK, LINE(line), 1, MARK_RELEASE);
		out_next() }
	od
}

/* -- A reader -------------------------------------------------------------------------------------- */

#define HERE ((leaf - 1) % LEAVES * K + line)
#define NEXT (leaf % LEAVES)

#ifdef EARLY_BACK
#define GIVE_BACK freed[me] = leaf
#else
#define GIVE_BACK freed[me] = leaf - 1
#endif

#ifdef ANY_NUMBER
#define ENTERED (number[NEXT] != 0)
#else
#define ENTERED (number[NEXT] == leaf + 1)
#endif

inline in_next()
{
	glance = 0;
	at = 0;
	if
	:: line == K - 1 -> control = 1
	:: else -> line++
	fi
}

inline take()
{
	assert(word[HERE * W + at] == got + 1);
	assert(ends == ended || end_at[ends] > got);
	got++;
	at++;
	if
	:: at == W -> in_next()
	:: else
	fi
}

proctype reader(byte me)
{
	byte leaf, line, at, got, ends;
	bit control = 1, glance;
end:	do
	:: atomic { control && ENTERED -> leaf++; line = 0; at = 0; control = 0 }
	:: atomic { !control && count[HERE] != at ->
		assert(count[HERE] > at);
		glance = 0;
		GIVE_BACK };
	   atomic { take();
#ifdef PAIRS
		if
		:: at == 1 && W > 1 -> take()
		:: else
		fi
#endif
	   }
	/* none there; the mark is looked at afterwards */
	:: atomic { !control && !glance && count[HERE] == at -> glance = 1 }
	:: atomic { glance && mark[HERE] -> GIVE_BACK };
#ifndef NO_RECOUNT
	   if
	   :: count[HERE] != at -> glance = 0; goto more
	   :: count[HERE] == at
	   fi;
#endif
	   atomic {
		assert(word[HERE * W + W - 1] == ITEM + got);
		ends++;
		in_next() };
more:	   skip
	:: atomic { got == N && ends == ended -> done++; break }
	od
}

init
{
	byte j;
	d_step {
		for (j : 0 .. LINES - 1) {
			count[j] = W; /* zeroes look like a line that is full, and marked */
			mark[j] = 1
		}
		for (j : 0 .. BUFFER - 1) {
			kind[j] = WORD
		}
		j = 0
	}
	atomic {
		run memory();
		run writer();
		run reader(0)
#if READERS == 2
		; run reader(1)
#endif
	}
	timeout;
	assert(put == N && done == READERS)
}
