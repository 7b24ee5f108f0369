/* SPDX-License-Identifier: BSD-3-Clause */
/* The producing end of a ring: room, leaves, and lines that small messages share. */
#include "ring/ring.h"

#include "base/clock.h"
#include "base/wrap.h"

enum { LEAF_BITS = 32, MESSAGE_BITS = 32 }; /* that travel in packets */

enum { STREAM_TICKS = TICKS_BRIEF / 160 }; /* for a line of a stream, at most */

/*
 * Lap numbers wrap several times in the leaves that 32 bits count: near the last of those wraps, so
 * that a few laps cross both.
 */
uint64_t ring_first_leaf(void)
{
	uint64_t before = 1 + wrap_distance() / (RING_LEAVES * REQUEST_LEAF_LINES);
	uint64_t wraps = (UINT64_C(1) << LEAF_BITS) / RING_LEAVES / RING_LAPS;
	return wrap_distance() ? (wraps * RING_LAPS - before) * RING_LEAVES : 0;
}

uint64_t ring_first_message(void)
{
	return wrap_first(MESSAGE_BITS, 0);
}

static void head_publish(char *at, uint64_t head)
{
	/* ring.R1, release; acquired in inlet_drain(). */
	atomic_store_explicit(&((tern_msg *)(void *)at)->head, head, memory_order_release);
}

static void head_clear(char *at)
{
	atomic_store_explicit(&((tern_msg *)(void *)at)->head, 0, memory_order_relaxed);
}

/*
 * Which line a send fetches: its own, or one ahead of it if the last leaf was written as a stream
 * is. Ahead is right for a stream alone. The receiver of anything else looks at the next lines, so
 * they would go to the sender, back to the receiver, and to the sender again.
 */
static void lane_pace(struct tern_lane *lane)
{
	uint16_t now = (uint16_t)(tick_now() / STREAM_TICKS);
	bool streams = (uint16_t)(now - lane->entered) < lane->leaf_lines;
	lane->entered = now;
	lane->ahead = (uint16_t)(streams * (TERN_PREFETCH + 1) * TERN_LINE); /* without a branch */
}

static char *leaf_begin(const struct tern_lane *lane, uint64_t leaf)
{
	return lane->base + leaf % RING_LEAVES * lane->leaf_lines * TERN_LINE;
}

static void lane_enter(struct tern_lane *lane, uint64_t leaf)
{
	lane->leaf = leaf;
	lane->tail = leaf_begin(lane, leaf);
	lane->end = lane->tail + (size_t)(lane->leaf_lines - LEAF_KEPT) * TERN_LINE;
	lane->limit = lane->end;
	lane_pace(lane);
}

void lane_open(struct tern_lane *lane, char *memory, uint32_t leaf_lines, _Atomic uint64_t *freed,
	       _Atomic uint8_t *heed, uint32_t source, uint32_t peer)
{
	lane->base = memory;
	lane->leaf_lines = (uint16_t)leaf_lines;
	lane->freed = freed;
	lane->heed = heed;
	lane->peer = (uint16_t)peer;
	lane->leaf = ring_first_leaf();
	lane->head = ring_lap_of(lane->leaf, source);
	lane->pieces = ring_first_message() - lane->leaf * ring_leaf_room(leaf_lines);
	if (lane->leaf) /* memory is zero; nothing is given back before something is sent */
		atomic_store_explicit(freed, lane->leaf, memory_order_relaxed);
	lane_enter(lane, lane->leaf);
}

static bool lane_stuck(const struct tern_lane *lane)
{
	return lane->tail > lane->end;
}

/*
 * Clears what the last lap before the wrap left in a leaf: it would be greater than what is
 * expected there.
 */
static __attribute__((noinline)) void leaf_clear(const struct tern_lane *lane, uint64_t leaf)
{
	char *line = leaf_begin(lane, leaf);
	for (uint32_t i = 0; i < lane->leaf_lines; i++)
		head_clear(line + (size_t)i * TERN_LINE);
}

/* From the end of one leaf into the larger ring. */
static void lane_move(struct tern_lane *lane, const struct ring_memory *m)
{
	char *at = lane->tail;
	uint64_t next = lane->leaf + 1, head = lane->head, count = lane_count(lane);
	lane->base = m->lines;
	lane->leaf_lines = (uint16_t)m->leaf_lines;
	lane->carries = true;
	lane->freed = m->freed;
	if (next % RING_LEAVES == 0)
		lane->head = ring_next_lap(head);
	/* Before the header (ring.R1), so that it is there when the consumer writes it, too. */
	atomic_store_explicit(m->freed, next, memory_order_relaxed);
	head_publish(at, head | TERN_HEAD_CONTROL | CONTROL_GROW << TERN_ID_SHIFT);
	lane_enter(lane, next);
	lane->pieces -= lane_count(lane) - count;
}

/* Moves if it is time, and there is memory; asked once. */
static __attribute__((noinline)) bool lane_grow(struct tern_lane *lane)
{
	const struct ring_growth *growth = lane->growth;
	uint64_t next = lane->leaf + 1;
	struct ring_memory m;
	/* ring.R2, as in lane_next(). */
	bool full = next - atomic_load_explicit(lane->freed, memory_order_acquire) >= RING_LEAVES;
	if (!full && next - ring_first_leaf() < growth->leaves)
		return false;
	lane->growth = NULL;
	if (!growth->larger(growth, lane, &m))
		return false;
	lane_move(lane, &m);
	return true;
}

/* From the end of one leaf into the next, if the consumer has given that back. */
static bool lane_next(struct tern_lane *lane)
{
	if (TERN_UNLIKELY(lane->growth) && lane_grow(lane))
		return true;
	uint64_t next = lane->leaf + 1, head = lane->head;
	/*
	 * ring.R2, acquire; released in inlet_advance(): the consumer has read what is overwritten
	 * now.
	 */
	if (next - atomic_load_explicit(lane->freed, memory_order_acquire) >= RING_LEAVES)
		return false;
	if (next % RING_LEAVES == 0)
		lane->head = ring_next_lap(head);
	if (TERN_UNLIKELY(ring_wrapped(lane->head, next)))
		leaf_clear(lane, next); /* first: the consumer follows the line (ring.R1) */
	if (!lane_stuck(lane))          /* lines that are left for want of room for a payload */
		lane->pieces -= (uint64_t)(lane->end - lane->tail) / TERN_LINE + 1;
	head_publish(lane->tail, head | TERN_HEAD_CONTROL | CONTROL_NEXT << TERN_ID_SHIFT);
	lane_enter(lane, next);
	return true;
}

bool lane_ready(struct tern_lane *lane)
{
	return lane->piece || !lane_stuck(lane) || lane_next(lane);
}

/* Pieces that the open line has room for. */
static uint64_t lane_empty_pieces(const struct tern_lane *lane)
{
	return (uint64_t)(lane->tail + TERN_LINE - lane->piece) / TERN_PIECE;
}

/* Leaves the shared line, if one is open, with its rest padded. */
static void lane_close_line(struct tern_lane *lane)
{
	if (!lane->piece)
		return;
	if ((uintptr_t)lane->piece % TERN_LINE)
		head_publish(lane->piece,
			     lane->head | TERN_HEAD_CONTROL | CONTROL_PAD << TERN_ID_SHIFT);
	lane->pieces -= lane_empty_pieces(lane);
	lane->piece = NULL;
	lane->tail += TERN_LINE; /* cost: order setup */
	lane->limit = lane->end;
}

static void write_at(char *at, uint64_t head, const struct parcel *p)
{
	const uint64_t *w = p->word;
	tern_line_write_(at, head | p->bits, p->n, w[0], w[1], w[2], w[3], w[4], w[5]);
}

/*
 * Opens a line that pieces share, with its first piece; 0 if the leaf has no line
 * for that. While a line is shared, limit is 0: the inline path then brings
 * whole-line messages to lane_put(), and only those, without a test of its own.
 */
int tern_lane_share_(struct tern_lane *lane, uint64_t bits, uint64_t word)
{
	char *line =
		lane->piece ? lane->tail + TERN_LINE : lane->tail; /* a full line is left behind */
	if (TERN_UNLIKELY(line >= lane->end))
		return 0;
	for (int at = TERN_PIECE; at < TERN_LINE; at += TERN_PIECE)
		head_clear(line + at);
	((tern_msg *)(void *)line)->word[0] = word;
	head_publish(line, lane->head | TERN_HEAD_PIECE | bits);
	tern_prefetch_write_(line + lane->ahead);
	lane->tail = line;
	lane->piece = line + TERN_PIECE;
	lane->limit = NULL;
	lane->pieces += TERN_LINE / TERN_PIECE - 1;
	return 1;
}

bool lane_carries(struct tern_lane *lane, size_t len)
{
	if (!lane->carries || len > TERN_CARRY_MAX)
		return false;
	lane_close_line(lane);
	return lane->tail + carry_bytes(len) <= lane->end || lane_next(lane);
}

static void put_line(struct tern_lane *lane, const struct parcel *p)
{
	bool two = words_double(p->n);
	if (TERN_UNLIKELY(two)) {
		tern_second_write_(lane, lane->tail, p->n, p->word);
		/* lane_count() counts up to a leaf's room: there the second line is no message. */
		lane->pieces -= lane->tail < lane->end;
	}
	if (p->bits & TERN_HEAD_PAYLOAD)
		((tern_msg *)(void *)lane->tail)->payload =
			(uint64_t)(p->payload - lane->tail) << TERN_LEN_BITS | p->len;
	write_at(lane->tail, lane->head | (two ? TERN_HEAD_CONTROL : 0), p);
	tern_prefetch_write_(lane->tail + lane->ahead);
	lane->tail += TERN_LINE << two;                         /* cost: order setup */
	if (lane_stuck(lane) && !lane_next(lane) && lane->gate) /* cost: flow status */
		lane->gate->accept = 0;
}

void lane_put(struct tern_lane *lane, const struct parcel *p)
{
	bool small = p->n < 2 && !(p->bits & TERN_HEAD_PAYLOAD);
	if (small && (uintptr_t)lane->piece % TERN_LINE) {
		write_at(lane->piece, lane->head | TERN_HEAD_PIECE, p);
		lane->piece += TERN_PIECE;
		return;
	}
	lane_close_line(lane);
	if (p->carried) {
		const uint64_t *w = p->word;
		tern_lane_carry_(lane, p->bits, p->n, p->payload, p->len, w[0], w[1], w[2], w[3],
				 w[4], w[5]);
		return;
	}
	if (!small || !tern_lane_share_(lane, p->bits, p->word[0]))
		put_line(lane, p);
}

void lane_shut(struct tern_lane *lane)
{
	if (lane->piece) {
		lane->pieces -= lane_empty_pieces(lane);
		lane->tail += TERN_LINE;
	}
	lane->limit = NULL; /* brings every send to tern_request_rare_() */
	lane->piece = NULL;
	lane->end = NULL;
	lane->carries = false;
}

/*
 * Nobody counts messages as they are sent: a leaf has as many as it has room for lines, and what
 * pieces add to that is counted where shared lines begin and end, what second lines take where they
 * are written. Behind its room a leaf has only the second line of its last message.
 */
uint64_t lane_count(const struct tern_lane *lane)
{
	if (!lane->base)
		return ring_first_message();
	uint64_t room = ring_leaf_room(lane->leaf_lines),
		 here = (uint64_t)(lane->tail - leaf_begin(lane, lane->leaf)) / TERN_LINE;
	uint64_t lines = lane->leaf * room + (here < room ? here : room);
	uint64_t pieces = lane->pieces;
	/* The open line is not among those behind the tail. */
	if (lane->piece)
		pieces += 1 - lane_empty_pieces(lane);
	return lines + pieces;
}

uint64_t lane_sent(const struct tern_lane *lane)
{
	return lane_count(lane) - ring_first_message();
}
