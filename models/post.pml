/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathered items in a network that is full. Every rank posts N items to the next one. The handler
 * of an item posts another one to the next rank, as often as the item's hops say: with two ranks
 * and one hop, an answer. Rings, queues and buffers hold hardly anything.
 *
 * Modelled, with the C function in brackets: the open buffer of a pair of ranks and its queue of
 * full ones [gather_close]; a ring of K batches between each two ranks, which stands for lines and
 * slots alike [buffer_send]; the program, which may post only when its queue is empty, its rank has
 * few full buffers, and the receiver has not told it to wait [post_may], and whose full buffer then
 * goes into the ring at once if there is room [post_quick]; the handler, which never waits
 * [post_spill]; the poll, which handles a batch [on_batch], sends what is queued [gather_send_all]
 * and lets the open buffer leave [post_progress]; and the message to the sources of a rank with
 * LONG full buffers, that they wait, and at SHORT, that they go on [pace_tell]. A rank that waits
 * does all of this; here it may do it at any time.
 *
 * Checked: items of a pair are handled once and in the order of the posts; when no step is left,
 * every item was handled. How long queues get is not: here a program may post for ever before it
 * looks whether it was told to wait, where a post that sends a batch looks [post_room].
 *
 * Ways to break it: HANDLER_WAITS (a handler's post waits for room in the ring), NO_QUEUE (polls do
 * not send what is queued), NO_FLUSH (a waiting rank keeps its open buffer), PAST_QUEUE (a full
 * buffer goes past the queue), QUICK_PAST (the program's does, by the short path), NO_SHORT
 * (sources are not told to go on), PACE_ALL (a rank that is told to wait does not serve either).
 */
#ifndef R
#define R 2
#endif
#ifndef N
#define N 3
#endif
#ifndef HOPS
#define HOPS 1
#endif
#define MOST (N * HOPS + 1) /* enough for all */
#define B 2 /* items of a buffer */
#define K 1
#define LONG 1
#define SHORT 0
#define ALL (R * N * (HOPS + 1))
#define NEXT ((me + 1) % R)
#define TO(j) (me * R + (j))
#define FROM(k) ((k) * R + me)

/* By sender and receiver. A batch: how many items, and number and hops of each; 0 items: pace. */
chan ring[R * R] = [K] of { byte, byte, byte, byte, byte };
chan queue[R * R] = [MOST] of { byte, byte, byte, byte, byte };
byte opened[R * R];             /* items in the open buffer */
byte number[R * R * B];         /* of each of them, */
byte hops[R * R * B];           /* and how often it goes on */
byte posted[R * R], due[R * R]; /* the next number, at the sender and at the receiver */
bit overloaded[R * R];          /* the receiver has told the sender to wait */
bit source[R * R], paced[R * R];
byte queued[R]; /* full buffers of a rank */
bit pacing[R];
byte handled;

#define BATCH(l) opened[l], number[l * B], hops[l * B], number[l * B + 1], hops[l * B + 1]

inline close(l)
{
	assert(nfull(queue[l]));
#ifdef PAST_QUEUE
	if
	:: nfull(ring[l]) -> ring[l]!BATCH(l)
	:: else -> queue[l]!BATCH(l); queued[me]++
	fi;
#else
	queue[l]!BATCH(l);
	queued[me]++;
#endif
	opened[l] = 0
}

inline append(l, h)
{
	number[l * B + opened[l]] = posted[l];
	hops[l * B + opened[l]] = h;
	opened[l]++;
	posted[l]++
}

/* A handler's. */
inline post(l, h)
{
	if
	:: opened[l] == B ->
#ifdef HANDLER_WAITS
		empty(queue[l]) && nfull(ring[l]);
		ring[l]!BATCH(l);
		opened[l] = 0
#else
		close(l)
#endif
	:: else
	fi;
	append(l, h)
}

inline item(k, s, h)
{
	assert(s == due[FROM(k)]);
	due[FROM(k)]++;
	if
	:: h > 0 -> post(TO(NEXT), h - 1)
	:: else
	fi;
	handled++
}

inline batch(k)
{
	ring[FROM(k)]?n, s0, h0, s1, h1;
	if
	:: n == 0 -> overloaded[TO(k)] = h0
	:: n > 0 ->
		source[FROM(k)] = 1;
		item(k, s0, h0);
		if
		:: n > 1 -> item(k, s1, h1)
		:: else
		fi
	fi;
	n = 0; s0 = 0; h0 = 0; s1 = 0; h1 = 0
}

#ifdef PACE_ALL
#define SERVES(k) (!overloaded[TO(k)])
#else
#define SERVES(k) true
#endif

inline tell(k)
{
	ring[TO(k)]!0, 0, pacing[me], 0, 0;
	paced[FROM(k)] = pacing[me]
}

#define MAY(l) (empty(queue[l]) && !overloaded[l] && queued[me] < LONG)

#ifdef QUICK_PAST
#define QUICK(l) true
#else
#define QUICK(l) MAY(l)
#endif

proctype rank(byte me)
{
	byte left = N, n, s0, h0, s1, h1, k;
	do
	/* The program. */
	:: atomic { left > 0 && opened[TO(NEXT)] == B -> close(TO(NEXT)) }
	:: atomic {
		left > 0 && opened[TO(NEXT)] == B && QUICK(TO(NEXT)) && nfull(ring[TO(NEXT)]) ->
		ring[TO(NEXT)]!BATCH(TO(NEXT));
		opened[TO(NEXT)] = 0
	   }
	:: atomic {
		left > 0 && opened[TO(NEXT)] < B && (opened[TO(NEXT)] > 0 || MAY(TO(NEXT))) ->
		append(TO(NEXT), HOPS);
		left--
	   }
	/* A poll. */
#ifndef NO_FLUSH
	:: atomic { left == 0 && opened[TO(NEXT)] > 0 -> close(TO(NEXT)) }
#endif
#ifndef NO_QUEUE
	:: atomic {
		nempty(queue[TO(NEXT)]) && nfull(ring[TO(NEXT)]) ->
		queue[TO(NEXT)]?n, s0, h0, s1, h1;
		ring[TO(NEXT)]!n, s0, h0, s1, h1;
		queued[me]--;
		n = 0; s0 = 0; h0 = 0; s1 = 0; h1 = 0
	   }
#endif
	:: atomic { SERVES(0) && me != 0 && nempty(ring[FROM(0)]) -> batch(0) }
	:: atomic { SERVES(1) && me != 1 && nempty(ring[FROM(1)]) -> batch(1) }
#if R > 2
	:: atomic { SERVES(2) && me != 2 && nempty(ring[FROM(2)]) -> batch(2) }
#endif
	:: atomic { !pacing[me] && queued[me] >= LONG -> pacing[me] = 1 }
#ifndef NO_SHORT
	:: atomic { pacing[me] && queued[me] <= SHORT -> pacing[me] = 0 }
#endif
	:: atomic { source[FROM(0)] && paced[FROM(0)] != pacing[me] && nfull(ring[TO(0)]) -> tell(0) }
	:: atomic { source[FROM(1)] && paced[FROM(1)] != pacing[me] && nfull(ring[TO(1)]) -> tell(1) }
#if R > 2
	:: atomic { source[FROM(2)] && paced[FROM(2)] != pacing[me] && nfull(ring[TO(2)]) -> tell(2) }
#endif
	:: handled == ALL -> break
	od
}

init {
	atomic {
		run rank(0);
		run rank(1);
#if R > 2
		run rank(2);
#endif
	}
}
