/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that `tern cost` counts, each as a program would write it. */
#include "lab/cost/operation.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <tern/send.h>

#include "endpoint/endpoint.h"
#include "lab/cost/counter.h"
#include "ring/ring.h"

enum {
	TAKE = 1, /* handlers */
	ANSWER,
	ANSWERED,
	WORD = 4, /* bytes; the paper's */
	BYTES_MOST = 4096,
	SETTLE = 256, /* looks, more than any pause has */
};

/*
 * The C library copies another way when the two addresses are nearly alike modulo the size of a
 * page. Blocks of a pool lie in the first half of a page, so these begin in the middle of one:
 * then every block is copied alike.
 */
static struct {
	_Alignas(4096) char before[2048];
	char bytes[BYTES_MOST];
} source, target;
static char *const from = source.bytes, *const into = target.bytes;

static struct bench *receiver; /* handlers have nothing else to go by */

/* -- Handlers ----------------------------------------------------------------------------- */

static void handler_take(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void handler_answer(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWERED, tern_msg_word(m, 0), 2, 3, 4);
}

static size_t segment_again(tern *t, void *base, void *info)
{
	(void)t, (void)base;
	return *(const size_t *)info;
}

/* -- Setting up ------------------------------------------------------------------------------ */

static void setup_memory(struct bench *b)
{
	void *local = NULL;
	b->rc = tern_alloc(b->t[COST_DESTINATION], b->bytes, &local);
	if (!b->rc)
		b->rc = tern_addr_of(b->t[COST_DESTINATION], local, &b->there);
	b->local = local;
}

static void setup_segment(struct bench *b)
{
	b->rc = tern_segment_open(b->t[COST_DESTINATION], into, b->bytes, segment_again, &b->bytes,
				  &b->segment);
}

/* -- Packets: words in registers to a handler ---------------------------------------------- */

/* What is counted at the source. Its arguments are variables, so that loading them is not. */
#define SENDS(name, calls)                                  \
	static void name(struct bench *b)                   \
	{                                                   \
		tern *t = b->t[COST_SOURCE];                \
		uint64_t w = b->taken;                      \
		size_t bytes = b->bytes;                    \
		tern_addr there = b->there;                 \
		tern_segment s = b->segment;                \
		(void)w, (void)bytes, (void)there, (void)s; \
		COST_MARK();                                \
		calls;                                      \
		COST_MARK();                                \
	}                                                   \
	struct bench

SENDS(send_1, tern_request(t, COST_DESTINATION, TAKE, w);
      tern_request(t, COST_DESTINATION, TAKE, w); tern_request(t, COST_DESTINATION, TAKE, w);
      tern_request(t, COST_DESTINATION, TAKE, w));
SENDS(send_2, tern_request(t, COST_DESTINATION, TAKE, w, 2));
SENDS(send_4, tern_request(t, COST_DESTINATION, TAKE, w, 2, 3, 4));
SENDS(send_6, tern_request(t, COST_DESTINATION, TAKE, w, 2, 3, 4, 5, 6));
SENDS(send_answered, tern_request(t, COST_DESTINATION, ANSWER, w, 2, 3, 4));

/* -- By interrupt ------------------------------------------------------------------------- */

/*
 * Whoever sends to the destination calls it by its signal, which waits here until it is let in. Its
 * clock is one that takes the same instructions each time, and long passes between two interrupts.
 */
static uint64_t even_time = 1;

static uint64_t even_now(void)
{
	return ++even_time;
}

static int interrupt_begin(tern *t)
{
	static struct world even;
	struct endpoint *e = t->own;
	enum { APART_NS = 1000000 };
	even_time += APART_NS;
	if (e->owner.interrupt)
		return 0;
	even = *e->world;
	even.now = even_now;
	e->world = &even;
	return tern_delivery_set(t, TERN_DELIVERY_INTERRUPT);
}

static void interrupt_mask(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, COST_SIGNAL);
	sigprocmask(how, &set, NULL);
}

static void send_interrupt(struct bench *b)
{
	tern *t = b->t[COST_SOURCE];
	uint64_t w = b->taken;
	const volatile bool *armed = &b->t[COST_DESTINATION]->own->owner.armed;
	b->rc = interrupt_begin(b->t[COST_DESTINATION]);
	while (!b->rc && !*armed) /* a timer finds out that the program computes */
		;
	interrupt_mask(SIG_BLOCK);
	COST_MARK();
	tern_request(t, COST_DESTINATION, TAKE, w, 2, 3, 4);
	COST_MARK();
}

static void receive_interrupt(struct bench *b, unsigned n)
{
	(void)b, (void)n;
	COST_MARK();
	interrupt_mask(SIG_UNBLOCK); /* cost: program */
	COST_MARK();
}

/* -- Streams ------------------------------------------------------------------------------- */

static void stream_2(struct bench *b)
{
	tern *t = b->t[COST_SOURCE];
	uint32_t n = b->op->packets;
	COST_MARK();
	for (uint32_t i = 0; i < n; i++) /* cost: program */
		tern_request(t, COST_DESTINATION, TAKE, i, 2);
	COST_MARK();
}

static void stream_4(struct bench *b)
{
	tern *t = b->t[COST_SOURCE];
	uint32_t n = b->op->packets;
	COST_MARK();
	for (uint32_t i = 0; i < n; i++) /* cost: program */
		tern_request(t, COST_DESTINATION, TAKE, i, 2, 3, 4);
	COST_MARK();
}

/* As many words as a packet takes, and the rest in a last one. */
static void stream_6(struct bench *b)
{
	tern *t = b->t[COST_SOURCE];
	uint32_t n = b->op->packets - 1;
	COST_MARK();
	for (uint32_t i = 0; i < n; i++) /* cost: program */
		tern_request(t, COST_DESTINATION, TAKE, i, 2, 3, 4, 5, 6);
	tern_request(t, COST_DESTINATION, TAKE, n, 2);
	COST_MARK();
}

/* -- Finite sequences: memory to memory ---------------------------------------------------- */

SENDS(finite_data, tern_request_data(t, COST_DESTINATION, TAKE, from, bytes));
SENDS(finite_put_request, tern_put_request(t, there, TAKE, from, bytes, there, bytes));
SENDS(finite_put_then, tern_put(t, there, from, bytes);
      tern_request(t, COST_DESTINATION, TAKE, there, bytes));

SENDS(finite_xfer, tern_segment_put_start(t, s, from, bytes, &b->handle));
SENDS(finite_store, tern_store(t, there, from, bytes));
SENDS(finite_send, tern_send(t, COST_DESTINATION, 7, from, bytes));
SENDS(put_word, tern_put(t, there, from, sizeof(uint64_t)));

/* -- The other end ------------------------------------------------------------------------- */

static void receive_poll(struct bench *b, unsigned n)
{
	bench_poll(b->t[COST_DESTINATION], n * b->op->packets);
}

/* What is counted at a side, of `n` operations. */
#define ENDS(name, side, calls)                       \
	static void name(struct bench *b, unsigned n) \
	{                                             \
		tern *t = b->t[side];                 \
		size_t bytes = n * b->bytes;          \
		(void)bytes;                          \
		COST_MARK();                          \
		calls;                                \
		COST_MARK();                          \
	}                                             \
	struct bench

ENDS(receive_sync, COST_DESTINATION, tern_store_sync(t, bytes));
ENDS(receive_recv, COST_DESTINATION, tern_recv(t, COST_SOURCE, 7, into, bytes, NULL));
ENDS(finish_poll, COST_SOURCE, tern_poll(t));

static void receive_nothing(struct bench *b, unsigned n)
{
	(void)n;
	tern_poll(b->t[COST_DESTINATION]);
}

void bench_receive(struct bench *b, unsigned n)
{
	(b->op->receive ? b->op->receive : receive_poll)(b, n);
}

/* -- The table ----------------------------------------------------------------------------- */

#define FINITE(n, name, what, ...)                                          \
	{                                                                   \
		"finite-" #n "-" name, what, COST_FINITE, n, 1, __VA_ARGS__ \
	}
#define STREAM(n, by, packets, what, send_)                                           \
	{                                                                             \
		"stream-" #n "-by-" #by, what, COST_STREAM, n, packets, .send = send_ \
	}
#define SEQUENCE(n, by, packets, name, what, form, setup_, steps_)                                \
	{                                                                                         \
		name "-" #n "-by-" #by, what, form, n, packets, .setup = setup_, .steps = steps_, \
								.each = true, .apart = true       \
	}

/* The ways to get so many words from memory to memory. */
#define FINITES(n)                                                                          \
	FINITE(n, "data", "tern_request_data, used where it lies", .send = finite_data),    \
		FINITE(n, "put-request", "tern_put_request", .setup = setup_memory,         \
		       .send = finite_put_request),                                         \
		FINITE(n, "put-then", "tern_put, then tern_request", .setup = setup_memory, \
		       .send = finite_put_then),                                            \
		FINITE(n, "xfer",                                                           \
		       "tern_segment_put_start into a segment, and its acknowledgement",    \
		       .setup = setup_segment, .send = finite_xfer, .finish = finish_poll), \
		FINITE(n, "store", "tern_store, tern_store_sync", .setup = setup_memory,    \
		       .send = finite_store, .receive = receive_sync, .each = true),        \
		FINITE(n, "send", "tern_send, tern_recv", .send = finite_send,              \
		       .receive = receive_recv, .each = true)

/* The same in a stream, in so many requests of 2, of 4 and of 6 words. */
#define STREAMS(n, by_2, by_4, by_6)                                             \
	STREAM(n, 4, by_2, "tern_request, 2 words at a time", stream_2),         \
		STREAM(n, 8, by_4, "tern_request, 4 words at a time", stream_4), \
		STREAM(n, 12, by_6, "tern_request, 6 words at a time", stream_6)

/* The study's protocols, in so many packets of 4 and of 8 words. */
#define SEQUENCES(n, by_4, by_8)                                                              \
	SEQUENCE(n, 4, by_4, "block", "tern_sequence_send, 4 words in a packet", COST_FINITE, \
		 setup_block, block_steps),                                                   \
		SEQUENCE(n, 8, by_8, "block", "the same, 8 words in a packet", COST_FINITE,   \
			 setup_block, block_steps),                                           \
		SEQUENCE(n, 4, by_4, "ordered",                                               \
			 "tern_stream_put, half of the packets out of order", COST_STREAM,    \
			 setup_ordered, ordered_steps),                                       \
		SEQUENCE(n, 8, by_8, "ordered", "the same, 8 words in a packet", COST_STREAM, \
			 setup_ordered, ordered_steps),                                       \
		SEQUENCE(n, 4, by_4, "grouped", "the same by 4, acknowledged in groups",      \
			 COST_STREAM, setup_grouped, ordered_steps)

const struct operation operation_table[] = {
	{ "request-2", "tern_request, 2 words", COST_PACKET, 4, 1, .send = send_2 },
	{ "request-4", "tern_request, 4 words", COST_PACKET, 8, 1, .send = send_4 },
	{ "request-6", "tern_request, 6 words", COST_PACKET, 12, 1, .send = send_6 },
	{ "request-1", "four of tern_request, 1 word: they share a line", COST_OTHER, 8, 4,
	  .send = send_1 },
	{ "round-trip", "tern_request and tern_reply, 4 words each", COST_OTHER, 16, 1,
	  .send = send_answered, .finish = finish_poll },
	{ "interrupt-4", "tern_request, 4 words, to a rank that computes and is interrupted",
	  COST_OTHER, 8, 1, .send = send_interrupt, .receive = receive_interrupt, .each = true,
	  .apart = true },
	{ "put-8", "tern_put, 8 bytes", COST_OTHER, 2, 1, .setup = setup_memory, .send = put_word,
	  .receive = receive_nothing, .each = true },

	FINITES(16),
	FINITES(1024),

	STREAMS(16, 4, 2, 2),
	STREAMS(1024, 256, 128, 86),

	SEQUENCES(16, 4, 2),
	SEQUENCES(1024, 256, 128),
	{ "payload-128", "tern_request_data, 128 words, used where it lies", COST_OTHER, 128, 1,
	  .send = finite_data },
};

_Static_assert(sizeof operation_table / sizeof *operation_table <= 64,
	       "the command line has a bit for each");
const size_t operation_count = sizeof operation_table / sizeof *operation_table;

const struct operation *operation_named(const char *name)
{
	for (size_t i = 0; i < operation_count; i++)
		if (strcmp(operation_table[i].name, name) == 0)
			return &operation_table[i];
	return NULL;
}

/* -- The bench ----------------------------------------------------------------------------- */

static int bench_handlers(tern *t)
{
	int rc = tern_on(t, TAKE, handler_take);
	rc = rc ? rc : tern_on(t, ANSWER, handler_answer);
	return rc ? rc : tern_on(t, ANSWERED, handler_take);
}

/* Whatever needs memory takes it now: from here on no send fails, and nobody waits in vain. */
static int bench_rehearse(struct bench *b)
{
	int rc = tern_request_data(b->t[COST_SOURCE], COST_DESTINATION, TAKE, from, 1);
	return rc ? rc : tern_poll(b->t[COST_DESTINATION]) == 1 ? 0 : -EPROTO;
}

int bench_open(struct bench *b, const struct operation *o)
{
	*b = (struct bench){ .op = o, .bytes = (size_t)o->words * WORD };
	receiver = b;
	int rc = tern_open_local(COST_SIDES, b->t);
	for (int side = 0; !rc && side < COST_SIDES; side++)
		rc = bench_handlers(b->t[side]);
	if (rc)
		return rc;
	if (o->setup)
		o->setup(b);
	return b->rc ? b->rc : bench_rehearse(b);
}

/* The ring of the answers, likewise. */
static void answers_align(struct bench *b)
{
	struct endpoint *e = b->t[COST_DESTINATION]->own;
	const struct tern_lane *lane = &e->site.peer[COST_SOURCE].answer;
	do {
		tern_request(b->t[COST_SOURCE], COST_DESTINATION, ANSWER, 1, 2);
		tern_poll(b->t[COST_DESTINATION]);
		tern_poll(b->t[COST_SOURCE]);
	} while (lane->tail != lane->base);
}

void bench_align(struct bench *b)
{
	struct tern_lane *lane = &b->t[COST_SOURCE]->lane[COST_DESTINATION];
	b->taken = 0;
	if (b->op->steps)
		answers_align(b);
	do {
		tern_request(b->t[COST_SOURCE], COST_DESTINATION, TAKE, 1, 2);
		tern_poll(b->t[COST_DESTINATION]);
	} while (lane->tail != lane->base);
	for (int i = 0; i < SETTLE; i++) { /* no inlet is taken for a stream */
		tern_look_around_(b->t[COST_SOURCE]);
		tern_look_around_(b->t[COST_DESTINATION]);
	}
}
