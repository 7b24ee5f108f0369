/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of litmus tests: each row is a promise of tern_mem(7), or what it does not promise.
 *
 * Places are words: x1 lies in the heap of role 1, X1 in memory that role 1 has registered. All
 * begin as 0. Steps:
 *
 *     put x 1, get x r0    blocking; r0 to r3 are registers, and each row sets one only once
 *     start x 1, wait      a split-phase put; waits for those of this role
 *     lay x 1              a blocking put of 96 KiB, whose last word is x
 *     many x 1             the same, split-phase
 *     write x 1, read x r0 a release store and an acquire load through tern_addr_local(), where it
 *                          gives
 *                          a pointer; elsewhere put and get
 *     swap x 1 r0          an atomic operation; add x 1 r0 is another
 *     bump x 1             a C11 atomic addition through tern_addr_local(), else add
 *     store x 1, sync      tern_store() and tern_store_sync()
 *     signal x y 1         tern_put_signal() to x, whose word is y
 *     word y               tern_wait_word() until y, a place of this role, is not 0
 *     take, give           tern_lock_take() and tern_lock_release(), of the cell's lock
 *     copy y x             tern_copy_start() from x to y
 *     long x 1             tern_put_request(): a put, and a request to the home of x
 *     after x 1            the same with tern_put_request_start(); trail has 96 KiB
 *     parts x y 1          a list of both with tern_put_request_start_array(), and the request
 *     aside x 1, ask 1     a put, or a request, by another thread's worker, for which this one
 * waits trade 1              tern_team_exchange() with role 1; with 9: with nobody when x y r0
 * tern_get_when_start(): x once y is 1 await x              polls until a get of x brings something
 * else than 0 request 1, reply     a message; the steps behind the @ of role 1 run in its handler
 *     heard, answered      until the request, or the reply, of this cell has been handled here
 *     from r0              in a handler: the role that sent the first request
 *     flush, barrier
 */
#ifndef TERN_TESTS_LITMUS_H
#define TERN_TESTS_LITMUS_H

#include <stdbool.h>
#include <string.h>

enum { ROLES = 4 };

enum verdict { NEVER, MAY, COMMON };
static const char *const verdict_name[] = { "never", "may", "common" };

struct row {
	enum verdict verdict;
	const char *name, *homes;
	const char *roles;   /* || stands between them, @ before the steps of a role's handler */
	const char *outcome; /* terms r0=1, r0!=1, or x=1 at the end; & binds closer than | */
};

static const struct row rows[] = {
	/* Message passing: who sees the second sees the first. */
	{ NEVER, "MP: put, put", "x1 y1", "put x 1; put y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "MP: put, put, at two ranks", "x0 y1", "put x 1; put y 1 || await y; get x r0",
	  "r0=0" },
	{ NEVER, "MP: put, put, registered", "X1 Y1", "put X 1; put Y 1 || await Y; get X r0",
	  "r0=0" },
	{ NEVER, "MP: put to heap, flag registered", "x1 Y1",
	  "put x 1; put Y 1 || await Y; read x r0", "r0=0" },
	{ NEVER, "MP: put, swap", "x1 y0", "put x 1; swap y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "MP: put, add of registered memory", "x1 Y1",
	  "put x 1; add Y 1 || await Y; get x r0", "r0=0" },
	{ NEVER, "MP: plain stores and loads", "x0 y1",
	  "write x 1; write y 1 || await y; read x r0", "r0=0" },
	{ NEVER, "MP: copy, put", "x0 y1 z1", "put x 1; copy y x; put z 1 || await z; get y r0",
	  "r0=0" },
	{ NEVER, "MP: put, get when", "x1 y1", "put x 1; put y 1 || when x y r0", "r0=0" },
	{ NEVER, "MP: stores at home, get when", "x0 y0", "write x 1; write y 1 || when x y r0",
	  "r0=0" },
	{ NEVER, "MP: store, sync", "x1", "store x 1 || sync; read x r0", "r0=0" },
	{ NEVER, "MP: put with a signal", "x1 y1", "signal x y 1 || word y; read x r0", "r0=0" },
	{ NEVER, "MP: put with a signal, seen by a get", "x1 y1",
	  "signal x y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "MP: put with a signal, registered", "X1 y1", "signal X y 1 || word y; get X r0",
	  "r0=0" },
	{ NEVER, "MP: put elsewhere, signal", "x0 y1 z1",
	  "put x 1; signal z y 1 || word y; get x r0", "r0=0" },
	{ NEVER, "MP: put, word", "x1 y1", "put x 1; put y 1 || word y; read x r0", "r0=0" },
	{ NEVER, "MP: put with a signal, request", "x1 y1",
	  "signal x y 1; request 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "MP: put, request", "x1", "put x 1; request 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "MP: put, request, registered", "X1", "put X 1; request 1 || heard @ get X r0",
	  "r0=0" },
	{ NEVER, "MP: long put, request", "x1", "lay x 1; request 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "MP: long put, request, registered", "X1",
	  "lay X 1; request 1 || heard @ get X r0", "r0=0" },
	{ NEVER, "MP: long put, put", "x1 y1", "lay x 1; put y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "MP: long put, put, registered", "X1 y1", "lay X 1; put y 1 || await y; get X r0",
	  "r0=0" },
	{ NEVER, "MP: put at home, request", "x0", "write x 1; request 1 || heard; get x r0",
	  "r0=0" },
	{ NEVER, "MP: swap, request", "x1", "swap x 1; request 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "MP: put with a request", "x1", "long x 1 || heard @ get x r0", "r0=0" },
	{ NEVER, "MP: started put with a request", "x1", "after x 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "MP: started put with a request, registered", "X1",
	  "after X 1 || heard @ get X r0", "r0=0" },
	{ NEVER, "MP: started long put with a request", "x1", "trail x 1 || heard @ read x r0",
	  "r0=0" },
	{ NEVER, "MP: started long put with a request, registered", "X1",
	  "trail X 1 || heard @ get X r0", "r0=0" },
	{ MAY, "MP: started put with a request, put", "X1 y1",
	  "after X 1; put y 1 || await y; get X r0", "r0=0" },
	{ NEVER, "MP: started put with a request, wait, put", "X1 y1",
	  "after X 1; wait; put y 1 || await y; get X r0", "r0=0" },
	{ NEVER, "MP: parts with a request", "x1 y1", "parts x y 1 || heard @ read x r0; read y r1",
	  "r0=0 | r1=0" },
	{ NEVER, "MP: parts at two ranks with a request", "x1 y0", "parts x y 1 || heard; get y r0",
	  "r0=0" },
	{ NEVER, "MP: parts with a request, registered", "X1 Y0",
	  "parts X Y 1 || heard; get X r0; get Y r1", "r0=0 | r1=0" },
	{ MAY, "MP: parts with a request, put", "X1 Y1 z1",
	  "parts X Y 1; put z 1 || await z; get X r0; get Y r1", "r0=0 | r1=0" },
	{ NEVER, "MP: parts with a request, wait, put", "X1 Y0 z1",
	  "parts X Y 1; wait; put z 1 || await z; get X r0; get Y r1", "r0=0 | r1=0" },
	{ NEVER, "MP: put, exchange", "x1", "put x 1; trade 1 || trade 0; read x r0", "r0=0" },
	{ NEVER, "MP: put, exchange, registered", "X1", "put X 1; trade 1 || trade 0; get X r0",
	  "r0=0" },
	{ NEVER, "MP: store at home, exchange", "x0", "write x 1; trade 1 || trade 0; get x r0",
	  "r0=0" },
	{ MAY, "MP: start, exchange", "X1", "start X 1; trade 1 || trade 0; get X r0", "r0=0" },
	{ NEVER, "MP: store in a handler, reply", "x1",
	  "request 1; answered; get x r0 || heard @ write x 1; reply", "r0=0" },
	{ COMMON, "MP: start, request", "X1", "start X 1; request 1 || heard @ get X r0", "r0=0" },
	{ MAY, "MP: many, request", "x1", "many x 1; request 1 || heard @ get x r0", "r0=0" },
	{ NEVER, "MP: start, wait, request", "X1", "start X 1; wait; request 1 || heard @ get X r0",
	  "r0=0" },
	{ NEVER, "MP: start, flush, request", "X1",
	  "start X 1; flush; request 1 || heard @ get X r0", "r0=0" },
	{ MAY, "MP: start, start", "X1 y1", "start X 1; start y 1; wait || await y; get X r0",
	  "r0=0" },
	{ NEVER, "MP: start, flush, start", "X1 y1",
	  "start X 1; flush; start y 1; wait || await y; get X r0", "r0=0" },
	{ NEVER, "MP: many, flush, put", "x1 y1", "many x 1; flush; put y 1 || await y; get x r0",
	  "r0=0" },
	{ NEVER, "MP: many, wait, request, registered", "X1",
	  "many X 1; wait; request 1 || heard @ get X r0", "r0=0" },
	{ MAY, "MP: many, put", "x1 y1", "many x 1; put y 1; wait || await y; get x r0", "r0=0" },
	{ NEVER, "MP: put, barrier", "x1", "put x 1; barrier || barrier; read x r0", "r0=0" },
	{ NEVER, "MP: store at home, barrier", "x0", "write x 1; barrier || barrier; get x r0",
	  "r0=0" },
	{ MAY, "MP: start, barrier", "X1", "start X 1; barrier || barrier; get X r0", "r0=0" },
	{ NEVER, "MP: start, flush, barrier", "X1",
	  "start X 1; flush; barrier || barrier; get X r0", "r0=0" },

	{ NEVER, "MP: puts under a lock", "x0 y1",
	  "take; put x 1; put y 1; give || take; get y r0; get x r1; give",
	  "r0=1 & r1=0 | r0=0 & r1=1" },
	{ NEVER, "MP: plain stores under a lock", "x0 y0",
	  "take; write x 1; write y 1; give || take; get y r0; get x r1; give",
	  "r0=1 & r1=0 | r0=0 & r1=1" },
	{ NEVER, "one has the lock", "x1",
	  "take; put x 1; get x r0; give || take; put x 2; get x r1; give", "r0!=1 | r1!=2" },

	/* Store buffering: of two that write and then look, one at least sees the other. */
	{ MAY, "SB: put, get", "x1 y0", "put x 1; get y r0 || put y 1; get x r1", "r0=0 & r1=0" },
	{ NEVER, "SB: put, flush, get", "x1 y0",
	  "put x 1; flush; get y r0 || put y 1; flush; get x r1", "r0=0 & r1=0" },
	{ NEVER, "SB: store, flush, load", "x0 y1",
	  "write x 1; flush; read y r0 || write y 1; flush; read x r1", "r0=0 & r1=0" },
	{ NEVER, "SB: start, flush, get", "X1 y0",
	  "start X 1; flush; get y r0 || start y 1; flush; get X r1", "r0=0 & r1=0" },
	{ NEVER, "SB: swap, add", "x1 y0", "swap x 1; add y 0 r0 || swap y 1; add x 0 r1",
	  "r0=0 & r1=0" },
	{ NEVER, "SB: swap, add, registered", "X1 Y0",
	  "swap X 1; add Y 0 r0 || swap Y 1; add X 0 r1", "r0=0 & r1=0" },
	{ NEVER, "SB: put, barrier, get", "x1 y0",
	  "put x 1; barrier; get y r0 || put y 1; barrier; get x r1", "r0=0 | r1=0" },
	{ NEVER, "SB: put, exchange, get", "x1 y0",
	  "put x 1; trade 1; get y r0 || put y 1; trade 0; get x r1", "r0=0 | r1=0" },
	{ MAY, "SB: a round trip, get", "x1 y0",
	  "put x 1; request 1; answered; get y r0 || put y 1; get x r1 @ reply", "r0=0 & r1=0" },

	/* Load buffering: nobody sees what is written only after it was seen. */
	{ NEVER, "LB: get, put", "x1 y0", "get x r0; put y 1 || get y r1; put x 1", "r0=1 & r1=1" },
	{ NEVER, "LB: get, put, registered", "X1 Y0", "get X r0; put Y 1 || get Y r1; put X 1",
	  "r0=1 & r1=1" },
	{ NEVER, "R: put, put; put, flush, get", "x1 y0",
	  "put x 1; put y 1 || put y 2; flush; get x r0", "y=2 & r0=0" },
	{ NEVER, "S: put, put; await, put", "x1 y0", "put x 2; put y 1 || await y; put x 1",
	  "x=2" },
	{ NEVER, "2+2W: puts", "x1 y0", "put x 1; put y 2 || put y 1; put x 2", "x=1 & y=1" },
	{ NEVER, "2+2W: swaps", "x1 y0", "swap x 1; swap y 2 || swap y 1; swap x 2", "x=1 & y=1" },

	/* One place. */
	{ NEVER, "CoRR: put, put; get, get", "x1", "put x 1; put x 2 || get x r0; get x r1",
	  "r0=2 & r1!=2 | r0=1 & r1=0" },
	{ NEVER, "CoRR: from a third place", "x0", "put x 1; put x 2 || get x r0; get x r1",
	  "r0=2 & r1!=2 | r0=1 & r1=0" },
	{ NEVER, "CoRR: registered", "X1", "put X 1; put X 2 || get X r0; get X r1",
	  "r0=2 & r1!=2 | r0=1 & r1=0" },
	{ NEVER, "CoWR: put, get", "x1", "put x 1; get x r0 || flush", "r0=0" },
	{ NEVER, "CoWR: put, get, registered", "X1", "put X 1; get X r0 || flush", "r0=0" },
	{ COMMON, "CoWR: many, get", "x1", "many x 1; get x r0 || flush", "r0=0" },
	{ NEVER, "CoWW: put, put", "x1", "put x 1; put x 2 || flush", "x=1" },
	{ COMMON, "CoWW: many, put", "x1", "many x 1; put x 2; wait || flush", "x=1" },
	{ NEVER, "whole words", "x1", "put x -1 || get x r0", "r0!=0 & r0!=-1" },
	{ NEVER, "whole words, registered", "X1", "put X -1 || get X r0", "r0!=0 & r0!=-1" },
	{ NEVER, "additions", "x1", "add x 1 || add x 2", "x!=3" },
	{ NEVER, "additions, C11 at home", "x1", "add x 1 || bump x 2", "x!=3" },
	{ NEVER, "additions, registered", "X1", "add X 1 || add X 2", "x!=3" },
	{ NEVER, "an addition against a put", "x1", "add x 16 || put x 1", "x!=1 & x!=17" },
	{ NEVER, "an addition against a put, registered", "X0", "add X 16 || put X 1",
	  "x!=1 & x!=17" },

	/* Three ranks: what was seen is seen by whoever is told. */
	{ NEVER, "WRC: put; await, put", "x2 y2",
	  "put x 1 || await x; put y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "WRC: put; await, put, elsewhere", "x0 y1",
	  "put x 1 || await x; put y 1 || await y; get x r0", "r0=0" },
	{ NEVER, "WRC: put; await, signal", "x0 y2 z2",
	  "put x 1 || await x; signal z y 1 || word y; get x r0", "r0=0" },
	{ NEVER, "ISA2: signals", "x0 y1 z2",
	  "put x 1; signal y y 1 || word y; signal z z 1 || word z; get x r0", "r0=0" },
	{ NEVER, "WRC: registered", "X2 Y1", "put X 1 || await X; put Y 1 || await Y; get X r0",
	  "r0=0" },
	{ NEVER, "WRC: put; await, request", "x2",
	  "put x 1 || await x; request 2 || heard @ read x r0", "r0=0" },
	{ NEVER, "ISA2: puts", "x2 y1 z0",
	  "put x 1; put y 1 || await y; put z 1 || await z; get x r0", "r0=0" },
	{ NEVER, "WRC: put; await, exchange", "x0",
	  "put x 1; trade 9 || await x; trade 2 || trade 1; get x r0", "r0=0" },
	{ NEVER, "ISA2: started put with a request, put", "x1 z2",
	  "after x 1 || heard; put z 1 || await z; get x r0", "r0=0" },
	{ NEVER, "ISA2: parts at two ranks with a request, put", "x1 y2 z2",
	  "parts x y 1 || heard; put z 1 || await z; get x r0; read y r1", "r0=0 | r1=0" },
	{ NEVER, "ISA2: requests", "x2",
	  "put x 1; request 1 || heard; request 2 || heard @ read x r0", "r0=0" },
	{ NEVER, "ISA2: requests, at the first", "x0",
	  "write x 1; request 1 || heard; request 2 || heard; get x r0", "r0=0" },
	{ NEVER, "RWC: put; get, get; put, flush, get", "x1 y0",
	  "put x 1 || get x r0; get y r1 || put y 1; flush; get x r2", "r0=1 & r1=0 & r2=0" },
	{ MAY, "messages of two ranks", "x0",
	  "request 2; request 1 || heard; request 2 || heard @ from r0", "r0=1" },

	/* Four: all see two puts in the same order. */
	{ NEVER, "IRIW: puts", "x0 y1",
	  "put x 1 || put y 1 || get x r0; get y r1 || get y r2; get x r3",
	  "r0=1 & r1=0 & r2=1 & r3=0" },
	{ NEVER, "IRIW: puts elsewhere", "x2 y3",
	  "put x 1 || put y 1 || get x r0; get y r1 || get y r2; get x r3",
	  "r0=1 & r1=0 & r2=1 & r3=0" },
	{ NEVER, "IRIW: registered", "X2 Y3",
	  "put X 1 || put Y 1 || get X r0; get Y r1 || get Y r2; get X r3",
	  "r0=1 & r1=0 & r2=1 & r3=0" },
	{ NEVER, "IRIW: swaps", "x2 y3",
	  "swap x 1 || swap y 1 || add x 0 r0; add y 0 r1 || add y 0 r2; add x 0 r3",
	  "r0=1 & r1=0 & r2=1 & r3=0" },

	/*
	 * Two threads of a rank, one with a worker; what the rules of C order counts. They come
	 * last, because the first worker may make the endpoint a shared one.
	 */
	{ NEVER, "threads: a worker's put, put", "x1 y1", "aside x 1; put y 1 || await y; get x r0",
	  "r0=0" },
	{ NEVER, "threads: put, a worker's put", "x1 y1", "put x 1; aside y 1 || await y; get x r0",
	  "r0=0" },
	{ NEVER, "threads: a worker's put, put, registered", "X1 Y1",
	  "aside X 1; put Y 1 || await Y; get X r0", "r0=0" },
	{ NEVER, "threads: a worker's put, request", "x1",
	  "aside x 1; request 1 || heard @ read x r0", "r0=0" },
	{ NEVER, "threads: put, a worker's request", "x1", "put x 1; ask 1 || heard @ read x r0",
	  "r0=0" },
	{ NEVER, "threads: a worker's put and request", "X1",
	  "aside X 1; ask 1 || heard @ get X r0", "r0=0" },
	{ MAY, "threads: start, a worker's request", "X1", "start X 1; ask 1 || heard @ get X r0",
	  "r0=0" },
	{ NEVER, "threads: WRC: put; await, a worker's put", "x0 y2",
	  "put x 1 || await x; aside y 1 || await y; get x r0", "r0=0" },
};

static inline unsigned row_roles(const struct row *r)
{
	unsigned n = 1;
	for (const char *p = r->roles; (p = strstr(p, "||")); p += 2)
		n++;
	return n;
}

static inline bool row_has_workers(const struct row *r)
{
	return strstr(r->roles, "aside") || strstr(r->roles, "ask");
}

/* A step of the row that every rank makes, also without a role. */
static inline const char *row_together(const struct row *r)
{
	return strstr(r->roles, "barrier") ? "barrier" : strstr(r->roles, "trade") ? "trade 9" : "";
}

static inline bool row_is_long(const struct row *r)
{
	return strstr(r->roles, "many") || strstr(r->roles, "lay") || strstr(r->roles, "trail");
}

/* What follows from the steps of a role on. */
static inline const char *row_role(const struct row *r, unsigned role)
{
	const char *text = r->roles;
	if (role >= row_roles(r))
		return row_together(r);
	for (unsigned i = 0; i < role; i++)
		text = strstr(text, "||") + 2;
	return text;
}

#endif
