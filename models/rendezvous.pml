/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives: two ranks send each other messages, small and large, and post
 * receives for them, through rings with hardly any room.
 *
 * Modelled, with the C function in brackets:
 *  - a ring of requests and one of replies each way. A handler runs in one step, sends no
 *    request, replies at most once and only runs when its reply has room (the gate);
 *  - small messages that go whole while the receiver has cells for them, else as a question
 *    [eager_may, eager_send]; large ones that ask (RTS), are told (CTS), and send DATA and FIN
 *    [queue_announce, told, flow_turn]; TERN_SEND_SYNC; a receive that is too short;
 *  - what no receive has taken, written down in the order it came [arrival_add], and the receive
 *    that finds it there and sends its TELL as a request [arrival_take, tell];
 *  - the queue of sends that are not announced yet, for want of RTSs or of room in the ring
 *    [queue_flush, send_flush]; announcements, DATA and FIN never wait for room [msg_try];
 *  - with SHARED, ranks that share memory: a receiver that reads all of the data and then says
 *    TAKEN, without a CTS [recv_pulls]; data that both sides copy: the sender puts its share and
 *    says FIN, the receiver reads the rest and says READ, in any order [pull_step, flow_read].
 *    Reads and puts are steps of their own, at which the memory of the other side must still be lent;
 *  - taking a send back while it may be matched [send_take_back, cancel_arrived];
 *  - requests that do wait for room: the program's and, with DEFER, those of a deferred function in
 *    a poll below it. They stand on one stack: only the uppermost can go on, and all the while
 *    whatever arrives is served. With DEFER_WAIT a deferred function waits until its send is over.
 *
 * Checked: nothing deadlocks; a send ends once: received, refused or taken back, and never two of
 * these; receives of an id get its messages in the order in which they were sent; what is written
 * down is never more than was granted; when no step is left, no cell and no RTS has got lost,
 * no send waits that a receive waits for, and none is in the queue while RTSs are left. So
 * unmatched sends, if there are fewer of them than RTSs, hold up nothing.
 *
 * Left out: the rings' insides and sleep (ring.pml, flood.pml), ready mode, masks, ranks that
 * leave, DATA of more than one message (MOVED is a send whose DATA are in the ring). A
 * small message that waits for room in its own call counts as sent when it is in the ring: with
 * DEFER only the last one is small.
 *
 * Ways to break it: NO_GATE, ONE_RING (replies in the ring of requests, without a gate), NO_SERVE (a
 * blocked request does not serve), HOLD_RING (an RTS without a receive stays in the ring),
 * PAST_QUEUE (small messages do not mind the queue), NO_UNCOUNT (an RTS that was taken back is
 * still counted), NO_CELL_BACK (the cell of a message that was taken back is not given back),
 * EARLY_CELL (a cell is given back when the message is written down), with SHARED: FIN_ONLY (a send is
 * over with its FIN), FIN_ENDS (so is a receive), LATE_READ (a READ before its CTS is not noted),
 * EARLY_TAKEN (a receiver says TAKEN, and then reads); BLIND_CANCEL (a send is over
 * as soon as it was asked for), DROP_TELL (a receive whose TELL finds no room forgets it). And with
 * WAITING (announcements, DATA and FIN wait for room, in a progress turn that stands on
 * the stack and is not entered twice): OFF_QUEUE (a send leaves the queue before its RTS is in the ring,
 * else it stands at the head and nobody announces another), DEFER_WAIT.
 */
#define S 4 /* sends of a rank */
#define IDS 2
#ifdef OFF_QUEUE
#define WAITING
#endif

#ifndef REQUESTS
#define REQUESTS 1 /* room in a ring */
#endif
#ifndef REPLIES
#define REPLIES 1
#endif
#ifndef RTS_EACH
#define RTS_EACH 2
#endif
#ifndef CELLS_EACH
#define CELLS_EACH 1
#endif

/* What each rank sends, in that order, and how many receives each posts. */
#define BIG 0
#define SMALL 1
#define SYNC 2
#define LONG 3 /* more than its receive has room for */
#ifndef N0
#define N0 S
#endif
#ifndef N1
#define N1 S
#endif
#define SENDS(i) (i == 0 -> N0 : N1)
#ifdef DEFER_WAIT /* which is wrong in any case where it may keep the program from posting a receive */
#define MAY_SEND (ME.next < SENDS(me) && ME.left[0] == 0 && PEER.left[0] == 0)
#else
#define MAY_SEND (ME.next < SENDS(me))
#endif
#ifdef CANCELLING
#define MODE(k) (k == 1 -> SYNC : (k == 2 -> SMALL : BIG))
#define ID(k) (k == 3)
#define RECVS(id) (id == 0 -> 2 : 1)
#define CANCELS(k) (me == 0 && k < 2)
#elif defined(SHARED) /* of which every other one is read by its receiver alone */
#define MODE(k) BIG
#define ID(k) 0
#define RECVS(id) (id == 0 -> S : 0)
#define CANCELS(k) (me == 0 && k < 2)
#elif defined(QUEUEING)
#define MODE(k) (k == 3 -> SMALL : (k == 1 -> LONG : BIG))
#define ID(k) 0
#define RECVS(id) (id == 0 -> S : 0)
#define CANCELS(k) false
#else /* the first is never received, and the others are */
#define MODE(k) (k % 2 -> SMALL : BIG)
#define ID(k) (k > 0)
#define RECVS(id) (id == 0 -> 0 : 3)
#define CANCELS(k) false
#endif

mtype = { NONE, EAGER, RTS, DATA, FIN, CANCEL, TELL, AWAIT };
mtype = { TELL_ROOM, TELL_CLEAR, TELL_TAKEN, TELL_REFUSED, TELL_CANCELLED, TELL_KEPT, TELL_READ };

chan requests[2] = [REQUESTS] of { mtype, mtype, byte, byte }; /* of rank i: kind, kind of tell, send, cells */
#ifdef ONE_RING
#define replies requests
#else
chan replies[2] = [REPLIES] of { mtype, mtype, byte, byte };
#endif

/* A send. */
#define FRESH 0
#define QUEUED 1
#define ASKING 2 /* its RTS waits for room in the ring */
#define IN_USE 3
#define MOVING 4 /* clear to send */
#define MOVED 5
#define HALF 6 /* its share is there, and the receiver still reads */
#define OVER 7
#define REFUSED 8
#define CANCELLED 9

/* What a receiver reads of a send. */
#define PULLS(k) (k % 2) /* all of it */
#define TO_READ 1
#define TO_TELL 2
#define TOLD 3
#ifdef FIN_ONLY
#define FIN_IS_ALL true
#else
#define FIN_IS_ALL false
#endif
typedef rank_t {
	byte send[S];
	bit counted[S];
	bit asked;
	byte next;   /* send to be started */
	byte cells, rts;
	bit flush;
	/* requests that wait for room, or for what follows: the program's, progress, a deferred function's */
	mtype wants[3], kind[3];
	byte name[3], gives[3];
	bit above; /* the deferred function stands above progress */
	byte own;  /* send of the deferred function */
	/* as a receiver */
	byte left[IDS], open[IDS]; /* receives to be posted; posted and not matched */
	byte owed;
	byte whole, asks;  /* ghost: arrivals */
	byte got[S];       /* ghost: of the peer's sends: what became of them here */
	byte last[IDS];    /* ghost: 1 + the last send that was matched */
#ifdef SHARED
	byte pull[S]; /* as a receiver, of the peer's sends; and whether their share is there */
	bit finned[S];
	bit read[S]; /* the receiver of a send has read its part */
#endif
};
rank_t rank[2];
chan arrivals[2] = [S] of { byte, byte, bit }; /* id, send, whole */

#define MATCHED 1 /* got[] */
#define DONE 2

#define ME rank[me]
#define PEER rank[peer]
#define PROGRAM 0
#define PROGRESS 1
#define DEFERRED 2

#ifdef OFF_QUEUE
#define WAITS(k) (ME.send[k] == QUEUED)
#define ANNOUNCING false
#else
#define WAITS(k) (ME.send[k] == QUEUED || ME.send[k] == ASKING)
#define ANNOUNCING (ME.send[0] == ASKING || ME.send[1] == ASKING || ME.send[2] == ASKING || \
		    ME.send[3] == ASKING)
#endif
#define QUEUE (WAITS(0) || WAITS(1) || WAITS(2) || WAITS(3))
#ifdef PAST_QUEUE
#define NOTHING_BEFORE true
#else
#define NOTHING_BEFORE !QUEUE
#endif

/* -- The stack ------------------------------------------------------------------------- */

#define BUSY(c) (ME.wants[c] != NONE)
#ifdef DEFER
#define MAY_START (IDLE || !BUSY(DEFERRED))
#else
#define MAY_START IDLE
#endif
#define IDLE (!BUSY(PROGRAM) && !BUSY(PROGRESS) && !BUSY(DEFERRED))
#define TOP_PROGRAM (!BUSY(PROGRESS) && !BUSY(DEFERRED))
#define TOP_PROGRESS (!ME.above)
#define TOP_DEFERRED (ME.above || !BUSY(PROGRESS))
#define SENDING(c) (BUSY(c) && ME.wants[c] != AWAIT && TOP_##c && nfull(requests[me]))

inline want(c, w, kd, k, cl)
{
	ME.wants[c] = w;
	ME.kind[c] = kd;
	ME.name[c] = k;
	ME.gives[c] = cl
}

inline done(c)
{
	if
#ifdef DEFER_WAIT
	:: c == DEFERRED && ME.send[ME.own] < OVER -> want(c, AWAIT, NONE, 0, 0)
	:: c == DEFERRED && ME.send[ME.own] >= OVER -> want(c, NONE, NONE, 0, 0); ME.above = 0; ME.own = 0
#else
	:: c == DEFERRED -> want(c, NONE, NONE, 0, 0); ME.above = 0
#endif
	:: c != DEFERRED -> want(c, NONE, NONE, 0, 0)
	fi
}

/* -- At the receiver --------------------------------------------------------------------- */

#define DUE (ME.owed * 2 >= CELLS_EACH)

/* Receive and message have met; `verdict` is what the sender is told. */
inline match(k, wh)
{
	assert(ME.got[k] == 0 && PEER.send[k] != CANCELLED);
	assert(k + 1 > ME.last[ID(k)]);
	ME.last[ID(k)] = k + 1;
	if
	:: MODE(k) == LONG -> ME.got[k] = DONE; verdict = TELL_REFUSED
#ifdef SHARED
	:: MODE(k) != LONG && !wh ->
		ME.got[k] = MATCHED;
		ME.pull[k] = TO_READ;
		verdict = (PULLS(k) -> NONE : TELL_CLEAR)
#else
	:: MODE(k) != LONG && !wh -> ME.got[k] = MATCHED; verdict = TELL_CLEAR
#endif
	:: MODE(k) != LONG && wh ->
		ME.got[k] = DONE;
		if
		:: MODE(k) == SYNC -> verdict = TELL_TAKEN
		:: else -> verdict = TELL_ROOM
		fi
	fi
}

inline cell_back(wh)
{
	if
	:: wh -> ME.owed++
	:: else
	fi
}

inline arrival_add(k, wh)
{
	arrivals[me]!(ID(k)), k, wh;
	if
	:: wh -> ME.whole++
	:: else -> ME.asks++
	fi;
	assert(ME.whole <= CELLS_EACH && ME.asks <= RTS_EACH);
#ifdef EARLY_CELL
	cell_back(wh)
#endif
}

inline arrival_gone(wh)
{
	if
	:: wh -> ME.whole--
	:: else -> ME.asks--
	fi
}

inline letter_arrived(k, wh)
{
	if
	:: ME.open[ID(k)] -> ME.open[ID(k)]--; match(k, wh); cell_back(wh)
	:: else -> arrival_add(k, wh); verdict = TELL_ROOM
	fi
}

inline reply(k)
{
	if
	:: verdict == NONE || (verdict == TELL_ROOM && !DUE)
	:: else ->
#if defined(NO_GATE) || defined(ONE_RING)
		nfull(replies[me]);
#endif
		assert(nfull(replies[me])); /* a reply never waits */
		replies[me]!TELL, verdict, k, ME.owed;
		ME.owed = 0
	fi
}

/* -- At the sender -------------------------------------------------------------------------- */

inline uncount(k)
{
	if
	:: ME.counted[k] ->
		ME.counted[k] = 0;
		ME.rts++;
		if
#ifdef WAITING
		:: QUEUE -> ME.flush = 1
#endif
		:: else
		fi
	:: else
	fi
}

inline told(kd, k, cl)
{
	ME.cells = ME.cells + cl;
	if
	:: kd == TELL_ROOM
	:: kd == TELL_KEPT -> ME.asked = 0
	:: kd == TELL_CLEAR -> uncount(k); assert(ME.send[k] == IN_USE); ME.send[k] = MOVING
	:: kd == TELL_TAKEN -> uncount(k); assert(ME.send[k] == IN_USE); ME.send[k] = OVER
#ifdef SHARED
	:: kd == TELL_READ ->
		uncount(k);
		assert(ME.send[k] == IN_USE || ME.send[k] == MOVING || ME.send[k] == HALF);
#ifdef LATE_READ
		if
		:: ME.send[k] != IN_USE -> ME.read[k] = 1
		:: else
		fi;
#else
		ME.read[k] = 1;
#endif
		if
		:: ME.send[k] == HALF -> ME.send[k] = OVER
		:: else
		fi
#endif
	:: kd == TELL_REFUSED -> uncount(k); assert(ME.send[k] == IN_USE); ME.send[k] = REFUSED
	:: kd == TELL_CANCELLED ->
#ifdef NO_UNCOUNT
		ME.counted[k] = 0;
#else
		uncount(k);
#endif
#ifndef BLIND_CANCEL
		assert(ME.send[k] == IN_USE);
#endif
		assert(PEER.got[k] == 0);
		ME.send[k] = CANCELLED
	fi
}

/* Begins to announce the first of the queue; else the context is done. */
inline queue_announce()
{
	if
	:: QUEUE && !ANNOUNCING && ME.rts ->
		k = 0;
		do
		:: ME.send[k] != QUEUED -> k++
		:: else -> break
		od;
		ME.send[k] = ASKING;
		ME.rts--;
		want(c, RTS, NONE, k, 0)
	:: else -> done(c)
	fi
}

/* -- The program --------------------------------------------------------------------------------- */

inline send_start()
{
	k = ME.next;
	ME.next++;
	if
	:: (MODE(k) == SMALL || MODE(k) == SYNC) && NOTHING_BEFORE && ME.cells ->
		ME.cells--;
		want(c, EAGER, NONE, k, 0)
	:: else ->
		ME.send[k] = QUEUED;
#ifndef WAITING
		done(c)
#else
		queue_announce()
#endif
	fi
}

inline recv_start(id)
{
	ME.left[id]--;
	if
	:: arrivals[me]??[eval(id), k, w] ->
		arrivals[me]??eval(id), k, w;
		arrival_gone(w);
		match(k, w);
#ifndef EARLY_CELL
		cell_back(w);
#endif
		if
		:: verdict == NONE || (verdict == TELL_ROOM && !DUE)
#ifdef DROP_TELL
		:: verdict != NONE && (verdict != TELL_ROOM || DUE) && full(requests[me])
		:: verdict != NONE && (verdict != TELL_ROOM || DUE) && nfull(requests[me]) ->
#else
		:: else ->
#endif
			want(PROGRAM, TELL, verdict, k, ME.owed);
			ME.owed = 0
		fi
	:: else -> ME.open[id]++
	fi
}

#define MAY_CANCEL(k) (CANCELS(k) && (ME.send[k] == QUEUED || ME.send[k] == IN_USE))

inline send_cancel()
{
	if
	:: ME.send[k] == QUEUED -> ME.send[k] = CANCELLED
	:: ME.send[k] == IN_USE -> ME.asked = 1; want(PROGRAM, CANCEL, NONE, k, 0)
	fi
}

/* The uppermost request has found room. */
inline carry_on()
{
	k = ME.name[c];
	requests[me]!ME.wants[c], ME.kind[c], k, ME.gives[c];
	if
	:: ME.wants[c] == EAGER ->
		ME.send[k] = (MODE(k) == SYNC -> IN_USE : OVER);
		done(c)
	:: ME.wants[c] == RTS ->
		ME.send[k] = IN_USE;
		ME.counted[k] = 1;
#ifndef WAITING
		done(c)
#else
		queue_announce()
#endif
	:: ME.wants[c] == DATA -> ME.send[k] = MOVED; done(c)
#ifdef SHARED
	:: ME.wants[c] == FIN -> ME.send[k] = (FIN_IS_ALL || ME.read[k] -> OVER : HALF); done(c)
	:: ME.wants[c] == TELL && c == PROGRESS ->
		ME.pull[k]++;
		ME.got[k] = (ME.pull[k] == TOLD && (PULLS(k) || ME.finned[k]) -> DONE : ME.got[k]);
		done(c)
	:: ME.wants[c] == TELL && c != PROGRESS -> done(c)
#else
	:: ME.wants[c] == FIN -> ME.send[k] = OVER; done(c)
	:: ME.wants[c] == TELL -> done(c)
#endif
	:: ME.wants[c] == CANCEL ->
#ifdef BLIND_CANCEL
		ME.send[k] = CANCELLED;
		assert(PEER.got[k] == 0);
		done(c)
#else
		ME.wants[c] = AWAIT
#endif
	fi;
	k = 0
}

#define ANSWERED (ME.wants[PROGRAM] == AWAIT && TOP_PROGRAM && (!ME.asked || ME.send[ME.name[PROGRAM]] != IN_USE))
#define MOVABLE(k) (ME.send[k] == MOVING || ME.send[k] == MOVED)
#ifndef WAITING
#define MAY_ANNOUNCE (QUEUE && ME.rts && nfull(requests[me]))
#define MAY_MOVE nfull(requests[me])
#else
#define MAY_ANNOUNCE (ME.flush && !BUSY(PROGRESS))
#define MAY_MOVE !BUSY(PROGRESS)
#endif

#ifdef SHARED
/* The sender's share is put, without a message; then FIN. */
inline move()
{
	assert(PEER.got[k] == MATCHED); /* the receive has not ended */
	want(PROGRESS, FIN, NONE, k, 0)
}

/* The receiver reads, and then says so. */
#ifdef EARLY_TAKEN
#define READABLE(k) (ME.pull[k] == TO_TELL)
#define TELLABLE(k) (ME.pull[k] == TO_READ)
#else
#define READABLE(k) (ME.pull[k] == TO_READ)
#define TELLABLE(k) (ME.pull[k] == TO_TELL)
#endif

inline pull_read()
{
	assert(ME.got[k] == MATCHED && PEER.send[k] < OVER); /* neither side has ended */
	ME.pull[k]++
}

inline pull_tell()
{
	want(PROGRESS, TELL, (PULLS(k) -> TELL_TAKEN : TELL_READ), k, ME.owed);
	ME.owed = 0
}
#else
inline move()
{
	want(PROGRESS, (ME.send[k] == MOVING -> DATA : FIN), NONE, k, 0)
}
#endif

#if defined(NO_GATE) || defined(ONE_RING)
#define GATE_OPEN true
#else
#define GATE_OPEN nfull(replies[me])
#endif
#ifdef HOLD_RING
#define TAKEN_OFF (!requests[peer]?[RTS, NONE, _, _] || RECEIVE_THERE)
#define RECEIVE_FOR(k) (requests[peer]?[RTS, NONE, eval(k), _] && ME.open[ID(k)])
#define RECEIVE_THERE (RECEIVE_FOR(0) || RECEIVE_FOR(1) || RECEIVE_FOR(2) || RECEIVE_FOR(3))
#else
#define TAKEN_OFF true
#endif
#ifdef NO_SERVE
#define SERVES !(BUSY(PROGRAM) && ME.wants[PROGRAM] != AWAIT) && !BUSY(PROGRESS)
#else
#define SERVES true
#endif

inline arrived()
{
	if
	:: what == EAGER -> letter_arrived(k, 1)
	:: what == RTS -> letter_arrived(k, 0)
	:: what == DATA -> assert(ME.got[k] == MATCHED)
#ifdef SHARED
	:: what == FIN ->
		assert(ME.got[k] == MATCHED);
		ME.finned[k] = 1;
		if
#ifdef FIN_ENDS
		:: ME.got[k] = DONE
#else
		:: ME.pull[k] == TOLD -> ME.got[k] = DONE
		:: else
#endif
		fi
#else
	:: what == FIN -> assert(ME.got[k] == MATCHED); ME.got[k] = DONE
#endif
	:: what == CANCEL ->
		if
		:: arrivals[me]??[eval(ID(k)), eval(k), w] ->
			arrivals[me]??_, eval(k), w;
			arrival_gone(w);
#ifndef NO_CELL_BACK
			cell_back(w);
#endif
			verdict = TELL_CANCELLED
		:: else -> verdict = TELL_KEPT
		fi
	:: what == TELL -> told(kd, k, cl)
	fi
}

#define REPLY_THERE (nempty(replies[peer]) && SERVES)
#define REQUEST_THERE (nempty(requests[peer]) && SERVES && GATE_OPEN && TAKEN_OFF)

inline poll()
{
	if
#ifndef ONE_RING
	:: REPLY_THERE -> replies[peer]?what, kd, k, cl; request = 0
#endif
	:: REQUEST_THERE -> requests[peer]?<what, kd, k, cl>; request = 1
	fi;
	arrived();
	if
	:: request -> reply(k); requests[peer]?_, _, _, _ /* it lies in its ring until it is handled */
	:: !request
	fi
}

inline forget()
{
	what = NONE;
	verdict = NONE;
	kd = NONE;
	k = 0;
	c = 0;
	cl = 0;
	w = 0;
	request = 0
}

proctype run_rank(byte me; byte peer)
{
	mtype what = NONE, kd = NONE, verdict = NONE;
	byte k, c, cl;
	bit w, request;
end:	do
	/* the program, whose calls are one after another, and a deferred function */
	:: atomic {
		MAY_SEND && MAY_START ->
		if
		:: IDLE -> c = PROGRAM
#ifdef DEFER
		:: !BUSY(DEFERRED) ->
			c = DEFERRED;
			ME.above = BUSY(PROGRESS);
#ifdef DEFER_WAIT
			ME.own = ME.next
#endif
#endif
		fi;
		send_start();
		forget() }
	:: atomic {
		IDLE && (ME.left[0] || ME.left[1]) ->
		if
		:: ME.left[0] -> cl = 0
		:: ME.left[1] -> cl = 1
		fi;
		recv_start(cl);
		forget() }
	:: atomic {
		IDLE && (MAY_CANCEL(0) || MAY_CANCEL(1)) ->
		if
		:: MAY_CANCEL(0) -> k = 0
		:: MAY_CANCEL(1) -> k = 1
		fi;
		send_cancel();
		forget() }
	/* requests that have found room, or their answer */
	:: atomic {
		SENDING(PROGRAM) || SENDING(PROGRESS) || SENDING(DEFERRED) ->
		if
		:: SENDING(PROGRAM) -> c = PROGRAM
		:: SENDING(PROGRESS) -> c = PROGRESS
		:: SENDING(DEFERRED) -> c = DEFERRED
		fi;
		carry_on();
		forget() }
	:: atomic { ANSWERED -> ME.asked = 0; done(PROGRAM) }
#ifdef DEFER_WAIT
	:: atomic { ME.wants[DEFERRED] == AWAIT && TOP_DEFERRED && ME.send[ME.own] >= OVER -> done(DEFERRED) }
#endif
	/* polls */
	:: atomic { REPLY_THERE || REQUEST_THERE -> poll(); forget() }
	:: atomic {
		MAY_ANNOUNCE || (MAY_MOVE && (MOVABLE(0) || MOVABLE(1) || MOVABLE(2) || MOVABLE(3))) ->
		c = PROGRESS;
		if
		:: MAY_ANNOUNCE -> ME.flush = 0; queue_announce()
		:: MAY_MOVE && MOVABLE(0) -> k = 0; move()
		:: MAY_MOVE && MOVABLE(1) -> k = 1; move()
		:: MAY_MOVE && MOVABLE(2) -> k = 2; move()
		:: MAY_MOVE && MOVABLE(3) -> k = 3; move()
		fi;
#ifndef WAITING
		carry_on();
#endif
		forget() }
#ifdef SHARED
	:: atomic {
		READABLE(0) || READABLE(1) || READABLE(2) || READABLE(3) ->
		if
		:: READABLE(0) -> k = 0
		:: READABLE(1) -> k = 1
		:: READABLE(2) -> k = 2
		:: READABLE(3) -> k = 3
		fi;
		pull_read();
		forget() }
	:: atomic {
		nfull(requests[me]) && (TELLABLE(0) || TELLABLE(1) || TELLABLE(2) || TELLABLE(3)) ->
		if
		:: TELLABLE(0) -> k = 0
		:: TELLABLE(1) -> k = 1
		:: TELLABLE(2) -> k = 2
		:: TELLABLE(3) -> k = 3
		fi;
		c = PROGRESS;
		pull_tell();
		carry_on();
		forget() }
#endif
	od
}

inline check_rank(me, peer)
{
	assert(IDLE && empty(requests[me]) && empty(replies[me]));
	assert(ME.next == SENDS(me) && ME.left[0] == 0 && ME.left[1] == 0);
	for (i : 0 .. S - 1) {
		assert(PEER.got[i] == (ME.send[i] == OVER || ME.send[i] == REFUSED -> DONE : 0) ||
		       (MODE(i) == SMALL && ME.send[i] == OVER && PEER.got[i] == 0 && PEER.open[ID(i)] == 0));
		assert(ME.send[i] != MOVING && ME.send[i] != MOVED && ME.send[i] != HALF);
		assert(ME.send[i] != ASKING);
		assert(ME.send[i] != IN_USE || PEER.open[ID(i)] == 0);
		assert(ME.send[i] != QUEUED || ME.rts == 0)
	}
	assert(ME.cells + PEER.owed + PEER.whole == CELLS_EACH);
	assert(ME.rts + PEER.asks == RTS_EACH)
}

init
{
	byte i, c;
	d_step {
		for (i : 0 .. 1) {
			rank[i].cells = CELLS_EACH;
			rank[i].rts = RTS_EACH;
			for (c : 0 .. 2) {
				rank[i].wants[c] = NONE;
				rank[i].kind[c] = NONE
			}
			for (c : 0 .. IDS - 1) {
				rank[i].left[c] = (SENDS(1 - i) < RECVS(c) -> SENDS(1 - i) : RECVS(c))
			}
		}
		i = 0;
		c = 0
	}
	atomic {
		run run_rank(0, 1);
		run run_rank(1, 0)
	}
	timeout;
	check_rank(0, 1);
	check_rank(1, 0)
}
