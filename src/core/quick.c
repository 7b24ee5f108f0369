/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tern_poll(), and its common case by itself: a program polls, nobody else delivers, and plain
 * messages lie in one inlet. The endpoint's head says so. A program has one frame outside its
 * handlers, so nothing is saved and restored; and few registers are in use while handlers run.
 * Everything else is core/poll.c's.
 */
#include "core/layers.h"
#include "core/wait.h"
#include "endpoint/count.h"

static inline void quick_enter(tern *t, struct endpoint *e, struct tern_inlet *in)
{
	e->inlet = in;
	t->reach = 0;
	t->answer = in->answer;
}

static inline void quick_leave(tern *t, struct endpoint *e, struct tern_inlet *in, uint64_t handled)
{
	e->inlet = NULL;
	t->current = NULL;
	t->answer = &e->refuse;
	t->reach = t->size;
	poll_note(e, in, handled);
}

/* The rest of the way round, from another inlet where something has arrived. */
static __attribute__((noinline)) int quick_round(struct endpoint *e, struct tern_inlet *in,
						 uint64_t handled)
{
	for (; in != &e->site.bell; in = in->next)
		if (inlet_arrived(in))
			handled += inlet_drain(e, in);
	return poll_finish(e, (unsigned)handled);
}

/* A handler has left a reply claim open, or more than plain messages lies in the inlet. */
static __attribute__((noinline)) int quick_rest(tern *t, struct tern_inlet *in, uint64_t handled)
{
	struct endpoint *e = t->own;
	payload_forget_reply(e);
	quick_leave(t, e, in, handled);
	handled += inlet_drain(e, in);
	return quick_round(e, in->next, handled);
}

/* ring.R1, acquire; released in tern_line_write_(): the words follow the header. */
static inline uint64_t quick_head(const char *at)
{
	const tern_msg *m = (const tern_msg *)(const void *)at;
	return atomic_load_explicit(&m->head, memory_order_acquire);
}

/* Handles the plain messages of the inlet, the first of which is at `at`. */
static inline __attribute__((always_inline)) int
quick_drain(tern *t, struct endpoint *e, struct tern_inlet *in, char *at, uint64_t head)
{
	uint64_t handled = 0;
	uint64_t x = head ^ in->expect;     /* cost: order status */
	if (TERN_UNLIKELY(x >= in->accept)) /* cost: flow status */
		return quick_round(e, in, 0);
	quick_enter(t, e, in);
	do {
		inlet_step(in, at, x, TERN_PREFETCH);
		t->current = (const tern_msg *)(const void *)at; /* cost: protection setup */
		t->handler[x >> TERN_ID_SHIFT](t, t->current);   /* cost: base call */
		handled++;                                       /* cost: statistics control */
		at = in->cursor;                                 /* cost: base read */
		x = quick_head(at) ^ in->expect;                 /* cost: order status */
	} while (TERN_LIKELY(x < in->accept));                   /* cost: flow status */
	e = t->own; /* once more: a register less to save */
	if (TERN_UNLIKELY(e->reply.block || x >> TERN_LAP_SHIFT == 0))
		return quick_rest(t, in, handled);
	quick_leave(t, e, in, handled);
	while ((in = in->next) != &e->site.bell)
		if (TERN_UNLIKELY(inlet_arrived(in)))
			return quick_round(e, in, handled);
	if (TERN_UNLIKELY(e->after))
		return poll_finish(e, (unsigned)handled);
	return (int)handled;
}

/* Whether this may be the program; the machine compares where compilers would load and test. */
static inline int quick_may(const tern *t)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(TERN_WATCHED_)
	int may;
	__asm__ volatile("cmpl $0, %1" : "=@ccne"(may) : "m"(t->reach));
	return may;
#else
	return t->reach != 0;
#endif
}

/* held() where no other thread delivers: one instruction, where compilers would take four. */
static inline int quick_held(const tern *t)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(TERN_WATCHED_)
	int holds;
	__asm__ volatile("testl $0xffff0000, %1" : "=@ccne"(holds) : "m"(*t->guard) : "memory");
	return holds;
#else
	return held(t->own) != 0;
#endif
}

/*
 * `reach` says that this is the program, outside handlers, that nobody else delivers, and that
 * nothing is traced. A network that asks has its bell always rung.
 */
static inline __attribute__((always_inline)) int quick_poll(tern *t)
{
	struct endpoint *e = t->own;
	if (TERN_UNLIKELY(!quick_may(t) || quick_held(t) || e->stats ||
			  inlet_arrived(&e->site.bell)))
		return poll_kinds(t, KINDS_BOTH, "a poll");
	/* Round to the bell, which accepts nothing: if it is rung by now, that is the end too. */
	for (struct tern_inlet *in = e->site.bell.next;; in = in->next) {
		char *at = in->cursor;
		uint64_t head = quick_head(at);
		if (TERN_LIKELY(head >= in->expect))
			return quick_drain(t, e, in, at, head);
		if (in == &e->site.bell)
			return poll_finish(e, 0);
	}
}

/* A poll lets other light threads run, as a wait does. */
static __attribute__((noinline)) int quick_pass(tern *t, int handled)
{
	if (handled < 0 || held(t->own))
		return handled;
	INSIDE struct scope scope = scope_open(t);
	if (wait_scheduler) /* inside nobody changes it */
		wait_scheduler->pass(t->own, NULL, (unsigned)handled);
	return handled;
}

int tern_poll(tern *t)
{
	int handled = quick_poll(t);
	return TERN_LIKELY(wait_scheduler == NULL) ? handled : quick_pass(t, handled);
}

/* -- The looks of sends ---------------------------------------------------------------------- */

enum {
	LOOK_LEAST = 16, /* sends between two looks; */
	LOOK_MOST = 32,  /* inlets examined per look; also the most sends between looks */
	GATHER = 64,     /* messages of a stream that are let gather between two looks at it */
};

/* What lies there will be handled by the next look. */
static void stream_fetch(const struct tern_inlet *in)
{
	for (int i = 0; i < TERN_PREFETCH; i++)
		__builtin_prefetch(in->cursor + (size_t)i * TERN_LINE);
}

/*
 * When to look at the inlet again, where `n` messages have been found. A stream is left alone
 * until GATHER have come. Whoever waits for an answer sends no more meanwhile: twice the time then
 * has not brought more. The pause falls to a quarter, since the next look tries to double it.
 */
static void inlet_pace(struct tern_inlet *in, unsigned n)
{
	unsigned pace = in->pace;
	bool more = n >= in->found + in->found / 2u;
	in->found = 0;
	if (n == 0 || !more) {
		pace = n && pace > 4 ? pace / 4 : 1;
	} else if (8 * n < pace || n >= 2 * GATHER) {
		pace = (pace + 1) / 2;
	} else if (n > 1 && n < GATHER) {
		in->found = (uint16_t)n;
		pace *= 2;
	}
	in->pace = (uint16_t)pace;
	in->rest = (uint16_t)(pace - 1);
}

/* The bell has rung, or something was handled: what a poll does then. */
static __attribute__((noinline)) void look_poll(struct endpoint *e, unsigned handled)
{
	e->site.passing = true;
	if (handled)
		poll_passed(e, handled);
	else
		poll_once(e, KINDS_BOTH);
	e->site.passing = false;
}

static unsigned look_at(struct endpoint *e, struct tern_inlet *in)
{
	unsigned handled = 0;
	if (inlet_arrived(in))
		handled = inlet_drain(e, in);
	else if (in->pace == 1)
		return 0;
	inlet_pace(in, handled);
	return handled;
}

static void look_around(tern *t)
{
	struct endpoint *e = t->own;
	uint32_t left = e->site.pollset + 1;
	left = left < LOOK_MOST ? left : LOOK_MOST;
	t->looks = left > LOOK_LEAST ? left : LOOK_LEAST;
	if (held(e))
		return;
	struct tern_inlet *in = e->site.peek;
	unsigned handled = 0;
	bool rung = false;
	for (; left; left--, in = in->next) {
		if (in->rest) {
			if (--in->rest == 0)
				stream_fetch(in);
		} else if (in->kind == TERN_KIND_BELL) {
			rung |= inlet_arrived(in);
		} else {
			handled += look_at(e, in);
		}
	}
	e->site.peek = in;
	if (rung)
		look_poll(e, 0);
	else if (handled && TERN_UNLIKELY(e->after))
		look_poll(e, handled);
}

void tern_look_around_(tern *t)
{
	INSIDE struct scope scope = scope_open(t);
	look_around(t);
}
