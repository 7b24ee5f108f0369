/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of runtime_layer_test.sh share: areas of segments, bytes, chance; and transfers of
 * scattered memory, against a reference; threads.
 */
#ifndef TERN_TESTS_RUNTIME_LAYER_H
#define TERN_TESTS_RUNTIME_LAYER_H

#include <pthread.h>
#include <stdio.h>

#include "runtime.h"

enum {
	HALF = 64 * 1024,
	AREA = 2 * HALF, /* of a segment, that each rank may write: its requests, its replies */
	RANKS_MOST = 16,
};

enum { ASK, ANSWER, LOOK, HOP, COUNT, COMPOSE, CALL, CALLED };

static uint64_t state; /* of the generator */

static size_t chance(size_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (size_t)(state >> 33) % below;
}

#define CHECK(what)                                                                         \
	((what) ? (void)0                                                                   \
		: (fprintf(stderr, "rank %u: line %d: not " #what "\n", rt.rank, __LINE__), \
		   rt_exit(1)))

/* Blocks, has a handle, or is implicit; finish() completes all three. */
static tern_op own = TERN_OP;

static tern_op *way(unsigned i, enum rt_kind kind)
{
	return i % 3 == 0 ? NULL : i % 3 == 1 ? &own : rt_implicit(kind);
}

static void finish(enum rt_kind kind)
{
	rt_wait(&own);
	rt_sync(kind);
}

/* Where rank `from` writes at rank `at`. */
static char *area(uint32_t at, uint32_t from)
{
	return rt.segment[at].base + (size_t)from * AREA;
}

/* Behind the areas. */
struct words {
	uint32_t narrow;
	int32_t most32;
	uint64_t wide, most, swapped, threads;
	float single;
	double sum;
};

static struct words *words_at(uint32_t rank)
{
	return (struct words *)(void *)(rt.segment[rank].base + (size_t)RANKS_MOST * AREA);
}

static void meet(void)
{
	rt_barrier(rt.world, NULL);
}

static char byte_of(size_t i, unsigned key)
{
	return (char)(i * 7 + key * 13 + (i >> 8));
}

static void fill(char *p, size_t len, unsigned key)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(i, key);
}

static int filled(const char *p, size_t len, unsigned key)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_of(i, key))
			return 0;
	return 1;
}

/* -- Scattered memory against a reference --------------------------------------------------- */

enum { DIMS_MOST = 4, SPACE = 60000 };

struct walk {
	size_t element, count[DIMS_MOST];
	ptrdiff_t dst[DIMS_MOST], src[DIMS_MOST];
	size_t dst_first, src_first; /* offsets of the first element */
	unsigned dims;
};

/* Strides under which elements of one side do not overlap; some are turned around. */
static size_t strides_choose(const struct walk *w, ptrdiff_t *stride)
{
	size_t extent = w->element, first = 0;
	for (unsigned d = 0; d < w->dims; d++) {
		stride[d] = (ptrdiff_t)(extent + chance(9));
		extent = (w->count[d] - 1) * (size_t)stride[d] + extent;
		if (chance(3) == 0) {
			first += (w->count[d] - 1) * (size_t)stride[d];
			stride[d] = -stride[d];
		}
	}
	return first;
}

static struct walk walk_choose(void)
{
	struct walk w = { .element = 1 + chance(17), .dims = (unsigned)chance(DIMS_MOST + 1) };
	for (unsigned d = 0; d < w.dims; d++)
		w.count[d] = 1 + chance(5);
	w.dst_first = strides_choose(&w, w.dst);
	w.src_first = strides_choose(&w, w.src);
	return w;
}

static void walk_copy(const struct walk *w, char *dst, const char *src)
{
	size_t at[DIMS_MOST] = { 0 };
	for (unsigned d = 0; d <= w->dims;) {
		char *to = dst + w->dst_first;
		const char *from = src + w->src_first;
		for (unsigned i = 0; i < w->dims; i++) {
			to += (ptrdiff_t)at[i] * w->dst[i];
			from += (ptrdiff_t)at[i] * w->src[i];
		}
		memcpy(to, from, w->element);
		for (d = 0; d < w->dims && ++at[d] == w->count[d]; d++)
			at[d] = 0;
		d += d == w->dims;
	}
}

static struct walk walked; /* of the strided transfer */
static char near_bytes[SPACE], far_bytes[SPACE], wanted[SPACE];

/* Both sides get bytes of their own; the far ones lie at `rank`. */
static void sides_set(uint32_t rank)
{
	for (size_t i = 0; i < SPACE; i++) {
		near_bytes[i] = (char)chance(256);
		far_bytes[i] = (char)chance(256);
	}
	rt_put(rank, area(rank, rt.rank), far_bytes, SPACE, NULL);
}

static void sides_check(uint32_t rank, enum rt_kind put)
{
	if (put == RT_PUTS)
		rt_get(far_bytes, rank, area(rank, rt.rank), SPACE, NULL);
	CHECK(memcmp(put == RT_PUTS ? far_bytes : near_bytes, wanted, SPACE) == 0);
}

/* Turns the far list into addresses, moves the data, and forgets the lists. */
static void parts_move(unsigned i, enum rt_kind put, uint32_t rank, tern_part *dst, size_t dsts,
		       tern_part *src, size_t srcs)
{
	tern_parts parts = { dst, src, dsts, srcs };
	rt_at(rank, put == RT_PUTS ? dst : src, put == RT_PUTS ? dsts : srcs);
	(put == RT_PUTS ? rt_put_parts : rt_get_parts)(&parts, way(i, put));
	memset(dst, 0xee, dsts * sizeof *dst); /* the lists are free on return */
	memset(src, 0xee, srcs * sizeof *src);
	memset(&walked, 0xee, sizeof walked);
	finish(put);
}

static void strided_transfers_are_those_of_the_reference(void)
{
	for (unsigned i = 0; i < 60; i++) {
		enum rt_kind put = chance(2) ? RT_PUTS : RT_GETS;
		uint32_t rank = (uint32_t)chance(rt.size);
		char *far = area(rank, rt.rank);
		walked = walk_choose();
		sides_set(rank);
		memcpy(wanted, put == RT_PUTS ? far_bytes : near_bytes, SPACE);
		walk_copy(&walked, wanted, put == RT_PUTS ? near_bytes : far_bytes);
		tern_part dst = { { (put == RT_PUTS ? far : near_bytes) + walked.dst_first },
				  walked.element,
				  walked.dims,
				  walked.count,
				  walked.dst };
		tern_part src = { { (put == RT_PUTS ? near_bytes : far) + walked.src_first },
				  walked.element,
				  walked.dims,
				  walked.count,
				  walked.src };
		parts_move(i, put, rank, &dst, 1, &src, 1);
		sides_check(rank, put);
	}
}

/* Pieces that divide `total` bytes by chance, with gaps between them, in a space from `base`. */
static size_t pieces_choose(tern_part *pieces, char *base, size_t total)
{
	size_t n = 0, at = 0;
	while (total) {
		size_t len = 1 + chance(700);
		len = len < total ? len : total;
		at += chance(40);
		pieces[n++] = (tern_part){ .base = base + at, .run = len };
		at += len;
		total -= len;
	}
	return n;
}

static void indexed_transfers_are_those_of_the_reference(void)
{
	static tern_part dst[20000], src[20000];
	for (unsigned i = 0; i < 30; i++) {
		enum rt_kind put = chance(2) ? RT_PUTS : RT_GETS;
		uint32_t rank = (uint32_t)chance(rt.size);
		char *far = area(rank, rt.rank), stream[20000];
		size_t total = 1 + chance(sizeof stream), used = 0;
		char *to = put == RT_PUTS ? far : near_bytes,
		     *from = put == RT_PUTS ? near_bytes : far;
		sides_set(rank);
		size_t srcs = pieces_choose(src, from, total), dsts = pieces_choose(dst, to, total);
		for (size_t k = 0; k < srcs; used += src[k++].run)
			memcpy(stream + used,
			       (put == RT_PUTS ? near_bytes : far_bytes) +
				       ((char *)src[k].base - from),
			       src[k].run);
		memcpy(wanted, put == RT_PUTS ? far_bytes : near_bytes, SPACE);
		used = 0;
		for (size_t k = 0; k < dsts; used += dst[k++].run)
			memcpy(wanted + ((char *)dst[k].base - to), stream + used, dst[k].run);
		parts_move(i, put, rank, dst, dsts, src, srcs);
		sides_check(rank, put);
	}
}

/* -- Threads: each has the same place at every rank ------------------------------------------- */

enum { THREADS = 3, CALLS = 50 };

static struct mate {
	pthread_t thread;
	tern *worker;
	tern_flag called;
} mates[THREADS];
static uint32_t ids[RANKS_MOST][THREADS]; /* of threads, as requests name them */

static void on_called(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	struct mate *m = &mates[args[0]];
	(void)n, (void)data, (void)len;
	CHECK(rt_is_reply(token) || ids[rt.rank][args[0]] == rt.rank || rt_here.t == m->worker);
	tern_signal(rt_here.t, &m->called, 1);
}

static void on_call(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	rt_reply(token, CALLED, data, len, n, args);
}

static void *mate_run(void *arg)
{
	struct mate *m = arg;
	uint32_t i = (uint32_t)(m - mates), next = (rt.rank + 1) % rt.size;
	uint64_t *place = (uint64_t *)(void *)area(next, rt.rank) + i;
	rt_thread_begin(m->worker);
	for (uint64_t k = 0; k < CALLS; k++) {
		rt_put_value(next, place, k, 8, k % 2 ? NULL : rt_implicit(RT_PUTS));
		rt_sync(RT_PUTS);
		CHECK(rt_get_value(next, place, 8) == k);
		rt_atomic(0, &words_at(0)->threads, TERN_AMO_ADD, 1, (uint64_t *)NULL,
			  rt_implicit(RT_ATOMICS));
		rt_request(next, CALL, k % 3 ? place : NULL, 0, 1, &i);
		rt_request(ids[next][i], CALLED, NULL, 0, 1, &i);
	}
	rt_must(tern_wait(rt_here.t, &m->called, 2 * CALLS));
	rt_thread_end();
	return NULL;
}

static void threads_call_ranks_and_each_other(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		rt_must(tern_worker_open(rt_here.t, &mates[i].worker));
		ids[rt.rank][i] = tern_worker_id(mates[i].worker);
	}
	rt_must(tern_team_allgather(rt.world, ids[rt.rank], ids, sizeof ids[0]));
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&mates[i].thread, NULL, mate_run, &mates[i]));
	rt_must(tern_detach(rt_here.t));
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_join(mates[i].thread, NULL));
	meet();
	CHECK(rt_get_value(0, &words_at(0)->threads, 8) == (uint64_t)THREADS * CALLS * rt.size);
}

#endif
