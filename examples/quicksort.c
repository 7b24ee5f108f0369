/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parallel quicksort of threads that messages start. The numbers lie in the heap of rank 0, which
 * ranks of its machine map, and others get and put. A thread divides its part, has the smaller
 * numbers sorted by a new thread on the next rank, goes on with the greater ones, and tells rank 0
 * how many it has brought to their places. No thread waits for another, so a few contexts on each
 * rank are enough for any number of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/mem.h>
#include <tern/thread.h>

enum { NUMBERS = 200000, FEW = 256, SORT = 0, SORTED = 0 };

static tern_flag sorted; /* numbers in their places, as rank 0 knows */
static uint64_t threads; /* that have run on this rank */

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "quicksort: %s\n", tern_strerror(rc));
	exit(1);
}

static void on_sorted(tern *t, const tern_msg *m)
{
	tern_signal(t, &sorted, tern_msg_word(m, 0));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Afterwards those before the result are not greater than the rest, and neither part is empty. */
static size_t divide(uint64_t *x, size_t n)
{
	uint64_t pivot = x[n / 2];
	size_t i = 0, j = n - 1;
	for (;; i++, j--) {
		while (x[i] < pivot)
			i++;
		while (x[j] > pivot)
			j--;
		if (i >= j)
			return i > 0 ? i : 1;
		uint64_t swapped = x[i];
		x[i] = x[j];
		x[j] = swapped;
	}
}

/* Numbers that lie on another machine are sorted in a copy, one part at a time. */
static uint64_t copy[NUMBERS];
static tern_mutex copy_lock; /* held while its thread waits for the numbers, and others run */

static uint64_t *copy_get(tern *t, tern_addr at, size_t n)
{
	must(tern_mutex_take(t, &copy_lock));
	must(tern_get(t, copy, at, n * sizeof *copy));
	return copy;
}

/* A few numbers travel in the message that creates their thread. */
static void spawn_sort(tern *t, tern_addr at, const uint64_t *x, uint64_t n)
{
	tern_spawn_args a = { .rank = (tern_rank(t) + 1) % tern_size(t),
			      .id = SORT,
			      .n = 2,
			      .words = (const uint64_t[]){ at, n } };
	if (n <= FEW) {
		a.data = x;
		a.len = n * sizeof *x;
	}
	must(tern_spawn_with(t, &a));
}

static void sort_few(tern *t, tern_addr at, const tern_thread_info *self)
{
	uint64_t few[FEW];
	memcpy(few, self->data, self->len);
	qsort(few, self->len / sizeof *few, sizeof *few, compare);
	must(tern_put(t, at, few, self->len));
	must(tern_request(t, 0, SORTED, self->len / sizeof *few));
}

/* Words: where the part begins, and how many numbers it has. */
static uint64_t sort(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_addr at = word[0];
	size_t n = word[1];
	const tern_thread_info self = tern_thread_self(t);
	threads++; /* no other thread runs before this one waits */
	if (self.data) {
		sort_few(t, at, &self);
		return 0;
	}
	void *near;
	int mapped = !tern_addr_local(t, at, n * sizeof(uint64_t), &near);
	uint64_t *x = mapped ? near : copy_get(t, at, n);
	while (n > FEW) {
		size_t less = divide(x, n);
		if (!mapped && less > FEW)
			must(tern_put(t, at, x, less * sizeof *x));
		spawn_sort(t, at, x, less);
		at += less * sizeof *x;
		x += less;
		n -= less;
	}
	qsort(x, n, sizeof *x, compare);
	if (!mapped) {
		must(tern_put(t, at, x, n * sizeof *x));
		must(tern_mutex_release(t, &copy_lock));
	}
	must(tern_request(t, 0, SORTED, n));
	return 0;
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, SORTED, on_sorted));
	must(tern_thread_on(t, SORT, sort, NULL));
	must(tern_barrier(t)); /* everybody knows the function */
	if (tern_rank(t) == 0) {
		void *memory;
		must(tern_alloc(t, NUMBERS * sizeof(uint64_t), &memory));
		uint64_t *x = memory, wrong = 0;
		for (size_t i = 0; i < NUMBERS; i++)
			x[i] = i * UINT64_C(0x9e3779b97f4a7c15) >> 20;
		tern_addr at;
		must(tern_addr_of(t, x, &at));
		must(tern_spawn(t, 0, SORT, NULL, NULL, at, NUMBERS));
		must(tern_wait(t, &sorted, NUMBERS));
		for (size_t i = 1; i < NUMBERS; i++)
			wrong += x[i - 1] > x[i];
		printf("%d numbers, %u wrong\n", NUMBERS, (unsigned)wrong);
		must(tern_free(t, memory));
	}
	must(tern_barrier(t)); /* until then the others' threads run while they wait here */
	printf("rank %u: %u threads\n", tern_rank(t), (unsigned)threads);
	must(tern_close(t));
	return 0;
}
