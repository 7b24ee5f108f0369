/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits: cache lines and copies between two processes, without a library. */
#include "lab/bench/raw.h"

#include <sched.h>
#include <string.h>

#include "base/cpu.h"
#include "lab/bench/test.h"

enum { PATIENCE = 1 << 15 }; /* looks; then the other side probably has no core */

uint64_t raw_sink;

/* raw.R10, acquire: what was written before the value is visible with it. */
static inline __attribute__((always_inline)) void raw_wait(_Atomic uint64_t *at, uint64_t least,
							   enum raw_manner manner)
{
	for (unsigned looks = 0; atomic_load_explicit(at, memory_order_acquire) < least; looks++) {
		if (manner == RAW_YIELD || looks >= PATIENCE)
			sched_yield();
		else if (manner == RAW_PAUSE)
			cpu_relax();
	}
}

static inline void raw_tell(_Atomic uint64_t *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_release); /* raw.R10 */
}

static inline __attribute__((always_inline)) void trip_loop(struct raw *r, uint32_t rank,
							    uint64_t count, enum raw_manner manner)
{
	struct raw_arena *a = r->arena;
	for (uint64_t i = r->trips + 1; i <= r->trips + count; i++) {
		if (rank) {
			raw_wait(&a->ping[i % RAW_LINES].head, i, manner);
			raw_tell(&a->pong[i % RAW_LINES].head, i);
		} else {
			raw_tell(&a->ping[i % RAW_LINES].head, i);
			raw_wait(&a->pong[i % RAW_LINES].head, i, manner);
		}
	}
	r->trips += count;
}

static enum raw_manner manner_of(const struct bench_rank *p)
{
	return p->raw.crowded ? RAW_YIELD : (enum raw_manner)p->way;
}

/* The manner is a constant in each loop, so that it costs the loop nothing. */
int raw_trips(struct bench_rank *p)
{
	enum raw_manner manner = manner_of(p);
	if (manner == RAW_YIELD)
		trip_loop(&p->raw, p->rank, p->count, RAW_YIELD);
	else if (manner == RAW_PAUSE)
		trip_loop(&p->raw, p->rank, p->count, RAW_PAUSE);
	else
		trip_loop(&p->raw, p->rank, p->count, RAW_BARE);
	return 0;
}

static inline void line_write(struct raw_line *l, uint64_t i)
{
	l->word[0] = i;
	l->word[1] = i;
	l->word[2] = i;
	l->word[3] = i;
	raw_tell(&l->head, i + 1);
}

static inline uint64_t line_sum(const struct raw_line *l)
{
	return l->word[0] + l->word[1] + l->word[2] + l->word[3];
}

/* Credit comes back a quarter of the ring at a time. */
static void stream_send(struct raw_arena *a, uint64_t first, uint64_t count, enum raw_manner manner)
{
	for (uint64_t i = first; i < first + count; i++) {
		if (i % RAW_LEAF == 0 && i >= RAW_LINES)
			raw_wait(&a->freed.head, i / RAW_LEAF - RING_LEAVES + 1, manner);
		line_write(&a->stream[i % RAW_LINES], i);
		tern_prefetch_write_(&a->stream[i % RAW_LINES + TERN_PREFETCH]);
	}
	raw_wait(&a->finished.head, first + count, manner);
}

static void stream_take(struct raw_arena *a, uint64_t first, uint64_t count, enum raw_manner manner)
{
	uint64_t sum = 0;
	for (uint64_t i = first; i < first + count; i++) {
		struct raw_line *l = &a->stream[i % RAW_LINES];
		raw_wait(&l->head, i + 1, manner);
		__builtin_prefetch(l + TERN_PREFETCH);
		sum += line_sum(l);
		if ((i + 1) % RAW_LEAF == 0)
			raw_tell(&a->freed.head, (i + 1) / RAW_LEAF);
	}
	raw_sink += sum;
	raw_tell(&a->finished.head, first + count);
}

/* A ring of messages with their payload in the lines behind them; a leaf's end parts none. */
struct carrier {
	struct raw_arena *arena;
	uint64_t lines, room; /* of a message; messages of a leaf */
	uint64_t leaf, at;    /* where the next one is */
};

static struct carrier carrier_at(const struct bench_rank *p)
{
	struct carrier c = { .arena = p->raw.arena, .lines = 1 + (p->size + 63) / 64 };
	c.room = RAW_LEAF / c.lines;
	c.leaf = p->raw.copies / c.room;
	c.at = p->raw.copies % c.room;
	return c;
}

static inline struct raw_line *carrier_line(const struct carrier *c, uint64_t ahead)
{
	return &c->arena->stream[(c->leaf % RING_LEAVES * RAW_LEAF + c->at * c->lines + ahead) %
				 RAW_LINES];
}

/* True if that was the leaf's last one. */
static inline bool carrier_next(struct carrier *c)
{
	bool last = ++c->at == c->room;
	c->leaf += last;
	c->at = last ? 0 : c->at;
	return last;
}

static void carry_send(const struct bench_rank *p, const void *data, enum raw_manner manner)
{
	struct carrier c = carrier_at(p);
	uint64_t ahead = (TERN_PREFETCH + 1) * c.lines / 2;
	for (uint64_t i = p->raw.copies; i < p->raw.copies + p->count; i++, carrier_next(&c)) {
		if (c.at == 0 && c.leaf >= RING_LEAVES)
			raw_wait(&c.arena->freed.head, c.leaf - RING_LEAVES + 1, manner);
		struct raw_line *l = carrier_line(&c, 0);
		for (uint64_t k = 0; k < c.lines; k++)
			tern_prefetch_write_(carrier_line(&c, ahead + k));
		memcpy(l + 1, data, p->size);
		line_write(l, i);
	}
}

static void carry_take(const struct bench_rank *p, enum raw_manner manner)
{
	struct carrier c = carrier_at(p);
	for (uint64_t i = p->raw.copies; i < p->raw.copies + p->count; i++) {
		struct raw_line *l = carrier_line(&c, 0);
		raw_wait(&l->head, i + 1, manner);
		raw_sink += line_sum(l) + raw_sum(l + 1, p->size);
		if (carrier_next(&c))
			raw_tell(&c.arena->freed.head, c.leaf);
	}
}

/* A slot's `use` is even when it may be written, odd when it may be read; it grows by 2 each use.
 */
static void slot_fill(struct raw_slot *s, uint64_t use, char *to, const void *data, size_t len,
		      enum raw_manner manner)
{
	raw_wait(&s->use, 2 * use, manner);
	memcpy(to, data, len);
	raw_tell(&s->use, 2 * use + 1);
}

static void slot_empty(struct raw_slot *s, uint64_t use, const char *from, size_t len,
		       enum raw_manner manner)
{
	raw_wait(&s->use, 2 * use + 1, manner);
	raw_sink += raw_sum(from, len);
	raw_tell(&s->use, 2 * use + 2);
}

static void slots_copy(const struct bench_rank *p, const void *data, enum raw_manner manner)
{
	const struct raw *r = &p->raw;
	for (uint64_t i = r->copies; i < r->copies + p->count; i++) {
		uint64_t at = i % TERN_POOL_BLOCKS, use = i / TERN_POOL_BLOCKS;
		struct raw_slot *s = &r->arena->slot[at];
		char *place = p->size > TERN_PAYLOAD_MAX ? r->arena->large[at].data : s->data;
		if (p->rank)
			slot_empty(s, use, place, p->size, manner);
		else
			slot_fill(s, use, place, data, p->size, manner);
	}
}

int raw_copies(struct bench_rank *p, const void *data)
{
	struct raw *r = &p->raw;
	enum raw_manner manner = manner_of(p);
	if (p->size > TERN_CARRY_MAX)
		slots_copy(p, data, manner);
	else if (p->rank)
		carry_take(p, manner);
	else
		carry_send(p, data, manner);
	r->copies += p->count;
	if (p->rank)
		raw_tell(&r->arena->finished.head, r->copies);
	else
		raw_wait(&r->arena->finished.head, r->copies, manner);
	return 0;
}

int raw_stream(struct bench_rank *p)
{
	static const uint64_t rest[2];
	if (p->size > TERN_LINE_WORDS) /* two lines: the size in words is that of two in bytes */
		return raw_copies(p, rest);
	(p->rank ? stream_take : stream_send)(p->raw.arena, p->raw.lines, p->count, manner_of(p));
	p->raw.lines += p->count;
	return 0;
}

int raw_laps(struct bench_rank *p)
{
	struct raw *r = &p->raw;
	enum raw_manner manner = r->crowded ? RAW_YIELD : RAW_PAUSE;
	struct raw_line *mine = &r->arena->token[p->rank],
			*next = &r->arena->token[(p->rank + 1) % p->ranks];
	for (uint64_t lap = r->laps + 1; lap <= r->laps + p->count; lap++) {
		if (p->rank == 0)
			raw_tell(&next->head, lap);
		raw_wait(&mine->head, lap, manner);
		if (p->rank != 0)
			raw_tell(&next->head, lap);
	}
	r->laps += p->count;
	return 0;
}

void raw_write_own(struct raw_line *line, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		line_write(&line[i % RAW_LINES], i);
}

uint64_t raw_read_own(const struct raw_line *line, uint64_t first, uint64_t count)
{
	uint64_t sum = 0;
	for (uint64_t i = first; i < first + count; i++)
		sum += line_sum(&line[i % RAW_LINES]);
	return sum;
}

/* Four sums at a time: one would wait for itself. */
uint64_t raw_sum(const void *data, size_t len)
{
	if (!len)
		return 0; /* and there may be no data */
	const char *at = data, *end = at + len / 32 * 32;
	uint64_t sum[4] = { 0 }, word[4];
	for (; at < end; at += sizeof word) {
		memcpy(word, at, sizeof word);
		for (int i = 0; i < 4; i++)
			sum[i] += word[i];
	}
	for (size_t i = 0; i < len % 32; i++)
		sum[0] += (unsigned char)at[i];
	return sum[0] + sum[1] + sum[2] + sum[3];
}

void compute(uint64_t steps)
{
	uint64_t x = steps | 1;
	for (uint64_t i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	raw_sink = x; /* not +=: a handler that adds to it may come in between */
}
