/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine allows: the same rows by loads, stores and memcpy() in memory that both ranks
 * share. A message is a word with nothing around it: no order among senders, no handler, no length,
 * and room that somebody else has seen to.
 */
#include <stdatomic.h>
#include <string.h>

#include "pair.h"
#include "peer.h"

enum { RING = 1 << 12 };

/* A word is its number plus 1 when it is there. */
static _Atomic uint64_t *there, *back, *ring, *taken;
static _Atomic uint64_t *offered, *copied; /* blocks of peer_stream() */
static double **source;
static uint64_t trips, words, blocks; /* so far */
static size_t apart_by;               /* rank 1's memory behind rank 0's */

void pair_open(void)
{
	there = pair_shared(64);
	back = pair_shared(64);
	taken = pair_shared(64);
	offered = pair_shared(64);
	copied = pair_shared(64);
	source = pair_shared(PEER_WINDOW * sizeof *source);
	ring = pair_shared(RING * sizeof *ring);
}

void pair_close(void)
{
}

void pair_progress(void)
{
}

static uint64_t word_await(_Atomic uint64_t *at, uint64_t least)
{
	uint64_t word;
	while ((word = atomic_load_explicit(at, memory_order_acquire)) < least)
		pair_idle();
	return word;
}

uint64_t peer_trips(uint64_t count)
{
	uint64_t sum = 0, first = trips;
	for (uint64_t i = 0; i < count; i++) {
		trips++;
		if (peer_rank() == 0) {
			atomic_store_explicit(there, trips, memory_order_release);
			sum += word_await(back, trips) - first;
		} else {
			word_await(there, trips);
			atomic_store_explicit(back, trips, memory_order_release);
		}
	}
	return sum;
}

/* The ring's room is looked at once in a half of it. */
void peer_words_send(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (words % (RING / 2) == 0 && words >= RING)
			word_await(taken, words - RING / 2);
		atomic_store_explicit(&ring[words % RING], words + 1, memory_order_release);
		words++;
	}
}

uint64_t peer_words_take(uint64_t count)
{
	uint64_t sum = 0, first = words;
	for (uint64_t i = 0; i < count; i++) {
		sum += word_await(&ring[words % RING], words + 1) - 1 - first;
		words++;
		if (words % (RING / 2) == 0)
			atomic_store_explicit(taken, words, memory_order_release);
	}
	return sum;
}

/* -- Memory: one copy, by whoever needs the data ------------------------------------ */

/* Both ranks' buffers, rank 0's first. */
double *peer_buffer(size_t bytes)
{
	double *both = pair_shared(2 * bytes);
	return both + (peer_rank() ? bytes / sizeof *both : 0);
}

/* Rank 0 says where the data are, and rank 1 copies them. */
void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++, blocks++) {
		double *at = data + i % places * apart;
		if (peer_rank() == 0) {
			if (blocks >= PEER_WINDOW)
				word_await(copied, blocks - PEER_WINDOW + 1);
			source[blocks % PEER_WINDOW] = at;
			atomic_store_explicit(offered, blocks + 1, memory_order_release);
		} else {
			word_await(offered, blocks + 1);
			memcpy(at, source[blocks % PEER_WINDOW], n * sizeof *at);
			atomic_store_explicit(copied, blocks + 1, memory_order_release);
		}
	}
	if (peer_rank() == 0)
		word_await(copied, blocks);
}

double *peer_memory(size_t bytes)
{
	apart_by = bytes / sizeof(double);
	return peer_buffer(bytes);
}

void peer_put(double *at, size_t n)
{
	memcpy(at + apart_by, at, n * sizeof *at);
	atomic_thread_fence(memory_order_release);
}

void peer_get(double *at, size_t n)
{
	atomic_thread_fence(memory_order_acquire);
	memcpy(at, at + apart_by, n * sizeof *at);
}
